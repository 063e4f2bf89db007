"""`gristmill distinct` against naive Python and `sort | uniq`; where its output goes."""

import gzip
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gristmill

from .harness import GRISTMILL, clean_environment, end, failure, names, report, run, start
from .resuming import is_killed, is_over, kept, kill_when, killed_again_and_again, tree

MARK = b"\xef\xbb\xbf"


def lines_of(text: bytes) -> list[bytes]:
    """The lines, of which LF ends each but perhaps the last."""
    lines = text.removeprefix(MARK).split(b"\n")
    return lines if lines[-1] else lines[:-1]


def written(*words: str | Path) -> bytes:
    """What a command line writes to standard output."""
    command = [GRISTMILL, *map(str, words)]
    done = subprocess.run(command, capture_output=True, env=clean_environment(), check=True)
    assert done.stderr == b""
    return done.stdout


def has_begun(phase: str, events: list[dict[str, Any]]) -> bool:
    return any(event.get("name") == phase for event in events)


@pytest.fixture(scope="module")
def two_parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """So many bytes that one file is made of two parts."""
    path = tmp_path_factory.mktemp("input") / "in"
    chance = random.Random(11)
    block = b"".join(b"%x\n" % chance.getrandbits(400) for _ in range(10_000))
    with path.open("wb") as file:
        while file.tell() <= 256 << 20:
            file.write(block)
        file.writelines(b"%x\n" % chance.getrandbits(400) for _ in range(10_000))
    return path


def parts_of(out: Path) -> list[bytes]:
    return [(out / name).read_bytes() for name in names(out) if name.startswith("part-")]


def in_order(lines: Sequence[bytes], keep: str = "first") -> list[bytes]:
    """One of each, at the place of the one that is kept."""
    if keep == "first":
        return list(dict.fromkeys(lines))
    return list(dict.fromkeys(reversed(lines)))[::-1]


