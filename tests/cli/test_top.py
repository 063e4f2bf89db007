"""`gristmill top` against `sorted` of all records, `sort -s | head`, and `gristmill sort`."""

import gzip
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill

from .harness import failure, names, report, run

MARK = b"\xef\xbb\xbf"


def lines_of(text: bytes) -> list[bytes]:
    """The lines, of which LF ends each but perhaps the last."""
    lines = text.removeprefix(MARK).split(b"\n")
    return lines if lines[-1] else lines[:-1]


def parts_of(out: Path) -> list[bytes]:
    return [(out / name).read_bytes() for name in names(out) if name.startswith("part-")]


def first(
    records: list[Any], number: int, key: Callable[[Any], Any], *, ties: bool, reverse: bool = False
) -> list[Any]:
    """What a stable sort begins with, and perhaps what is equal to the last of that."""
    ordered = sorted(records, key=key, reverse=reverse)
    wanted = ordered[:number]
    if ties and len(wanted) == number:
        wanted += [record for record in ordered[number:] if key(record) == key(wanted[-1])]
    return wanted


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.sampled_from([b"a", b"b", b"\n", b"\r\n", b"\xff", b"\0", b":", b"ab"]))),
    st.integers(1, 6),
    st.booleans(),
    st.booleans(),
)
def test_any_lines(
    tmp_path_factory: pytest.TempPathFactory,
    pieces: list[list[bytes]],
    number: int,
    ties: bool,
    reverse: bool,
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    (folder / "in").mkdir()
    texts = [b"".join(some) for some in pieces] or [b""]
    for name, text in enumerate(texts):
        (folder / "in" / f"{name:03}").write_bytes(text)
    lines = [line for text in texts for line in lines_of(text)]
    options: dict[str, Any] = {"ties": "all" if ties else "first", "reverse": reverse}
    gristmill.top_records(number, folder / "in", output=folder / "whole", **options)
    whole = first(lines, number, lambda line: line, ties=ties, reverse=reverse)
    assert (folder / "whole").read_bytes() == b"".join(line + b"\n" for line in whole)

    def field(line: bytes, at: int) -> bytes:
        return b"".join(line.split(b":")[at : at + 1])

    keyed: dict[str, Any] = {**options, "field_separator": ":", "key": "2,2", "by": "1"}
    done = gristmill.top_records(number, folder / "in", output=folder / "by", parts=3, **keyed)
    found = [line for part in parts_of(folder / "by") for line in part.split(b"\n")[:-1]]
    groups: dict[bytes, list[bytes]] = {field(line, 0): [] for line in lines}
    for line in lines:
        groups[field(line, 0)].append(line)
    wanted = {
        group: first(some, number, lambda line: field(line, 1), ties=ties, reverse=reverse)
        for group, some in groups.items()
    }
    for group, some in wanted.items():
        assert [line for line in found if field(line, 0) == group] == some
    assert len(found) == sum(map(len, wanted.values())) == done.counters["REDUCE_OUTPUT_RECORDS"]
    for part in parts_of(folder / "by"):
        there = [field(line, 0) for line in part.split(b"\n")[:-1]]
        assert there == sorted(there)


CELLS = st.sampled_from(
    [b"", b"a", b"b", b" a", b'"', b",", b"\n", b"x\r\ny", b"\xff", b"\0", b"aa", b"\x01", b'","']
)


def row_of(row: tuple[bytes, ...]) -> bytes:
    """A row, whose last item is its end, with quotes where they are needed."""
    *cells, end = row
    quoted = (
        b'"%s"' % cell.replace(b'"', b'""')
        if any(byte in b'",\r\n' for byte in cell) or not cell
        else cell
        for cell in cells
    )
    return b",".join(quoted) + end


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.tuples(CELLS, CELLS, st.integers(-11, 11).map(b"%d".__mod__)))),
    st.integers(1, 5),
    st.booleans(),
    st.booleans(),
    st.sampled_from([b"\n", b"\r\n"]),
)
def test_any_tables(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[tuple[bytes, bytes, bytes]]],
    number: int,
    ties: bool,
    header: bool,
    end: bytes,
) -> None:
    folder = tmp_path_factory.mktemp("tables")
    (folder / "in").mkdir()
    (folder / "in" / "none").write_bytes(b"")
    top = b"group,text,number" + end if header else b""
    for name, rows in enumerate(files):
        text = top + b"".join(row_of((*row, end)) for row in rows)
        text = text.removesuffix(end) if name % 2 else text
        compress = gzip.compress if name % 3 == 2 else bytes
        (folder / "in" / f"{name:03}").write_bytes(compress((MARK if name == 1 else b"") + text))
    filled = [name for name, rows in enumerate(files) if rows]
    cut = not header and filled[:1] and filled[0] % 2 and len(files[filled[0]]) == 1
    last = b"\n" if cut else end  # a row without an end gets that of the first row
    rows = [
        (*row, last if name % 2 and at == len(some) - 1 else end)
        for name, some in enumerate(files)
        for at, row in enumerate(some)
    ]
    columns = ("group", "text", "number") if header else ("1", "2", "3")
    options: dict[str, Any] = {"csv": True, "no_header": not header}
    options["ties"] = "all" if ties else "first"
    key = f"{columns[2]}:num:desc,{columns[1]}"
    gristmill.top_records(number, folder / "in", output=folder / "whole", key=key, **options)
    whole = first(rows, number, lambda row: (-int(row[2]), row[1]), ties=ties)
    there = top if files else b""
    assert (folder / "whole").read_bytes() == there + b"".join(map(row_of, whole))

    keyed: dict[str, Any] = {**options, "by": columns[0], "key": f"{columns[1]}:desc"}
    gristmill.top_records(number, folder / "in", output=folder / "by", **keyed)
    wanted: list[tuple[bytes, ...]] = []
    for group in sorted({row[0] for row in rows}):
        some = [row for row in rows if row[0] == group]
        wanted += first(some, number, lambda row: row[1], ties=ties, reverse=True)
    assert (folder / "by").read_bytes() == there + b"".join(map(row_of, wanted))


