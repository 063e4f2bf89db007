"""What a job gives back: its output as records, and that a part which is gone is missed."""

import shutil
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import gristmill as gm
from gristmill import Context

READERS: list[Callable[[Any], object]] = [
    list,
    lambda result: list(result.read()),
    lambda result: result.to_arrow(),
    lambda result: result.to_pandas(),
]


def with_odd(number: int, context: Context) -> Iterator[Any]:
    if number % 2:
        context.output("odd").write({"n": number})
    yield number % 3, number


@pytest.fixture
def result(tmp_path: Path) -> Any:
    job = gm.Job(
        gm.items(range(10)),
        map=with_odd,
        reduce=gm.sum(),
        outputs={"odd": gm.jsonl(), "none": gm.jsonl()},
        parts=3,
        output=gm.kv(tmp_path / "out"),
    )
    return job.run(workers=1)


def test_a_result_is_its_records(result: Any, tmp_path: Path) -> None:
    assert sorted(result) == [(0, 18), (1, 12), (2, 15)]
    assert len(result) == len(list(result)) == result.report.records == 3
    assert repr(result) == f"<Result: 3 records in 3 files of gm.kv('{tmp_path}/out')>"
    assert [record["n"] for record in result.read("odd")] == [1, 3, 5, 7, 9]
    assert list(result.read("none")) == []
    with pytest.raises(KeyError, match=r"no output 'even'.*none, odd"):
        result.read("even")


@pytest.mark.parametrize("reader", READERS)
def test_an_output_that_is_gone_is_missed(result: Any, reader: Callable[[Any], object]) -> None:
    shutil.rmtree(result.output)
    with pytest.raises(FileNotFoundError, match=r"out does not exist.*run the job again"):
        reader(result)


@pytest.mark.parametrize("reader", READERS)
def test_a_part_that_is_gone_is_missed(result: Any, reader: Callable[[Any], object]) -> None:
    result.files()[1].unlink()
    with pytest.raises(FileNotFoundError, match=r"part-r-00001.kv does not exist"):
        reader(result)


@pytest.mark.parametrize("form", [gm.text, gm.tsv, gm.kv, gm.jsonl, gm.csv])
def test_a_part_that_was_emptied_is_missed(form: Callable[[Path], Any], tmp_path: Path) -> None:
    record = {"n": 1} if form in (gm.jsonl, gm.csv) else ("a", "b") if form is not gm.text else "a"
    result = gm.Job(gm.items([record]), output=form(tmp_path / "out")).run(workers=1)
    assert len(list(result)) == len(result) == 1
    (file,) = result.files()
    file.write_bytes(b"")
    with pytest.raises(ValueError, match=r"has 0 bytes and had \d+.*run the job again"):
        list(result)


@pytest.mark.parametrize("form", [gm.kv, gm.tsv, gm.jsonl])
def test_a_part_that_was_edited_to_the_same_length(
    form: Callable[[Path], Any], tmp_path: Path
) -> None:
    rows = [("a", 1), ("b", 2)]
    result = gm.Job(gm.items(rows), reduce=gm.sum(), output=form(tmp_path / "out")).run()
    before = list(result)
    (part,) = result.files()
    data = part.read_bytes()
    part.write_bytes(data)  # younger, and the same
    assert list(result) == before
    part.write_bytes(data[:-1] + b"!")
    with pytest.raises(ValueError, match=r"has other bytes\. It was changed after the job"):
        list(result)


def test_a_part_that_goes_while_others_are_read(result: Any) -> None:
    records = result.read()
    next(records)
    for file in result.files():
        file.unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError):
        list(records)


def test_a_named_output_that_is_gone(result: Any) -> None:
    for file in result.files("odd"):
        file.unlink()
    assert len(list(result.read())) == 3
    with pytest.raises(FileNotFoundError, match=r"odd-m-0000\d.jsonl does not exist"):
        result.read("odd")
    with pytest.raises(FileNotFoundError):
        result.to_arrow("odd")


def test_a_removed_mark_does_not_matter(result: Any) -> None:
    (result.output / "_SUCCESS").unlink()
    assert len(list(result)) == 3


@pytest.mark.parametrize("form", [gm.parquet, gm.arrow])
def test_an_empty_table_has_the_columns_of_its_schema(form: Any, tmp_path: Path) -> None:
    schema = pa.schema({"n": pa.int32(), "t": pa.string()})
    output = form(tmp_path / "out", schema=schema)
    empty = gm.Job(gm.items([]), map=lambda row: [row], output=output).run(workers=1)
    assert empty.to_arrow().schema == schema
    assert list(empty.to_pandas().columns) == ["n", "t"]


@pytest.mark.parametrize("form", [gm.parquet, gm.arrow])
def test_a_table_has_the_types_of_its_schema(form: Any, tmp_path: Path) -> None:
    schema = pa.schema(
        {
            "n": pa.int8(),
            "none": pa.string(),
            "word": pa.dictionary(pa.int8(), pa.string()),
            "map": pa.map_(pa.string(), pa.int64()),
            "f": pa.float32(),
            "ns": pa.timestamp("ns"),
        }
    )
    row = {"n": 5, "word": "a", "map": [("x", 1)], "f": 0.1, "ns": datetime(2026, 1, 2)}
    output = form(tmp_path / "out", schema=schema)
    result = gm.Job(gm.items([row, {"n": 6}]), map=lambda row: [row], output=output).run(workers=1)
    assert result.to_arrow().schema == schema
    assert result.to_arrow().to_pylist() == list(result)
    assert result.to_pandas()["n"].dtype == "int8"


def test_a_record_that_cannot_be_read_is_named_with_its_file(tmp_path: Path) -> None:
    job = gm.Job(gm.items([0]), map=lambda _: [(b"\xff", 1)], output=gm.tsv(tmp_path / "out"))
    result = job.run(workers=1)
    with pytest.raises(ValueError, match=r"cannot read the output of job .*\(file .*part-m-00000"):
        list(result)
