"""Tables from `map_batches`: the same pairs as those of the objects in them, whatever the types."""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill as gm
from gristmill import _core
from gristmill.mapreduce.aggregates import Aggregate
from gristmill.mapreduce.worker import columns
from gristmill.mapreduce.worker.columns import Columns

texts = st.text(max_size=6)
blobs = st.binary(max_size=6)


def whole(bits: int, *, signed: bool) -> st.SearchStrategy[int]:
    least = -(2 ** (bits - 1)) if signed else 0
    ends = st.sampled_from([least, -least - 1 if signed else 2**bits - 1])
    return st.one_of(ends, st.integers(least, least + 2**bits - 1))


#: The types whose buffers the engine reads.
NATIVE: dict[Any, st.SearchStrategy[Any]] = {
    pa.null(): st.none(),
    pa.bool_(): st.booleans(),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.string(): texts,
    pa.large_string(): texts,
    pa.string_view(): texts,
    pa.binary(): blobs,
    pa.large_binary(): blobs,
    pa.binary_view(): blobs,
    pa.dictionary(pa.int8(), pa.string()): st.sampled_from(["a", "b\0", ""]),
    pa.dictionary(pa.int32(), pa.int64()): st.integers(-3, 3),
    **{pa.type_for_alias(f"int{bits}"): whole(bits, signed=True) for bits in (8, 16, 32, 64)},
    **{pa.type_for_alias(f"uint{bits}"): whole(bits, signed=False) for bits in (8, 16, 32, 64)},
}

#: Some of which it takes the objects.
OTHERS: dict[Any, st.SearchStrategy[Any]] = {
    pa.list_(pa.int64()): st.lists(st.integers(0, 9), max_size=3),
    pa.decimal128(5, 1): st.decimals(-9, 9, places=1),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.date32(): st.dates(),
    pa.float16(): st.floats(width=16),
}


def spec(folder: Path, partitions: int = 1) -> str:
    return json.dumps(
        {
            "job_id": "columns",
            "task": 3,
            "attempt": 0,
            "partitions": partitions,
            "places": [str(folder)],
            "chunk_bytes": 1 << 20,
            "buffer_bytes": 1 << 16,
            "output": str(folder / "out"),
            "work": {"map": {"number": 3, "bytes": 0, "what": None}},
        }
    )


def left_by(emitter: "_core.Emitter", take: Callable[[], None]) -> Any:
    """What an emitter leaves: its report and its runs, byte for byte; or how it fails."""
    try:
        take()
        report = json.loads(emitter.finish())
    except Exception as error:  # noqa: BLE001 - how it fails is compared
        return type(error), str(error)
    runs = [Path(run.pop("name")).read_bytes() for run in report["runs"]]
    return report, runs


@st.composite
def arrays(draw: st.DrawFn, types: dict[Any, st.SearchStrategy[Any]], rows: int) -> Any:
    """A column of so many rows: with nulls or not, in chunks, each of them a slice."""
    kind = draw(st.sampled_from(list(types)))
    values = types[kind]
    if draw(st.booleans()):
        values = st.one_of(st.none(), values)
    chunks: list[Any] = []
    while (left := rows - sum(map(len, chunks))) or not chunks:
        found = draw(st.lists(values, min_size=left, max_size=left + 12))
        at = draw(st.integers(0, len(found)))
        chunks.append(pa.array(found, kind).slice(at, left))
    return pa.chunked_array(chunks, kind)


@st.composite
def tables(draw: st.DrawFn, values: dict[Any, st.SearchStrategy[Any]]) -> Any:
    rows = draw(st.integers(0, 40))
    keys = draw(arrays(NATIVE, rows))
    table = pa.table({"key": keys, "value": draw(arrays(values, rows))})
    if draw(st.booleans()):
        return table.combine_chunks().to_batches()[0] if rows else table
    return table


def pairs_of(table: Any) -> Iterable[tuple[Any, Any]]:
    return zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True)


def check_same(table: Any, folder: Path, **options: Any) -> None:
    """The table by its buffers and by its objects: the same runs, the same figures."""
    partitions = len(options.get("cuts", [0, 0])) + 1
    found: list[Any] = []
    for name in ("objects", "columns"):
        place = folder / name
        place.mkdir()
        emitter = _core.Emitter(spec(place, partitions), **options)
        taking = Columns(emitter, objects=False)
        if name == "objects":
            found.append(left_by(emitter, lambda e=emitter: e.consume(pairs_of(table))))
        else:
            found.append(left_by(emitter, lambda t=taking: t.consume([table])))
    assert found[0] == found[1]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "PIECE_ROWS", 7)


