"""Tables as outputs: what any reader finds is what went in, or the job names record and column.

Tables are drawn at random, and an oracle says what can be written (drawn_tables.py).
"""

import json
import os
import re
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from tests.mapreduce.drawn_tables import (
    STAMP,
    VALUES,
    Random,
    Rows,
    check_same,
    drawn,
    fits,
    is_plain,
    texts,
)

import gristmill as gm
from gristmill.mapreduce.formats import table_writer

REFUSED = (
    r"(?s)column '[abcd]'.*record [\d,]+ of (the part|part-m-\d+).*schema=|record .* no type holds"
)


# --- one part ---


@pytest.mark.parametrize("form", [gm.parquet, gm.arrow])
@pytest.mark.parametrize("seed", range(60))
def test_a_part_holds_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Any, seed: int
) -> None:
    rng = Random(seed)
    rows = drawn(rng, rng.choice([1, 10, 30]))
    monkeypatch.setattr(table_writer, "GROUP_ROWS", rng.choice([1, 4, 7, 100]))
    writer = form(tmp_path).writer(str(tmp_path / "file"))

    def write() -> None:
        for row in rows:
            writer.write(row)
        writer.close()

    if not fits(rows):
        with pytest.raises(ValueError, match=REFUSED):
            write()
        return
    write()
    kind = "parquet" if form is gm.parquet else "arrow"
    check_same(ds.dataset(tmp_path / "file", format=kind).to_table().to_pylist(), rows)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_generator_draws_tables_of_both_kinds() -> None:
    tables = [drawn(Random(seed), 20) for seed in range(200)]
    assert 20 < sum(map(fits, tables)) < 180


@pytest.mark.parametrize("form", [gm.parquet, gm.arrow])
@pytest.mark.parametrize("seed", range(20))
def test_batches_are_widened_as_rows_are(tmp_path: Path, form: Any, seed: int) -> None:
    rng = Random(seed)
    rows: Rows = []
    writer = form(tmp_path).writer(str(tmp_path / "file"))
    kinds = [("int", "text"), ("float", "none"), ("natural", "text"), ("none", "none")]
    for first, second in rng.sample(kinds, 4):
        batch = [{"a": VALUES[first](rng), "b": VALUES[second](rng)} for _ in range(5)]
        rows += batch
        if rng.random() < 0.7:
            writer.write(pa.Table.from_pylist(batch))
        else:
            for row in batch:
                writer.write(row)
    writer.close()
    kind = "parquet" if form is gm.parquet else "arrow"
    check_same(ds.dataset(tmp_path / "file", format=kind).to_table().to_pylist(), rows)


def test_batches_without_rows(tmp_path: Path) -> None:
    writer = gm.parquet(tmp_path).writer(str(tmp_path / "file"))
    writer.write(pa.table({"a": pa.array([], pa.int64())}))
    writer.write(pa.table({"a": [1]}))
    writer.write(pa.table({"a": pa.array([], pa.string())}))
    writer.close()
    assert pq.read_table(tmp_path / "file").to_pylist() == [{"a": 1}]


def test_a_table_with_two_columns_of_a_name(tmp_path: Path) -> None:
    writer = gm.parquet(tmp_path).writer(str(tmp_path / "file"))
    with pytest.raises(ValueError, match="two columns of a table are named 'a'"):
        writer.write(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]))


