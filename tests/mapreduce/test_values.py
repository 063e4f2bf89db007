"""Values come back equal, of the same type, showing the same; common types are not pickled."""

import pickle
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill as gm
from gristmill import _core

PICKLED = b"\x40"
BERLIN = ZoneInfo("Europe/Berlin")
HALF = timezone(timedelta(hours=5, minutes=30))
NAMED = timezone(timedelta(hours=-3), "B\0T ü")


def listed(key: Any, values: Iterator[Any]) -> Iterator[Any]:
    yield key, list(values)


def again(value: Any) -> Any:
    return _core.decode(_core.encode(value))


def shape(value: Any) -> Any:
    """All there is of a value, to be compared: types, representations, zones and folds."""
    match value:
        case list() | tuple():
            return type(value), [shape(part) for part in value]  # pyright: ignore[reportUnknownVariableType]
        case dict():
            return type(value), [(shape(name), shape(part)) for name, part in value.items()]  # pyright: ignore[reportUnknownVariableType]
        case uuid.UUID():
            return type(value), value.int, value.is_safe
        case _:
            zone = getattr(value, "tzinfo", None)
            return type(value), repr(value), getattr(value, "fold", 0), type(zone), repr(zone)


zones = st.one_of(
    st.none(),
    st.just(UTC),
    st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23))),
    st.sampled_from([BERLIN, ZoneInfo("UTC"), ZoneInfo("America/St_Johns"), HALF, NAMED]),
)
folds = st.sampled_from([0, 1])
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.dates(),
    st.builds(datetime.replace, st.datetimes(timezones=zones), fold=folds),
    st.builds(time.replace, st.times(timezones=zones), fold=folds),
    st.timedeltas(),
    st.decimals(),
    st.tuples(
        st.sampled_from([0, 1]),
        st.lists(st.integers(0, 9), min_size=1, max_size=40).map(tuple),
        st.one_of(st.integers(-400, 400), st.sampled_from(["n", "N"])),
    ).map(Decimal),
    st.uuids(),
)
hashed = st.recursive(scalars, lambda part: st.lists(part, max_size=3).map(tuple), max_leaves=4)
values = st.recursive(
    scalars,
    lambda part: st.one_of(
        st.lists(part, max_size=4),
        st.lists(part, max_size=4).map(tuple),
        st.dictionaries(hashed.filter(lambda key: "sNaN" not in repr(key)), part, max_size=4),
    ),
    max_leaves=12,
)


@settings(max_examples=400)
@given(values)
def test_values_come_back_as_they_were(value: Any) -> None:
    assert shape(again(value)) == shape(value)


