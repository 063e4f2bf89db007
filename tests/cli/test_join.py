"""`gristmill join` against nested loops over the same rows, and against pandas."""

import csv
import gzip
import io
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill

from .harness import end, failure, names, parts, report, run, start

MARK = b"\xef\xbb\xbf"
How = Literal["inner", "left", "right", "full", "semi", "anti"]
HOW: tuple[How, ...] = get_args(How)

Row = list[bytes]

CELLS = st.sampled_from(
    [b"", b"a", b"b", b"1", b"1.0", b'"', b",", b"a\nb", b"\r\n", b"\xff", b" "]
)
KEYS = st.sampled_from([b"", b"a", b'a"', b"a,", b"\1", b"\n"])


def quoted(cell: bytes) -> bytes:
    """A cell as it stands in a table."""
    if any(byte in cell for byte in (b'"', b",", b"\n", b"\r")):
        return b'"' + cell.replace(b'"', b'""') + b'"'
    return cell


def table(rows: list[Row], end: bytes = b"\n", mark: bytes = b"") -> bytes:
    """The bytes of a table. A row of one empty cell has quotes, else it would be no row."""
    lines = (b",".join(map(quoted, row)) or b'""' for row in rows)
    return mark + b"".join(line + end for line in lines)


def rows_of(text: bytes) -> list[Row]:
    """The rows of a table."""
    reader = csv.reader(io.StringIO(text.decode("latin-1"), newline=""))
    return [[cell.encode("latin-1") for cell in row] for row in reader]


def joined(
    left: list[Row],
    right: list[Row],
    by: list[tuple[int, int]],
    how: str,
    widths: tuple[int, int],
    empty: bytes = b"",
    by_left: bool = False,
) -> list[Row]:
    """What a join gives, without headers: in the order of keys, and of the inputs in each.

    Or in that of the left.
    """

    def key(row: Row, side: int) -> Row:
        return [row[columns[side]] for columns in by]

    def others(row: Row, side: int) -> Row:
        columns = [pair[side] for pair in by]
        return [cell for column, cell in enumerate(row) if column not in columns]

    def absent(side: int) -> Row:
        return [empty] * len(others([b""] * widths[side], side))

    found: list[Row] = []
    if by_left:
        for row in left:
            same = [other for other in right if key(other, 1) == key(row, 0)]
            found += joined([row], same, by, how, widths, empty)
        return found
    for wanted in sorted(
        {tuple(key(row, 0)) for row in left} | {tuple(key(row, 1)) for row in right}
    ):
        of_left = [row for row in left if tuple(key(row, 0)) == wanted]
        of_right = [row for row in right if tuple(key(row, 1)) == wanted]
        if how in ("semi", "anti"):
            found += of_left if bool(of_right) == (how == "semi") else []
            continue
        if not of_right and how in ("left", "full"):
            found += [[*wanted, *others(row, 0), *absent(1)] for row in of_left]
        if not of_left and how in ("right", "full"):
            found += [[*wanted, *absent(0), *others(row, 1)] for row in of_right]
        found += [[*wanted, *others(a, 0), *others(b, 1)] for a in of_left for b in of_right]
    return found


