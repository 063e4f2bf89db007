"""`--ragged`: rows with more or fewer fields than the header, of all commands over tables."""

import csv
import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill as gm

from .harness import failure, names, report, run
from .random_records import large_table

CELLS = st.sampled_from([b"", b"a", b"b", b'"x,y"', b'"q""q"', b'"n\nl"', b"\xff", b" "])
ROWS = st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=8)


def text_of(rows: list[list[bytes]], end: bytes, whole: bool) -> bytes:
    """A table of three columns, with these rows."""
    text = b"k,v,w" + end + b"".join(b",".join(row) + end for row in rows)
    return text if whole or not rows else text.removesuffix(end)


def filled(rows: list[list[bytes]]) -> list[list[bytes]]:
    """Rows with as many cells as there are columns; a line without anything is no row."""
    return [row + [b""] * (3 - len(row)) for row in rows if row != [b""]]


@settings(max_examples=40)
@given(ROWS, st.sampled_from([b"\n", b"\r\n"]), st.booleans())
def test_any_rows(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[bytes]], end: bytes, whole: bool
) -> None:
    folder = tmp_path_factory.mktemp("ragged")
    source, out = folder / "in", folder / "out"

    def split(rows: list[list[bytes]], ragged: str) -> bytes:
        source.write_bytes(text_of(rows, end, whole))
        done = gm.split_by(source, out, csv=True, lines=100, ragged=ragged, overwrite=True)
        assert done.counters.get("MAP_SKIPPED_RECORDS", 0) == (
            sum(len(row) != 3 and row != [b""] for row in rows) if ragged == "drop" else 0
        )
        return b"".join((out / name).read_bytes() for name in names(out) if name != "_SUCCESS")

    short = [row for row in rows if len(row) <= 3]
    wanted = filled(short)
    assert split(short, "pad") == (text_of(wanted, end, whole=True) if wanted else b"")
    even = [row for row in rows if len(row) == 3]
    assert split(rows, "drop") == (text_of(even, end, whole=True) if even else b"")
    gm.sort(source, output=folder / "sorted", csv=True, key=["v"], ragged="drop")
    assert (folder / "sorted").read_bytes() == text_of(
        sorted(even, key=lambda row: next(csv.reader(io.StringIO(row[1].decode("latin-1"))), [""])),
        end,
        whole=True,
    )
    shutil.rmtree(folder)


def test_each_command(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"k,v,w\nb\na,1\na,2,x\nb,3,y\n")
    for words, pad, drop in (
        (["distinct", "--key", "k"], b"b,,\na,1,\n", b"a,2,x\nb,3,y\n"),
        (["top", "1", "--key", "v:num:desc"], b"b,3,y\n", b"b,3,y\n"),
        (["top", "1", "--key", "v"], b"b,,\n", b"a,2,x\n"),
        (["sort", "--key", "v"], b"b,,\na,1,\na,2,x\nb,3,y\n", b"a,2,x\nb,3,y\n"),
        (["sample", "-n", "9"], b"b,,\na,1,\na,2,x\nb,3,y\n", b"a,2,x\nb,3,y\n"),
    ):
        for ragged, wanted in (("pad", pad), ("drop", drop)):
            command = [words[0], "--csv", *words[1:], tmp_path / "in", "--ragged", ragged]
            run(*command, "-o", tmp_path / "out")
            assert (tmp_path / "out").read_bytes() == b"k,v,w\n" + wanted
        assert "the row has 1 field, and the header has 3 fields" in failure(
            *command[:-2], "-o", tmp_path / "out"
        )
    command = ["group", "--csv", "--by", "k", "--count", tmp_path / "in", "-o", tmp_path / "out"]
    run(*command, "--ragged", "pad")
    assert (tmp_path / "out").read_bytes() == b"k,count\na,2\nb,2\n"
    command = ["join", "--csv", "--by", "k", tmp_path / "in", tmp_path / "in", "--how", "semi"]
    run(*command, "-o", tmp_path / "out", "--ragged", "pad")
    assert (tmp_path / "out").read_bytes().count(b"\n") == 5
    run("sort", "-c", "--csv", "--key", "w", "--ragged", "pad", tmp_path / "in")


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"k,v\n1\n2,b\n3,c,d\n")
    command = ["distinct", "--csv", tmp_path / "in", "-o", tmp_path / "out"]
    done = report(*command, "--ragged", "drop")
    assert done["counters"]["MAP_SKIPPED_RECORDS"] == 2
    assert len(done["left_out"]) == 2
    says = failure(*command, "--ragged", "pad")
    assert "the row has 3 fields, and the header has 2 fields" in says
    assert "row 4" in says
    done = report(*command, "--ragged", "pad", "--skip-bad", "1")
    assert done["counters"]["MAP_SKIPPED_RECORDS"] == 1
    assert (tmp_path / "out").read_bytes() == b"k,v\n1,\n2,b\n"


def test_without_a_header_the_first_row_decides(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"1,2\n3\n4,5\n")
    command = ["sort", "--csv", "--no-header", "--key", "1", tmp_path / "in"]
    assert run(*command, "--ragged", "pad").stdout == "1,2\n3,\n4,5\n"
    assert run(*command, "--ragged", "drop").stdout == "1,2\n4,5\n"


def test_what_makes_no_sense(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"k,v\n")
    for words, wanted in (
        (["--csv", "--ragged", "drop", "--skip-bad", "3"], "exclude each other where"),
        (["--ragged", "pad"], "ragged is for tables"),
        (["--csv", "--ragged", "no"], "is not one of"),
    ):
        for command in ("sort", "distinct"):
            assert wanted in failure(command, *words, tmp_path / "in", status=2)


def large(change: Callable[[int, bytes], bytes]) -> bytes:
    """A large table whose rows are changed."""
    header, *rows = large_table().split(b"\nc")
    return b"\nc".join([header, *(change(at, row) for at, row in enumerate(rows))])


@pytest.mark.parametrize("words", [["sort", "--key", "number:num"], ["distinct", "--key", "#2"]])
def test_workers_and_memory_change_nothing(words: list[Any], tmp_path: Path) -> None:
    short = large(lambda at, row: row if at % 9 else row.split(b",")[0] + b",%d" % at)
    short += b"" if short.endswith(b"\n") else b"\n"
    (tmp_path / "in").write_bytes(short)
    command = [words[0], "--csv", *words[1:], tmp_path / "in", "--ragged", "pad"]
    run(*command, "-o", tmp_path / "one", "--workers", "1")
    more = ["--workers", "2", "--memory", "60M", "--runner", "processes"]
    run(*command, "-o", tmp_path / "two", *more)
    text = (tmp_path / "one").read_bytes()
    assert text == (tmp_path / "two").read_bytes()
    assert len(list(csv.reader(io.StringIO(text.decode("latin-1"))))) > 190_000
    assert {len(row) for row in csv.reader(io.StringIO(text.decode("latin-1")))} == {3}
