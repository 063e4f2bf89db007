"""`gristmill split` against a plain grouping of rows by their values."""

import csv
import gzip
import io
import random
import re
import resource
import shutil
import time
from functools import partial
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill as gm

from .harness import content, failure, names, report, run
from .resuming import killed_again_and_again, tree

HOSTILE = [
    *(
        b"",
        b".",
        b"..",
        b"/",
        b"../../x",
        b"a/b",
        b"\0",
        b"\n",
        b"a\nb",
        b"\xff",
        b"\xc3\xa9",
        b"%",
    ),
    *(b"_SUCCESS", b"part-r-00000", b"con", b"a.", b"a", b" a", b"a ", b"A", b"-rf", b".a", b"_a"),
    *(b"%empty", b"%2E", b"a,b", b",", b"~", b"x" * 200, b"x" * 201, b"x" * 201 + b"y", b"/" * 99),
]


def value_of(name: str) -> bytes:
    """The value that a name was made of, if it is a whole one."""
    return b"" if name == "%empty" else unquote_to_bytes(name)


def files_of(out: Path, suffix: str) -> dict[str, bytes]:
    """What an output holds: each name without its suffix, and the bytes."""
    found = tree(out)
    assert all(name.endswith(suffix) for name in found)
    return {name.removesuffix(suffix): text for name, text in found.items()}


def groups_of(records: list[tuple[tuple[bytes, ...], bytes]]) -> dict[tuple[bytes, ...], bytes]:
    """Each key with its records, in their order."""
    found: dict[tuple[bytes, ...], bytes] = {}
    for key, record in records:
        found[key] = found.get(key, b"") + record
    return found


def check(found: dict[str, bytes], wanted: dict[tuple[bytes, ...], bytes]) -> None:
    """All values have files of their own, which are called as they are if the names are whole."""
    assert sorted(found.values()) == sorted(wanted.values())
    for name, text in found.items():
        assert re.fullmatch(r"[A-Za-z0-9._ %,-]+", name)
        assert name[0] not in "._-, "
        assert not name.startswith("part-")
        if "%cut-" not in name:
            assert wanted[tuple(map(value_of, name.split(",")))] == text


def quoted(cell: bytes) -> bytes:
    return b'"' + cell.replace(b'"', b'""') + b'"'


cells = st.one_of(
    st.sampled_from(HOSTILE), st.binary(max_size=3).map(lambda b: b.replace(b"\r", b""))
)
rows = st.lists(st.tuples(cells, cells, st.sampled_from([b"\n", b"\r\n"])), max_size=12)


@settings(max_examples=60)
@given(st.lists(rows, min_size=1, max_size=3), st.booleans(), st.booleans())
def test_any_rows_of_a_table(
    tmp_path_factory: pytest.TempPathFactory,
    tables: list[list[tuple[bytes, bytes, bytes]]],
    two: bool,
    header: bool,
) -> None:
    folder = tmp_path_factory.mktemp("table")
    (folder / "in").mkdir()
    wanted: list[tuple[tuple[bytes, ...], bytes]] = []
    for number, table in enumerate(tables):
        text = b"\xef\xbb\xbf" * (number % 2) + b"a,b\n" * header
        for a, b, end in table:
            row = b"%s,%s%s" % (quoted(a), quoted(b), end)
            text += row
            wanted.append(((a, b) if two else (b,), row))
        (folder / "in" / str(number)).write_bytes(text)
    done = gm.split_by(
        folder / "in",
        folder / "out",
        csv=True,
        no_header=not header,
        by=["1,2" if two else "2"],
    )
    found = files_of(folder / "out", ".csv")
    begins = b"a,b\n" * header
    check(found, {key: begins + text for key, text in groups_of(wanted).items()})
    assert done.records == len(wanted)
    assert done.parts == len(found)