@settings(max_examples=60)
@given(
    st.data(),
    st.sampled_from(HOW),
    st.integers(1, 2),
    st.integers(0, 2),
    st.integers(0, 2),
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
    st.booleans(),
)
def test_any_tables_are_joined(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    how: How,
    keys: int,
    left_others: int,
    right_others: int,
    end: bytes,
    has_header: bool,
    is_sorted: bool,
) -> None:
    folder = tmp_path_factory.mktemp("tables")
    rows: list[list[Row]] = []
    for side, others in (("left", left_others), ("right", right_others)):
        row = st.tuples(st.tuples(*[KEYS] * keys), st.tuples(*[CELLS] * others))
        files = data.draw(st.lists(st.lists(row, max_size=6), min_size=1, max_size=3), side)
        (folder / side).mkdir()
        header = [[b"k%d" % n for n in range(keys)] + [b"v%d" % n for n in range(others)]]
        found: list[Row] = []
        for number, some in enumerate(files):
            # The keys of the right are its last columns.
            cells = [[*k, *v] if side == "left" else [*v, *k] for k, v in some]
            found += cells
            head = header if side == "left" else [header[0][keys:] + header[0][:keys]]
            text = table([*(head if has_header else []), *cells], end, MARK if number == 1 else b"")
            name = f"{number}.gz" if number == 2 else f"{number}"
            (folder / side / name).write_bytes(gzip.compress(text) if number == 2 else text)
        rows.append(found)
    by = [(key, right_others + key) for key in range(keys)]
    given_by = (
        [f"{a + 1}={b + 1}" for a, b in by] if not has_header else [f"k{n}" for n in range(keys)]
    )
    if not has_header and not (rows[0] and rows[1]):
        return  # nothing says how many columns an empty file would have
    gristmill.join(
        folder / "left",
        folder / "right",
        output=folder / "out",
        by=",".join(given_by),
        how=how,
        empty="-",
        csv=True,
        no_header=not has_header,
        sorted=is_sorted,
    )
    text = (folder / "out").read_bytes()
    widths = (keys + left_others, keys + right_others)
    by_left = not is_sorted and how not in ("right", "full")
    wanted = joined(rows[0], rows[1], by, how, widths, b"-", by_left)
    if has_header:
        head = [b"k%d" % n for n in range(keys)] + [b"v%d" % n for n in range(left_others)]
        if how not in ("semi", "anti"):
            named = (b"v%d" % n for n in range(right_others))
            head += [name + b"_right" if name in head else name for name in named]
        wanted = [head, *wanted]
    assert text == table(wanted, end if has_header or rows[0] else b"\n")


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
@pytest.mark.parametrize("seed", range(3))
def test_pandas_finds_the_same_rows(tmp_path: Path, how: How, seed: int) -> None:
    chance = random.Random(seed)

    def drawn(count: int, *columns: str) -> pd.DataFrame:
        def cell() -> str:
            return chance.choice(("", "x", "NA", "7", "7.0", "a,b", 'c"', "é"))

        return pd.DataFrame([[cell() for _ in columns] for _ in range(count)], columns=columns)

    left = drawn(40, "value", "id", "city", "note")
    right = drawn(30, "town", "note", "id", "country")
    left.to_csv(tmp_path / "left.csv", index=False)
    right.to_csv(tmp_path / "right.csv", index=False)
    options = ("--by", "id,city=town", "--how", how, "--csv", "--parts", "2")
    inputs = (tmp_path / "left.csv", tmp_path / "right.csv")
    run("join", *inputs, "-o", tmp_path / "out", *options)
    read: Any = {"dtype": str, "keep_default_na": False}
    frames: list[pd.DataFrame] = [pd.read_csv(part, **read) for part in parts(tmp_path / "out")]
    found = pd.concat(frames)
    assert list(found) == ["id", "city", "value", "note", "note_right", "country"]
    merge_how: Any = "outer" if how == "full" else how
    wanted = left.merge(
        right.rename(columns={"town": "city"}),
        on=["id", "city"],
        how=merge_how,
        suffixes=("", "_right"),
    ).fillna("")[list(found)]
    assert Counter(found.itertuples(index=False)) == Counter(wanted.itertuples(index=False))


@settings(max_examples=50)
@given(st.data(), st.sampled_from(HOW), st.integers(3, 5), st.booleans(), st.booleans())
def test_any_number_of_tables_is_joined(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    how: How,
    count: int,
    has_header: bool,
    is_sorted: bool,
) -> None:
    """From left to right, two at a time."""
    folder = tmp_path_factory.mktemp("tables")
    cell = st.sampled_from([b"", b"x", b"y,", b'"'])
    tables: list[list[Row]] = []
    for number in range(count):
        row = st.tuples(st.sampled_from([b"", b"a", b"b", b"c", b"a,"]), cell).map(list)
        rows = data.draw(st.lists(row, min_size=not has_header, max_size=6), f"table {number}")
        (folder / f"{number}").write_bytes(table([[b"id", b"v"]] * has_header + rows))
        tables.append(rows)
    gristmill.join(
        folder / "0",
        folder / "1",
        [folder / f"{number}" for number in range(2, count)],
        output=folder / "out",
        by="id" if has_header else "1",
        how=how,
        empty="-",
        csv=True,
        no_header=not has_header,
        sorted=is_sorted,
    )
    by_left = not is_sorted and how not in ("right", "full")
    wanted = tables[0]
    for number, right in enumerate(tables[1:], 2):
        width = 2 if how in ("semi", "anti") else number
        wanted = joined(wanted, right, [(0, 0)], how, (width, 2), b"-", by_left)
    head = [b"id", b"v"]
    if how not in ("semi", "anti"):
        head += [b"v_%d" % number for number in range(2, count + 1)]
    assert (folder / "out").read_bytes() == table([head] * has_header + wanted)


