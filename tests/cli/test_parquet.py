"""Parquet in the place of CSV: what commands over tables read and write, against pyarrow."""

import csv
import datetime
import io
import shutil
import signal
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill

from .harness import end, failure, names, report, run, start
from .s3_server import Bucket

# A type, and values that it holds.
COLUMNS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-128, 127)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float32(), st.floats(width=32, allow_nan=False)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.decimal128(38, 2), st.decimals(-(10**20), 10**20, places=2)),
    (pa.decimal256(60, 3), st.decimals(-(10**20), 10**20, places=3)),
    (pa.date32(), st.dates()),
    (pa.time64("us"), st.times()),
    (pa.timestamp("us"), st.datetimes()),
    (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(datetime.UTC))),
    (pa.string(), st.text("ab\"',;\n\r\t é#", max_size=4)),
    (pa.large_string(), st.text("ab\"',;\n", max_size=4)),
    (pa.binary(), st.binary(max_size=3).filter(lambda some: some.isascii())),
    (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["", "a", "b,"])),
]

NAMES = ("a", "b c", 'd"', "e,f")


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """A table with rows that are numbered, in a column of their own."""
    chosen = draw(st.lists(st.sampled_from(COLUMNS), max_size=4))
    rows = draw(st.integers(0, 5))
    columns = {"row": pa.array(draw(st.permutations(range(rows))), pa.int32())}
    for at, (kind, values) in enumerate(chosen):
        some = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        columns[NAMES[at]] = pa.array(some, kind)
    return pa.table(columns)