@pytest.mark.parametrize(
    "options",
    [
        ["-n"],
        ["-g", "-r"],
        ["-h", "-k", "2"],
        ["-V"],
        ["-M", "-k2,2"],
        ["-f", "-b"],
        ["-t", ":", "-k", "2,2nr", "-k1"],
        ["-t", "\\0", "-k2"],
        ["-k1.2,1.3r", "-k2b"],
    ],
)
def test_lines_are_those_that_sort_prints_first(options: list[str], tmp_path: Path) -> None:
    chance = random.Random(3)
    words = [
        "10",
        "9",
        "-3.5",
        "1e3",
        "2K",
        "1G",
        "Feb",
        "jan",
        "a-1.9",
        "a-1.10",
        "B",
        "b",
        ":",
        " ",
    ]
    lines = ["".join(chance.choices([*words, " ", "\0"], k=3)) for _ in range(3000)]
    (tmp_path / "in").write_text("".join(line + "\n" for line in lines))
    for number in (1, 40, 2500, 5000):
        found = run("top", str(number), tmp_path / "in", *options).stdout
        gnu = subprocess.run(
            ["sort", "-s", *options, tmp_path / "in"],
            capture_output=True,
            check=True,
            env={"LC_ALL": "C"},
        )
        wanted = b"".join(gnu.stdout.splitlines(keepends=True)[:number])
        assert found.encode() == wanted


@pytest.mark.parametrize(
    "options",
    [
        ["-k", "price:num:desc,name"],
        ["-k", "price:num"],
        ["-k", "name:nocase:desc"],
        ["-k", "name:version", "-k", "#3:human:desc"],
        ["-k", "when:month,name:text"],
        ["-k", "price,name", "-n", "-r"],
        ["-r"],
        [],
    ],
)
def test_rows_are_those_that_sort_prints_first(options: list[str], tmp_path: Path) -> None:
    chance = random.Random(4)
    cells = ["", "10", "9", "-3.5", "1e3", "2K", "Feb", "jan", "A", "a", "a-1.9", "a-1.10"]
    table = "name,price,size,when\r\n" + "".join(
        ",".join(chance.choices(cells, k=4)) + "\r\n" for _ in range(3000)
    )
    (tmp_path / "in").write_bytes(table.encode())
    run("sort", "--csv", "-s", tmp_path / "in", "-o", tmp_path / "sorted", *options)
    ordered = (tmp_path / "sorted").read_bytes().splitlines(keepends=True)
    for number in (1, 40, 5000):
        out = tmp_path / f"out{number}"
        done = run("top", str(number), tmp_path / "in", "-o", out, "--csv", *options)
        assert out.read_bytes() == b"".join(ordered[: number + 1])
        assert done.stdout == ""


