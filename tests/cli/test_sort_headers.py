"""`gristmill sort --csv`: no header, one that looks like data, empty lines, lone CRs."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import gristmill as gm

from .harness import report
from .sorting import nothing_of_ours_stays, refusal, same, sort, try_sort

MARK = b"\xef\xbb\xbf"
ROWS = b'k,"-7.5",x\nk,"-120",y\nk,"3",z\n'
SORTED = b'k,"-120",y\nk,"-7.5",x\nk,"3",z\n'


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test does: in its folders, in TMPDIR and where it runs, nothing of ours stays."""
    with nothing_of_ours_stays(tmp_path, monkeypatch):
        yield


@pytest.mark.parametrize("key", ["2:num", "#2:num", "1,2:num"])
def test_without_a_header_the_first_row_is_sorted(key: str) -> None:
    Path("in.csv").write_bytes(ROWS)
    done = try_sort("--csv", "--no-header", "--key", key, "in.csv")
    assert (done.status, done.stdout, done.stderr) == (0, SORTED, "")
    same(sort("--csv", "--no-header", "--key", key, stdin=ROWS), SORTED)
    Path("in.tsv").write_bytes(ROWS.replace(b",", b"\t"))
    done = report("sort", "--tsv", "--no-header", "--key", key, "in.tsv", "-o", "out")
    assert (done["records"], done["notices"]) == (3, [])
    same(Path("out"), SORTED.replace(b",", b"\t"))
    gm.sort("in.csv", output="out", csv=True, no_header=True, key=[key], overwrite=True)
    same(Path("out"), SORTED)


def test_without_a_header_all_columns_decide_if_none_is_named() -> None:
    assert sort("--csv", "--no-header", stdin=b"b,1\na,2\na,1\n") == b"a,1\na,2\nb,1\n"
    rows = b"b,1\na,2\na,1\n"
    assert sort("--csv", "--no-header", "-u", "--key", "2", stdin=rows) == b"b,1\na,2\n"
    assert sort("--csv", "--no-header", stdin=b"") == b""
    assert sort("--csv", "--no-header", stdin=b"b,1") == b"b,1\n"


def first(row: bytes) -> int:
    """The number in the first column."""
    return int(row.partition(b",")[0])


@pytest.mark.parametrize("memory", ["24M", "1G"])
def test_files_without_a_header_are_sorted_by_tasks_and_runs(memory: str) -> None:
    rows = [f"{number * 7919 % 200_000},{'x' * 40}\r\n".encode() for number in range(200_000)]
    Path("a.csv").write_bytes(MARK + b"".join(rows[:120_000]))
    Path("b.csv").write_bytes(MARK + b"".join(rows[120_000:]))
    Path("mark.csv").write_bytes(MARK)
    Path("empty.csv").write_bytes(b"")
    job = ["--csv", "--no-header", "--key", "1:num", "--memory", memory]
    files = ["empty.csv", "mark.csv", "a.csv", "b.csv"]
    sort(*job, *files, "-o", "out.csv")
    same(Path("out.csv"), b"".join(sorted(rows, key=first)))
    assert try_sort("-c", *job, "out.csv").status == 0
    assert "out of order" in refusal("-c", *job, "a.csv")
    sort(*job, *files, "-o", "parts", "--parts", "3")
    proof = json.loads(Path("parts", "_SUCCESS").read_text())
    parts = [Path("parts", part["name"]).read_bytes() for part in proof["parts"]]
    assert [part["records"] for part in proof["parts"]] == [part.count(b"\n") for part in parts]
    same(b"".join(parts), Path("out.csv").read_bytes())


def test_what_is_wrong_without_a_header_is_told() -> None:
    said = refusal("--csv", "--no-header", "--key", "id:num", stdin=ROWS, status=2)
    assert 'no column "id"' in said
    assert "give a number from 1 to 3: without a header columns have no names" in said
    said = refusal("--csv", "--no-header", stdin=b"a,b\nc,d\ne\n")
    assert "the row has 1 field, and the first row has 2 fields" in said
    assert "row 3, line 3, offset 8" in said
    Path("in.csv").write_bytes(b"a,b\nc\n")
    done = report("sort", "--csv", "--no-header", "--skip-bad", "1", "in.csv", "-o", "out")
    assert "more fields than the first row, or fewer" in str(done["notices"])
    assert "--no-header is for tables" in refusal("--no-header", stdin=b"", status=2)