@settings(max_examples=20)
@given(pairs=st.lists(st.tuples(st.integers(0, 3), values), max_size=20))
def test_through_a_job(pairs: list[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("values")
    job = gm.Job(
        gm.items(pairs),
        reduce=listed,
        output=gm.kv(folder / "out"),
        split_max=200,
    )
    found = dict(job.run(workers=1, no_sync=True))
    wanted: dict[int, list[Any]] = {}
    for key, value in pairs:
        wanted.setdefault(key, []).append(value)
    assert {key: shape(values) for key, values in found.items()} == {
        key: shape(values) for key, values in wanted.items()
    }


EDGES: list[Any] = [
    *(Decimal(text) for text in ("1.0", "1.00", "-0", "0E+5", "-0E-7", "1E+999999", "Infinity")),
    *(Decimal(text) for text in ("-Infinity", "NaN", "-NaN123", "sNaN7", "1" * 700 + ".50")),
    date.min,
    date.max,
    *(datetime.min, datetime.max, datetime.max.replace(tzinfo=UTC)),
    datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1),
    datetime(2026, 10, 25, 2, 30, fold=1),
    datetime(2026, 10, 25, 2, 30, tzinfo=UTC, fold=1),
    datetime(2026, 1, 1, tzinfo=NAMED),
    datetime(2026, 1, 1, tzinfo=timezone(timedelta(0), "Z")),
    datetime(2026, 1, 1, tzinfo=timezone(timedelta(microseconds=-1))),
    *(time.min, time.max, time(2, 30, fold=1), time(1, tzinfo=BERLIN), time(1, tzinfo=UTC)),
    *(timedelta.min, timedelta.max, timedelta(microseconds=-1)),
    uuid.UUID(int=0),
    uuid.UUID(int=2**128 - 1),
    uuid.UUID(int=5, is_safe=uuid.SafeUUID.safe),
    uuid.UUID(int=6, is_safe=uuid.SafeUUID.unsafe),
    [],
    {},
    [[], {}, ()],
    {"a": None, 1: [None], (None, date.min): {"b": Decimal("1.0")}},
    {1: "int", 2.5: b"float", None: [], False: {}},
]


@pytest.mark.parametrize("value", EDGES, ids=repr)
def test_these_are_not_pickled(value: Any) -> None:
    assert shape(again(value)) == shape(value)
    for whole in (value, [value], {"a": value}, (value, [deepcopy(value)])):
        encoded = _core.encode(whole)
        assert encoded[:1] != PICKLED
        assert b"\x80\x05" not in encoded
        assert shape(again(whole)) == shape(whole)


def test_zones_are_the_objects_that_python_gives_for_them() -> None:
    assert again(datetime(2026, 1, 1, tzinfo=UTC)).tzinfo is UTC
    assert again(datetime(2026, 1, 1, tzinfo=BERLIN)).tzinfo is BERLIN
    assert again(time(1, tzinfo=BERLIN)).tzinfo is BERLIN


class Moment(datetime):
    """A subclass."""


class Price(Decimal):
    """A subclass."""


class Day(date):
    """A subclass."""


class Zone(tzinfo):
    """A time zone of somebody's own."""

    def utcoffset(self, _: datetime | None, /) -> timedelta:
        return timedelta(hours=1)

    def __repr__(self) -> str:
        return "Zone()"


class Point(NamedTuple):
    """A subclass of tuple."""

    x: int
    y: int


PICKLES: list[Any] = [
    pd.Timestamp("2026-01-01T00:00:00.123456789"),
    pd.Timestamp("2026-01-01", tz="Europe/Berlin"),
    pd.Timedelta(nanoseconds=1),
    Moment(2026, 1, 1),
    Price("1.50"),
    Day(2026, 1, 1),
    datetime(2026, 1, 1, tzinfo=Zone()),
    datetime(2026, 1, 1, tzinfo=ZoneInfo.no_cache("Europe/Berlin")),
    time(1, tzinfo=Zone()),
    OrderedDict(a=1),
    Point(1, 2),
    np.float64(1.5),
    {1},
    "\ud800",
    ["\ud800"],
    {"a": object},
]


@pytest.mark.parametrize("value", PICKLES, ids=repr)
def test_all_else_is_pickled(value: Any) -> None:
    for whole in (value, [value], {"a": value}, (value,)):
        assert _core.encode(whole)[:1] == PICKLED
        assert shape(again(whole)) == shape(pickle.loads(pickle.dumps(whole)))


def test_what_is_shared_stays_shared() -> None:
    part: list[Any] = [1]
    both = again([part, part])
    assert both == [part, part]
    assert both[0] is both[1]
    inside = (part,)
    both = again([inside, {"a": inside}])
    assert both[0][0] is both[1]["a"][0]
    part.append(part)
    found = again(part)
    assert found[1] is found
    equal = again([[1], [1]])
    assert equal[0] is not equal[1]


def test_long_values_are_pickled_and_small_ones_grow_little() -> None:
    text = "a" * 1000
    assert len(_core.encode([text] * 100_000)) < 300_000
    rows = [{"id": at, "name": "x"} for at in range(100_000)]
    assert again(rows) == rows
    deep: list[Any] = []
    for _ in range(150):
        deep = [deep]
    assert repr(again(deep)) == repr(deep)
    doubled: Any = []
    for _ in range(40):
        doubled = (doubled, doubled)
    assert len(_core.encode(doubled)) < 1000


def test_how_decimals_are_written_does_not_depend_on_the_context() -> None:
    with localcontext(prec=3, capitals=0):
        assert shape(again(Decimal("1.234567E+50"))) == shape(Decimal("1.234567E+50"))
    with localcontext(prec=2):
        assert str(again(Decimal("1.234567E+50"))) == "1.234567E+50"


def test_what_older_outputs_hold_is_read() -> None:
    for value in EDGES:
        pickled = pickle.dumps(value, 5).replace(b"\0", b"\0\xff")
        assert shape(_core.decode(PICKLED + pickled + b"\0")) == shape(value)


@pytest.mark.parametrize(
    "damaged",
    [
        b"\x43" + b"\xff" * 8,  # a datetime beyond the year 9999
        b"\x48\x00" + b"\xff" * 8,  # a time beyond midnight
        b"\x49\x00" + b"\x80" + bytes(7),  # a datetime that has a shorter encoding
        b"\x49\x13" + b"\x80" + bytes(7) + b"Europe/Ber",
        b"\x47" + bytes(11),
        b"\x4a\x03" + bytes(16),
        b"\x4b\x15\x01",
        b"\x4c\x15\x01\x00",
        b"\x4c\x15",
    ],
)
def test_damaged_values_are_errors(damaged: bytes) -> None:
    with pytest.raises(ValueError, match="cannot decode a value"):
        _core.decode(damaged)


def test_reductions_that_tell_apart_take_them(tmp_path: Path) -> None:
    at = datetime(2026, 1, 1, tzinfo=BERLIN)

    def pairs(_: int) -> Iterator[tuple[str, Any]]:
        for _ in range(2):
            yield "zone", at
            yield "list", [at]
            yield "dict", {"a": Decimal("1.0")}
            yield "uuid", uuid.UUID(int=1)

    job = gm.Job(
        gm.items([1, 2]), map=pairs, reduce=gm.count_distinct(), output=gm.kv(tmp_path / "out")
    )
    assert dict(job.run(workers=1)) == {"zone": 1, "list": 1, "dict": 1, "uuid": 1}