SEVERAL = (
    ["--workers", "1"],
    ["--workers", "2", "--memory", "30M"],
    ["--runner", "processes"],
)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of several splits, in two files; and its rows."""
    chance = random.Random(5)
    folder = tmp_path_factory.mktemp("large") / "in"
    folder.mkdir()
    for name in ("a", "b"):
        rows = (
            f'{chance.randrange(900)},{chance.randrange(20_000)},"{name}, {at}\n{"x" * 150}"\n'
            for at in range(50_000)
        )
        (folder / name).write_text("group,price,text\n" + "".join(rows))
    return folder


@pytest.mark.parametrize(
    "options",
    [
        ["20", "--key", "price:num:desc", "--ties", "all"],
        ["90000", "--key", "price:num"],
        ["3", "--by", "group", "--key", "price:num:desc", "--parts", "3"],
        ["60", "--by", "group", "--key", "price", "--ties", "all", "--parts", "2"],
    ],
)
def test_any_workers_and_memory_give_the_same_bytes(
    options: list[str], large: Path, tmp_path: Path
) -> None:
    number, *rest = options
    found: list[list[bytes]] = []
    for at, how in enumerate(SEVERAL):
        out = tmp_path / f"out{at}"
        run("top", number, large, "-o", out, "--csv", *rest, *how)
        found.append(parts_of(out) if "--parts" in rest else [out.read_bytes()])
    assert found[0] == found[1] == found[2]
    rows: list[str] = []
    for name in ("a", "b"):
        pieces = (large / name).read_text().removeprefix("group,price,text\n").split('x"\n')[:-1]
        rows += [piece + 'x"\n' for piece in pieces]
    numeric, falls = "num" in "".join(rest), "desc" in "".join(rest)

    def key(row: str) -> Any:  # noqa: ANN401 - a number or a text
        price = row.split(",")[1]
        return int(price) if numeric else price

    groups: dict[str, list[str]] = {}
    for row in rows:
        groups.setdefault(row.split(",")[0] if "--by" in rest else "", []).append(row)
    ties = "--ties" in rest
    wanted = {
        group: first(some, int(number), key, ties=ties, reverse=falls)
        for group, some in groups.items()
    }
    for part in found[0]:
        header, text = part.decode().split("\n", 1)
        assert header == "group,price,text"
        there = [piece + 'x"\n' for piece in text.split('x"\n')[:-1]]
        if "--by" in rest:
            order = sorted({row.split(",")[0] for row in there})
            assert there == [row for group in order for row in wanted.pop(group)]
        else:
            assert there == wanted.pop("")
    assert not wanted


def test_tables_of_a_header_alone_and_of_nothing(tmp_path: Path) -> None:
    for text, wanted in ((b"a,b", b"a,b\n"), (b"a,b\r\n", b"a,b\r\n"), (b"", b"")):
        (tmp_path / "in").write_bytes(text)
        run("top", "2", tmp_path / "in", "-o", tmp_path / "out", "--csv", "-k", "b:num")
        assert (tmp_path / "out").read_bytes() == wanted


def test_the_mark_of_the_first_header_stays(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(MARK + b"a,b\n1,2\n")
    (tmp_path / "two").write_bytes(b"a,b\n3,4\n")
    both = ("top", "1", "--csv", "--key", "b:num:desc")
    assert run(*both, tmp_path / "one", tmp_path / "two").stdout == "\ufeffa,b\n3,4\n"
    assert run(*both, tmp_path / "two", tmp_path / "one").stdout == "a,b\n3,4\n"


def test_a_plan_says_how_many_parts(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a,b\n1,2\n")
    explain = ("explain", "top", "2", tmp_path / "in", "--csv")
    assert report(*explain)["parts"] == 1
    by = ["--by", "a", "--parts", "3"]
    assert report(*explain, *by, "-o", tmp_path / "out")["parts"] == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["0"], "'0' is not a whole number from 1 on"),
        (["many"], "'many' is not a whole number from 1 on"),
        (["2", "--ties", "some"], '"some" is neither first nor all'),
        (["2", "--parts", "2"], "all records are one group"),
        (["2", "-k", "price"], "give --csv or --tsv"),
        (["2", "-n", "-V"], "incompatible"),
        (["2", "--by", "name"], '"name" is not the number of a field'),
        (["2", "--no-header"], "no-header is for tables"),
        (["2", "--csv", "--tsv"], "exclude each other"),
        (["2", "--csv", "-k", "c"], 'there is no column "c"'),
        (["2", "--csv", "-k", "b:number"], "write :num in place of :number"),
        (["2", "--csv", "--by", "3"], 'there is no column "3"'),
        (["2", "-t", "::"], "::"),
    ],
)
def test_options_that_are_wrong(words: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a,b\n1,2\n")
    number, *rest = words
    error = failure("top", number, tmp_path / "in", "-o", tmp_path / "out", *rest, status=2)
    assert said in error
    assert not (tmp_path / "out").exists()


def test_zero_records_in_python(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\n")
    with pytest.raises(ValueError, match="whole number from 1 on"):
        gristmill.top_records(0, tmp_path / "in")


def test_a_row_with_another_number_of_fields(tmp_path: Path) -> None:
    (tmp_path / "in").write_text('a,b\n1,2\n"3\n",4\n5\n')
    error = failure("top", "1", tmp_path / "in", "--csv", "-k", "b")
    assert "the row has 1 field, and the header has 2 fields" in error
    assert str(tmp_path / "in") in error
    assert "line 5" in error or "line: 5" in error or "line=5" in error
