"""`gristmill join` where all inputs but the left are small: maps hold them."""

import gzip
import random
from collections import defaultdict
from pathlib import Path

import pytest

from .harness import failure, report, run

BIG = 13 << 20


def plan(*words: str | Path) -> str:
    """How a job would go, and why."""
    explained = report("explain", *words)
    return f"{explained['mode']}: {explained['reason']}"


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A left of several splits, with a row that is quoted over lines now and then."""
    chance = random.Random(3)
    folder = tmp_path_factory.mktemp("big")
    rows = ["id,note,number\n"]
    for number in range(BIG // 60):
        note = '"two\nlines"' if number % 1000 == 0 else "x" * 45
        rows.append(f"{chance.randrange(3000)},{note},{number}\n")
    (folder / "left.csv").write_text("".join(rows))
    assert (folder / "left.csv").stat().st_size > 12 << 20
    with (folder / "right.csv").open("w") as file:
        file.write("id,name\n")
        for number in range(2000):
            file.write(f"{chance.randrange(4000)},name {number}\n")
    (folder / "right.gz").write_bytes(gzip.compress((folder / "right.csv").read_bytes()))
    return folder


@pytest.mark.parametrize("how", ["left", "anti"])
def test_rows_come_in_the_order_of_the_left_whatever_the_workers(
    how: str, big: Path, tmp_path: Path
) -> None:
    join = ("join", big / "left.csv", big / "right.csv", "--csv", "--by", "id", "--how", how)
    assert plan(*join).startswith("maps: each map task holds")
    found: list[bytes] = []
    for number, options in enumerate(
        (
            ["--workers", "1"],
            ["--workers", "2", "--memory", "40M"],
            ["--runner", "processes", "--workers", "2"],
        )
    ):
        out = tmp_path / f"out{number}"
        run(*join, "-o", out, *options)
        found.append(out.read_bytes())
    assert found[0] == found[1] == found[2]
    names: dict[str, list[str]] = defaultdict(list)
    for row in (big / "right.csv").read_text().splitlines()[1:]:
        key, name = row.split(",")
        names[key].append(name)
    left = (big / "left.csv").read_text().replace("two\nlines", "two/lines").splitlines()
    wanted = [left[0] + ",name" * (how in ("inner", "left"))]
    for row in left[1:]:
        same = names.get(row.split(",")[0], [])
        if how in ("semi", "anti"):
            wanted += [row] * (bool(same) == (how == "semi"))
        else:
            wanted += [f"{row},{name}" for name in same or [""] * (how == "left")]
    assert found[0].decode() == "\n".join([*wanted, ""]).replace("two/lines", "two\nlines")


def test_sorted_and_parts_have_the_same_rows(big: Path, tmp_path: Path) -> None:
    join = ("join", big / "left.csv", big / "right.gz", "--csv", "--by", "id")
    done = report(*join, "-o", tmp_path / "out")
    rows = (tmp_path / "out").read_bytes().splitlines(keepends=True)
    counters = done["counters"]
    assert counters["MAP_INPUT_RECORDS"] == BIG // 60 + 2000
    assert "SPILLED_RECORDS" not in counters
    stored = sum((big / name).stat().st_size for name in ("left.csv", "right.gz"))
    assert done["input_bytes"] == stored
    run(*join, "-o", tmp_path / "sorted", "--sorted")
    in_order = (tmp_path / "sorted").read_bytes().splitlines(keepends=True)
    assert rows != in_order
    assert sorted(rows) == sorted(in_order)
    assert plan(*join, "--sorted").endswith("the output is to be in the order of the keys")
    parts = ("--parts", "2", "-o", tmp_path / "parts")
    assert plan(*join, *parts).endswith("the hash of a key decides its part")
    for how in ("right", "full"):
        assert "have no match are written, too" in plan(*join, "--how", how)


def test_a_side_is_small_by_what_it_holds(tmp_path: Path) -> None:
    """Not by its bytes on disk: packed zeros, and many short rows, take more."""
    (tmp_path / "left").write_text("a b\n")
    join = ("join", tmp_path / "left", tmp_path / "right")

    def is_held(text: bytes) -> bool:
        (tmp_path / "right").write_bytes(text)
        assert run(*join).stdout == "a b x\n"
        return plan(*join).startswith("maps")

    assert is_held(b"a x\n")
    assert is_held(b"".join(b"%d %d\n" % (n, n) for n in range(4000)) + b"a x\n")
    assert not is_held(b"".join(b"%d %d\n" % (n, n) for n in range(8000)) + b"a x\n")
    assert not is_held(gzip.compress(b"0" * 900_000 + b"\n" + b"a x\n"))
    assert not is_held(b"a x\n" + b"b " + b"y" * (2 << 20))
    (tmp_path / "left").write_bytes(b"")
    assert plan(*join).endswith("or the first is empty")
    assert run(*join).stdout == ""


def test_the_least_memory_holds_it(tmp_path: Path) -> None:
    """As much as may be held, of lines that take much room for their bytes."""
    lines = [b"%x" % number for number in range(0x1000, 0x1000 + 5000)]
    (tmp_path / "right").write_bytes(b"\n".join(lines))
    (tmp_path / "left").write_bytes(b"".join(line + b" %d\n" % n for n, line in enumerate(lines)))
    join = ("join", tmp_path / "left", tmp_path / "right")
    assert plan(*join).startswith("maps")
    assert run(*join, "--workers", "1", "--memory", "24M").stdout.count("\n") == 5000


def test_a_wrong_row_of_the_side_is_told(tmp_path: Path) -> None:
    (tmp_path / "left").write_text("id,v\n1,a\n")
    (tmp_path / "right").write_text("id,w\n1,b\n2\n")
    join = ("join", tmp_path / "left", tmp_path / "right", "--csv", "--by", "id")
    assert "the row has 1 field, and the header has 2 fields" in failure(*join)
    done = report(*join, "--skip-bad", "1", "-o", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "id,v,w\n1,a,b\n"
    assert "1 row is left out" in " ".join(done["warnings"])