# --- a schema that is given ---


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        (pa.int32(), 3.99, None),
        (pa.int32(), 3.0, 3),
        (pa.int8(), 1000, None),
        (pa.float64(), 2**53 + 1, None),
        (pa.float64(), 7, 7.0),
        (pa.float32(), 0.5, 0.5),
        (pa.float32(), 1e300, None),
        (pa.date32(), datetime(2024, 1, 1, 13), None),
        (pa.timestamp("s"), datetime(2024, 1, 1, 0, 0, 0, 5), None),
        (pa.timestamp("us"), STAMP, None),
        (pa.timestamp("ns"), STAMP, STAMP),
        (pa.timestamp("us"), datetime(2024, 1, 1, tzinfo=UTC), None),
        (pa.uint64(), 2**63, 2**63),
        (pa.uint64(), -1, None),
        (pa.struct({"x": pa.int64()}), {"x": 1, "y": 2}, None),
        (pa.struct({"x": pa.int64(), "y": pa.int64()}), {"x": 1}, {"x": 1, "y": None}),
        (pa.list_(pa.int64()), [1, 2.5], None),
        (pa.list_(pa.float32()), [1, 2.5], [1.0, 2.5]),
        (pa.map_(pa.string(), pa.int64()), {"x": 1}, [("x", 1)]),
        (pa.string(), 5, None),
        (pa.decimal128(5, 2), Decimal("1.555"), None),
        (pa.decimal128(5, 2), Decimal("1.5"), Decimal("1.50")),
        (pa.binary(), "ä", "ä".encode()),
        (pa.duration("us"), timedelta(microseconds=5), timedelta(microseconds=5)),
    ],
)
def test_a_given_schema_loses_nothing(tmp_path: Path, kind: Any, value: Any, kept: Any) -> None:
    check_given(tmp_path, kind, {"a": value}, kept)


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        (pa.int32(), 3.99, None),
        (pa.int32(), 3.0, 3),
        (pa.float64(), 2**53 + 1, None),
        (pa.float32(), 0.5, 0.5),
        (pa.float32(), 1e300, None),
        (pa.date32(), datetime(2024, 1, 1, 13), None),
        (pa.date32(), datetime(2024, 1, 1), date(2024, 1, 1)),
        (pa.timestamp("us"), datetime(2024, 1, 1, tzinfo=UTC), None),
        (pa.struct({"x": pa.int64()}), {"x": 1, "y": 2}, None),
        (pa.list_(pa.int64()), [1, 2.5], None),
        (pa.int64(), "007", None),
        (pa.decimal128(5, 2), Decimal("1.555"), None),
    ],
)
def test_a_given_schema_loses_nothing_of_a_table(
    tmp_path: Path, kind: Any, value: Any, kept: Any
) -> None:
    check_given(tmp_path, kind, pa.table({"a": [value]}), kept)


def check_given(folder: Path, kind: Any, record: Any, kept: Any) -> None:
    writer = gm.parquet(folder, schema=pa.schema({"a": kind})).writer(str(folder / "file"))
    if kept is None:
        with pytest.raises(ValueError, match=r"column 'a' is .*record 1 of the part.*schema="):
            writer.write(record)
            writer.close()
        return
    writer.write(record)
    writer.close()
    assert pq.read_table(folder / "file").to_pylist() == [{"a": kept}]


ODD = [
    (np.array([1, 2]), [1, 2]),
    (np.array(["2024-01-01T00:00:00.123456789"], dtype="M8[ns]"),
     [pd.Timestamp("2024-01-01T00:00:00.123456789")]),
    (np.uint8(4), 4),
    (np.True_, True),
    (pa.scalar(5), 5),
    ({"x": (1, 2)}, {"x": [1, 2]}),
    (pd.Timedelta(5, "ns"), pd.Timedelta(5, "ns")),
    ({1: 2}, None),
    (2**70, None),
    (1j, None),
    (time(1, tzinfo=UTC), None),
    ("\ud800", None),
    ([1, "a"], None),
]  # fmt: skip


@pytest.mark.parametrize(("value", "kept"), ODD)
def test_odd_values_are_kept_or_refused(tmp_path: Path, value: Any, kept: Any) -> None:
    writer = gm.arrow(tmp_path).writer(str(tmp_path / "file"))
    writer.write({"a": None})
    writer.write({"a": value})
    if kept is None:
        with pytest.raises(ValueError, match=r"record 2 of the part.*schema="):
            writer.close()
        return
    writer.close()
    found = ds.dataset(tmp_path / "file", format="arrow").to_table().to_pylist()
    assert found == [{"a": None}, {"a": kept}]


# --- all parts ---


def run(form: Any, folder: Path, parts: list[Rows]) -> gm.Result:
    """A job of which each split writes one part."""
    job = gm.Job(
        gm.items(list(range(len(parts)))),
        map=lambda number: parts[number],
        split_max=1,
        output=form(folder / "out"),
    )
    return job.run(workers=1, no_sync=True, overwrite=True)