@settings(max_examples=100)
@given(tables())
def test_what_is_sorted_is_what_was_there(
    tmp_path_factory: pytest.TempPathFactory, table: pa.Table
) -> None:
    folder = tmp_path_factory.mktemp("table")
    pq.write_table(table, folder / "in.parquet")
    asked: dict[str, Any] = {"key": ["row:num"]}
    gristmill.sort(folder / "in.parquet", output=folder / "out.parquet", **asked)
    found, wanted = pq.read_table(folder / "out.parquet"), table.sort_by("row")
    stored = pq.read_table(folder / "in.parquet").schema
    assert [field.type for field in found.schema] == [field.type for field in stored]
    assert found.schema.names == table.schema.names
    assert found.to_pylist() == wanted.to_pylist()
    gristmill.sort(folder / "in.parquet", output=folder / "out.csv", **asked)
    gristmill.sort(folder / "out.csv", csv=True, output=folder / "again.csv", **asked)
    assert (folder / "out.csv").read_bytes() == (folder / "again.csv").read_bytes()
    rows = csv.reader(io.StringIO((folder / "out.csv").read_text(), newline=""))
    assert next(rows) == table.schema.names
    assert len(list(rows)) == table.num_rows
    shutil.rmtree(folder)


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Two files in a directory whose name does not tell."""
    (tmp_path / "orders").mkdir()
    prices = ["1.10", None, "3.00", "4.25", "-5.50", "7.00"]
    table = pa.table({
        "city": ["Berlin", "Paris", None, "Berlin", "Rome", "Paris"],
        "price": [price and Decimal(price) for price in prices],
        "day": [datetime.date(2026, 1, day) for day in range(1, 7)],
    })  # fmt: skip
    pq.write_table(table.slice(0, 4), tmp_path / "orders/1.parquet")
    pq.write_table(table.slice(4), tmp_path / "orders/2.parquet")
    cities = pa.table({"city": ["Paris", "Berlin"], "people": pa.array([2_100, 3_700], pa.int16())})
    pq.write_table(cities, tmp_path / "cities.parquet")
    (tmp_path / "cities.csv").write_text("city,country\nParis,FR\nBerlin,DE\n")
    return tmp_path


def rows(path: Path) -> list[dict[str, Any]]:
    return pq.read_table(path).to_pylist()


def test_each_command_reads_and_writes_it(orders: Path) -> None:
    source, out = orders / "orders", orders / "out.parquet"
    run("distinct", source, "--csv", "--key", "city", "-o", out)
    assert [row["day"].day for row in rows(out)] == [1, 2, 3, 5]
    run("top", "1", source, "--csv", "--key", "price:num:desc", "-o", out)
    assert rows(out) == [
        {"city": "Paris", "price": Decimal("7.00"), "day": datetime.date(2026, 1, 6)}
    ]
    run("sample", source, "--csv", "--rate", "1", "-o", out)
    assert pq.read_table(out) == pq.read_table(source)
    run("shuf", source, "--csv", "--seed", "1", "-o", out)
    assert sorted(map(str, rows(out))) == sorted(map(str, rows(source)))
    run("split", source, "--csv", "--by", "city", orders / "by-city")
    assert (orders / "by-city/Rome.csv").read_text() == 'city,price,day\n"Rome",-5.50,2026-01-05\n'
    run("group", source, "--csv", "--by", "city", "--sum", "price", "--count", "-o", out)
    found = pq.read_table(out)
    assert [str(field.type) for field in found.schema] == ["string", "int64", "double"]
    sums = {row["city"]: (row["count"], row["price_sum"]) for row in found.to_pylist()}
    assert sums == {"Berlin": (2, 5.35), "Paris": (2, 7), None: (1, 3), "Rome": (1, -5.5)}


def test_formats_are_joined(orders: Path) -> None:
    out = orders / "out.parquet"
    run(
        "join",
        "--by",
        "city",
        "--csv",
        "--csv",
        orders / "orders",
        orders / "cities.parquet",
        orders / "cities.csv",
        "-o",
        out,
    )
    found = pq.read_table(out)
    assert [str(field.type) for field in found.schema] == [
        "string", "decimal128(3, 2)", "date32[day]", "int16", "string",
    ]  # fmt: skip
    assert [(row["day"].day, row["people"], row["country"]) for row in found.to_pylist()] == [
        (1, 3700, "DE"), (2, 2100, "FR"), (4, 3700, "DE"), (6, 2100, "FR"),
    ]  # fmt: skip
    # One file on both sides; a column of the right has another name, and its type.
    run("join", "--by", "city", orders / "cities.parquet", orders / "cities.parquet", "-o", out)
    assert pq.read_table(out).schema.field("people_right").type == pa.int16()
    run(
        "join",
        "--csv",
        "--by",
        "city",
        orders / "cities.csv",
        orders / "cities.parquet",
        "-o",
        orders / "out.csv",
    )
    assert (
        orders / "out.csv"
    ).read_text() == "city,country,people\nParis,FR,2100\nBerlin,DE,3700\n"


@pytest.mark.parametrize("words", [("sort", "--key", "day"), ("shuf", "--seed", "1")])
def test_parts_are_files_of_one_schema(orders: Path, words: tuple[str, ...]) -> None:
    out = orders / "out.parquet"
    command = (words[0], "--csv", orders / "orders", *words[1:], "--parts", "2", "-o", out)
    run(*command)
    assert sorted(file.name for file in out.iterdir()) == [
        "part-r-00000.parquet",
        "part-r-00001.parquet",
    ]
    assert pq.read_table(out).sort_by("day") == pq.read_table(orders / "orders")
    assert "it exists" in failure(*command)
    run(*command, "--overwrite")
    assert pq.read_table(out).num_rows == 6


def test_with_csv_any_name_will_do(orders: Path) -> None:
    (orders / "cities.parquet").rename(orders / "cities.pq")
    run("sort", "--csv", orders / "cities.pq", "--key", "city", "-o", orders / "out.csv")
    assert (orders / "out.csv").read_text() == 'city,people\n"Berlin",3700\n"Paris",2100\n'


def test_the_report_is_of_the_parquet(orders: Path) -> None:
    out = orders / "out.parquet"
    done = report("sort", "--csv", orders / "orders", "--key", "day", "-o", out)
    assert (done["output_bytes"], done["durable"]) == (out.stat().st_size, True)
    done = report("sort", "--csv", orders / "orders", "--key", "day", "-o", out, "--no-sync")
    assert (done["records"], done["durable"]) == (6, False)


def test_numbers_of_no_input_keep_all_digits(tmp_path: Path) -> None:
    lines = ["k,whole,long,point,digits,text,none"]
    lines += [
        "a,1,1,1.5,1.10000000000000000001,007,",
        "b,-20,100000000000000000000,12.50,2,x,",
    ]
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")
    run("sort", "--csv", tmp_path / "in.csv", "-o", tmp_path / "out.parquet")
    found = pq.read_table(tmp_path / "out.parquet")
    assert [str(field.type) for field in found.schema] == [
        "string", "int64", "decimal128(21, 0)", "double", "decimal128(21, 20)", "string", "string",
    ]  # fmt: skip
    assert found.to_pylist()[1] == {
        "k": "b", "whole": -20, "long": Decimal(10**20), "point": 12.5, "digits": Decimal(2),
        "text": "x", "none": None,
    }  # fmt: skip


def test_a_type_that_does_not_hold_the_output_makes_way(orders: Path) -> None:
    out = orders / "out.parquet"
    run(
        "join",
        "--by",
        "city",
        "--how",
        "full",
        "--empty",
        "none",
        orders / "cities.parquet",
        "--csv",
        orders / "orders",
        "-o",
        out,
    )
    kinds = pq.read_table(out).schema
    assert kinds.field("people").type == pa.string()  # it has "none" now
    assert "none" in [row["people"] for row in rows(out)]


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A table of which a page behind the first million of bytes is damaged."""
    path = tmp_path / "damaged.parquet"
    table = pa.table({"n": pa.array(range(600_000)), "text": ["abc"] * 600_000})
    pq.write_table(table, path, compression="zstd", row_group_size=50_000)
    meta = pq.read_metadata(path).row_group(8).column(0)
    with path.open("r+b") as file:
        file.seek(meta.data_page_offset + meta.total_compressed_size // 2)
        file.write(b"\x5a" * 1000)
    return path


def test_what_cannot_be_read_to_its_end_has_no_output(damaged: Path) -> None:
    out = damaged.parent / "out.parquet"
    out.write_bytes(b"before")
    said = failure("sort", damaged, "--key", "n:num", "-o", out)
    assert said.startswith(f"cannot read {damaged}: ")
    assert "What to do:" in said
    assert out.read_bytes() == b"before"
    with pytest.raises(ValueError, match="cannot read"):
        gristmill.sort(damaged, key=["n:num"], output=out)
    assert sorted(file.name for file in damaged.parent.iterdir()) == [damaged.name, out.name]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("sort list.parquet --key a", 1, "its column 'a' is list<element: int64>"),
        ("sort bytes.parquet --key n", 1, "in the column 'b', of binary"),
        ("sort text.parquet --key n", 1, "text.parquet: Parquet magic bytes not found"),
        ("sort none.parquet --key n", 1, "none.parquet does not exist"),
        ("sort one.parquet --key zz", 2, '(file one.parquet, columns "n")'),
        ("sort one.parquet --comment #", 2, "--comment is not for Parquet"),
        ("top 1 one.parquet --jsonl --key n", 2, "--jsonl is not for Parquet"),
        ("sort one.parquet --compress xz -o out.parquet", 2, "xz is not for Parquet"),
        ("sort one.parquet -o folder.parquet", 1, "folder.parquet: it is a directory"),
        ("sort one.parquet -t :: --csv", 2, "--field-separator is '::'"),
        ("sort one.parquet two.parquet", 1, "file two.parquet"),
        ("sort both.parquet", 1, "it has not the columns of"),
    ],
)
def test_wrong_uses_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, code: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"a": [[1], [2]]}), "list.parquet")
    pq.write_table(pa.table({"b": [b"a", b"\xff"], "n": [1, 2]}), "bytes.parquet")
    pq.write_table(pa.table({"n": [1]}), "one.parquet")
    pq.write_table(pa.table({"m": [1]}), "two.parquet")
    Path("text.parquet").write_text("city\nBerlin\n")
    Path("folder.parquet").mkdir()
    Path("both.parquet").mkdir()
    shutil.copy("one.parquet", "both.parquet")
    shutil.copy("two.parquet", "both.parquet")
    assert said in failure(*words.split(), status=code)


