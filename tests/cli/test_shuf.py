"""`gristmill shuf` against keys that are computed anew, and the chances of its orders."""

import gzip
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill

from .harness import failure, names, run
from .random_records import (
    EVERYWHERE,
    Table,
    joined,
    large_lines,
    large_table,
    lines_in,
    parts_of,
    tables,
    written,
)

LINES = st.lists(st.sampled_from([b"a", b"b", b"\n", b"\r\n", b"\xff", b" ", b"\xef\xbb\xbf"]))


@given(st.lists(LINES, min_size=1, max_size=4), st.text(max_size=3), st.integers(1, 4))
def test_any_lines_are_in_the_order_of_their_keys(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[list[bytes]], seed: str, parts: int
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    texts = [b"".join(some) for some in pieces]
    out = folder / "out"
    done = gristmill.shuf(written(folder, texts), output=out, seed=seed, parts=parts)
    wanted = sorted(lines_in(texts), key=lambda record: record.key(seed))
    assert joined(out) == b"".join(record.text for record in wanted)
    assert done.counters["REDUCE_OUTPUT_RECORDS"] == len(wanted)
    shutil.rmtree(folder)


@given(tables(), st.sampled_from([None, 1, 2, 3]))
def test_any_rows_are_in_the_order_of_their_keys(
    tmp_path_factory: pytest.TempPathFactory, table: Table, parts: int | None
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    source, out = written(folder, table.texts), folder / "out"
    gristmill.shuf(source, output=out, csv=True, no_header=not table.header, parts=parts)
    wanted = sorted(table.records, key=lambda record: record.key("0"))
    assert joined(out, table.header) == b"".join(record.text for record in wanted)
    shutil.rmtree(folder)


@pytest.mark.parametrize("options", [[], ["--csv"]])
def test_any_workers_and_memory_give_the_same_bytes(options: list[str], tmp_path: Path) -> None:
    text = large_table() if options else large_lines()
    (tmp_path / "in").write_bytes(text)
    (tmp_path / "in.gz").write_bytes(gzip.compress(text, 1))
    found: list[list[bytes]] = []
    for number, where in enumerate(EVERYWHERE):
        out = tmp_path / f"out{number}"
        run("shuf", tmp_path / "in", "-o", out, "--parts", "3", *options, *where)
        found.append(parts_of(out))
    assert found[0] == found[1] == found[2]
    done = run("shuf", tmp_path / "in.gz", "-o", tmp_path / "packed", *options)
    assert done.stdout == ""
    header = text[: text.index(b"\n") + 1] if options else b""
    whole = joined(tmp_path / "out0", header)
    assert (tmp_path / "packed").read_bytes() == header + whole
    assert run("shuf", tmp_path / "in", *options).stdout.encode() == header + whole
    assert whole != text.removeprefix(header)
    assert Counter(whole.split(b"\n")) == Counter(text.removeprefix(header).split(b"\n"))
    sizes = [len(part) for part in found[0]]
    assert max(sizes) < 1.05 * min(sizes)


def test_every_order_is_as_likely(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"a\nb\nc\nd\n")
    found: Counter[bytes] = Counter()
    for seed in range(240):
        out = tmp_path / f"out{seed}"
        gristmill.shuf(tmp_path / "in", output=out, seed=str(seed), no_sync=True)
        found[out.read_bytes()] += 1
    chi = sum((found[order] - 10) ** 2 / 10 for order in found) + 10 * (24 - len(found))
    assert 7 < chi < 52, found  # of 23 degrees of freedom: one in 2,000 on each side


@settings(max_examples=20)
@given(st.text(min_size=1), st.text(min_size=1))
def test_a_seed_is_an_order(tmp_path_factory: pytest.TempPathFactory, one: str, other: str) -> None:
    folder = tmp_path_factory.mktemp("seeds")
    (folder / "in").write_bytes(b"".join(b"%d\n" % number for number in range(50)))
    for number, seed in enumerate((one, one, other)):
        gristmill.shuf(folder / "in", output=folder / f"out{number}", seed=seed)
    first, second, third = ((folder / f"out{number}").read_bytes() for number in range(3))
    assert first == second
    assert (first == third) == (one == other)


def test_files_given_twice_and_empty_ones(tmp_path: Path) -> None:
    for name, text in (("a", b""), ("b", b"k,v\n"), ("c", b"k,v\n1,2\n3,4")):
        (tmp_path / name).write_bytes(text)
    header, *rows = run("shuf", "a", "b", "c", "c", "--csv", cwd=tmp_path).stdout.splitlines()
    assert header == "k,v"
    assert sorted(rows) == ["1,2", "1,2", "3,4", "3,4"]
    assert run("shuf", "a", "--csv", cwd=tmp_path).stdout == ""


def test_wrong_options_and_rows(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"k,v\n1,2\n1,2,3\n")
    error = failure("shuf", "in", "-t", ";", cwd=tmp_path, status=2)
    assert "lines are taken whole" in error
    error = failure("shuf", "in", "--no-header", cwd=tmp_path, status=2)
    assert "lines have no header" in error
    error = failure("shuf", "in", "-o", "out", "--csv", cwd=tmp_path)
    assert "the row has 3 fields" in error
    assert "row: 3" in error or "row 3" in error, error
    assert names(tmp_path) == ["in"]


def test_a_line_that_is_too_long_is_named(tmp_path: Path) -> None:
    long = tmp_path / "long"
    long.write_bytes(b"short\n" + b"x" * 20_000_000 + b"\n")
    said = failure("shuf", long, "-o", tmp_path / "out", "--memory", "24M")
    assert f"(file {long}, from offset " in said
    assert "does not fit" in said