def read_by_others(form: Any, folder: Path) -> Iterator[Rows]:
    """The output as other programs read it."""
    kind = "parquet" if form is gm.parquet else "arrow"
    yield ds.dataset(folder, format=kind).to_table().to_pylist()
    if form is gm.parquet:
        yield (
            pd.read_parquet(folder, dtype_backend="pyarrow").pipe(pa.Table.from_pandas).to_pylist()
        )
        yield pl.read_parquet(folder / "*.parquet").to_arrow().to_pylist()
    else:
        files = sorted(folder.glob("*.arrow"))
        yield (pl.concat([pl.read_ipc(file) for file in files]).to_arrow().to_pylist())


@pytest.mark.parametrize("form", [gm.parquet, gm.arrow])
@pytest.mark.parametrize("seed", range(6))
def test_all_parts_have_one_schema(tmp_path: Path, form: Any, seed: int) -> None:
    rng = Random(seed)
    rows = drawn(rng, 20)
    cuts = sorted(rng.choices(range(21), k=rng.randrange(5)))  # a part may be empty
    parts = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, 20], strict=True)]
    if not fits(rows):
        with pytest.raises(ValueError, match=REFUSED):
            run(form, tmp_path, parts)
        return
    result = run(form, tmp_path, parts)
    for found in [
        list(result),
        result.to_arrow().to_pylist(),
        *read_by_others(form, tmp_path / "out"),
    ]:
        check_same(found, rows)
    sizes = [file.stat().st_size for file in result.files()]
    success = json.loads((tmp_path / "out/_SUCCESS").read_text())
    assert [part["bytes"] for part in success["parts"]] == sizes
    assert success["bytes"] == result.report.output_bytes == sum(sizes)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"_SUCCESS", *(path.name for path in result.files())}


# --- many tables: `make fuzz` draws 2,000, from a new seed ---

TABLES = int(os.environ.get("FUZZ_TABLES", "100"))
FIRST = int(os.environ.get("FUZZ_SEED", "1")) * TABLES


def of_arrow(folder: Path) -> Iterator[Rows]:
    whole = pa.concat_tables(
        pa.ipc.open_file(file).read_all() for file in sorted(folder.glob("*.arrow"))
    )
    yield whole.to_pylist()
    yield pl.from_arrow(whole).to_arrow().to_pylist()
    yield duckdb.sql("from whole").to_arrow_table().to_pylist()


def of_parquet(folder: Path) -> Iterator[Rows]:
    yield pd.read_parquet(folder, dtype_backend="pyarrow").pipe(pa.Table.from_pandas).to_pylist()
    yield pl.read_parquet(folder / "*.parquet").to_arrow().to_pylist()
    yield duckdb.sql(f"from read_parquet('{folder}/*.parquet')").to_arrow_table().to_pylist()


def of_csv(folder: Path) -> Iterator[Rows]:
    files = sorted(folder.glob("*.csv"))
    yield pd.concat(pd.read_csv(file, dtype=str, keep_default_na=False) for file in files).to_dict(
        "records"
    )
    yield pl.concat(
        pl.read_csv(file, infer_schema=False).fill_null("") for file in files
    ).to_dicts()
    how = "all_varchar=true, header=true, null_padding=false, nullstr='\\N', delim=',', quote='\"'"
    yield duckdb.sql(f"from read_csv('{folder}/*.csv', {how})").to_arrow_table().to_pylist()


def of_json(folder: Path) -> Iterator[Rows]:
    files = sorted(folder.glob("*.jsonl"))
    yield [json.loads(line) for file in files for line in file.read_text().splitlines()]
    found = duckdb.sql(f"from read_ndjson_objects('{folder}/*.jsonl')").fetchall()
    yield [json.loads(text) for (text,) in found]


OF_FORMS: dict[str, tuple[Any, Callable[[Path], Iterator[Rows]]]] = {
    "parquet": (gm.parquet, of_parquet),
    "arrow": (gm.arrow, of_arrow),
    "csv": (gm.csv, of_csv),
    "jsonl": (gm.jsonl, of_json),
}