@given(
    st.lists(st.lists(st.sampled_from([b"a", b"b", b"\n", b"\r\n", b"\xff", b" ", b"a\n"]))),
    st.integers(1, 4),
    st.sampled_from(["first", "last"]),
)
def test_any_lines_are_counted(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[list[bytes]], parts: int, keep: str
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    (folder / "in").mkdir()
    texts = [b"".join(some) for some in pieces] or [b""]
    for number, text in enumerate(texts):
        (folder / "in" / f"{number:03}").write_bytes(text)
    lines = [line for text in texts for line in lines_of(text)]
    counts = Counter(lines)
    for repeated, once in ((False, False), (True, False), (False, True)):
        out = folder / f"out{repeated}{once}"
        done = gristmill.unique(
            folder / "in",
            output=out,
            parts=parts,
            count=True,
            repeated=repeated,
            once=once,
            keep=keep,
        )
        found = [line for part in parts_of(out) for line in part.split(b"\n")[:-1]]
        assert found == [
            b"%7d %s" % (counts[line], line)
            for line in in_order(lines, keep)
            if (counts[line] > 1 or not repeated) and (counts[line] == 1 or not once)
        ]
        assert len(parts_of(out)) == parts
        assert done.counters["REDUCE_OUTPUT_RECORDS"] == len(found)
        assert done.counters["REGROUPED_RECORDS"] == len(found)


@pytest.mark.parametrize("options", [[], ["--count"], ["--repeated"], ["--once"]])
def test_what_is_sorted_is_what_uniq_prints(options: list[str], tmp_path: Path) -> None:
    chance = random.Random(3)
    lines = [b"%x" % chance.getrandbits(chance.choice((6, 12, 90))) for _ in range(60_000)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(b"\n".join(lines[:40_000]) + b"\n")
    (tmp_path / "in" / "b.gz").write_bytes(gzip.compress(b"\n".join(lines[40_000:])))
    command = ("distinct", "--sorted", tmp_path / "in", *options)
    run(*command, "-o", tmp_path / "out", "--parts", "1")
    run(*command, "-o", tmp_path / "file")
    printed = written(*command)
    short = {"--count": "-c", "--repeated": "-d", "--once": "-u"}
    uniq = subprocess.run(
        ["uniq", *(short[option] for option in options)],
        input=b"\n".join(sorted(lines)) + b"\n",
        capture_output=True,
        check=True,
    )
    assert parts_of(tmp_path / "out") == [uniq.stdout]
    assert (tmp_path / "file").read_bytes() == uniq.stdout
    assert printed == uniq.stdout


@pytest.fixture(scope="module")
def several_splits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[bytes]]:
    """A directory of more than 13 MB: of two files, and a compressed one between them."""
    folder = tmp_path_factory.mktemp("splits")
    chance = random.Random(5)
    lines = [b"%060x" % (chance.getrandbits(18) << 200) for _ in range(230_000)]
    (folder / "a").write_bytes(b"\n".join(lines[:210_000]))
    (folder / "b.gz").write_bytes(gzip.compress(b"\n".join(lines[210_000:220_000]), 1))
    (folder / "c").write_bytes(b"\n".join(lines[220_000:]))
    assert (folder / "a").stat().st_size > 12 << 20
    return folder, lines


PLACES = (["--workers", "1"], ["--workers", "2", "--memory", "30M"], ["--runner", "processes"])


@pytest.mark.parametrize("keep", ["first", "last"])
def test_any_workers_and_memory_give_the_same_bytes(
    keep: str, several_splits: tuple[Path, list[bytes]], tmp_path: Path
) -> None:
    folder, lines = several_splits
    found: list[list[bytes]] = []
    for number, options in enumerate(PLACES):
        out = tmp_path / f"out{number}"
        run("distinct", folder, "-o", out, "--parts", "3", "--keep", keep, *options)
        found.append(parts_of(out))
    assert found[0] == found[1] == found[2]
    assert b"".join(found[0]).split(b"\n")[:-1] == in_order(lines, keep)
    assert all(part.count(b"\n") > 1000 for part in found[0])
    keyed = written("distinct", "-k1.1,1.60", folder, "--keep", keep)
    assert keyed == b"".join(found[0])


def test_explain_says_what_the_order_costs(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"b\na\nb\n")
    explain = ("explain", "distinct", tmp_path / "in", "-o", tmp_path / "out")
    assert report(*explain, "--parts", "3")["parts"] == 3
    plan = report(*explain)
    assert plan["parts"] == 1
    assert "put together" in plan["reason"]
    assert "the order of the input takes" in plan["reason"]
    assert [stage["name"] for stage in plan["stages"]] == ["map", "regroup", "reduce"]
    plan = report(*explain, "--sorted")
    assert "the order of the input takes" not in plan["reason"]
    assert [stage["name"] for stage in plan["stages"]] == ["map", "reduce"]


@pytest.mark.parametrize("parts", [("--parts", "3"), ()])
def test_killed_at_any_moment(parts: tuple[str, ...], home: Path, tmp_path: Path) -> None:
    chance = random.Random(7)
    source, out, wanted = tmp_path / "in", tmp_path / "out", tmp_path / "wanted"
    source.write_bytes(b"\n".join(b"%x" % chance.getrandbits(40) for _ in range(1_000_000)))
    options = (*parts, "--memory", "26M")
    began_s = time.monotonic()
    run("distinct", source, "-o", wanted, *options)
    took_s = time.monotonic() - began_s
    shutil.rmtree(home, ignore_errors=True)  # of a run that took long
    command: list[str | Path] = ["distinct", source, "-o", out, *options]
    killed = killed_again_and_again(command, home, took_s=took_s)
    assert tree(out) == tree(wanted)
    assert names(tmp_path) == ["home", "in", "out", "wanted"]
    assert killed >= 1, "the job was over before it could be killed"


@pytest.mark.parametrize(
    ("phase", "tasks"), [("regroup", 3), ("regroup", 6), ("reduce", 7)], ids=str
)
def test_killed_while_pairs_are_regrouped_and_put_in_order(
    phase: str, tasks: int, several_splits: tuple[Path, list[bytes]], home: Path, tmp_path: Path
) -> None:
    """After so many tasks: of three maps at least, four that regroup, and four that reduce."""
    folder, lines = several_splits
    out, options = tmp_path / "out", ("--parts", "4", "--workers", "1", "--memory", "30M")

    def is_time(events: list[dict[str, Any]]) -> bool:
        return has_begun(phase, events) and kept(events, "work") >= tasks

    kill_when(["distinct", folder, "-o", out, *options], home, is_time)
    done = json.loads(run("resume", "last", "--json").stdout)
    assert done["counters"]["KEPT_TASKS"] >= tasks
    assert b"".join(parts_of(out)).split(b"\n")[:-1] == in_order(lines)
    assert names(tmp_path) == ["home", "out"]


@pytest.mark.parametrize("sync", [(), ("--no-sync",)])
def test_killed_while_parts_are_put_together(
    sync: tuple[str, ...], two_parts: Path, home: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = ("distinct", two_parts, "-o", out, "--count", *sync)
    wanted = written("distinct", two_parts, "--count")
    shutil.rmtree(home, ignore_errors=True)  # of a run that took long
    out.write_bytes(b"old")
    killed = is_killed([*command], home, lambda events: has_begun("commit", events))
    assert out.read_bytes() in (b"old", wanted)
    if killed:
        assert is_over(end(start("resume", "last")))
    assert out.read_bytes() == wanted
    assert [name for name in names(tmp_path) if "gristmill" in name] == []


def test_a_file_is_the_parts_one_after_another(two_parts: Path, tmp_path: Path) -> None:
    out, file = tmp_path / "out", tmp_path / "file"
    run("distinct", two_parts, "-o", out, "--count", "--parts", "2")
    done = report("distinct", two_parts, "-o", file, "--count")
    one, other = parts_of(out)
    assert file.read_bytes() == one + other
    assert one
    assert other
    assert (done["parts"], done["output_bytes"]) == (1, len(one + other))
    assert done["records"] == (one + other).count(b"\n")
    assert written("distinct", two_parts, "--count") == one + other


def test_a_file_takes_the_place_of_one_that_is_there(tmp_path: Path) -> None:
    """Also of the input, with its permissions; a file that others hold open stays as it is."""
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"b\na\nb\n")
    file.chmod(0o640)
    link.symlink_to("file")
    with file.open("rb") as before:
        run("distinct", file, "-o", link)
        assert before.read() == b"b\na\nb\n"
    assert file.read_bytes() == b"b\na\n"
    assert file.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert names(tmp_path) == ["file", "link"]


def test_what_is_no_file_is_written_and_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"b\na\nb\n")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = start("distinct", tmp_path / "in", "-o", pipe)
    assert pipe.read_bytes() == b"b\na\n"
    assert end(process).status == 0
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert written("distinct", tmp_path / "in", "-o", "/dev/stdout") == b"b\na\n"
    assert written("distinct", tmp_path / "in", "-o", "-") == b"b\na\n"
    assert run("distinct", tmp_path / "in", "-o", "/dev/null").stdout == ""
    assert names(tmp_path) == ["in", "pipe"]


