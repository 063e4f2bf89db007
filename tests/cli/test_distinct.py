"""`gristmill distinct` against a naive count of lines, and against `sort | uniq`."""

import gzip
import random
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gristmill

from .harness import failure, names, report, run
from .resuming import killed_again_and_again, tree

MARK = b"\xef\xbb\xbf"


def lines_of(text: bytes) -> list[bytes]:
    """The lines, of which LF ends each but perhaps the last."""
    lines = text.removeprefix(MARK).split(b"\n")
    return lines if lines[-1] else lines[:-1]


def parts_of(out: Path) -> list[bytes]:
    return [(out / name).read_bytes() for name in names(out) if name.startswith("part-")]


@given(
    st.lists(st.lists(st.sampled_from([b"a", b"b", b"\n", b"\r\n", b"\xff", b" "]))),
    st.integers(1, 4),
)
def test_any_lines_are_counted(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[list[bytes]], parts: int
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    (folder / "in").mkdir()
    texts = [b"".join(some) for some in pieces] or [b""]
    for number, text in enumerate(texts):
        (folder / "in" / f"{number}").write_bytes(text)
    wanted = Counter(line for text in texts for line in lines_of(text))
    for options, takes in (
        ({}, bool),
        ({"repeated": True}, lambda count: count > 1),
        ({"once": True}, lambda count: count == 1),
    ):
        out = folder / f"out{len(options)}{'once' in options}"
        done = gristmill.unique(folder / "in", out, parts=parts, count=True, **options)
        found = [line for part in parts_of(out) for line in part.split(b"\n")[:-1]]
        assert sorted(found) == sorted(
            b"%7d %s" % (count, line) for line, count in wanted.items() if takes(count)
        )
        assert done.counters["REDUCE_OUTPUT_RECORDS"] == len(found)


@pytest.mark.parametrize("options", [[], ["--count"], ["--repeated"], ["--once"]])
def test_one_part_is_what_uniq_prints(options: list[str], tmp_path: Path) -> None:
    chance = random.Random(3)
    lines = [b"%x" % chance.getrandbits(chance.choice((6, 12, 90))) for _ in range(60_000)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(b"\n".join(lines[:40_000]) + b"\n")
    (tmp_path / "in" / "b.gz").write_bytes(gzip.compress(b"\n".join(lines[40_000:])))
    run("distinct", tmp_path / "in", tmp_path / "out", "--parts", "1", *options)
    short = {"--count": "-c", "--repeated": "-d", "--once": "-u"}
    uniq = subprocess.run(
        ["uniq", *(short[option] for option in options)],
        input=b"\n".join(sorted(lines)) + b"\n",
        capture_output=True,
        check=True,
    )
    assert parts_of(tmp_path / "out") == [uniq.stdout]


def test_any_workers_and_memory_give_the_same_bytes(tmp_path: Path) -> None:
    chance = random.Random(5)
    lines = [b"%x" % chance.getrandbits(chance.choice((10, 60))) for _ in range(300_000)]
    (tmp_path / "in").write_bytes(b"\n".join(lines))
    found = []
    for number, options in enumerate(
        (["--workers", "1"], ["--workers", "2", "--memory", "30M"], ["--runner", "processes"])
    ):
        out = tmp_path / f"out{number}"
        run("distinct", tmp_path / "in", out, "--parts", "3", "--count", *options)
        found.append(parts_of(out))
    assert found[0] == found[1] == found[2]
    assert sum(part.count(b"\n") for part in found[0]) == len(set(lines))
    plan = report("explain", "distinct", tmp_path / "in", tmp_path / "out", "--parts", "3")
    assert plan["parts"] == 3


def test_killed_at_any_moment(home: Path, tmp_path: Path) -> None:
    chance = random.Random(7)
    source, out, wanted = tmp_path / "in", tmp_path / "out", tmp_path / "wanted"
    source.write_bytes(b"\n".join(b"%x" % chance.getrandbits(40) for _ in range(1_000_000)))
    options = ("--parts", "3", "--memory", "24M")
    began_s = time.monotonic()
    run("distinct", source, wanted, *options)
    took_s = time.monotonic() - began_s
    shutil.rmtree(home, ignore_errors=True)  # of a run that took long
    killed = killed_again_and_again(["distinct", source, out, *options], home, took_s=took_s)
    assert tree(out) == tree(wanted)
    assert killed >= 1, "the job was over before it could be killed"


def test_a_line_is_not_once_and_repeated(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"a\n")
    error = failure("distinct", tmp_path / "in", tmp_path / "out", "--once", "--repeated", status=2)
    assert "no line occurs once and more than once" in error
    assert not (tmp_path / "out").exists()