def test_any_workers_and_memory_give_the_same_bytes(tmp_path: Path) -> None:
    chance = random.Random(5)
    for side, count in (("left", 110_000), ("right", 10_000)):
        rows = (f"{chance.randrange(9_000)},{side * 18},{number}\n" for number in range(count))
        (tmp_path / side).write_text("id,side,number\n" + "".join(rows))
    assert (tmp_path / "left").stat().st_size > 8 << 20
    found: list[list[bytes]] = []
    for number, options in enumerate(
        (["--workers", "1"], ["--workers", "2", "--memory", "30M"], ["--runner", "processes"])
    ):
        out = tmp_path / f"out{number}"
        inputs = (tmp_path / "left", tmp_path / "right")
        run("join", *inputs, "-o", out, "--csv", "--by", "id", "--parts", "3", *options)
        found.append([part.read_bytes() for part in parts(out)])
    assert found[0] == found[1] == found[2]
    right = Counter(row[0] for row in rows_of((tmp_path / "right").read_bytes()))
    left = Counter(row[0] for row in rows_of((tmp_path / "left").read_bytes()))
    wanted = sum(count * right[key] for key, count in left.items() if key != b"id")
    assert sum(part.count(b"\n") - 1 for part in found[0]) == wanted
    for part in found[0]:
        rows = rows_of(part)[1:]
        order = [(row[0], int(row[2]), int(row[4])) for row in rows]
        assert order == sorted(order)
    join = ("join", tmp_path / "left", tmp_path / "right", "--csv", "--by", "id")
    printed = run(*join).stdout.encode().splitlines()
    assert printed[0] == b"id,side,number,side_right,number_right"
    assert sorted(printed[1:]) == sorted(row for part in found[0] for row in part.splitlines()[1:])
    assert report("explain", *join)["parts"] == 1
    plan = report("explain", *join, "--parts", "3", "-o", tmp_path / "out")
    assert plan["parts"] == 3
    assert plan["stages"][0]["tasks"] > 3


def test_left_rows_of_a_key_need_no_memory(tmp_path: Path) -> None:
    (tmp_path / "left").write_text("id,n\n" + "".join(f"a,{n:060}\n" for n in range(200_000)))
    (tmp_path / "right").write_text("id,m\na,1\na,2\na,3\n")
    options = ("--csv", "--by", "id", "--memory", "24M", "--workers", "1", "--sorted")
    left, right, out = (tmp_path / name for name in ("left", "right", "out"))
    run("join", left, right, "-o", out, *options)
    rows = out.read_bytes().split(b"\n")
    assert rows[:4] == [b"id,n,m", *(b"a,%060d,%d" % (0, n) for n in (1, 2, 3))]
    assert rows[-2:] == [b"a,%060d,3" % 199_999, b""]
    assert len(rows) == 600_002
    # The other way round they are held, on disk.
    joined = run("join", right, left, *options).stdout.encode().splitlines()
    wanted = [b"a,%d,%060d" % (m, n) for m in (1, 2, 3) for n in range(200_000)]
    assert joined == [b"id,m,n", *wanted]
    for how, text in (("semi", "id,m\na,1\na,2\na,3\n"), ("anti", "id,m\n")):
        assert run("join", right, left, *options, "--how", how).stdout == text
    right.write_text("id,m\nb,1\n")
    assert run("join", right, left, *options, "--how", "left").stdout == "id,m,n\nb,1,\n"


@pytest.mark.parametrize("how", ["inner", "full", "right"])
def test_rows_of_a_key_that_no_memory_has_room_for(how: str, tmp_path: Path) -> None:
    """Two inputs have more rows of a key than fit; of one of them the left has no such key."""
    a, lone = 30_000, 40_000
    (tmp_path / "left").write_text(
        "id,l\n" + "".join(f"{key},{n}\n" for key in "ca" for n in range(2))
    )
    (tmp_path / "two").write_text("id,t\n" + "".join(f"a,{n:0200}\n" for n in range(a)) + "c,1\n")
    rows = "".join(f"b,{n:0200}\n" for n in range(lone))
    (tmp_path / "three").write_text("id,u\na,1\nd,2\na,\n" + rows)
    inputs = [tmp_path / name for name in ("left", "two", "three")]
    out = tmp_path / "out"
    run(
        "join",
        *inputs,
        "-o",
        out,
        "--csv",
        "--by",
        "id",
        "--how",
        how,
        "--sorted",
        "--workers",
        "1",
        "--memory",
        "24M",
    )
    wanted = ["id,l,t,u"]
    wanted += [f"a,{n},{t:0200},{u}" for n in range(2) for t in range(a) for u in ("1", "")]
    if how != "inner":
        wanted += [f"b,,,{n:0200}" for n in range(lone)]
        wanted += [f"c,{n},1," for n in range(2)] if how == "full" else []
        wanted += ["d,,,2"]
    assert out.read_text().splitlines() == wanted
    assert names(tmp_path) == ["left", "out", "three", "two"]