def test_a_job_that_fails_writes_nothing_to_a_stream(tmp_path: Path) -> None:
    """The end of the input is damaged: the lines before are not printed."""
    packed = gzip.compress(b"".join(b"%d\n" % number for number in range(100_000)))
    (tmp_path / "in.gz").write_bytes(packed[:-20])
    done = run("distinct", tmp_path / "in.gz", status=1, cwd=tmp_path)
    assert done.stdout == ""
    assert names(tmp_path) == ["in.gz"]


def test_a_reader_that_leaves_ends_the_job_quietly(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"".join(b"%d\n" % number for number in range(200_000)))
    command = [GRISTMILL, "distinct", str(tmp_path / "in")]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 128 + signal.SIGPIPE
    assert names(tmp_path) == ["in"]


def test_python_writes_where_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"b\na\nb\n")
    done = gristmill.unique(tmp_path / "in", output=tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"b\na\n"
    assert (done.parts, done.records, done.output_bytes) == (1, 2, 4)
    code = f"import gristmill; gristmill.unique({str(tmp_path / 'in')!r})"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert printed.stdout == b"b\na\n"


def test_outputs_that_cannot_be_are_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(b"a\n")
    for words, says in (
        (("-o", tmp_path / "in"), "it is a directory"),
        (("--parts", "2"), "parts go to a directory"),
        (("--parts", "2", "-o", "/dev/null"), "parts go to a directory"),
        (("--parts", "2", "-o", tmp_path / "in" / "out"), "lies in an input directory"),
        (("--json",), "both want standard output"),
        (("--sorted", "--parts", "2", "-o", tmp_path / "out"), "sorted as a whole is one part"),
    ):
        assert says in failure("distinct", tmp_path / "in", *words, status=2)
    (tmp_path / "there").mkdir()
    there = ("-o", tmp_path / "there", "--parts", "1")
    assert "exists" in failure("distinct", tmp_path / "in", *there, status=1)


def test_what_went_to_a_stream_is_not_resumed(home: Path, two_parts: Path, tmp_path: Path) -> None:
    command = ("distinct", two_parts, "--spill-dir", tmp_path)
    assert is_killed([*command], home, lambda events: has_begun("reduce", events))
    assert "cannot be taken back" in failure("resume", "last", status=1)
    left = [name for name in names(tmp_path) if "gristmill" in name]
    assert len(left) == 1
    run("jobs", "prune", "--older-than", "0")
    assert [name for name in names(tmp_path) if "gristmill" in name] == []


def test_a_line_is_not_once_and_repeated(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"a\n")
    command = ("distinct", tmp_path / "in", "-o", tmp_path / "out", "--once", "--repeated")
    error = failure(*command, status=2)
    assert "nothing occurs once and more than once" in error
    assert not (tmp_path / "out").exists()


CELL = st.text("aAb\"', \n1.0", max_size=3)


@given(
    st.lists(st.tuples(CELL, CELL, st.sampled_from(["1", "1.0", "01", "2", "x", ""])), max_size=15),
    st.sampled_from(["first", "last"]),
    st.sampled_from(["", ":nocase"]),
    st.integers(1, 2),
)
def test_any_table_keeps_one_row_of_each_key(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, str]],
    keep: str,
    word: str,
    parts: int,
) -> None:
    folder = tmp_path_factory.mktemp("rows")

    def written(row: tuple[str, ...]) -> str:
        return ",".join('"' + cell.replace('"', '""') + '"' for cell in row) + "\n"

    cut = len(rows) // 3
    (folder / "in").mkdir()
    for name, some in (("a.csv", rows[:cut]), ("b.csv", rows[cut:])):
        (folder / "in" / name).write_text("a,b,n\n" + "".join(map(written, some)))
    out = folder / "out"
    gristmill.unique(
        folder / "in",
        output=out,
        csv=True,
        key=[f"b{word},n:num"],
        keep=keep,
        count=True,
        parts=parts,
    )

    def key(row: tuple[str, str, str]) -> tuple[str, str]:
        number = {"1.0": "1", "01": "1", "x": "0", "": "0"}.get(row[2], row[2])
        return (row[1].upper() if word else row[1], number)

    counts = Counter(map(key, rows))
    found = ""
    for part in parts_of(out):
        header, _, rest = part.decode().partition("\n")
        assert header == "a,b,n,count"
        found += rest
    places = {key(row): place for place, row in enumerate(rows)}
    if keep == "first":
        places = {key(row): place for place, row in reversed([*enumerate(rows)])}
    assert found == "".join(
        f"{written(rows[place])[:-1]},{counts[key(rows[place])]}\n"
        for place in sorted(places.values())
    )