@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", OF_FORMS)
def test_tables_are_read_back_or_refused(tmp_path: Path, name: str) -> None:
    form, read = OF_FORMS[name]
    of_columns = name in ("parquet", "arrow")
    refused = 0
    for seed in range(FIRST, FIRST + TABLES // len(OF_FORMS)):
        rng = Random(seed)
        rows = drawn(rng, 20)
        if not of_columns:
            rows = [{key: value for key, value in row.items() if is_plain(value)} for row in rows]
            rows = [row for row in rows if row]
        if name == "csv":
            rows = texts(rows)
        cuts = sorted(rng.choices(range(len(rows) + 1), k=rng.randrange(5)))
        parts = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
        try:
            result = run(form, tmp_path, parts)
        except ValueError as error:
            # An integer beyond 64 bits that comes before decimals is refused where it stands.
            huge = any(value == 2**70 for row in rows for value in row.values())
            assert of_columns and (huge or not fits(rows)), (seed, rows)
            assert re.search(REFUSED, str(error)), (seed, rows)
            refused += 1
            continue
        for found in [list(result), *(read(tmp_path / "out") if rows else ())]:
            check_same(found, rows)
    assert refused < TABLES // len(OF_FORMS) / 2


def test_an_empty_output_has_the_columns_that_are_named(tmp_path: Path) -> None:
    result = run(lambda path: gm.parquet(path, columns=["k", "n"]), tmp_path, [[], []])
    assert pd.read_parquet(tmp_path / "out").columns.tolist() == ["k", "n"]
    assert result.to_arrow().column_names == ["k", "n"]
    again = gm.Job(
        gm.parquet(tmp_path / "out", columns=["n"]),
        map=lambda row: [row],
        output=gm.kv(tmp_path / "kv"),
    )
    assert list(again.run()) == []


MIXED: list[Rows] = [[{"a": 1}], [{"a": 2}, {"a": 3.5}], [{"a": None}], [{"a": "text"}]]
APART = r"'a' is double in part-m-00001.*record 1 of part-m-00003"


def test_parts_that_go_with_no_type_are_not_published(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=APART):
        run(gm.parquet, tmp_path, MIXED)
    assert not list(tmp_path.iterdir())


def test_parts_in_a_store_that_go_with_no_type_stay_as_they_are(tmp_path: Path) -> None:
    output = gm.parquet(f"objects://{tmp_path}/out")
    job = gm.Job(gm.items([*range(4)]), map=lambda n: MIXED[n], split_max=1, output=output)
    with pytest.raises(ValueError, match=APART):
        job.run()
    found = [pq.read_table(path).to_pylist() for path in sorted(tmp_path.glob("out/part-*"))]
    assert found == MIXED


def test_a_killed_job_gives_its_parts_one_schema_when_it_is_resumed(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(KILLED)
    command = [sys.executable, "-m", "gristmill"]
    run_job = [*command, "run", str(tmp_path / "job.py"), "--history"]
    first = subprocess.run(run_job, cwd=tmp_path, check=False)
    assert first.returncode == -signal.SIGKILL
    (killed,) = tmp_path.glob(".out.gristmill-job_*")
    assert len(list(killed.glob("output/part-*"))) == 2
    (tmp_path / "once").touch()
    subprocess.run([*command, "resume", "last"], cwd=tmp_path, check=True)
    tables = [pq.read_table(path) for path in sorted(tmp_path.glob("out/part-*"))]
    assert [table.to_pylist() for table in tables] == [[{"a": 1.0}], [{"a": 0.5}]]
    success = json.loads((tmp_path / "out/_SUCCESS").read_text())
    assert [part["crc"] for part in success["parts"]] == [
        zlib.crc32(path.read_bytes()) for path in sorted(tmp_path.glob("out/part-*"))
    ]


KILLED = """
import gristmill as gm

def kill_at_rename(context):
    import os, signal
    from pathlib import Path

    def kill(self, target):
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    if not Path("once").exists():
        Path.replace = kill

rows = [{"a": 1}, {"a": 0.5}]
job = gm.Job(
    gm.items([0, 1]), setup=kill_at_rename, map=lambda n: [rows[n]], split_max=1,
    output=gm.parquet("out"),
)
"""


@pytest.mark.parametrize("form", [gm.parquet, gm.arrow, gm.csv])
def test_parts_in_a_store_are_renewed(tmp_path: Path, form: Any) -> None:
    output = form(f"objects://{tmp_path}/out")
    parts = [[], [{"a": 1}], [{"a": 2.5, "b": "x"}]]
    job = gm.Job(gm.items([0, 1, 2]), map=lambda n: parts[n], split_max=1, output=output)
    found = list(job.run(workers=1))
    assert [row["b"] for row in found] == ["" if form is gm.csv else None, "x"]
    assert [float(row["a"]) for row in found] == [1.0, 2.5]


def test_sums_keep_their_fractions(tmp_path: Path) -> None:
    pairs = [(f"k{n:07}", 10 if n < 66_000 else 3.75) for n in range(66_010)]
    job = gm.Job(gm.items(pairs), reduce=gm.sum(), output=gm.parquet(tmp_path / "out"))
    assert [row["value"] for row in job.run().read()][-10:] == [3.75] * 10


def test_named_outputs_have_one_schema_too(tmp_path: Path) -> None:
    def split(number: int, context: gm.Context) -> None:
        context.output("odd").write({"n": number or 0.5})

    job = gm.Job(
        gm.items([0, 1]),
        map=split,
        split_max=1,
        output=gm.text(tmp_path / "out"),
        outputs={"odd": gm.parquet()},
    )
    job.run()
    assert pd.read_parquet(sorted(tmp_path.glob("out/odd-*")))["n"].tolist() == [0.5, 1.0]


def test_a_table_without_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({}), tmp_path / "empty.parquet")
    pq.write_table(pa.table({"n": [1], "m": [2]}), tmp_path / "full.parquet")
    source = gm.parquet(sorted(tmp_path.glob("*.parquet")), columns=["n"])
    job = gm.Job(source, map=lambda row: [row], output=gm.jsonl(tmp_path / "rows"))
    assert list(job.run()) == [{"n": 1}]
    job = gm.Job(
        gm.items([0]),
        map=lambda _: [pa.table({})],
        output=gm.parquet(tmp_path / "out", columns=["n"]),
    )
    with pytest.raises(ValueError, match=r"no column 'n'.*: it has no columns"):
        job.run()


# --- csv ---


@pytest.mark.parametrize("codec", [None, "gzip"])
@pytest.mark.parametrize("seed", range(3))
def test_all_parts_of_a_csv_have_one_header(tmp_path: Path, codec: Any, seed: int) -> None:
    rng = Random(seed)
    fields = ["", "a", "1", 'x,"y"', "two\nlines", "ä", "\r"]
    rows: Rows = [
        {name: rng.choice(fields) for name in rng.sample("abcd", rng.randrange(1, 4))}
        for _ in range(12)
    ]
    cuts = sorted(rng.choices(range(13), k=3))
    parts = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, 12], strict=True)]
    result = run(lambda path: gm.csv(path, codec=codec), tmp_path, parts)
    assert list(result) == texts(rows)
    frames = [
        pd.read_csv(file, dtype=str, keep_default_na=False, lineterminator="\n")
        for file in result.files()
    ]
    assert {tuple(frame.columns) for frame in frames} == {tuple(texts(rows)[0])}
    assert pd.concat(frames).to_dict("records") == texts(rows)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"_SUCCESS", *(path.name for path in result.files())}


@pytest.mark.parametrize("form", [gm.csv, gm.parquet, gm.arrow])
def test_records_without_columns(tmp_path: Path, form: Any) -> None:
    with pytest.raises(ValueError, match="a record has no columns"):
        run(form, tmp_path, [[{}]])
    found = list(run(form, tmp_path, [[{"a": "x"}, {}]]))
    assert found == [{"a": "x"}, {"a": "" if form is gm.csv else None}]
