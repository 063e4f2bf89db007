"""Tables that are drawn at random, and the oracle of what one type can hold of them.

Types change late, columns and fields are missing or come late. `holds_all` says by plain rules
whether one type holds the values of a column; `same`, whether a reader's value is what went in.
"""

import math
import random
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import chain
from typing import Any

import pandas as pd

__all__ = ["STAMP", "VALUES", "Random", "Rows", "check_same", "drawn", "fits", "is_plain", "texts"]

Rows = list[dict[str, Any]]
Random = random.Random

STAMP = pd.Timestamp("2024-02-29 12:00:00.123456789")

VALUES: dict[str, Callable[[Random], Any]] = {
    "int": lambda rng: rng.randrange(-5, 5),
    "natural": lambda rng: rng.randrange(10),
    "float": lambda rng: rng.choice([0.5, 3.0, math.nan, -2.25]),
    "id": lambda rng: 2**60 + rng.randrange(1000),
    "unsigned": lambda rng: 2**63 + rng.randrange(1000),
    "huge": lambda rng: 2**70,
    "text": lambda rng: rng.choice(["", "a", "ä€"]),
    "bytes": lambda rng: rng.choice([b"", b"\xff"]),
    "bool": lambda rng: rng.random() < 0.5,
    "date": lambda rng: date(2024, 1, 1 + rng.randrange(28)),
    "time": lambda rng: datetime(2024, 1, 1, rng.randrange(24), 5),
    "zoned": lambda rng: datetime(2024, 1, 1, rng.randrange(24), 5, tzinfo=UTC),
    "stamp": lambda rng: STAMP + pd.Timedelta(rng.randrange(1000), "ns"),
    "decimal": lambda rng: Decimal(rng.randrange(1000)).scaleb(-rng.randrange(4)),
    "none": lambda rng: None,
    "empty": lambda rng: [],
    "ints": lambda rng: [rng.randrange(9) for _ in range(rng.randrange(3))],
    "floats": lambda rng: [0.5, rng.random()],
    "texts": lambda rng: ["a", None],
    "point": lambda rng: {"x": rng.randrange(9)},
    "place": lambda rng: {"x": 0.5, "of": {"y": rng.choice(["a", None])}},
    "named": lambda rng: {"x": "a"},
}

LIKELY = [
    ("int", "float"), ("none", "text"), ("empty", "texts"), ("ints", "floats"), ("point", "place"),
    ("time", "stamp"), ("natural", "unsigned"), ("int", "none"), ("int", "decimal"),
    ("natural", "id"), ("int",), ("text",), ("zoned",), ("date",), ("bytes",), ("bool",),
]  # fmt: skip
"""Kinds that one type holds: of random ones, few tables would be written."""


def drawn(rng: Random, rows: int) -> Rows:
    """A table whose columns change their kinds, begin late, or miss."""
    columns: dict[str, Iterator[Any]] = {}
    for name in "abcd"[: rng.randrange(1, 5)]:
        kinds = rng.choice(LIKELY) if rng.random() < 0.9 else rng.sample(list(VALUES), 2)
        first = rng.randrange(rows)
        values = [VALUES[kinds[0] if n < first else kinds[-1]](rng) for n in range(rows)]
        columns[name] = iter(values)
    missing = rng.choice([0, 0, 0.3])
    table = [{name: next(values) for name, values in columns.items()} for _ in range(rows)]
    return [
        {name: value for name, value in row.items() if name == "a" or rng.random() >= missing}
        for row in table
    ]


# --- the oracle ---


def family(value: Any) -> str:
    if isinstance(value, pd.Timestamp):
        return "time"
    if isinstance(value, datetime):
        return "zoned" if value.tzinfo else "time"
    return {"int": "number", "float": "number"}.get(type(value).__name__, type(value).__name__)


def holds_all(values: list[Any]) -> bool:
    """Whether one type holds all values of a column."""
    values = [value for value in values if value is not None]
    families = set(map(family, values))
    ints = [value for value in values if type(value) is int]
    if families == {"number", "Decimal"}:
        return len(ints) + sum(isinstance(value, Decimal) for value in values) == len(values)
    if len(families) > 1:
        return False
    if families == {"list"}:
        return holds_all(list(chain(*values)))
    if families == {"dict"}:
        names = {name for value in values for name in value}
        return all(holds_all([value.get(name) for value in values]) for name in names)
    if len(ints) < len(values):
        return all(abs(number) <= 2**53 for number in ints)
    low, high = min(ints, default=0), max(ints, default=0)
    return low >= -(2**63) and high < (2**64 if low >= 0 else 2**63)


def fits(rows: Rows) -> bool:
    return all(holds_all([row.get(name) for row in rows]) for name in "abcd")


def same(found: Any, value: Any) -> bool:
    """Whether a reader's value is what went in."""
    if value is None:
        return found is None
    if isinstance(value, list):
        return len(found) == len(value) and all(map(same, found, value))
    if isinstance(value, dict):
        return all(same(found[name], value.get(name)) for name in {**found, **value})
    if isinstance(value, float) and math.isnan(value):
        return isinstance(found, float) and math.isnan(found)
    return isinstance(found, bool) == isinstance(value, bool) and found == value


def check_same(found: Rows, rows: Rows) -> None:
    assert len(found) == len(rows)
    for read, row in zip(found, rows, strict=True):
        assert same({name: value for name, value in read.items() if name in row}, row), (read, row)
        assert all(value is None for name, value in read.items() if name not in row)


def texts(rows: Rows) -> list[dict[str, str]]:
    """Rows as csv has them: what is missing is an empty field."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: str(row.get(name, "")) for name in names} for row in rows]


def is_plain(value: Any) -> bool:
    """Whether JSON has such a value."""
    if isinstance(value, list):
        return all(map(is_plain, value))
    if isinstance(value, dict):
        return all(map(is_plain, value.values()))
    return (
        value is None
        or type(value) in (bool, int, str)
        or (type(value) is float and value == value)
    )