def test_keys_of_lines_are_those_of_sort(tmp_path: Path) -> None:
    chance = random.Random(11)
    lines = [
        f"{chance.choice(['a', 'A', 'b'])}:{chance.randrange(40)}:{number}" for number in range(900)
    ]
    (tmp_path / "in").write_text("\n".join(lines))
    for options in (["-t:", "-k2,2n"], ["-t:", "-k1,1f"], ["-t:", "-k1,2"], ["-f", "-t:", "-k1,1"]):
        done = run("distinct", "--sorted", *options, tmp_path / "in")
        sort = ["sort", "-s", "-u", *options, tmp_path / "in"]
        wanted = subprocess.run(
            sort, capture_output=True, text=True, check=True, env={"LC_ALL": "C"}
        )
        assert done.stdout == wanted.stdout
        in_place = run("distinct", *options, tmp_path / "in").stdout
        kept_lines = set(wanted.stdout.splitlines())
        assert in_place.splitlines() == [line for line in lines if line in kept_lines]
    counted = run(
        "distinct", "--sorted", "-t:", "-k1,1", "--count", "--keep", "last", tmp_path / "in"
    ).stdout
    last = {line[0]: line for line in lines}
    counts = Counter(line[0] for line in lines)
    assert counted == "".join(f"{counts[key]:7} {last[key]}\n" for key in sorted(last))


def test_rows_of_a_table_are_what_their_cells_say(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b'\xef\xbb\xbfa,b\r\n1,"x"\r\n1,x\r\n2,"y\nz"\r\n')
    assert run("distinct", "--csv", tmp_path / "in.csv").stdout == '\ufeffa,b\n1,"x"\n2,"y\nz"\n'
    said = run("distinct", "--csv", "--once", "--count", tmp_path / "in.csv").stdout
    assert said == '\ufeffa,b,count\n2,"y\nz",1\n'
    (tmp_path / "none.csv").write_bytes(b"")
    assert run("distinct", "--csv", "--key", "a", tmp_path / "none.csv").stdout == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--keep", "most"], "neither first nor last"),
        (["--csv", "--key", "z"], 'no column "z"'),
        (["--no-header"], "lines have no header"),
        (["--key", "name"], "for a column of a table give --csv or --tsv"),
        (["--csv", "--tsv"], "exclude each other"),
    ],
)
def test_wrong_keys(options: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"a,b\n1,2\n")
    assert said in failure("distinct", *options, tmp_path / "in", status=2)
