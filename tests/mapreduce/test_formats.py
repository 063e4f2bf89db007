"""What each format reads and writes, against the plainest reader there is."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.mapreduce.harness import CODECS

import gristmill as gm

ONE_FILE: dict[str, Any] = {"split_min": "1M"}
"""Of items: their number makes the splits otherwise, and each writes a file of its own."""


def itself(record: Any) -> Iterator[Any]:
    yield record


def copied(source: Any, tmp_path: Path, **options: Any) -> list[Any]:
    """The records of an input, by a job that only maps."""
    job = gm.Job(source, map=itself, output=gm.jsonl(tmp_path / "copied"), **options)
    return list(job.run(workers=2, overwrite=True).read())


# --- text ---

HOSTILE = ["", "a", "", "ä€𝄞", "x" * 3000, "tab\there", "", "last"]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("split_max", [7, 1000, None])
@pytest.mark.parametrize("last", ["", "\n"])
def test_lines(tmp_path: Path, codec: str, split_max: int | None, last: str) -> None:
    suffix, write = CODECS[codec]
    write(tmp_path / f"a.txt{suffix}", ("\n".join(HOSTILE) + last).encode())
    assert copied(gm.text(tmp_path / f"a.txt{suffix}"), tmp_path, split_max=split_max) == HOSTILE


@pytest.mark.parametrize("split_max", [5, 40, None])
def test_lines_in_batches(tmp_path: Path, split_max: int | None) -> None:
    (tmp_path / "a.txt").write_text("\n".join(HOSTILE))
    job = gm.Job(
        gm.text(tmp_path / "a.txt"),
        map_batches=lambda batch: batch.column("line").to_pylist(),
        split_max=split_max,
        output=gm.jsonl(tmp_path / "out"),
    )
    assert list(job.run().read()) == HOSTILE


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (b"caf\xe9\r\nol\xe9\r\n", {"encoding": "latin-1", "strip_cr": True}),
        (b"a\xffb\n\n", {"errors": "replace"}),
        (b"a\xffb\r\n\n", {"encoding": None}),
        (b"\xef\xbb\xbfa\r\n\r\nb", {"strip_cr": True}),
    ],
)
def test_batches_have_the_lines_that_records_are(
    data: bytes, options: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(data)
    source = gm.text(tmp_path / "a", **options)
    (split,) = source.plan(0, 1 << 30).splits
    reader, batches = source.open(split.what), source.open_batches(split.what)
    found = [line for batch in batches for line in batch.column("line").to_pylist()]
    assert found == list(reader)
    assert batches.bytes_read() == reader.bytes_read() == len(data)
    assert batches.records_read() == 1


def test_several_lines(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n2\n3\n4\n5\n")
    assert copied(gm.text(tmp_path / "a", lines=2), tmp_path) == [["1", "2"], ["3", "4"], ["5"]]


def test_whole_files(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"{name}\n1\n")
    found = copied(gm.text(tmp_path / "*.txt", whole=True), tmp_path)
    expected = [{"key": f"{tmp_path}/{name}.txt", "value": f"{name}\n1\n"} for name in "ab"]
    assert found == expected


def test_other_encodings(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("caf\xe9\r\nol\xe9\r\n".encode("latin-1"))
    found = copied(gm.text(tmp_path / "a", encoding="latin-1", strip_cr=True), tmp_path)
    assert found == ["café", "olé"]
    (tmp_path / "b").write_bytes(b"a\xffb\n")
    assert copied(gm.text(tmp_path / "b", errors="replace"), tmp_path) == ["a\ufffdb"]
    job = gm.Job(
        gm.text(tmp_path / "b", encoding=None),
        map=lambda line: [line.hex()],
        output=gm.text(tmp_path / "hex"),
    )
    assert list(job.run().read()) == ["61ff62"]


@pytest.mark.parametrize("form", [gm.text, gm.tsv, gm.delimited])
def test_lines_may_end_with_crlf(tmp_path: Path, form: Callable[[Path], Any]) -> None:
    (tmp_path / "unix").write_bytes(b"a\tb\n\nc\td")
    (tmp_path / "dos").write_bytes(b"a\tb\r\n\r\nc\td\r\n")
    records = copied(form(tmp_path / "unix"), tmp_path)
    assert copied(form(tmp_path / "dos"), tmp_path) == records


def test_carriage_returns_are_kept_where_they_are_data(tmp_path: Path) -> None:
    (tmp_path / "dos").write_bytes(b"a\r\nb\r\r\n")
    lines = ["a\r", "b\r\r"]
    source = gm.text(tmp_path / "dos", strip_cr=False)
    assert copied(source, tmp_path) == lines
    job = gm.Job(source, map=lambda line: [line], output=gm.text(tmp_path / "out"))
    chain = job.then(map=lambda line: [line], output=gm.jsonl(tmp_path / "2"))
    assert list(chain.run().read()) == lines
    assert (
        list(gm.text(tmp_path / "out").open_file(str(tmp_path / "out/part-m-00000.txt"))) == lines
    )


WINDOWS = ("C:\\temp\\new", "\\\\srv")


def test_tsv_of_other_programs_has_no_escapes(tmp_path: Path) -> None:
    (tmp_path / "paths.tsv").write_text("\t".join(WINDOWS) + "\n")
    (found,) = copied(gm.tsv(tmp_path / "paths.tsv"), tmp_path)
    assert tuple(found) == WINDOWS or found == {"key": WINDOWS[0], "value": WINDOWS[1]}
    source = gm.tsv(tmp_path / "paths.tsv", escapes=True)
    assert list(source.open_file(str(tmp_path / "paths.tsv"))) == [("C:\temp\new", "\\srv")]


def test_tsv_knows_its_own_files(tmp_path: Path) -> None:
    out = tmp_path / "out"
    gm.Job(gm.items([WINDOWS]), map=lambda pair: [pair], output=gm.tsv(out)).run()
    for paths in (out, out / "part-*", out / "part-m-00000.tsv"):
        job = gm.Job(gm.tsv(paths), map=lambda pair: [pair], output=gm.tsv(tmp_path / "again"))
        assert list(job.run(overwrite=True)) == [WINDOWS]
    (tmp_path / "paths.tsv").write_text("a\n")
    with pytest.raises(ValueError, match="escapes=True or escapes=False"):
        copied(gm.tsv([out, tmp_path / "paths.tsv"]), tmp_path)


def test_no_text(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"good\na\xffb\n")
    with pytest.raises(ValueError, match=r"UTF-8.*b, offset 5"):
        copied(gm.text(tmp_path / "b"), tmp_path)


# --- records of one length, keys and values in lines ---


@pytest.mark.parametrize("split_max", [1, 50, None])
def test_fixed(tmp_path: Path, split_max: int | None) -> None:
    data = bytes(range(250))
    (tmp_path / "a").write_bytes(data)
    job = gm.Job(
        gm.fixed(tmp_path / "a", 10),
        map=lambda record: [record.hex()],
        split_max=split_max,
        output=gm.text(tmp_path / "out"),
    )
    assert list(job.run().read()) == [data[at : at + 10].hex() for at in range(0, 250, 10)]


@pytest.mark.parametrize(
    ("separator", "value"), [("\t", "1 x\t2"), (" ", "x\t2"), (b"\t", "1 x\t2")]
)
def test_delimited(tmp_path: Path, separator: str | bytes, value: str) -> None:
    (tmp_path / "a").write_text("b\t1 x\t2\na\t3\nnone\n")
    job = gm.Job(
        gm.delimited(tmp_path / "a", separator), reduce=gm.first(), output=gm.kv(tmp_path / "out")
    )
    found = dict(job.run().read())
    key = ("b\t1" if separator == " " else "b") if isinstance(separator, str) else b"b"
    assert found[key] == (value if isinstance(separator, str) else value.encode())
    assert found["none" if isinstance(separator, str) else b"none"] in ("", b"")


def test_tsv_keeps_what_is_in_fields(tmp_path: Path) -> None:
    pairs = [
        (("a\tb", 1), "x\ny"),
        (("c\\t", 2.5), "\r"),
        (("", -1), None),
        (("ä", True), b"\xc3\xa4"),
    ]
    job = gm.Job(gm.items(pairs), map=itself, output=gm.tsv(tmp_path / "out"), **ONE_FILE)
    result = job.run()
    assert list(result.read()) == [
        ("a\tb", "1", "x\ny"),
        ("c\\t", "2.5", "\r"),
        ("", "-1", ""),
        ("ä", "True", "ä"),
    ]
    assert len((tmp_path / "out/part-m-00000.tsv").read_text().splitlines()) == 4


# --- JSON and CSV ---


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_jsonl(tmp_path: Path, codec: str) -> None:
    suffix, write = CODECS[codec]
    values: list[Any] = [{"a": 1, "b": [1.5, None]}, "text\n", 3, True, None, [], "ä"]
    write(tmp_path / f"a.jsonl{suffix}", "\n".join(map(json.dumps, values)).encode())
    assert copied(gm.jsonl(tmp_path / f"a.jsonl{suffix}"), tmp_path, split_max=10) == values


def test_no_json(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a": \n')
    with pytest.raises(ValueError, match=r"the line is not JSON.*a.jsonl, offset 9"):
        copied(gm.jsonl(tmp_path / "a.jsonl"), tmp_path)


@pytest.mark.parametrize("split_max", [3, None])
def test_blank_lines_of_json(tmp_path: Path, split_max: int | None) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\n{"a": 1}\n\n \t\r\n[2]\r\n\nnull\n\n')
    assert copied(gm.jsonl(path, skip_blank=True), tmp_path, split_max=split_max) == [
        {"a": 1},
        [2],
        None,
    ]
    job = gm.Job(
        gm.jsonl(path, skip_blank=True),
        map=lambda value: [("n", 1)],
        reduce=gm.sum(),
        output=gm.kv(tmp_path / "n"),
    )
    result = job.run()
    assert list(result) == [("n", 3)]
    assert result.counters["MAP_INPUT_RECORDS"] == 3
    with pytest.raises(ValueError, match=r"not JSON.*offset 0.*skip_blank=True"):
        copied(gm.jsonl(path), tmp_path)
    path.write_bytes(b"1\n\n{\n2\n")  # other lines are bad as before, and the reader goes on
    assert copied(gm.jsonl(path, skip_blank=True), tmp_path, skip_bad=1) == [1, 2]
    with pytest.raises(ValueError, match=r"not JSON.*offset 3"):
        copied(gm.jsonl(path, skip_blank=True), tmp_path)


@pytest.mark.parametrize("value", [b"bytes", float("nan"), {1, 2}])
def test_no_json_out(tmp_path: Path, value: object) -> None:
    job = gm.Job(gm.items([value]), map=itself, output=gm.jsonl(tmp_path / "out"))
    with pytest.raises(ValueError, match="has no JSON"):
        job.run()


ROWS = [["name", "note"], ["a", 'say "hi"'], ["b", "two\nlines\n\nthree"], ["c", ""], ["d", "x,y"]]


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("split_max", [5, None])
def test_csv(tmp_path: Path, codec: str, split_max: int | None) -> None:
    suffix, write = CODECS[codec]
    plain = tmp_path / "plain"
    with plain.open("w", newline="") as file:
        csv.writer(file).writerows(ROWS)
    path = tmp_path / f"a.csv{suffix}"
    write(path, plain.read_bytes())
    found = copied(gm.csv(path), tmp_path, split_max=split_max)
    with plain.open(newline="") as file:
        assert found == list(csv.DictReader(file))
    rows = copied(gm.csv(path, header=False), tmp_path, split_max=split_max)
    assert [list(row.values()) if isinstance(row, dict) else row for row in rows] == ROWS


@pytest.mark.parametrize("split_max", [5, 30, None])
def test_csv_that_is_cut(tmp_path: Path, split_max: int | None) -> None:
    for name in "ab":
        rows = "".join(f"{n};{name}\n" for n in range(20))
        (tmp_path / f"{name}.csv").write_text("n;file\n" + rows)
    source = gm.csv(tmp_path / "*.csv", delimiter=";", multiline=False)
    found = copied(source, tmp_path, split_max=split_max)
    assert found == [{"n": str(n), "file": name} for name in "ab" for n in range(20)]


def test_csv_of_another_width(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n\n3,4,5\n")
    with pytest.raises(ValueError, match=r"3 fields, and the header names 2.*a.csv, offset 9"):
        copied(gm.csv(tmp_path / "a.csv"), tmp_path)


def test_csv_out(tmp_path: Path) -> None:
    pairs = [(("a", "b"), 1), (("c,d", "e"), 2)]
    job = gm.Job(gm.items(pairs), map=itself, output=gm.csv(tmp_path / "pairs"))
    assert list(job.run().read()) == [
        {"key_1": "a", "key_2": "b", "value": "1"},
        {"key_1": "c,d", "key_2": "e", "value": "2"},
    ]
    rows = [{"x": 1, "y": "a\nb"}, {"x": 2, "y": ""}]
    job = gm.Job(gm.items(rows), map=itself, output=gm.csv(tmp_path / "rows"))
    assert list(job.run().read()) == [{"x": "1", "y": "a\nb"}, {"x": "2", "y": ""}]
    for options in ({"header": False}, {"columns": ["x"]}):
        output = gm.csv(tmp_path / "odd", **options)
        job = gm.Job(gm.items([{"x": 1}, {"z": 1}]), map=itself, output=output, **ONE_FILE)
        with pytest.raises(ValueError, match=r"\{'z': 1\} has not the columns 'x'.*columns="):
            job.run()


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_columns_mean_the_same_on_both_sides(tmp_path: Path, form: str, *, header: bool) -> None:
    rows = [{"a": "1", "b": "x", "c": "p"}, {"c": "q", "b": "y", "a": "2"}]
    options = {"columns": ["c", "a"], **({"header": header} if form == "csv" else {})}
    made = getattr(gm, form)
    job = gm.Job(gm.items(rows), map=itself, output=made(tmp_path / "out", **options), **ONE_FILE)
    result = job.run()
    picked = [{"c": "p", "a": "1"}, {"c": "q", "a": "2"}]
    assert [list(row.items()) for row in result] == [list(row.items()) for row in picked]
    read = copied(made(tmp_path / "out", **options), tmp_path)
    assert [list(row.items()) for row in read] == [list(row.items()) for row in picked]
    if form == "csv":
        lines = result.files()[0].read_bytes().splitlines()
        assert lines == [b"c,a"] * header + [b"p,1", b"q,2"]
    # Tuples have no names: the columns name their fields.
    pairs = [("p", "1"), ("q", "2")]
    job = gm.Job(gm.items(pairs), map=itself, output=made(tmp_path / "pairs", **options))
    assert list(job.run()) == picked
    job = gm.Job(gm.items([{"a": 1}]), map=itself, output=made(tmp_path / "odd", **options))
    with pytest.raises(
        ValueError, match=r"\{'a': 1\} has not the columns 'c', 'a', which columns= names"
    ):
        job.run()


@pytest.mark.parametrize("split_max", [4, None])
def test_columns_of_csv_files(tmp_path: Path, split_max: int | None) -> None:
    (tmp_path / "a.csv").write_text("x,y,z\n1,2,3\n4,5,6\n")
    (tmp_path / "b.csv").write_text("z,x\n9,7\n")
    source = gm.csv(tmp_path / "*.csv", columns=["z", "x"], multiline=False)
    found = copied(source, tmp_path, split_max=split_max)
    assert found == [{"z": "3", "x": "1"}, {"z": "6", "x": "4"}, {"z": "9", "x": "7"}]
    source = gm.csv(tmp_path / "*.csv", columns=["y"], multiline=False)
    with pytest.raises(ValueError, match=r"the file has no column 'y'.*take some of 'z', 'x'"):
        copied(source, tmp_path, split_max=split_max)
    source = gm.csv(tmp_path / "a.csv", columns=["k", "l"], header=False)
    with pytest.raises(ValueError, match=r"the row has 3 fields, and columns= names 2"):
        copied(source, tmp_path, split_max=split_max)


@pytest.mark.parametrize("form", [gm.csv, gm.parquet])
@pytest.mark.parametrize("columns", ["ab", [], ["a", "b", "a"]])
def test_columns_that_make_no_table(form: Any, columns: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"cannot read the options: .*columns"):
        form("a", columns=columns)


# --- tables ---


@pytest.fixture
def table(tmp_path: Path) -> pa.Table:
    made = pa.table({"n": list(range(1000)), "name": [f"n{n % 10}" for n in range(1000)]})
    pq.write_table(made, tmp_path / "a.parquet", row_group_size=100)
    with pa.ipc.new_file(tmp_path / "a.arrow", made.schema) as file:
        file.write_table(made, max_chunksize=100)
    return made


@pytest.mark.parametrize("split_max", [1, 2000, None])
@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_tables(tmp_path: Path, table: pa.Table, form: str, split_max: int | None) -> None:
    source = getattr(gm, form)(tmp_path / f"a.{form}")
    assert copied(source, tmp_path, split_max=split_max) == table.to_pylist()
    job = gm.Job(
        source,
        map_batches=lambda batch: [batch],
        split_max=split_max,
        output=gm.parquet(tmp_path / "out"),
    )
    assert job.run().to_arrow().to_pylist() == table.to_pylist()


@pytest.mark.usefixtures("table")
def test_columns_and_batches(tmp_path: Path) -> None:
    job = gm.Job(
        gm.parquet(tmp_path / "a.parquet", columns=["name"]),
        map_batches=lambda batch: ((name, len(batch.schema)) for name in batch[0].to_pylist()),
        reduce=gm.sum(),
        output=gm.arrow(tmp_path / "out", codec="zstd"),
    )
    rows = job.run().read()
    assert list(rows) == [{"key": f"n{n}", "value": 100} for n in range(10)]


def test_mixed_types_name_the_record(tmp_path: Path) -> None:
    pairs = [("a", 1), ("b", 2.5), ("c", "three")]
    job = gm.Job(gm.items(pairs), map=itself, output=gm.parquet(tmp_path / "out"), **ONE_FILE)
    with pytest.raises(ValueError, match=r"column 'value' .*'c'.*of type str.*schema="):
        job.run()


def test_a_schema(tmp_path: Path) -> None:
    schema = pa.schema({"key": pa.string(), "value": pa.float32()})
    output = gm.parquet(tmp_path / "out", schema=schema)
    result = gm.Job(gm.items([("a", 1)]), map=itself, output=output).run()
    assert pq.read_schema(result.files()[0]) == schema


# --- our own ---


@pytest.mark.parametrize("codec", [None, "zstd", "gzip"])
@pytest.mark.parametrize("split_max", [300_000, None])
def test_kv(tmp_path: Path, codec: str | None, split_max: int | None) -> None:
    pairs = [
        ((n, f"k{n}", None, 2.5), {"v": n} if n % 2 else (n, b"x" * 50)) for n in range(10_000)
    ]
    made = gm.Job(
        gm.items(pairs), map=itself, output=gm.kv(tmp_path / "a", codec=codec), **ONE_FILE
    ).run()
    assert list(made.read()) == pairs
    again = gm.Job(
        gm.kv(tmp_path / "a"), map=itself, split_max=split_max, output=gm.kv(tmp_path / "b")
    )
    result = again.run()
    assert list(result.read()) == pairs
    if codec is None and split_max is not None:
        assert len(result.files()) > len(made.files())


@pytest.mark.parametrize("damage", ["cut", "flip", "magic"])
def test_damaged_kv(tmp_path: Path, damage: str) -> None:
    made = gm.Job(
        gm.items([(1, "x" * 100)] * 9), map=itself, output=gm.kv(tmp_path / "a"), **ONE_FILE
    ).run()
    (file,) = made.files()
    data = bytearray(file.read_bytes())
    if damage == "cut":
        del data[-20:]
    else:
        data[300 if damage == "flip" else 0] ^= 1
    file.write_bytes(data)
    with pytest.raises(ValueError, match=r"part-m-00000\.kv"):
        list(made.read())


def test_a_kv_file_holds_pairs(tmp_path: Path) -> None:
    job = gm.Job(gm.items([1]), map=itself, output=gm.kv(tmp_path / "a"))
    with pytest.raises(ValueError, match="holds pairs of a key and a value, and 1 is not one"):
        job.run()


def test_text_out(tmp_path: Path) -> None:
    records = ["line", ("k", 1), 2.5, b"\xff", None]
    job = gm.Job(gm.items(records), map=itself, output=gm.text(tmp_path / "out"), **ONE_FILE)
    (file,) = job.run().files()
    assert file.read_bytes() == b"line\nk\t1\n2.5\n\xff\nNone\n"