@settings(max_examples=60)
@given(st.lists(st.lists(st.sampled_from([b"a", b".", b"/", b"\xff", b"_", b""]), max_size=4)))
def test_any_lines(tmp_path_factory: pytest.TempPathFactory, lines: list[list[bytes]]) -> None:
    folder = tmp_path_factory.mktemp("lines")
    text = [b":".join(fields) for fields in lines]
    (folder / "in").write_bytes(b"\n".join(text))
    if text and not text[-1]:
        text.pop()  # the last line has neither bytes nor an end
    gm.split_by(folder / "in", folder / "out", by=["2"], field_separator=":", suffix=".x")
    keyed = [((*line.split(b":"), b"", b"")[1:2], line + b"\n") for line in text]
    check(files_of(folder / "out", ".x"), groups_of(keyed))


def test_fields_between_blanks_and_compressed_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(b" GET  /a 200\nPUT /b 500\n")
    (tmp_path / "in" / "b.gz").write_bytes(gzip.compress(b"GET /c 200\nshort"))
    run("split", "--by", "3,1", tmp_path / "in", tmp_path / "out")
    assert tree(tmp_path / "out") == {
        "200,GET.txt": b" GET  /a 200\nGET /c 200\n",
        "500,PUT.txt": b"PUT /b 500\n",
        "%empty,short.txt": b"short\n",
    }


def test_headers_and_empty_files(tmp_path: Path) -> None:
    for name, text in (("a", b"k;v"), ("b", b""), ("c", b"k;v\r\nx;1"), ("d", b"k;v\n")):
        (tmp_path / name).write_bytes(text)
    inputs = [tmp_path / name for name in "abcd"]
    run("split", "--csv", "-t", ";", "--by", "k", *inputs, tmp_path / "out")
    assert tree(tmp_path / "out") == {"x.csv": b"k;v\nx;1\n"}
    for name, column in (("a", "k;v"), ("b", "any")):
        run("split", "--tsv", "--by", column, tmp_path / name, tmp_path / f"none{name}")
        assert names(tmp_path / f"none{name}") == ["_SUCCESS"]


def big(folder: Path) -> Path:
    """A table of several splits, with few large groups and many small ones."""
    chance = random.Random(5)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["at", "user", "text"])
    for number in range(130_000):
        user = chance.choice(("hot", "warm", f"u/{chance.randrange(2000)}", ""))
        writer.writerow([number, user, 'a "word",\n' + "x" * chance.randrange(150)])
    (folder / "in").write_text(text.getvalue())
    return folder / "in"


def test_any_workers_and_memory_give_the_same_bytes(tmp_path: Path) -> None:
    source = big(tmp_path)
    assert source.stat().st_size > 12_000_000
    found: list[dict[str, bytes]] = []
    for number, options in enumerate(
        (
            ["--workers", "1"],
            ["--workers", "2", "--memory", "30M"],
            ["--runner", "processes", "--parts", "3"],
        )
    ):
        out = tmp_path / f"out{number}"
        run("split", "--csv", "--by", "user", source, out, "--no-sync", *options)
        found.append(tree(out))
    assert found[0] == found[1] == found[2]
    with source.open(newline="") as file:
        table = list(csv.DictReader(file))
    wanted: dict[str, list[dict[str, str]]] = {}
    for row in table:
        wanted.setdefault(row["user"], []).append(row)
    for name, text in found[0].items():
        user = value_of(name.removesuffix(".csv")).decode()
        assert list(csv.DictReader(io.StringIO(text.decode(), newline=""))) == wanted.pop(user)
    assert wanted == {}
    plan = report("explain", "split", "--csv", "--by", "user", source, tmp_path / "out")
    assert plan["command"] == "split"


def test_many_files(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"".join(b"%d x\n%d y\n" % (at, at) for at in range(20_000)))
    command = ["split", "--by", "1", tmp_path / "in", tmp_path / "out", "--no-sync"]
    few = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (64, 64))
    run(*command, "--max-files", "20000", preexec=few)
    assert len(names(tmp_path / "out")) == 20_001
    assert (tmp_path / "out" / "777.txt").read_bytes() == b"777 x\n777 y\n"
    for most, parts in ((10, 1), (19_999, 4)):
        out = tmp_path / "few"
        options = ("--no-sync", "--max-files", str(most), "--parts", str(parts))
        error = failure(*command[:4], out, *options)
        assert f"the output would have more than {most} files" in error
        assert "--max-files" in error
        assert names(tmp_path) == ["in", "out"]


