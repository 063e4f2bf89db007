"""Tables as outputs: what any reader finds is what went in, or the job names record and column.

Tables are drawn at random: types change late, columns and fields are missing or come late. The
oracle `holds_all` says by plain rules whether one type holds the values of a column.
"""

import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
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

import gristmill as gm
from gristmill.mapreduce import table_writer

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


REFUSED = (
    r"(?s)column [abcd].*record [\d,]+ of (the part|part-m-\d+).*schema=|record .* no type holds"
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
        with pytest.raises(ValueError, match=r"column a is .*record 1 of the part.*schema="):
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
APART = r"a is double in part-m-00001.*record 1 of part-m-00003"


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


def texts(rows: Rows) -> list[dict[str, str]]:
    """Rows as csv has them: what is missing is an empty field."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: str(row.get(name, "")) for name in names} for row in rows]


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
