"""Tables that are odd: columns of one name, times with nanoseconds, values without a place."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.mapreduce.harness import itself, run

import gristmill as gm


def test_tables_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"no table")
    for source in (gm.parquet(tmp_path / "a"), gm.arrow(tmp_path / "a")):
        with pytest.raises(ValueError, match=rf"^cannot read {tmp_path}/a: .* to do: ") as caught:
            run(source, tmp_path, map=itself)
        assert "\n" not in str(caught.value)
    pq.write_table(pa.table({"n": [1]}), tmp_path / "b")
    with pytest.raises(ValueError, match=r"it has no column 'm'.* take some of 'n'"):
        run(gm.parquet(tmp_path / "b", columns=["m"]), tmp_path, map=itself)


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    table = pa.table([[1], [2]], names=["a", "a"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        file.write_table(table)
    says = "two columns of a table are named 'a'.*What to do: rename one of them"
    for source in (gm.parquet(tmp_path / "a.parquet"), gm.arrow(tmp_path / "a.arrow")):
        with pytest.raises(ValueError, match=says):
            run(source, tmp_path, map=itself)
    with pytest.raises(ValueError, match=says):
        run([1], tmp_path, map=lambda _: [table], output=gm.jsonl(tmp_path / "lines"))


NANOSECONDS = pa.time64("ns")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, 1000, 123456789], NANOSECONDS),
        pa.array([[], [0], [None, 1]], pa.list_(NANOSECONDS)),
        pa.array([[0], [0], [1]], pa.list_(NANOSECONDS, 1)),
        pa.array([None, {"t": 0}, {"t": 1}], pa.struct({"t": NANOSECONDS})),
        pa.array([None, [("a", 0)], [("b", 1)]], pa.map_(pa.string(), NANOSECONDS)),
    ],
    ids=lambda column: str(column.type),
)
def test_times_with_nanoseconds_are_not_cut(tmp_path: Path, column: pa.Array) -> None:
    says = "the column 't' has a time with nanoseconds"
    table = pa.table({"n": [1, 2, 3], "t": column})
    pq.write_table(table, tmp_path / "a.parquet")
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        file.write_table(table)
    for source in (gm.parquet(tmp_path / "a.parquet"), gm.arrow(tmp_path / "a.arrow")):
        with pytest.raises(ValueError, match=rf"{says}.*offset 2.* What to do: write the"):
            run(source, tmp_path, map=itself)
    for output in (gm.jsonl(tmp_path / "lines"), gm.kv(tmp_path / "pairs")):
        with pytest.raises(ValueError, match=says):
            run([1], tmp_path, map=lambda _: [table], output=output)


@pytest.mark.parametrize("output", [gm.parquet, gm.arrow])
def test_columns_whose_names_are_not_text(tmp_path: Path, output: Any) -> None:
    says = r"record 2 of the part, \{1: 3\}, has a column named 1, which is not text. What to do: "
    assert_refused(output(tmp_path / "out"), [{"a": 2}, {1: 3}], says)


NOT_NULL = pa.field("n", pa.int64(), nullable=False)


@pytest.mark.parametrize("output", [gm.parquet, gm.arrow])
@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        (NOT_NULL, {"n": 1}, {"n": None}),
        (NOT_NULL, {"n": 1}, {}),
        (pa.field("n", pa.struct([NOT_NULL])), {"n": None}, {"n": {"n": None}}),
        (pa.field("n", pa.list_(NOT_NULL)), {"n": [1]}, {"n": [1, None]}),
    ],
)
def test_no_value_where_the_schema_wants_one(
    tmp_path: Path, output: Any, field: pa.Field, good: Any, bad: Any
) -> None:
    form = output(tmp_path / "out", schema=pa.schema([field]))
    says = r"record 2 of the part, \{.*\}, has no value in the column 'n', which is not nullable"
    assert_refused(form, [good, bad], says)
    assert_refused(form, [pa.Table.from_pylist([good, bad], pa.schema([field]))], says)
    assert list(run([1], tmp_path, map=lambda _: [good], output=form).read()) == [good]


@pytest.mark.parametrize("bad", [{"n": {}}, {"n": [{"m": {}}]}])
def test_a_dict_without_keys_in_parquet(tmp_path: Path, bad: Any) -> None:
    says = (
        r"record 2 of the part, .*, has a dict without keys in the column 'n', which Parquet cannot"
    )
    assert_refused(gm.parquet(tmp_path / "out"), [{"n": None}, bad], says)
    found = run([1], tmp_path, map=lambda _: [bad], output=gm.arrow(tmp_path / "out"))
    assert list(found.read()) == [bad]


def assert_refused(output: Any, records: list[Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        run([1], Path(), map=lambda _: records, output=output)


def test_columns_that_come_late(tmp_path: Path) -> None:
    def rows(_record: Any) -> Iterator[dict[str, int]]:
        yield from ({"n": n} for n in range(65_536))
        yield {"n": 1, "late": 2}

    late = list(run([1], tmp_path, map=rows, output=gm.parquet(tmp_path / "out")))
    assert late[-2:] == [{"n": 65_535, "late": None}, {"n": 1, "late": 2}]
    output = gm.parquet(tmp_path / "given", schema=pa.schema({"n": pa.int64()}))
    with pytest.raises(ValueError, match="the columns 'late', and the table has 'n'"):
        run([1], tmp_path, map=rows, output=output)
    output = gm.parquet(tmp_path / "cast", schema=pa.schema({"n": pa.float64()}))
    result = run([1], tmp_path, map=lambda _: [pa.table({"n": [1]})], output=output)
    assert pq.read_schema(result.files()[0]).field("n").type == pa.float64()


def test_a_table_of_several_types(tmp_path: Path) -> None:
    result = run([(1, 1), ("a", 2)], tmp_path, reduce=gm.sum())
    with pytest.raises(ValueError, match=r"its column 'key' are not of one type.*read\(\)"):
        result.to_arrow()