@pytest.mark.usefixtures("small_pieces")
@settings(max_examples=150)
@given(table=tables({**NATIVE, **OTHERS}), cuts=st.booleans())
def test_pairs(table: Any, cuts: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    options: dict[str, Any] = {"cuts": [b"b", "a", 0, 1.5]} if cuts else {}
    check_same(table, tmp_path_factory.mktemp("pairs"), **options)


AGGREGATES = [
    gm.sum(), gm.count(), gm.min(), gm.max(), gm.mean(), gm.first(), gm.last(), gm.top(3),
    gm.distinct(), gm.approx_distinct(), gm.collect(), gm.quantiles([0.0, 0.5, 1.0]),
]  # fmt: skip


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("reduce", AGGREGATES, ids=lambda reduce: reduce.name)
@settings(max_examples=25)
@given(table=tables(NATIVE))
def test_aggregates(
    reduce: Aggregate, table: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """States know the position of each value, and so do the errors of what cannot be added."""
    check_same(table, tmp_path_factory.mktemp("aggregates"), aggregate=reduce.spec)


def test_combined_and_spilled(tmp_path: Path) -> None:
    rows = 200_000
    table = pa.table({"key": [f"k{n % 70_001}" for n in range(rows)], "n": range(rows)})
    check_same(table, tmp_path / "plain", **made(tmp_path / "plain"))
    check_same(table, tmp_path / "combined", **made(tmp_path / "combined"), combine=total)
    check_same(table, tmp_path / "sums", **made(tmp_path / "sums"), aggregate=gm.sum().spec)


def made(folder: Path) -> dict[str, Any]:
    folder.mkdir()
    return {}


def total(_key: Any, values: Iterable[int]) -> Iterator[int]:
    yield sum(values)


# --- the way that is taken ---


class Spy:
    def __init__(self) -> None:
        self.ways: list[str] = []

    def consume(self, pairs: Iterable[Any]) -> None:
        self.ways.extend("object" for _ in pairs)

    def consume_columns(self, rows: int, *_: Any) -> None:
        self.ways.extend("native" for _ in range(rows))


def ways(given: Iterable[Any], *, objects: bool = False) -> list[str]:
    spy: Any = Spy()
    Columns(spy, objects).consume(given)
    return spy.ways


@pytest.mark.parametrize("kind", [*NATIVE, *OTHERS], ids=str)
def test_what_is_native(kind: Any) -> None:
    column = pa.array([None], kind)
    way = "native" if kind in NATIVE else "object"
    texts = pa.array(["a"])
    assert ways([pa.table({"key": column, "value": texts})]) == [way]
    assert ways([pa.record_batch({"key": texts, "value": column})]) == [way]
    assert ways([pa.table({"key": column, "value": texts})], objects=True) == ["object"]


def test_tables_and_pairs_keep_their_order() -> None:
    table, batch = pa.table({"a": ["k"], "b": [1]}), pa.record_batch({"a": ["k"], "b": [1]})
    given = [("k", 1), table, batch, ("k", 1), ("k", 1), batch, table, ("k", 1)]
    expected = ["object" if isinstance(each, tuple) else "native" for each in given]
    assert ways(iter(given)) == expected
    assert ways([]) == []


# --- what is no text, and what is damaged ---


def text_column(data: bytes, *ends: int, valid: int | None = None) -> Any:
    offsets = pa.array([0, *ends], pa.int32()).buffers()[1]
    bits = None if valid is None else pa.py_buffer(bytes([valid]))
    return pa.Array.from_buffers(pa.string(), len(ends), [bits, offsets, pa.py_buffer(data)])


@pytest.mark.parametrize(
    "column",
    [
        text_column(b"good\xff", 4, 5),
        text_column("é".encode(), 1, 2),  # text as a whole, but not value by value
        text_column(b"\xed\xa0\x80", 3),  # half of a pair
        text_column(b"good\xff", 4, 5, valid=0b01),  # what is null is not looked at
    ],
)
def test_text_that_is_none(column: Any, tmp_path: Path) -> None:
    check_same(pa.table({"key": column, "value": column}), tmp_path)


def test_buffers_that_hold_too_little(tmp_path: Path) -> None:
    emitter = _core.Emitter(spec(tmp_path))
    good = ("n", 0, [None])
    eight = pa.py_buffer(bytes(8))
    for damaged in [
        ("l", 1, [None, eight]),
        ("l", 0, [eight, None]),
        ("l", 0, []),
        ("b", 100, [None, eight]),
        ("u", 0, [None, pa.array([0, 9], pa.int32()).buffers()[1], eight]),
        ("u", 0, [None, pa.array([5, 4], pa.int32()).buffers()[1], eight]),
        ("Z", 0, [None, pa.array([-5, 4], pa.int64()).buffers()[1], eight]),
    ]:
        with pytest.raises(ValueError, match="do not hold what its length and its offsets say"):
            emitter.consume_columns(1, good, damaged)
        with pytest.raises(ValueError, match="do not hold what its length and its offsets say"):
            emitter.consume_columns(1, damaged, good)
    with pytest.raises(RuntimeError, match="no layout for the format e"):
        emitter.consume_columns(1, good, ("e", 0, [None, eight]))


# --- whole jobs ---


def mixed(batch: Any) -> Iterator[Any]:
    lines = batch.column("line")
    yield "all", len(lines)
    yield pa.table({"key": lines, "value": pa.array(range(len(lines)), pa.uint64())})
    yield "all", -1.5
    yield pa.record_batch({"key": lines, "value": [[line] for line in lines.to_pylist()]})


def listed(key: Any, values: Iterable[Any]) -> Iterator[tuple[Any, list[Any]]]:
    yield key, list(values)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"partition_by": lambda key, parts: len(key) % parts},
        {"partition_by": gm.ranges(["b", "c"])},
        {"sort_by": lambda key, value: -1},
        {"group_by": lambda key: key},
    ],
    ids=lambda option: "".join(option) or "none",
)
def test_a_job_with_all_kinds(options: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\nb\na\nc\n")
    options = {"parts": 3, **options}
    job = gm.Job(
        gm.text(tmp_path / "a"),
        map_batches=mixed,
        reduce=listed,
        output=gm.kv(tmp_path / "out"),
        **options,
    )
    result = job.run()
    expected = {
        "a": [0, 2, ["a"], ["a"]],
        "all": [4, -1.5],
        "b": [1, ["b"]],
        "c": [3, ["c"]],
    }
    assert dict(result.read()) == expected
    assert result.counters["MAP_OUTPUT_RECORDS"] == 10


def test_a_key_that_has_no_order(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    job = gm.Job(
        gm.text(tmp_path / "a"),
        map_batches=lambda batch: pa.table({"key": [[1]], "value": [1]}),
        reduce=gm.sum(),
        output=gm.kv(tmp_path / "out"),
    )
    with pytest.raises(RuntimeError, match=r"a key must be .*\[1\] is of type list"):
        job.run()


def test_zeros_are_two_keys_and_nans_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    keys = [math.nan, -0.0, 0.0, math.nan]
    job = gm.Job(
        gm.text(tmp_path / "a"),
        map_batches=lambda batch: pa.table({"key": keys, "value": [1, 2, 3, 4]}),
        reduce=gm.sum(),
        output=gm.kv(tmp_path / "out"),
    )
    assert [(repr(key), value) for key, value in job.run().read()] == [
        ("-0.0", 2),
        ("0.0", 3),
        ("nan", 5),
    ]


# --- which column is the key ---


def batches_of(tmp_path: Path, *tables: Any, **options: Any) -> gm.Result:
    (tmp_path / "a").write_text("a\n")
    options.setdefault("output", gm.kv(tmp_path / "out"))
    job = gm.Job(gm.text(tmp_path / "a"), map_batches=lambda batch: list(tables), **options)
    return job.run(workers=1, no_sync=True, progress=False)


@pytest.mark.parametrize("sort_by", [None, lambda key, value: value])
def test_the_column_key_is_the_key(tmp_path: Path, sort_by: Any) -> None:
    first = pa.table({"key": ["a"], "value": [1]})
    second = pa.table({"value": [2], "key": ["a"]})
    third = pa.table({"word": ["a"], "n": [3]})
    found = batches_of(tmp_path, first, second, third, reduce=listed, sort_by=sort_by)
    assert [(key, sorted(values)) for key, values in found] == [("a", [1, 2, 3])]


@pytest.mark.parametrize("output", [gm.kv, gm.tsv, gm.jsonl])
def test_the_columns_key_and_value_are_pairs_in_any_order(tmp_path: Path, output: Any) -> None:
    table = pa.table({"value": [1], "key": ["a"]})
    found = list(batches_of(tmp_path, table, output=output(tmp_path / "out")))
    assert found[0] in (("a", 1), ("a", "1"), {"key": "a", "value": 1})


def test_columns_in_another_order_are_refused(tmp_path: Path) -> None:
    first, second = pa.table({"word": ["a"], "n": [1]}), pa.table({"n": [2], "word": ["a"]})
    said = r"'n', 'word' after one with 'word', 'n'.*\.select\(\['word', 'n'\]\)"
    with pytest.raises(RuntimeError, match=said):
        batches_of(tmp_path, first, second, reduce=listed)
