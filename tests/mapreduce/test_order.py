"""The order of keys and values by what they are worth: numbers of all types, times, descending."""

import math
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import gristmill as gm
from gristmill import _core
from gristmill.mapreduce.aggregates import Aggregate
from gristmill.mapreduce.check.naive import run_naively
from gristmill.mapreduce.check.plain_aggregates import aggregated
from gristmill.mapreduce.keys import Desc
from gristmill.mapreduce.plain_order import by_worth

NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)
CEST = timezone(timedelta(hours=2))


def listed(key: Any, values: Iterable[Any]) -> Iterator[tuple[Any, list[Any]]]:
    yield key, list(values)


def itself(record: Any) -> Iterator[Any]:
    yield record


def run(pairs: Iterable[Any], folder: Path, **options: Any) -> Any:
    options.setdefault("reduce", listed)
    options.setdefault("map", itself)
    job = gm.Job(gm.items(pairs), output=gm.kv(folder / "out"), **options)
    return job.run(workers=2, overwrite=True, no_sync=True)


numbers = st.one_of(
    st.integers(),
    st.integers(-3, 3),
    st.sampled_from(
        [2**53 + 1, 2**53, 2.0**53, 10**30, 1e30, -(10**30), 0.1, Decimal("0.1"), -0.0]
    ),
    st.floats(),
    st.floats(-3, 3, width=16),
    st.booleans(),
    st.decimals(allow_nan=False),
    st.decimals(-3, 3, places=2),
)
finite = numbers.filter(lambda number: not isinstance(number, Decimal) or encodable(number))


def encodable(number: Decimal) -> bool:
    try:
        _core.encode_key(number)
    except ValueError:
        return False
    return True


times = st.one_of(
    st.dates(),
    st.datetimes(),
    st.datetimes(
        datetime(1000, 1, 1),
        timezones=st.sampled_from([UTC, CEST]),
    ),
)
plain = st.one_of(finite, times, st.none(), st.text(max_size=3), st.binary(max_size=3))
keys = st.recursive(
    plain,
    lambda inner: st.one_of(st.tuples(inner), st.tuples(inner, inner), inner.map(gm.desc)),
    max_leaves=6,
)


@given(st.lists(keys, min_size=2, max_size=8))
def test_order_is_that_of_plain_python(found: list[Any]) -> None:
    for one, other in pairwise(found):
        first, second = _core.encode_order(one), _core.encode_order(other)
        assert (first < second) == (by_worth(one) < by_worth(other))
        assert (first == second) == (by_worth(one) == by_worth(other))


@given(finite, finite)
@example(2**53 + 1, 2.0**53)
@example(Decimal("0.1"), 0.1)
@example(-1e-300, -0.0)
def test_numbers_are_ordered_as_python_orders_them(one: Any, other: Any) -> None:
    if math.isnan(one) or math.isnan(other):
        assert (_core.encode_order(one) <= _core.encode_order(other)) == math.isnan(other)
        return
    for a, b in ((one, other), (other, one)):
        assert (_core.encode_order(a) < _core.encode_order(b)) == (a < b)


@given(keys)
def test_keys_come_back_equal(key: Any) -> None:
    back = _core.decode(_core.encode_key(key))
    assert by_worth(back) == by_worth(_core.decode(_core.encode_key(back)))
    if not isinstance(key, (tuple, Desc)) and key == key:
        assert back == key
        assert type(back) is type(key)
    assert _core.encode_key(_core.decode_key(_core.encode_key(key))) == _core.encode_key(key)


def test_sort_by_puts_numbers_in_order_whatever_their_type(tmp_path: Path) -> None:
    """What the trial saw: 2.5, 3, 1.5, 2 gave [2, 3, 1.5, 2.5]."""
    (tmp_path / "t.jsonl").write_text("".join(f'{{"t": {t}}}\n' for t in (2.5, 3, 1.5, 2)))
    job = gm.Job(
        gm.jsonl(tmp_path / "t.jsonl"),
        map=lambda row: [("all", row["t"])],
        sort_by=lambda key, t: t,
        reduce=listed,
        output=gm.kv(tmp_path / "out"),
    )
    assert list(job.run()) == [("all", [1.5, 2, 2.5, 3])]


