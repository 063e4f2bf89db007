"""Many small files of formats that are opened one file at a time: few tasks, and right places."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mapreduce.harness import total

import gristmill as gm
from gristmill.mapreduce.formats.combine_splits import is_shared, shared
from gristmill.mapreduce.formats.plan import Split
from gristmill.mapreduce.retry.replay_record import replay_record

FILES, ROWS = 40, 7

Form = Callable[..., Any]


def rows_of(number: int) -> list[dict[str, Any]]:
    return [{"name": f"n{row}", "n": number * 100 + row} for row in range(ROWS)]


@pytest.fixture(params=[gm.csv, gm.parquet, gm.arrow, gm.kv, gm.jsonl])
def many(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Form, Path]:
    """A format, and a folder of small files of it; one of them has no rows."""
    form: Form = request.param
    (tmp_path / "in").mkdir()
    for number in range(FILES):
        writer = form().writer(str(tmp_path / f"in/{number:02}"))
        for row in rows_of(number) if number != 5 else []:
            record = (row["name"], row["n"]) if form is gm.kv else row
            writer.write(record)
        writer.close()
    if form in (gm.csv, gm.parquet, gm.arrow):  # an empty file of these has no columns
        (tmp_path / "in/05").unlink()
    return form, tmp_path / "in"


def pair_of(record: Any) -> tuple[str, int]:
    return record if isinstance(record, tuple) else (record["name"], int(record["n"]))


def each(record: Any) -> Iterator[tuple[str, int]]:
    yield pair_of(record)


def test_they_share_tasks(many: tuple[Form, Path], tmp_path: Path) -> None:
    form, folder = many
    expected: Counter[str] = Counter()
    for number in range(FILES):
        for row in rows_of(number) if number != 5 else []:
            expected[row["name"]] += row["n"]
    for split_max, least, most in ((None, 1, 1), (2000, 2, FILES)):
        source = form(folder)
        job = gm.Job(
            source, map=each, reduce=total, split_max=split_max, output=gm.kv(tmp_path / "out")
        )
        splits = source.plan(*job.split_sizes()).splits
        assert least <= len(splits) <= most
        assert sum(split.bytes for split in splits) == source.plan(0, 1).bytes
        assert dict(job.run(overwrite=True, no_sync=True).read()) == expected


def test_a_failure_names_the_file(many: tuple[Form, Path], tmp_path: Path) -> None:
    form, folder = many
    bad = 23 * 100 + 3

    def fails(record: Any) -> Iterator[Any]:
        assert pair_of(record)[1] != bad
        yield record

    job = gm.Job(form(folder), map=fails, output=gm.jsonl(tmp_path / "out"))
    with pytest.raises(RuntimeError, match="in/23") as caught:
        job.run(no_sync=True)
    report = gm.report_of(caught.value)
    assert report is not None
    assert report.error is not None
    context = report.error.context
    assert context["file"] == str(folder / "23")
    single = replay_record(job, context["file"], int(context["offset"]))
    assert single.where[0] == str(folder / "23")
    if form is not gm.kv:  # whose places are those of blocks
        assert pair_of(single.record)[1] == bad


def test_a_crash_names_the_file(many: tuple[Form, Path], tmp_path: Path) -> None:
    form, folder = many

    def crashes(record: Any) -> Iterator[Any]:
        if pair_of(record)[1] == 2303:
            os._exit(3)
        yield record

    job = gm.Job(form(folder), map=crashes, output=gm.jsonl(tmp_path / "out"))
    with pytest.raises(RuntimeError, match=r"exited with code 3.*in/23"):
        job.run(no_sync=True, attempts=1)


def test_bad_records_of_several_files_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(5):
        torn = "torn,by,a,comma\n" if number in (1, 3) else ""
        (tmp_path / f"in/{number}.csv").write_text(f"name,n\na,{number}\n{torn}b,{number}\n")
    job = gm.Job(
        gm.csv(tmp_path / "in"),
        map=each,
        reduce=gm.sum(),
        skip_bad=2,
        output=gm.kv(tmp_path / "out"),
    )
    result = job.run(no_sync=True)
    assert dict(result.read()) == {"a": 10, "b": 10}
    assert result.counters["MAP_SKIPPED_RECORDS"] == 2
    (kept,) = (tmp_path / "out").glob("_bad-*")
    assert kept.read_text().count("torn") == 2
    assert f"{tmp_path}/in/1.csv" in kept.read_text()
    assert f"{tmp_path}/in/3.csv" in kept.read_text()


def test_batches_of_small_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(10):
        writer = gm.parquet().writer(str(tmp_path / f"in/{number}"))
        for row in rows_of(number):
            writer.write(row)
        writer.close()

    def sizes(batch: pa.RecordBatch) -> Iterator[tuple[str, int]]:
        yield "rows", batch.num_rows

    job = gm.Job(
        gm.parquet(tmp_path / "in"),
        map_batches=sizes,
        reduce=gm.collect(),
        output=gm.kv(tmp_path / "out"),
    )
    result = job.run(no_sync=True)
    assert dict(result.read()) == {"rows": (ROWS,) * 10}
    assert result.counters["MAP_INPUT_RECORDS"] == 10


@given(st.lists(st.integers(0, 30)), st.integers(1, 40))
def test_what_shares_a_split_are_neighbours(sizes: list[int], size: int) -> None:
    splits = [Split(bytes_, {"path": str(number)}) for number, bytes_ in enumerate(sizes)]
    made = shared(splits, size)
    each = [one for split in made for one in split.what.get("several", [split.what])]
    assert each == [split.what for split in splits]
    assert sum(split.bytes for split in made) == sum(sizes)
    for split in made:
        if is_shared(split.what):
            assert split.bytes <= size
            assert [piece["path"] for piece in split.what["pieces"]] == [
                one["path"] for one in split.what["several"]
            ]
    # No two neighbours could have been one.
    for before, after in pairwise(made):
        assert before.bytes + after.bytes > size or before.bytes >= size or after.bytes >= size