def test_it_can_be_stopped_within_a_key(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.write_text("id,n\n" + "a,1\n" * 60_000)
    options = ("--csv", "--by", "id", "--workers", "1")
    process = start("join", source, source, "-o", out, "--parts", "1", *options)
    until_s = time.monotonic() + 30
    while not any(part.stat().st_size for part in tmp_path.rglob("part-r-*")):
        assert time.monotonic() < until_s
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert end(process, 20).status == 130
    assert names(tmp_path) == ["in"]


def test_names_of_the_header(tmp_path: Path) -> None:
    (tmp_path / "left").write_bytes(b"\xef\xbb\xbfid,x,x\r\n1,a,b\r\n")
    (tmp_path / "right").write_bytes(b'"x",x_right,"k,=",n\n2,3,1,"4"\n')
    for by in ('id="k,="', "id=3", "#1=#3"):
        out = tmp_path / f"out{len(by)}"
        run("join", tmp_path / "left", tmp_path / "right", "-o", out, "--csv", "--by", by)
        assert out.read_bytes() == b"id,x,x,x_right,x_right_right,n\r\n1,a,b,2,3,4\r\n"
    with_itself = ("join", tmp_path / "right", tmp_path / "right", "--csv", "--by", "n")
    run(*with_itself, "-o", tmp_path / "self")
    header = b'n,x,x_right,"k,=",x_right_right,x_right_right_right,"k,=_right"\n'
    assert (tmp_path / "self").read_bytes() == header + b"4,2,3,1,2,3,1\n"
    run(*with_itself, "--how", "semi", "-o", tmp_path / "semi")
    assert (tmp_path / "semi").read_bytes() == (tmp_path / "right").read_bytes()


def test_a_side_may_be_empty(tmp_path: Path) -> None:
    (tmp_path / "full").write_bytes(b"id,v\n1,a\n")
    (tmp_path / "header").write_bytes(b"w,id\n")
    (tmp_path / "nothing").write_bytes(b"")
    for left, right, how, wanted in (
        ("full", "header", "left", "id,v,w\n1,a,\n"),
        ("full", "nothing", "left", "id,v\n1,a\n"),
        ("full", "nothing", "inner", "id,v\n"),
        ("header", "full", "right", "id,w,v\n1,,a\n"),
        ("nothing", "full", "full", "id,v\n1,a\n"),
        ("nothing", "full", "semi", ""),
        ("nothing", "nothing", "full", ""),
    ):
        done = run("join", tmp_path / left, tmp_path / right, "--csv", "--by", "id", "--how", how)
        assert done.stdout == wanted, (left, right, how)


def test_rows_that_are_none_are_told(tmp_path: Path) -> None:
    (tmp_path / "left").write_bytes(b"id,v\n1,a\n")
    (tmp_path / "right").write_bytes(b"id,w\n1,b\n2\n")
    error = failure("join", tmp_path / "left", tmp_path / "right", "--csv", "--by", "id")
    assert "the row has 1 field, and the header has 2 fields" in error
    assert f"{tmp_path}/right" in error
    assert "row=3" in error.replace(" ", "") or "row 3" in error
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "a").write_bytes(b"id,w\n")
    (tmp_path / "two" / "b").write_bytes(b"id,x\n")
    error = failure("join", tmp_path / "left", tmp_path / "two", "--csv", "--by", "id")
    assert "its header is not that of" in error


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--csv", "--by", "id=a=b"], "does not name a column of each side"),
        (["--csv", "--by", "id,"], "does not name a column of each side"),
        (["--csv", "--by", "nothing"], "there is no column"),
        (["--csv", "--by", "id=v"], "there is no column"),
        (["--csv"], "by: it must be given"),
        (["--by", "id"], "is not the number of a field"),
        (["--csv", "--by", "id", "-1", "2"], "--left-field: it is for lines"),
        (["--csv", "--by", "id", "-i"], "--ignore-case: it is for lines"),
        (["--csv", "--by", "id", "-a", "3"], '"3" names no input'),
        (["--csv", "--by", "id", "-v", "1", "--how", "left"], "how says which rows"),
        (["--by", "1", "--no-header"], "lines have no header"),
        (["--csv", "--by", "id", "--how", "outer"], "outer"),
        (["--csv", "--tsv", "--by", "id"], "exclude each other"),
    ],
)
def test_wrong_options(options: list[str], says: str, tmp_path: Path) -> None:
    (tmp_path / "left").write_bytes(b"id,v\n1,a\n")
    (tmp_path / "right").write_bytes(b"id,w\n1,b\n")
    join = ("join", tmp_path / "left", tmp_path / "right", "-o", tmp_path / "out")
    assert says in failure(*join, *options, status=2)
    assert names(tmp_path) == ["left", "right"]