MIXED: list[Any] = [3, 2.5, True, -math.inf, 2**60, 1, 1.0, Decimal("2.75"), math.nan, 0, -0.5, 2]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("in_tuples", [False, True])
def test_sort_by_mixed(tmp_path: Path, *, turned: bool, in_tuples: bool) -> None:
    def order(_key: object, value: Any) -> Any:
        by = gm.desc(value) if turned else value
        return (None, by, "x") if in_tuples else by

    found = run([("k", value) for value in MIXED], tmp_path, sort_by=order)
    expected = sorted(MIXED, key=lambda value: by_worth(gm.desc(value) if turned else value))
    assert repr(list(found)) == repr([("k", expected)])  # ties in the order of the input


def test_keys_that_are_reduced_together_come_in_order(tmp_path: Path) -> None:
    pairs = [(("a", t), t) for t in (2.5, 3, 1.5, 2, True)]
    found = run(pairs, tmp_path, group_by=lambda key: key[0])
    assert list(found) == [("a", [True, 1.5, 2, 2.5, 3])]


@pytest.mark.parametrize("aggregate", [gm.count(), None])
@pytest.mark.parametrize("cuts", [[2], [1.5, Decimal("2.5")], [-1, 0.5, 1, 2**60]])
def test_ranges_cut_and_sort_by_value(
    tmp_path: Path, cuts: list[Any], aggregate: Aggregate | None
) -> None:
    pairs = [(number, "x") for number in MIXED]
    options: dict[str, Any] = {"reduce": aggregate or listed, "partition_by": gm.ranges(cuts)}
    result = run(pairs, tmp_path, **options)
    found = [key for key, _ in result]
    assert repr(found) == repr(
        sorted(MIXED, key=lambda key: (by_worth(key), _core.encode_key(key)))
    )
    for number, file in enumerate(result.files()):
        for key, _ in gm.kv().open_file(str(file)):
            assert sum(by_worth(cut) <= by_worth(key) for cut in cuts) == number
    naive = run_naively(gm.Job(gm.items(pairs), map=itself, output=gm.kv("x"), **options))
    assert repr([pair for part in naive.parts for pair in part]) == repr(list(result))


