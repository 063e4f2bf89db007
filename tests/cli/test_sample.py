"""`gristmill sample` against keys that are computed anew, and the chances of its records."""

import gzip
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill

from .harness import failure, names, report, run
from .random_records import (
    EVERYWHERE,
    Record,
    Table,
    joined,
    large_lines,
    large_table,
    lines_in,
    tables,
    written,
)

LINES = st.lists(st.sampled_from([b"a", b"b", b"\n", b"\r\n", b"\xff", b" ", b"\xef\xbb\xbf"]))


def drawn(records: Iterable[Record], number: int, seed: str) -> bytes:
    """The records with the smallest keys, in the order of the input."""
    smallest = sorted(records, key=lambda record: record.key(seed))[:number]
    return b"".join(record.text for record in sorted(smallest))


@given(st.lists(LINES, min_size=1, max_size=4), st.text(max_size=3), st.integers(1, 9))
def test_any_lines(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[list[bytes]], seed: str, number: int
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    texts = [b"".join(some) for some in pieces]
    source, records = written(folder, texts), lines_in(texts)
    gristmill.sample(source, output=folder / "some", number=number, seed=seed)
    assert joined(folder / "some") == drawn(records, number, seed)
    gristmill.sample(source, output=folder / "rate", rate=0.3, seed=seed)
    taken = [record for record in records if record.key(seed) >> 64 < 0.3 * 2**64]
    assert joined(folder / "rate") == b"".join(record.text for record in taken)
    shutil.rmtree(folder)


@settings(max_examples=60)
@given(tables(), st.integers(1, 4))
def test_any_rows(tmp_path_factory: pytest.TempPathFactory, table: Table, number: int) -> None:
    folder = tmp_path_factory.mktemp("rows")
    source = written(folder, table.texts)
    sample = partial(gristmill.sample, source, csv=True, no_header=not table.header)
    sample(output=folder / "some", number=number)
    assert joined(folder / "some", table.header) == drawn(table.records, number, "0")
    groups: defaultdict[bytes, list[Record]] = defaultdict(list)
    for record in table.records:
        groups[record.group].append(record)
    sample(output=folder / "by", number=number, by=["#1"])
    wanted = b"".join(drawn(groups[group], number, "0") for group in sorted(groups))
    assert joined(folder / "by", table.header) == wanted
    sample(output=folder / "all", rate=1)
    assert joined(folder / "all", table.header) == b"".join(r.text for r in table.records)
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("form", "amount"),
    [
        ("lines", ("-n", "1000")),
        ("lines", ("-n", "300", "--by", "1")),
        ("csv", ("-n", "300", "--by", "city")),
        ("csv", ("--rate", "0.02")),
    ],
)
def test_any_workers_and_memory_give_the_same_bytes(
    form: str, amount: tuple[str, ...], tmp_path: Path
) -> None:
    text = large_table() if form == "csv" else large_lines()
    (tmp_path / "in").write_bytes(text)
    (tmp_path / "in.gz").write_bytes(gzip.compress(text, 1))
    options = [*amount, *(["--csv"] if form == "csv" else [])]
    found: list[bytes] = []
    for number, where in enumerate(EVERYWHERE):
        out = tmp_path / f"out{number}"
        done = run("sample", tmp_path / "in", "-o", out, *options, *where)
        assert done.stdout == ""
        found.append(out.read_bytes())
    assert found[0] == found[1] == found[2]
    assert run("sample", tmp_path / "in.gz", *options).stdout.encode() == found[0]
    rows = found[0].count(b"\nc" if form == "csv" else b"\n")
    if amount[0] == "--rate":
        assert 3600 < rows < 5200
    else:
        assert rows == (300 * 7 if "--by" in amount else 1000)


def test_it_is_what_shuf_begins_with(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(large_lines()[:300_000])
    shuffled = run("shuf", tmp_path / "in", "--seed", "x").stdout.splitlines()
    some = run("sample", tmp_path / "in", "--seed", "x", "-n", "100").stdout.splitlines()
    assert sorted(some) == sorted(shuffled[:100])


def test_every_record_is_as_likely(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"".join(b"%d\n" % number for number in range(40)))
    for number, rate in ((10, None), (None, 0.25)):
        found: Counter[bytes] = Counter()
        for seed in range(120):
            out = tmp_path / "out"
            asked: dict[str, Any] = {"number": number, "rate": rate, "seed": str(seed)}
            gristmill.sample(tmp_path / "in", output=out, no_sync=True, **asked)
            lines = out.read_bytes().splitlines()
            assert len(lines) == number or (number is None and len(lines) < 30)
            found.update(lines)
        counts = [found[b"%d" % number] for number in range(40)]
        assert all(11 < count < 49 for count in counts), counts  # 30, four deviations
        chi = sum((count - 30) ** 2 / (30 * 0.75) for count in counts)
        assert 14 < chi < 78, chi  # of 39 or 40 degrees of freedom


def test_many_groups_in_little_memory(tmp_path: Path) -> None:
    lines = [b"%d %d %s" % (n % 100_000, n, b"x" * 50) for n in range(250_000)]
    (tmp_path / "in").write_bytes(b"\n".join(lines))
    options = ("sample", tmp_path / "in", "--by", "1", "-n", "1")
    few = run(*options, "--memory", "24M").stdout
    assert few == run(*options).stdout
    found = sorted(line.split()[0] for line in few.splitlines())
    assert found == sorted(str(n) for n in range(100_000))


def test_a_sample_that_does_not_fit_is_told(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(large_lines() * 3)
    error = failure(
        *("sample", tmp_path / "in", "-o", tmp_path / "out", "-n", "700000"),
        *("--memory", "30M", "--workers", "2"),
    )
    assert "records of a sample" in error
    assert "ask for fewer records, or for a rate" in error
    assert names(tmp_path) == ["in"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "neither number nor rate is given"),
        (("-n", "3", "--rate", "0.5"), "number and rate exclude each other"),
        (("--rate", "0"), "0 is not a probability"),
        (("--rate", "1.5"), "1.5 is not a probability"),
        (("--rate", "nan"), "not a probability"),
        (("--rate", "few"), "is not a number"),
        (("-n", "0"), "not a whole number from 1 on"),
        (("-n", "1", "--csv", "--by", "nothing"), "there is no column"),
        (("-n", "1", "--by", "name"), "is not the number of a field"),
        (("-n", "1", "-t", ";"), "lines are taken whole"),
        (("-n", "1", "--no-header"), "lines have no header"),
    ],
)
def test_wrong_options(options: tuple[str, ...], said: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"k,v\n1,2\n")
    error = failure("sample", tmp_path / "in", "-o", tmp_path / "out", *options, status=2)
    assert said in error
    assert names(tmp_path) == ["in"]


def test_a_ragged_row_is_told(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"k,v\n1,2\n1,2,3\n")
    error = failure("sample", "in", "--csv", "-n", "1", cwd=tmp_path)
    assert "the row has 3 fields" in error
    assert "row: 3" in error or "row 3" in error, error


def test_explain_tells_one_file(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"a\n")
    plan = report("explain", "sample", tmp_path / "in", "-o", tmp_path / "out", "-n", "2")
    assert plan["parts"] == 1


def test_there_are_no_parts(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"a\n")
    error = failure("sample", "in", "-n", "1", "-o", "out", "--parts", "2", cwd=tmp_path, status=2)
    assert "--parts" in error
    assert names(tmp_path) == ["in"]
