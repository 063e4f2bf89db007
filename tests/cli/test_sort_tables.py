"""`gristmill sort --csv`: rows as Python's `csv` module reads them, in the order of `sorted`.

The oracle reads rows by `csv.reader`, from a reader of lines that remembers their bytes: so it
knows which bytes a row had, and what comes out is compared byte for byte.
"""

import csv
import gzip
import io
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from .harness import report, run
from .sorting import nothing_of_ours_stays, refusal, same, sort, try_sort

Order = tuple[str, Callable[[str], Any], bool]
"""A column, what a field of it is compared by, and whether the largest comes first."""

VALUES = [
    "",
    "a",
    "B",
    "b",
    "ab",
    "a b",
    "é",
    "10",
    "9",
    "2.5",
    "-3",
    "1e2",
    "x,y",
    'q"q',
    '"',
    "l\nm",
    "\n",
    "r\r\ns",
]
NUMBERS = ["1", "10", "9", "-3", "2.5", "1e3", "0", "-0.5", "123456789", "0.001"]


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test does: in its folders, in TMPDIR and where it runs, nothing of ours stays."""
    with nothing_of_ours_stays(tmp_path, monkeypatch):
        yield


def rows_of(data: bytes, delimiter: str) -> list[tuple[list[str], bytes]]:
    """Return the rows of a table, each with its bytes; the last one with an end."""
    lines = io.StringIO(data.decode(), newline="")
    taken: list[str] = []

    def remembered() -> Iterator[str]:
        while line := lines.readline():
            taken.append(line)
            yield line

    rows: list[tuple[list[str], bytes]] = []
    for row in csv.reader(remembered(), delimiter=delimiter):
        rows.append((row, "".join(taken).encode()))
        taken.clear()
    return rows


def expected(data: bytes, orders: Sequence[Order], delimiter: str = ",") -> bytes:
    """Return a table sorted the simple way."""
    (names, header), *rows = rows_of(data, delimiter)
    for name, key, descending in reversed(orders):
        column = names.index(name)
        rows.sort(key=lambda row: key(row[0][column]), reverse=descending)
    end = b"\r\n" if header.endswith(b"\r\n") else b"\n"
    made = [row if row.endswith(b"\n") else row + end for _, row in rows]
    return b"".join([header, *made])


def text(value: str) -> bytes:
    """What text is compared by."""
    return value.encode()


def table(seed: int, rows: int, delimiter: str = ",", *, ended: bool = True) -> bytes:
    """Return a table whose fields are hard to read; some are quoted that need not be."""
    drawn = random.Random(seed)
    end = drawn.choice(["\n", "\r\n"])

    def field(value: str) -> str:
        needs = any(mark in value for mark in f'{delimiter}"\r\n')
        doubled = value.replace('"', '""')
        return f'"{doubled}"' if needs or drawn.randrange(4) == 0 else value

    lines = [["id", "name", "price", "long name"]]
    for number in range(rows):
        lines.append(
            [str(number), drawn.choice(VALUES), drawn.choice(NUMBERS), drawn.choice(VALUES)]
        )
    joined = [delimiter.join(map(field, line)) for line in lines]
    return (end.join(joined) + (end if ended else "")).encode()


KEYS: list[tuple[str, list[Order]]] = [
    ("name", [("name", text, False)]),
    ("name:desc", [("name", text, True)]),
    ("price:num:desc,name", [("price", float, True), ("name", text, False)]),
    ("3:num,2:desc", [("price", float, False), ("name", text, True)]),
    ("long name:nocase", [("long name", lambda value: text(value).upper(), False)]),
]


@pytest.mark.parametrize(("key", "orders"), KEYS)
@pytest.mark.parametrize("seed", range(4))
def test_rows_are_in_the_order_of_their_columns(seed: int, key: str, orders: list[Order]) -> None:
    data = table(seed, 200, ended=seed % 2 == 0)
    Path("in.csv").write_bytes(data)
    want = expected(data, orders)
    same(sort("--csv", "--key", key, "in.csv"), want)
    same(sort("--csv", "-k", key, stdin=data), want)
    assert sort("--csv", "--key", key, "in.csv", "-o", "out.csv", "--workers", "2") == b""
    same(Path("out.csv"), want)
    assert try_sort("-c", "--csv", "--key", key, "out.csv").status == 0


def test_without_keys_all_columns_decide() -> None:
    data = table(5, 100)
    orders = [(name, text, False) for name in ("id", "name", "price", "long name")]
    same(sort("--csv", stdin=data), expected(data, orders))
    backwards = [(name, key, True) for name, key, _ in orders]
    same(sort("--csv", "-r", stdin=data), expected(data, backwards))


@pytest.mark.parametrize(
    ("options", "delimiter"),
    [(["--tsv"], "\t"), (["--csv", "-t", ";"], ";"), (["--csv", "-t|"], "|")],
)
def test_other_separators(options: list[str], delimiter: str) -> None:
    data = table(6, 100, delimiter)
    want = expected(data, [("name", text, False)], delimiter)
    same(sort(*options, "--key", "name", stdin=data), want)


def test_letters_of_gnu_sort_are_for_keys_without_words() -> None:
    data = b"a,b\n10,x\n9,Y\n10,w\n"
    assert sort("--csv", "-n", "-k", "a,b:text", stdin=data) == b"a,b\n9,Y\n10,w\n10,x\n"
    assert sort("--csv", "-nr", "-k", "a", stdin=data) == b"a,b\n10,x\n10,w\n9,Y\n"
    assert sort("--csv", "-f", "-k", "b", stdin=data) == b"a,b\n10,w\n10,x\n9,Y\n"


def test_names_with_commas_and_colons_stand_in_quotes() -> None:
    data = b'"a,b",c:desc\n2,1\n1,2\n'
    header = data.splitlines(keepends=True)[0]
    assert sort("--csv", "--key", '"a,b"', stdin=data) == header + b"1,2\n2,1\n"
    assert sort("--csv", "--key", '"c:desc":desc', stdin=data) == header + b"1,2\n2,1\n"


def test_the_first_of_equal_rows_stays() -> None:
    data = b"a,b\n2,x\n1,y\n2,z\n1,y\n"
    assert sort("--csv", "-u", "--key", "a", stdin=data) == b"a,b\n1,y\n2,x\n"
    Path("in").write_bytes(data)
    done = report("sort", "--csv", "-u", "--key", "a", "in", "-o", "out")
    assert (done["records"], done["duplicate_keys"]) == (2, 2)


def test_several_files_have_one_header() -> None:
    data = table(8, 300)
    header, *rows = [row for _, row in rows_of(data, ",")]
    for number in range(3):
        Path(f"{number}.csv").write_bytes(
            b"".join([header, *rows[number * 100 : number * 100 + 100]])
        )
    Path("empty.csv").write_bytes(b"")
    Path("header.csv").write_bytes(header.rstrip(b"\r\n"))
    want = expected(data, [("name", text, False)])
    files = ["empty.csv", "0.csv", "1.csv", "header.csv", "2.csv"]
    same(sort("--csv", "--key", "name", *files), want)
    rest = Path("1.csv").read_bytes()
    same(sort("--csv", "--key", "name", "0.csv", "-", "2.csv", stdin=rest), want)
    same(
        sort("--csv", "--key", "name", "-", "1.csv", "2.csv", stdin=Path("0.csv").read_bytes()),
        want,
    )


# --- headers ---


def test_a_byte_order_mark_is_no_part_of_a_name() -> None:
    data = b'\xef\xbb\xbf"a",b\n2,x\n1,y\n'
    assert sort("--csv", "--key", "a", stdin=data) == b'\xef\xbb\xbf"a",b\n1,y\n2,x\n'


def test_nothing_and_a_header_alone() -> None:
    assert sort("--csv", "--key", "a", stdin=b"") == b""
    assert sort("--csv", "--key", "a", stdin=b"a,b") == b"a,b\n"
    assert "no column" in refusal("--csv", "--key", "c", stdin=b"a,b\n", status=2)


def test_a_missing_column_is_told_with_those_that_there_are() -> None:
    Path("in.csv").write_bytes(b"id,price\n1,2\n")
    said = refusal("--csv", "--key", "prise:desc", "in.csv", status=2)
    assert 'no column "prise"' in said
    assert "in.csv" in said
    assert '"id", "price"' in said
    assert "several columns" in refusal("--csv", "--key", "a", stdin=b"a,a\n", status=2)
    assert 'no column "3"' in refusal("--csv", "--key", "3", "in.csv", status=2)


def test_another_header_is_refused() -> None:
    Path("a.csv").write_bytes(b"id,price\n1,2\n")
    Path("b.csv").write_bytes(b"id,cost\n1,2\n")
    said = refusal("--csv", "a.csv", "b.csv")
    assert "b.csv" in said
    assert '"id", "cost"' in said


def test_rows_with_other_fields_are_told_by_their_line_or_left_out() -> None:
    data = b'a,b\n1,"x\ny"\n2\n3,4,5\n0,z\n'
    Path("in.csv").write_bytes(data)
    for said in (refusal("--csv", "in.csv"), refusal("--csv", stdin=data)):
        assert "the row has 1 field, and the header has 2 fields" in said
        assert "line 4" in said
        assert "--skip-bad" in said
    assert "line 5" in refusal("--csv", "--skip-bad", "1", "in.csv")
    kept = b'a,b\n0,z\n1,"x\ny"\n'
    assert sort("--csv", "--skip-bad", "2", "in.csv") == kept
    done = report("sort", "--csv", "--skip-bad", "2", "in.csv", "-o", "out.csv")
    assert done["counters"]["SKIPPED_RECORDS"] == 2
    assert done["records"] == 2
    assert "2 rows were left out" in str(done["notices"])


def test_the_first_rows_that_are_left_out_are_listed(home: Path) -> None:
    Path("in.csv").write_bytes(b"a,b\n" + b"1,2\n" * 3 + b"3\n" * 25)
    options = ["--csv", "--skip-bad", "25", "--history", "in.csv", "-o", "out.csv"]
    listed = report("sort", *options)["left_out"]
    says = "the row has 1 field, and the header has 2 fields (file in.csv, line {}, offset {})"
    assert listed == [says.format(5 + row, 16 + 2 * row) for row in range(20)]
    shown = run("jobs", "show", "last").stdout
    assert "25 rows left out; the first 20:\n  the row has 1 field" in shown
    assert [f"  {row}" for row in listed] == [
        line for line in shown.splitlines() if "(file" in line
    ]
    run("report", "last", "-o", "page.html")
    assert listed[-1] in Path("page.html").read_text()
    assert home.exists()


def test_a_file_with_nothing_but_bad_rows() -> None:
    Path("in.csv").write_bytes(b"a,b\n1\n2\n")
    assert sort("--csv", "--skip-bad", "2", "in.csv", "-o", "out.csv") == b""
    assert Path("out.csv").read_bytes() == b"a,b\n"


@pytest.mark.parametrize(
    ("data", "line"), [(b'a,b\n1,2\n3,"x\ny\n', 3), (b'a,b\n1,"x"\n"', 3), (b'a,"b\n', 1)]
)
def test_a_quote_that_is_open_at_the_end(data: bytes, line: int) -> None:
    Path("in.csv").write_bytes(data)
    for said in (refusal("--csv", "in.csv"), refusal("--csv", "--skip-bad", "9", stdin=data)):
        assert "a quote is open at the end" in said
        assert f"line {line}" in said
    assert "in.csv" in refusal("--csv", "in.csv")


WAYS = ["file", "compressed", "stream"]


def given(way: str, data: bytes) -> tuple[list[str], bytes]:
    """Return the arguments that name a table, and standard input."""
    if way == "stream":
        return [], data
    name, packed = (
        ("in.csv.gz", gzip.compress(data, 1)) if way == "compressed" else ("in.csv", data)
    )
    Path(name).write_bytes(packed)
    return [name], b""


@pytest.mark.parametrize("way", WAYS)
def test_a_quote_that_is_open_in_a_long_table_is_told_with_its_row(way: str) -> None:
    rows = [
        '000000,"two\nlines"\n',
        *(f"{number:06},plain text of a row\n" for number in range(1, 300_000)),
    ]
    rows[200_000] = '200000,"open\n'
    data = "".join(["a,b\n", *rows]).encode()
    before = len("a,b\n") + sum(map(len, rows[:200_000]))
    names, stdin = given(way, data)
    for check in ([], ["-c"]):
        job = ["--csv", "--memory", "24M", *check, *names]
        said = refusal(*job, stdin=stdin, status=2 if check else 1)
        assert "quote" in said
        assert "double a quote that is part of the field" in said
        assert "row 200002" in said
        assert "line 200003" in said
        at = re.search(r"offset (\d+)", said)
        assert at is not None
        assert int(at[1]) - before in (0, len("200000,"))
        assert "--memory" not in said


@pytest.mark.parametrize("way", WAYS)
def test_the_memory_that_a_long_row_asks_for_is_enough(way: str) -> None:
    rows = [b"2," + b"x" * 9_000_000 + b"\n", b"1,y\n"]
    names, stdin = given(way, b"a,b\n" + b"".join(rows))
    job = ["--csv", "--key", "a", *names, "--workers", "1", "--no-sync", "--memory"]
    pattern = (
        r"a row has 9000003 bytes, and in this memory the longest has (\d+)\D.* --memory (\d+)M"
    )
    named = re.search(pattern, refusal(*job, "24M", stdin=stdin))
    assert named is not None
    assert int(named[1]) < 9_000_003
    assert 24 < int(named[2]) < 200
    same(sort(*job, f"{named[2]}M", stdin=stdin), b"a,b\n" + b"".join(reversed(rows)))


@pytest.mark.parametrize("options", [["--csv", "--key", "1"], [], ["-k1n"]])
def test_a_check_holds_no_more_than_its_memory(options: list[str]) -> None:
    data = (b"a" if "--csv" in options else b"1") + b"\n1\n" + b"2" * 9_000_000 + b"\n"
    job = ["-c", *options, "--memory"]
    what = "row" if "--csv" in options else "line"
    pattern = (
        rf"a {what} has 9000001 bytes, and in this memory the longest has \d+\D.* --memory (\d+)M"
    )
    named = re.search(pattern, refusal(*job, "24M", stdin=data, status=2))
    assert named is not None
    said = try_sort(*job, f"{named[1]}M", stdin=data)
    assert "in this memory" not in said.stderr
    assert "workers" not in said.stderr


def test_a_name_in_the_header_comes_before_a_number() -> None:
    data = b"3,2,1\na,c,b\nb,a,c\nc,b,a\n"
    header, *rows = data.splitlines(keepends=True)

    def by(column: int) -> bytes:
        ordered = sorted(rows, key=lambda row: row.strip().split(b",")[column])
        return header + b"".join(ordered)

    for key, column in {"3": 0, "2": 1, "1": 2, "#1": 0, "#3": 2}.items():
        assert sort("--csv", "--key", key, stdin=data) == by(column)
    assert "give a number: #1 or #3" in refusal("--csv", "--key", "a", stdin=b"a,1,a\n", status=2)
    assert "no column" in refusal("--csv", "--key", "#4", stdin=data, status=2)


def test_too_many_bad_rows_in_all_tasks_end_the_job_before_it_writes() -> None:
    Path("a.csv").write_bytes(b"a,b\n1,2\n3\n")
    Path("b.csv.gz").write_bytes(gzip.compress(b"a,b\n0,2\n4\n"))
    job = ["--csv", "a.csv", "b.csv.gz", "--skip-bad"]
    done = try_sort(*job, "1")
    assert (done.status != 0, done.stdout) == (True, b"")
    assert "2 rows have more fields than the header, or fewer" in done.stderr
    assert "--skip-bad 2" in done.stderr
    assert sort(*job, "2") == b"a,b\n0,2\n1,2\n"


@pytest.mark.parametrize("end", [b"", b"\r", b"\r\n"])
def test_a_carriage_return_at_the_end_is_half_of_an_end(end: bytes) -> None:
    data = b"a,b\r\n2,x\r\n1,y" + end
    assert sort("--csv", stdin=data) == b"a,b\r\n1,y\r\n2,x\r\n"


def test_the_header_is_no_record_and_stands_in_the_first_part() -> None:
    rows = [f"{number},x\n" for number in range(1000)]
    Path("in.csv").write_text("".join(["a,b\n", *rows]))
    sort("--csv", "in.csv", "-o", "out", "--parts", "3")
    proof = json.loads(Path("out", "_SUCCESS").read_text())
    parts = [Path("out", part["name"]).read_text().splitlines() for part in proof["parts"]]
    headers = [part[:1] == ["a,b"] for part in parts]
    assert headers == [True, False, False]
    records = [len(part) - is_first for part, is_first in zip(parts, headers, strict=True)]
    assert [part["records"] for part in proof["parts"]] == records
    assert proof["records"] == 1000


def test_a_file_of_a_byte_order_mark_alone_is_empty() -> None:
    mark = b"\xef\xbb\xbf"
    assert sort("--csv", stdin=mark) == b""
    Path("in.csv").write_bytes(mark)
    Path("other.csv").write_bytes(b"a,b\n2,x\n1,y\n")
    assert sort("--csv", "in.csv") == b""
    assert sort("--csv", "--key", "a", "in.csv", "other.csv") == b"a,b\n1,y\n2,x\n"
    assert sort("--csv", "--key", "a", "other.csv", "in.csv") == b"a,b\n1,y\n2,x\n"


@pytest.mark.parametrize("options", [["--csv"], [], ["-n"], ["-c"]])
def test_a_compressed_stream_is_refused_with_how_to_decode_it(options: list[str]) -> None:
    packed = gzip.compress(b"a,b\n1,2\n")
    said = refusal(*options, stdin=packed, status=2 if "-c" in options else 1)
    assert "it is compressed (gzip)" in said
    assert "standard input" in said
    assert "gzip -dc" in said


def test_what_compressed_files_hold_is_not_made_up() -> None:
    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 10_000)
    Path("in.csv.gz").write_bytes(packed)
    Path("in.csv").write_bytes(b"a,b\n")
    job = ["explain", "sort", "--csv", "in.csv.gz", "-o", "out.csv"]
    said = run(*job).stdout
    assert "in 1 file, compressed: how much they hold is not known" in said
    assert re.search(r"^ +merge +1 +\? +\?$", said, re.MULTILINE)
    assert re.search(r"^ +output \(.*\) +\? ", said, re.MULTILINE)
    plan = json.loads(run(*job, "--json").stdout)
    assert [stage["writes"] for stage in plan["stages"]] == [None, None]
    assert "in 2 files, 1 of them compressed" in run(*job, "in.csv").stdout


def test_a_check_names_the_line() -> None:
    Path("in.csv").write_bytes(b'a,b\n1,"x\ny"\n3,z\n2,z\n')
    said = refusal("-c", "--csv", "--key", "a", "in.csv")
    assert 'in.csv:5: "2,z" is out of order' in said
    assert try_sort("-c", "--csv", "--key", "1:num", stdin=b"a\n9\n10\n").status == 0
    assert try_sort("-C", "--csv", "--key", "a", "in.csv").status == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--csv", "--tsv"], "exclude each other"),
        (["--csv", "-z"], "do not end with NUL"),
        (["--csv", "--format", "fixed:4"], "records of one length"),
        (["--csv", "-t", "ab"], "does not separate"),
        (["--csv", "-t", '"'], "does not separate"),
        (["--csv", "--key", "a,,b"], "names no column"),
        (["--csv", "--key", "a:num:version"], "incompatible"),
        (["--skip-bad", "3"], "is for tables"),
    ],
)
def test_options_that_cannot_be(options: list[str], says: str) -> None:
    Path("in.csv").write_bytes(b"a,b\n1,2\n")
    assert says in refusal(*options, "in.csv", status=2)


def test_a_table_is_explained() -> None:
    Path("in.csv").write_bytes(table(3, 50))
    assert run("explain", "sort", "--csv", "--key", "name", "in.csv", "-o", "out.csv").status == 0
    said = run("explain", "sort", "--csv", "--key", "nam", "in.csv", "-o", "out.csv", status=2)
    assert "no column" in said.stderr