def test_ranges_of_tables_and_combiners(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")

    def tables(_batch: Any) -> Iterator[Any]:
        yield pa.table({"k": [1.5, 3.0, 2.0], "v": [1, 1, 1]})
        yield pa.table({"k": [2, 1, 3], "v": [1, 1, 1]})
        yield pa.table({"k": ["a", None, "b"], "v": [1, 1, 1]})

    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    job = gm.Job(
        gm.parquet(tmp_path / "a.parquet"),
        map_batches=tables,
        reduce=gm.sum(),
        partition_by=gm.ranges([2]),
        output=gm.kv(tmp_path / "tables"),
    )
    keys = [None, "a", "b", 1, 1.5, 2, 2.0, 3, 3.0]
    assert repr([key for key, _ in job.run()]) == repr(keys)
    found = run(
        [(key, 1) for key in (2, 1.5, 1, 1.0, 1, gm.desc(7))],
        tmp_path,
        combine=lambda key, values: [sum(values)],
        reduce=lambda key, values: [(key, sum(values))],
        partition_by=gm.ranges([1.25]),
    )
    assert repr(list(found)) == repr([(1, 2), (1.0, 1), (1.5, 1), (2, 1), (7, 1)])


def test_sampled_ranges_are_sorted(tmp_path: Path) -> None:
    pairs = [(n / 2 if n % 3 else n // 2, n) for n in range(3000)]
    for turn in (False, True):
        result = run(
            pairs,
            tmp_path,
            map=(lambda pair: [(gm.desc(pair[0]), pair[1])]) if turn else itself,
            reduce=gm.count(),
            partition_by=gm.sampled_ranges(500),
            parts=4,
        )
        found = [key for key, _ in result]
        assert found == sorted(found, reverse=turn)
        assert sorted(map(repr, found)) == sorted({repr(key) for key, _ in pairs})
        assert len(result.files()) == 4
        assert all(file.stat().st_size > 1000 for file in result.files())


@given(st.lists(finite, max_size=12))
def test_naive_aggregates_order_numbers(values: list[Any]) -> None:
    ordered = [value for value in values if value == value]
    if ordered:
        assert aggregated('"min"', ordered) == min(ordered)
        assert aggregated('"max"', ordered) == max(ordered)
        assert aggregated('{"top": 3}', ordered) == tuple(sorted(ordered, reverse=True)[:3])


@pytest.mark.parametrize(
    "aggregate", [gm.min(), gm.max(), gm.top(4), gm.quantiles([0, 0.3, 0.5, 1])], ids=repr
)
@pytest.mark.parametrize("in_tuples", [False, True])
def test_aggregates_that_compare(tmp_path: Path, aggregate: Aggregate, *, in_tuples: bool) -> None:
    values = [(value, "x") for value in MIXED] if in_tuples else MIXED
    found = run([("k", value) for value in values], tmp_path, reduce=aggregate)
    ((_, result),) = list(found)
    assert repr(result) == repr(aggregated(aggregate.spec, values))


def test_quantiles_are_rounded_as_numpys(tmp_path: Path) -> None:
    values, ranks = list(range(10)), [tenth / 10 for tenth in range(11)]
    wanted = tuple(np.quantile(values, ranks, method="inverted_cdf").tolist())
    assert aggregated(gm.quantiles(ranks).spec, values) == wanted
    found = run([("k", value) for value in values], tmp_path, reduce=gm.quantiles(ranks))
    assert list(found) == [("k", wanted)]


# --- types of keys ---


def test_times_and_decimals_are_keys(tmp_path: Path) -> None:
    later = NOON.astimezone(CEST)
    naive = datetime(2024, 2, 29, 12)
    pairs: list[Any] = [
        (NOON, 1),
        (later, 2),
        (naive, 3.5),
        (date(2024, 2, 29), 4),
        (Decimal("1.50"), 5),
        (Decimal("1.5"), 6),
        (Decimal(100), 7),
        (Decimal("-Infinity"), 8),
        (datetime.min, 9),
        (date.max, 10),
    ]
    found = run(pairs, tmp_path, reduce=lambda key, values: [(key, sum(values))])
    assert sorted(found, key=lambda pair: pair[1]) == [
        (NOON, 3),
        (naive, 3.5),
        (date(2024, 2, 29), 4),
        (Decimal(100), 7),
        (Decimal("-Infinity"), 8),
        (datetime.min, 9),
        (date.max, 10),
        (Decimal("1.5"), 11),
    ]
    kinds = {type(key) for key, _ in found}
    assert kinds == {datetime, date, Decimal}
    assert "100" in [str(key) for key, _ in found]


def test_datetimes_are_sorted_by_instant(tmp_path: Path) -> None:
    times = [NOON + timedelta(minutes=number * 30) for number in range(6)]
    shown = [time.astimezone(CEST if at % 2 else UTC) for at, time in enumerate(times)]
    found = run([("k", time) for time in reversed(shown)], tmp_path, sort_by=lambda _, time: time)
    assert list(found) == [("k", times)]
    assert not found.report.warnings


@pytest.mark.parametrize(
    "key", [Decimal("1e700"), Decimal("1e-700"), gm.desc([1]), (gm.desc({}),), gm.desc(1j)]
)
def test_keys_without_an_encoding(tmp_path: Path, key: Any) -> None:
    with pytest.raises(RuntimeError, match=r"a key must be|a decimal has more than"):
        run([(key, 1)], tmp_path)


def test_timestamps_of_pandas(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    found = run([(pd.Timestamp("2024-02-29T12:00Z"), 1), (NOON, 2)], tmp_path)
    assert list(found) == [(NOON, [1, 2])]
    for wrong in (pd.Timestamp("2024-02-29T12:00:00.000000001"), pd.NaT):
        with pytest.raises(RuntimeError, match="nanoseconds"):
            run([(wrong, 1)], tmp_path)


# --- descending ---


def test_descending_keys(tmp_path: Path) -> None:
    words = ["b", "", "ab", "a\0", "a", "c"]
    found = run([(gm.desc(word), word) for word in words], tmp_path)
    assert list(found) == [(word, [word]) for word in sorted(words, reverse=True)]
    pairs = [((word[:1], gm.desc(len(word))), word) for word in ("bb", "a", "aaa", "b", "aa")]
    found = run(pairs, tmp_path)
    assert [values for _, values in found] == [["aaa"], ["aa"], ["a"], ["bb"], ["b"]]
    assert next(key for key, _ in found) == ("a", 3)


def test_functions_get_descending_keys_as_they_were(tmp_path: Path) -> None:
    def part(key: int, parts: int) -> int:
        return key % parts

    options: dict[str, Any] = {
        "group_by": lambda key: gm.desc(key[0] // 2),
        "sort_by": lambda key, value: gm.desc((key[1], value)),
        "partition_by": part,
        "parts": 2,
    }
    pairs = [((gm.desc(n), n % 3), n) for n in range(12)]
    result = run(pairs, tmp_path, **options)
    naive = run_naively(
        gm.Job(gm.items(pairs), map=itself, reduce=listed, output=gm.kv("x"), **options)
    )
    assert [list(gm.kv().open_file(str(file))) for file in result.files()] == naive.parts
    assert [key for key, _ in result] == [4, 2, 0, 5, 3, 1]


def test_a_map_alone_writes_descending_keys_as_they_were(tmp_path: Path) -> None:
    for form in (gm.kv, gm.tsv, gm.csv):
        output = form(tmp_path / form.__name__)
        job = gm.Job(gm.items([1]), map=lambda n: [(gm.desc((n, "a")), n)], output=output)
        (record,) = job.run()
        assert "desc" not in repr(record)


# --- what is said ---


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ([1, 2.5], "the keys mix int and float"),
        ([1, True, Decimal(1)], "the keys mix int and bool and Decimal"),
        ([("a", 1), ("b", 1.0)], r"key\[1\] mixes int and float"),
        ([gm.desc(1), gm.desc(1.0)], "the keys mix int and float"),
        ([NOON, NOON.replace(tzinfo=None)], "the keys mix datetime without a time zone and"),
        ([NOON, NOON.date()], "the keys mix date and datetime with a time zone"),
        ([1, "a", None], None),
        ([("a", 1), (2.5, "b"), ("c", 3)], None),
        ([1, 2**70], None),
        (["a", "b"], None),
    ],
)
def test_a_job_that_mixes_keys_says_so_once(
    tmp_path: Path, made: list[Any], said: str | None
) -> None:
    pairs = [(key, 1) for key in made * 20]
    for options in ({}, {"reduce": gm.sum()}):
        warnings = run(pairs, tmp_path, split_max=100, **options).report.warnings
        about = [warning for warning in warnings if "mix" in warning]
        assert len(about) == (0 if said is None else 1)
        if said is not None:
            assert re.match(said, about[0])


def test_sort_by_and_aggregates_say_what_was_mixed(tmp_path: Path) -> None:
    pairs = [("k", NOON), ("k", NOON.replace(tzinfo=None))]
    (said,) = run(pairs, tmp_path, sort_by=lambda _, time: time).report.warnings
    assert said.startswith("what sort_by returned mixes datetime")
    (said,) = run(pairs, tmp_path, reduce=gm.max()).report.warnings
    assert said.startswith("the values mix datetime")
    assert not run([("k", 1), ("k", 1.5)], tmp_path, reduce=gm.max()).report.warnings
    assert not run([("k", 1), ("k", 1.5)], tmp_path, sort_by=lambda _, n: n).report.warnings


# --- missing values ---

ALL = [
    gm.sum, gm.count, gm.min, gm.max, gm.mean, gm.first, gm.last, gm.distinct,
    gm.approx_distinct, gm.collect,
]  # fmt: skip


@pytest.mark.parametrize(
    "made", [*ALL, lambda **o: gm.top(2, **o), lambda **o: gm.quantiles([0.5, 1], **o)]
)
def test_missing_values_are_passed_over(tmp_path: Path, made: Any) -> None:
    aggregate = made(skip_none=True)
    pairs = [("a", 1), ("a", None), ("b", None), ("a", 2.5), ("a", None), ("c", 3)]
    found = dict(run(pairs, tmp_path, reduce=aggregate))
    there = [pair for pair in pairs if pair[1] is not None]
    expected = dict(run(there, tmp_path, reduce=made()))
    nothing = {"sum": 0, "count": 0, "approx_distinct": 0, "top": (), "distinct": (), "collect": ()}
    nothing["quantiles"] = (None, None)  # type: ignore[assignment]
    assert found == {**expected, "b": nothing.get(aggregate.name)}
    assert found["b"] == aggregated(aggregate.spec, [None])
    assert found["a"] == aggregated(aggregate.spec, [1, None, 2.5, None])
    assert "skip_none=True" in repr(aggregate)


def test_missing_values_of_tables(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")

    def table(batch: Any) -> Iterator[Any]:
        yield pa.table({"k": ["a"] * len(batch), "v": [None, 2.0, None][: len(batch)]})

    (tmp_path / "a.txt").write_text("1\n2\n3\n")
    job = gm.Job(
        gm.text(tmp_path / "a.txt"),
        map_batches=table,
        reduce=gm.mean(skip_none=True),
        output=gm.kv(tmp_path / "out"),
    )
    assert list(job.run()) == [("a", 2.0)]


def test_the_error_of_a_missing_value_names_the_option(tmp_path: Path) -> None:
    with pytest.raises((RuntimeError, ValueError), match=r"sum takes numbers.*skip_none=True"):
        run([("a", None)], tmp_path, reduce=gm.sum())


def test_fractions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"a key must be .* of type Fraction"):
        run([(Fraction(1, 3), 1)], tmp_path)


@pytest.mark.parametrize("form", ["jsonl", "parquet", "arrow", "kv", "tsv", "csv"])
def test_a_descending_key_of_a_map_alone_is_written_as_the_key(form: str, tmp_path: Path) -> None:
    def pairs(number: int) -> list[tuple[object, object]]:
        return [(gm.desc(number), str(number))]

    output = getattr(gm, form)(tmp_path / "out")
    found = list(gm.Job(gm.items([2, 1]), map=pairs, output=output).run(workers=1))
    rows = [{"key": "2", "value": "2"}, {"key": "1", "value": "1"}]
    shown = [dict(zip(("key", "value"), one, strict=True)) if isinstance(one, tuple) else one
             for one in found]  # fmt: skip
    assert [{name: str(value) for name, value in one.items()} for one in shown] == rows


def test_descending_keys_within_records(tmp_path: Path) -> None:
    for form in (gm.jsonl, gm.parquet):
        job = gm.Job(
            gm.items([(1, "a")]),
            map=lambda pair: [{"k": gm.desc(pair[0]), "of": [gm.desc(pair[1])]}],
            output=form(tmp_path / form.__name__),
        )
        assert list(job.run(workers=1)) == [{"k": 1, "of": ["a"]}]


def test_the_documented_encodings_are_the_engines() -> None:
    """The table and the example of docs/internals/kv-file.md."""
    text = (Path(__file__).parents[2] / "docs/internals/kv-file.md").read_text()
    codes = set(re.findall(r"`([0-9A-F]{2})`", "".join(re.findall(r"(?m)^\| (`.*?) \|", text))))
    day = datetime(2024, 2, 29, 12)
    keys = [None, b"a", "a", (1,), -(2**64), -1, 0, 1, 2**64, 1.5, False, True, day.date(), day,
            day.replace(tzinfo=UTC), Decimal("1.5"), gm.desc(1)]  # fmt: skip
    values = [{1}, Decimal("1.50"), day - day, day.time(), day.replace(fold=1), UUID(int=1), [], {}]
    for encoded in (*map(_core.encode, [*keys, *values]), *map(_core.encode_key, keys)):
        first = encoded[0]
        assert f"{first:02X}" in codes or 0x0C <= first <= 0x13 or 0x15 <= first <= 0x1C, first
    assert {_core.encode(value)[0] for value in values} == {0x40, *range(0x46, 0x4D)}
    noon = _core.encode(day.time().replace(tzinfo=ZoneInfo("Europe/Berlin")))
    assert f"`{noon[:10].hex(' ').upper()}`" in text
    example = re.search(r'`Decimal\("(.*?)"\)` is `(.*?)`', text)
    assert example is not None
    assert _core.encode_key(Decimal(example[1])) == bytes.fromhex(example[2])


def test_run_all_says_what_was_mixed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job = gm.Job(
        gm.items([1, 2.0]), map=lambda n: [(n, 1)], reduce=gm.sum(), output=gm.kv(tmp_path / "out")
    )
    gm.run_all([job], workers=1)
    assert capfd.readouterr().err.count("gristmill: the keys mix int and float") == 1