def test_the_plan_names_it(orders: Path) -> None:
    cities = orders / "cities.parquet"
    plan = report("explain", "sort", cities, "--key", "city", "-o", orders / "out.parquet")
    assert plan["streams"] == [str(cities)]
    assert not (orders / "out.parquet").exists()


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGKILL])
def test_a_job_that_is_ended_leaves_nothing(tmp_path: Path, signum: signal.Signals) -> None:
    table = pa.table({"n": pa.array(range(3_000_000)), "text": ["some words"] * 3_000_000})
    pq.write_table(table, tmp_path / "in.parquet")
    command = ("sort", tmp_path / "in.parquet", "--key", "n:num:desc")
    process = start(*command, "-o", tmp_path / "out.parquet")
    while not list(tmp_path.glob(".gristmill-parquet-*/.*")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signum)
    assert end(process).status == {signal.SIGINT: 130, signal.SIGKILL: -9}[signum]
    until_s = time.monotonic() + 10
    while names(tmp_path) != ["in.parquet"]:  # another process removes what a dead one has left
        assert time.monotonic() < until_s, names(tmp_path)
        time.sleep(0.02)


def test_it_is_in_a_store(orders: Path, bucket: Bucket) -> None:
    where = bucket.url("cities.parquet")
    run("sort", orders / "cities.parquet", "--key", "city", "-o", where)
    run("sort", where, "--key", "people:num:desc", "-o", orders / "out.parquet")
    assert [row["city"] for row in rows(orders / "out.parquet")] == ["Berlin", "Paris"]


def test_cells_that_no_type_of_an_input_holds_become_text(orders: Path) -> None:
    out = orders / "out.parquet"
    odd = pa.table({
        "city": ["Oslo", "Bern"],
        "size": pa.array([Decimal("1.5"), None], pa.decimal256(50, 1)),
        "seen": [datetime.date(2026, 1, 1), None],
    })  # fmt: skip
    pq.write_table(odd, orders / "odd.parquet")
    inputs = (orders / "orders", orders / "odd.parquet")
    run("join", "--csv", "--by", "city", "--how", "full", "--empty", "none", *inputs, "-o", out)
    found = {row["city"]: row for row in rows(out)}
    assert (found["Oslo"]["size"], found["Berlin"]["size"]) == ("1.5", "none")
    assert (found["Oslo"]["seen"], found["Berlin"]["seen"]) == ("2026-01-01", "none")


@pytest.mark.parametrize("text", ["", "n\n"])
def test_an_output_without_rows(tmp_path: Path, text: str) -> None:
    (tmp_path / "in.csv").write_text(text)
    command = ("sort", "--csv", tmp_path / "in.csv", "-o", tmp_path / "out.parquet")
    if not text:
        assert "neither a header nor a row" in failure(*command)
        assert names(tmp_path) == ["in.csv"]
        return
    run(*command)
    assert pq.read_table(tmp_path / "out.parquet").schema.names == ["n"]