def test_an_output_is_replaced_and_read(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"k,v\npart-x,2\nRome,1\n")
    command = ["split", "--csv", "--by", "k", tmp_path / "in", tmp_path / "out"]
    run(*command)
    assert "the output exists" in failure(*command)
    (tmp_path / "in").write_bytes(b"k,v\npart-x,2\nBern,1\n")
    run(*command, "--overwrite")
    assert names(tmp_path / "out") == ["%70art-x.csv", "Bern.csv", "_SUCCESS"]
    run("sort", "--csv", "--key", "v:num", tmp_path / "out", "-o", tmp_path / "sorted")
    assert (tmp_path / "sorted").read_bytes() == b"k,v\nBern,1\npart-x,2\n"
    gm.Job(gm.text(tmp_path / "out"), output=gm.text(tmp_path / "lines")).run(workers=1)
    assert sorted(content(tmp_path / "lines").split()) == [b"Bern,1", b"k,v", b"k,v", b"part-x,2"]
    (tmp_path / "out" / "mine.csv").write_bytes(b"of the user")
    assert "more than a job's output" in failure(*command, "--overwrite")


def test_what_makes_no_sense(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b"k,v\nx,1\ny\n")
    for options, wanted in (
        ([], "nothing says how to split"),
        (["--csv", "--by", "none"], 'there is no column "none"'),
        (["--by", "k"], "is not the number of a field"),
        (["--by", "1", "--no-header"], "no-header is for tables"),
        (["--csv", "--tsv", "--by", "1"], "csv and tsv exclude each other"),
        (["--by", "1", "--suffix", "a/b"], "is not a suffix of a file name"),
        (["--by", "1", "--suffix", "x" * 33], "is not a suffix of a file name"),
        (["--by", "1", "--max-files", "0"], "max"),
        (["--by", "1", "--max-files", "1000001"], "max"),
    ):
        assert wanted in failure("split", *options, source, out, status=2)
    error = failure("split", "--csv", "--by", "k", source, out)
    assert str(source) in error
    assert "row" in error
    assert not out.exists()


def test_an_output_in_an_object_store(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"".join(b"%d x\n" % (at % 50) for at in range(1000)))
    out = f"objects://{tmp_path}/out"
    run("split", "--by", "1", tmp_path / "in", out)
    assert (tmp_path / "out" / "7.txt").read_bytes() == b"7 x\n" * 20
    (tmp_path / "in").write_bytes(b"1 x\n")
    run("split", "--by", "1", tmp_path / "in", out, "--overwrite")
    made = [name for name in names(tmp_path / "out") if not name.startswith(".")]
    assert made == ["1.txt", "_SUCCESS"]


def test_an_upload_of_a_job_that_fails_goes(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"".join(b"%d x\n" % at for at in range(30)))
    out = f"objects://{tmp_path}/out"
    failure("split", "--by", "1", tmp_path / "in", out, "--max-files", "29")
    left = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert left == []


def test_killed_at_any_moment(home: Path, tmp_path: Path) -> None:
    source, out, wanted = big(tmp_path), tmp_path / "out", tmp_path / "wanted"
    options = ("--csv", "--by", "user", "--memory", "24M", "--no-sync")
    began_s = time.monotonic()
    run("split", source, wanted, *options)
    took_s = time.monotonic() - began_s
    shutil.rmtree(home, ignore_errors=True)  # of a run that took long
    killed = killed_again_and_again(["split", source, out, *options], home, took_s=took_s)
    assert tree(out) == tree(wanted)
    assert killed >= 1, "the job was over before it could be killed"


def test_explain_does_not_say_how_many_files_there_will_be(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("city,n\nRome,1\nBern,2\n")
    command = ("split", "--csv", "--by", "city", tmp_path / "in.csv", tmp_path / "out")
    assert report("explain", *command)["parts"] == 0
    assert "output       files as the records say" in run("explain", *command).stdout