# --- headers that look like data ---


@pytest.mark.parametrize("key", [["--key", "2:num"], ["--key", "#1"], []])
def test_a_header_that_looks_like_data_is_told(key: list[str]) -> None:
    Path("in.csv").write_bytes(ROWS)
    for options in (["in.csv"], ["in.csv", "-c"]):
        done = try_sort("--csv", *key, *options)
        assert done.stderr.startswith("gristmill: the first row of in.csv is taken for the header")
        assert "it has the number -7.5 in it" in done.stderr
        assert "--no-header" in done.stderr
    assert try_sort("--csv", *key, "in.csv", "-C").stderr == ""
    told = gm.sort("in.csv", output="out", csv=True, key=key[1:]).notices
    assert "no_header=True" in str(told)


@pytest.mark.parametrize("key", ["2", "2:num"])
def test_a_number_in_the_first_row_that_is_also_that_of_a_column_is_told(key: str) -> None:
    done = try_sort("--csv", "--key", key, stdin=b"2,b\n9,a\n5,z\n1,c\n")
    assert "is taken for the header, and is not sorted: it has the number 2 in it" in done.stderr


def test_a_header_of_names_is_not_told_of() -> None:
    names = [(b"id,w\n2,a\n", "1:num"), (b"id,2020\nx,2\n", "2020:num"), (b"v2,inf\n2,1\n", "1")]
    for data, key in names:
        done = try_sort("--csv", "--key", key, stdin=data)
        assert (done.status, done.stderr) == (0, "")
    assert try_sort("--csv", "--key", "1", stdin=b"").stderr == ""


# --- lines ---


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("header", [[], ["--no-header"]])
def test_empty_lines_are_no_rows_of_a_table(end: bytes, header: list[str]) -> None:
    lines = [b"b,n", b"", b"c,2", b"a,3", b"", b""]
    data = b"".join(line + end for line in lines)
    rows = sorted([b"c,2", b"a,3"]) if not header else sorted([b"b,n", b"c,2", b"a,3"])
    want = b"".join(row + end for row in ([] if header else [b"b,n"]) + rows)
    job = ["--csv", "--key", "1", *header]
    Path("in.csv").write_bytes(data)
    assert sort(*job, "in.csv") == want
    assert sort(*job, stdin=data) == want
    assert sort(*job, stdin=data.rstrip(b"\r\n") + end + b"\n") == want
    done = report("sort", *job, "in.csv", "-o", "out.csv")
    assert (done["records"], done["input_bytes"]) == (len(rows), len(data))
    assert "SKIPPED_RECORDS" not in done["counters"]


def test_an_empty_line_is_a_row_of_a_table_of_one_column() -> None:
    assert sort("--csv", stdin=b"a\nx\n\nw\n") == b"a\n\nw\nx\n"


@pytest.mark.parametrize(
    "data",
    [b"id,v\r2,a\r1,b\r", MARK + b'"id","v"\r"2","a\nb"\r', b"id,v\r2,a\n1,b\n"],
)
def test_lines_that_end_with_a_carriage_return_alone_are_refused(data: bytes) -> None:
    Path("in.csv").write_bytes(data)
    said = refusal("--csv", "--key", "1", "in.csv")
    assert "CR that no LF follows" in said
    assert r"tr '\r' '\n' < FILE > NEW" in said
    assert "in.csv" in said
    assert "CR that no LF follows" in refusal("--csv", "--key", "1", stdin=data)
    Path("in.csv").write_bytes(data * 700_000)  # longer than a header may be
    assert "CR that no LF follows" in refusal("--csv", "in.csv")


def test_a_carriage_return_in_quotes_is_a_byte_of_its_field() -> None:
    data = b'id,"a\rb"\r\n2,"x\ry"\r\n1,z\r\n'
    assert sort("--csv", "--key", "1", stdin=data) == b'id,"a\rb"\r\n1,z\r\n2,"x\ry"\r\n'
