"""The oracles of campaigns against others: Python's csv, pandas, DuckDB."""

import csv
import gzip
import io
import random
from collections.abc import Iterator
from typing import Any

import duckdb
import pandas as pd
import pytest
from tests.fuzz.draw_cases import xxh3_of_16
from tests.fuzz.group_cases import figure_of, number
from tests.fuzz.groups import groups_of
from tests.fuzz.inputs import MARK, Input, input_of
from tests.fuzz.join_cases import Joined

KINDS = ["few", "text", "whole", "word"]


def tables(count: int, **options: Any) -> Iterator[Input]:  # noqa: ANN401 - of input_of
    """Tables that are right."""
    found = 0
    for seed in range(10_000):
        made = input_of(random.Random(f"oracles {seed}"), KINDS, **options)
        if made.is_table and not made.is_wrong and "--skip-bad" not in made.options:
            yield made
            found += 1
            if found == count:
                return


def text(data: bytes) -> str:
    """Text of which each character is a byte."""
    return data.decode("latin-1")


def frame(made: Input) -> pd.DataFrame:
    rows = [[text(cell) for cell in record.cells] for record in made.records]
    return pd.DataFrame(rows, columns=[f"c{column.number}" for column in made.columns], dtype=str)


def test_rows_are_what_csv_reads() -> None:
    """But for a CR inside a field, which csv takes for the end of a row."""
    for made in tables(300):
        files = [
            gzip.decompress(data) if path.endswith(".gz") else data
            for path, data in sorted(made.files.items())
            if "/_" not in path and "/." not in path
        ]
        if any(data.replace(b"\r\n", b"").count(b"\r") for data in files):
            continue
        rows: list[list[str]] = []
        for data in files:
            plain = text(data.removeprefix(MARK))
            read = csv.reader(io.StringIO(plain, newline=""), delimiter=text(made.separator))
            there = [row or [""] for row in read if row or len(made.columns) == 1]
            rows += there[1 if made.has_names() else 0 :]
        assert sorted(rows) == sorted([text(cell) for cell in one.cells] for one in made.records)


def test_groups_are_those_of_pandas_and_duckdb() -> None:
    for made in tables(60):
        rows = frame(made)
        words, whole = made.columns[1:3]
        found = {
            text(key[0]): [
                *(number(figure_of(records, (name, whole, ""))) for name in ("min", "max")),
                figure_of(records, ("distinct", words, "")),
                figure_of(records, ("count", None, "")),
                text(figure_of(records, ("first", words, ""))),
            ]
            for key, records in groups_of(made, made.columns[:1])
        }
        assert list(found) == sorted(set(rows["c0"]))
        numbers = [number(record.cells[whole.number]) for record in made.records]
        rows["n"] = ["" if each is None else str(each) for each in numbers]
        wholes = "nullif(n, '')::HUGEINT"
        asked = f"c0, min({wholes}), max({wholes}), count(DISTINCT nullif(c1, '')), count(*)"
        told = duckdb.execute(f"SELECT {asked} FROM rows GROUP BY c0").fetchall()
        for key, least, most, different, count in told:
            ours = found[key]
            assert ours[:4] == [least, most, b"%d" % different, b"%d" % count]
        first = rows[rows["c1"] != ""].groupby("c0")["c1"].first()
        for key, cell in first.items():
            assert found[str(key)][4] == cell


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_joins_are_those_of_duckdb(how: str) -> None:
    for left in tables(15, most=60):
        if left.has_names() and not left.header:
            continue
        right = input_of(random.Random(1), KINDS, name="right", like=left, most=60)
        if not (right.header if right.has_names() else right.records) or not left.records:
            continue
        known = duckdb.connect()
        known.register("one", frame(left))
        known.register("other", frame(right))
        keys = [[left.columns[0]], [right.columns[3]]]
        _, rows = Joined([left, right], keys, how, b"-").output()
        kind = {"inner": "", "left": "LEFT", "right": "RIGHT", "full": "FULL"}[how]
        cells = "coalesce(one.c0, other.c3), " + ", ".join(
            f"ifnull({name}, '-')"
            for name in ("one.c1", "one.c2", "one.c3", "other.c0", "other.c1", "other.c2")
        )
        told = known.execute(f"SELECT {cells} FROM one {kind} JOIN other ON one.c0 = other.c3")
        wanted = [left.row([cell.encode("latin-1") for cell in row]) for row in told.fetchall()]
        assert sorted(wanted) == sorted(rows)


def test_random_keys_are_those_of_xxh3() -> None:
    """Sums of xxhash 4.1 for Python, without a seed and with one."""
    data = bytes(range(16))
    assert xxh3_of_16(data, 0) == 0x72950631827607E2842812CC870DCAE2
    assert xxh3_of_16(data, 12345678901234567890) == 0xB4DA7A23604D38B4F8890DEB714025DA
