"""`gristmill group` against figures that are worked out row by row."""

import csv
import gzip
import io
import math
import random
import re
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gristmill

from .harness import failure, names, report, run

FIGURES = ("sum", "mean", "min", "max", "median")
TEXT = st.text("ab\"',;\n\r\t é0", max_size=4)
NUMBER = st.one_of(
    st.just(""),
    st.integers(-(10**25), 10**25).map(str),
    st.integers(-9, 9).map(lambda number: f" {number:+d}"),
    st.floats(-1e300, 1e300).map(repr),
    st.decimals(-1000, 1000, places=2).map(str),
    st.sampled_from(
        ["1e3", ".5", "-7.", "0.1", "0.2", "9007199254740993", "00012", "12.0", "1E-7"]
    ),
)


def written(rows: list[tuple[str, ...]], *, ending: str = "\n") -> bytes:
    def field(cell: str) -> str:
        return '"' + cell.replace('"', '""') + '"' if re.search('[,"\r\n]', cell) else cell

    return "".join(",".join(map(field, row)) + ending for row in rows).encode()


def read(folder: Path) -> list[list[str]]:
    """The rows of all parts; each part begins with the same header, which is kept once."""
    rows: list[list[str]] = []
    for name in names(folder):
        if name.startswith("part-"):
            text = (folder / name).read_bytes().decode()
            part = list(csv.reader(io.StringIO(text, newline="")))
            assert part[0] == (rows or part)[0]
            rows += part[1:] if rows else part
    return rows


def plain(number: Fraction) -> str:
    """All digits of a decimal, without zeros that say nothing."""
    with localcontext(prec=2000):
        return f"{(Decimal(number.numerator) / Decimal(number.denominator)).normalize() + 0:f}"


def mean(total: Fraction, count: int) -> str:
    """To 17 digits, or as many as the sum has behind the point."""
    exact = abs(total) / count
    top = 0
    while Fraction(10) ** top <= exact:
        top += 1
    while exact and Fraction(10) ** (top - 1) > exact:
        top -= 1
    digits = plain(total).partition(".")[2]
    behind = max(17 - top, len(digits))
    rounded = round(exact * 10**behind)
    return plain(Fraction(rounded, 10**behind) * (-1 if total < 0 else 1))


def figures(cells: list[str]) -> dict[str, str]:
    """What is to be said of the cells of a group."""
    values = [cell for cell in cells if cell]
    if not values:
        return {"sum": "0"}
    total = sum(map(Fraction, values), Fraction(0))
    ordered = sorted(values, key=Fraction)
    largest = Fraction(ordered[-1])
    ranked = sorted(values, key=lambda cell: (Fraction(cell), cell))
    return {
        "sum": plain(total),
        "mean": mean(total, len(values)),
        "min": ordered[0],
        "max": next(cell for cell in values if Fraction(cell) == largest),
        "median": ranked[math.ceil(len(ranked) / 2) - 1],
        "p90": ranked[math.ceil(len(ranked) * Fraction(9, 10)) - 1],
        "p0": ranked[0],
    }


@given(
    st.lists(st.tuples(TEXT, TEXT, NUMBER, TEXT), max_size=12),
    st.integers(1, 3),
    st.sampled_from(["\n", "\r\n"]),
)
def test_any_table_is_grouped(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, str, str]],
    parts: int,
    ending: str,
) -> None:
    folder = tmp_path_factory.mktemp("group")
    header = ("a", "b c", "n", "t")
    (folder / "in").mkdir()
    cut = len(rows) // 2
    for name, some in (("1.csv", rows[:cut]), ("2.csv", rows[cut:])):
        (folder / "in" / name).write_bytes(written([header, *some], ending=ending))
    asked: dict[str, Any] = {name: ["n"] for name in FIGURES}
    gristmill.group(
        folder / "in",
        output=folder / "out",
        csv=True,
        by=['"b c",a'],
        count=True,
        distinct=["t"],
        first=["t"],
        last=["t"],
        percentile=["90:n", "0:n"],
        parts=parts,
        **asked,
    )
    found = read(folder / "out")
    columns = [f"n_{name}" for name in FIGURES]
    tail = ["n_p90", "n_p0", "t_distinct", "t_first", "t_last"]
    assert found[0] == ["b c", "a", "count", *columns, *tail]
    groups: dict[tuple[str, str], list[tuple[str, str, str, str]]] = {}
    for row in rows:
        groups.setdefault((row[1], row[0]), []).append(row)
    assert sorted((row[0], row[1]) for row in found[1:]) == sorted(groups)
    for row in found[1:]:
        group = groups[row[0], row[1]]
        said = dict(zip(found[0], row, strict=True))
        assert said["count"] == str(len(group))
        wanted = figures([cells[2] for cells in group])
        for name in (*FIGURES, "p90", "p0"):
            assert said[f"n_{name}"] == wanted.get(name, ""), name
        texts = [cells[3] for cells in group if cells[3]]
        assert said["t_distinct"] == str(len(set(texts)))
        assert (said["t_first"], said["t_last"]) == ((texts[0], texts[-1]) if texts else ("", ""))


def test_a_part_is_in_the_order_of_its_keys(tmp_path: Path) -> None:
    rows = [(str(key), "1") for key in random.Random(1).sample(range(10_000), 3000)]
    (tmp_path / "in.csv").write_bytes(written([("key", "one"), *rows]))
    run(
        "group", "--csv", "--by", "key", "--sum", "one", tmp_path / "in.csv", "-o", tmp_path / "out"
    )
    found = list(csv.reader((tmp_path / "out").read_text().splitlines()))
    assert found[1:] == [[key, "1"] for key in sorted(key for key, _ in rows)]


def test_lines_with_fields(tmp_path: Path) -> None:
    (tmp_path / "passwd").write_bytes(b"root:0:/bin/sh\nme:7:/bin/sh\nyou:8:/bin/false")
    run("group", "-t:", "-b3", "--sum", "2", "--count", tmp_path / "passwd", "-o", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"/bin/false:1:8\n/bin/sh:2:7\n"
    (tmp_path / "blanks").write_bytes(b"  a   1\nb\t2\n\na 4 5\n")
    run("group", "-b1", "--sum", "2", tmp_path / "blanks", "-o", tmp_path / "out2")
    assert (tmp_path / "out2").read_bytes() == b"\t0\na\t5\nb\t2\n"


def test_no_header_and_no_keys(tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_bytes(b"\xef\xbb\xbf1\tx\r\n2\ty\r\n")
    run("group", "--tsv", "--no-header", "--sum", "1", tmp_path / "in.tsv", "-o", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"3\r\n"
    run("group", "--tsv", "--by", "x", tmp_path / "in.tsv", "-o", tmp_path / "out2")
    assert (tmp_path / "out2").read_bytes() == b"x\tcount\r\ny\t1\r\n"


def test_any_workers_memory_and_runner_give_the_same_bytes(tmp_path: Path) -> None:
    chance = random.Random(5)
    (tmp_path / "in").mkdir()
    for name in ("a.csv", "b.csv"):
        rows = [
            (
                f"k{chance.getrandbits(14)}",
                repr(chance.random()),
                'line\n"two"' * chance.randrange(3),
            )
            for _ in range(220_000)
        ]
        (tmp_path / "in" / name).write_bytes(written([("key", "x", "note"), *rows]))
    text = written([("key", "x", "note"), *rows[:1000]])
    (tmp_path / "in" / "c.csv.gz").write_bytes(gzip.compress(text))
    found: list[dict[str, bytes]] = []
    asked = ["--by", "key", "--mean", "x", "--distinct", "note", "--last", "note", "--count"]
    for at, options in enumerate(
        (["--workers", "1"], ["--workers", "2", "--memory", "30M"], ["--runner", "processes"])
    ):
        out = tmp_path / f"out{at}"
        run("group", "--csv", *asked, tmp_path / "in", "-o", out, "--parts", "3", *options)
        found.append({name: (out / name).read_bytes() for name in names(out) if "part-" in name})
    assert len(found[0]) == 3
    assert found[0] == found[1] == found[2]
    rows = read(tmp_path / "out0")
    printed = run("group", "--csv", *asked, tmp_path / "in").stdout
    lines = [line for part in found[0].values() for line in part.splitlines()[1:]]
    assert sorted(printed.encode().splitlines()[1:]) == sorted(lines)
    assert sum(int(row[1]) for row in rows[1:]) == 441_000
    plan = report("explain", "group", "--csv", "--by", "key", tmp_path / "in")
    assert plan["parts"] == 1


def test_keys_that_hardly_come_twice(tmp_path: Path) -> None:
    """A mapper that sees hundreds of thousands of them gives values away as they are."""
    chance = random.Random(9)
    rows = [
        (str(chance.getrandbits(40) if at % 50 else at % 1000), str(at)) for at in range(700_000)
    ]
    (tmp_path / "in.csv").write_bytes(written([("key", "n"), *rows]))
    sums: dict[str, list[int]] = {}
    for key, number in rows:
        sums.setdefault(key, []).append(int(number))
    wanted = {
        key: [key, str(len(found)), str(sum(found)), str(found[0]), str(found[-1])]
        for key, found in sums.items()
    }
    figures = ["--count", "--sum", "n", "--first", "n", "--last", "n"]
    outputs = []
    for number, options in enumerate((["--workers", "1"], ["--memory", "40M"])):
        out = tmp_path / f"out{number}"
        run("group", "--csv", "--by", "key", *figures, tmp_path / "in.csv", "-o", out, *options)
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1]
    found = list(csv.reader(outputs[0].decode().splitlines()))
    assert found[1:] == [wanted[key] for key in sorted(wanted)]


@pytest.mark.parametrize(
    ("cells", "total", "average"),
    [
        (["0.1", "0.2"], "0.3", "0.15"),
        (["1e16", "1", "-1e16"], "1", "0.33333333333333333"),
        (["1.50", "1.5", " +1 "], "4", "1.3333333333333333"),
        (["-0.0", "0"], "0", "0"),
        (["123456789012345678901234567890", "0.5"], "123456789012345678901234567890.5", ""),
        (["1e599", "1e-600"], f"1{'0' * 599}.{'0' * 599}1", ""),
        (["9" * 600] * 2, f"1{'9' * 599}8", "9" * 600),
        (["1", "inf"], "inf", "inf"),
        (["-Infinity", "inf"], "nan", "nan"),
        (["NaN", "1"], "nan", "nan"),
    ],
)
def test_sums_are_exact(cells: list[str], total: str, average: str, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(written([("n",), *((cell,) for cell in cells)]))
    said = run("group", "--csv", "--sum", "n", "--mean", "n", tmp_path / "in.csv").stdout
    found_total, found_average = said.splitlines()[1].split(",")
    assert found_total == total
    assert found_average == average or not average


@pytest.mark.parametrize("form", ["--csv", "--tsv", "-t,"])
def test_cells_are_given_back_as_written(form: str, tmp_path: Path) -> None:
    separator = "\t" if form == "--tsv" else ","
    rows = ["k,n", "a,00012", "a,12.0", "b, 7 ", "b,7e0", "c,x", "c,-inf", "d,é", "d,z"]
    for name, some in (("1", rows[:4]), ("2", rows[:1] + rows[4:])):
        text = "\n".join(some if form != "-t," else some[1:]) + "\n"
        (tmp_path / name).write_text(text.replace(",", separator))
    n = "2" if form == "-t," else "n"
    figures = [f"--{name}={n}" for name in ("min", "max")]
    found = run("group", form, "--by", "1", *figures, tmp_path / "1", tmp_path / "2").stdout
    lines = [line.replace(separator, ",") for line in found.splitlines()]
    wanted = ["a,00012,00012", "b, 7 , 7 ", "c,x,-inf", "d,z,é"]
    assert lines[lines[0] == "k,n_min,n_max" :] == wanted


def test_nan_is_above_all_numbers(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("1\nnan\n-inf\n1e999\n")
    (tmp_path / "text").write_text("1\nnan\n-inf\n1e500\ninf\n")
    figures = ["--min=1", "--max=1", "--median=1", "--percentile=0:1", "--percentile=80:1"]
    assert run("group", *figures, tmp_path / "text").stdout == "-inf\tnan\t1e500\t-inf\tinf\n"
    said = failure("group", "--max", "1", tmp_path / "in")
    assert "max takes numbers of up to 600 digits before the point and behind it" in said
    assert "line 4" in said


def test_a_group_may_be_larger_than_memory(tmp_path: Path) -> None:
    """Values of one group alone are more than its memory, in several columns."""
    count = 700_000
    with (tmp_path / "in.csv").open("w") as file:
        file.write("a,b,c\n")
        file.writelines(
            f"{at * 7919 % count}.{at % 7},{-(at * 104_729 % count)},{at // 2}\n"
            for at in range(count)
        )
    figures = ["--median=a", "--percentile=10:b", "--percentile=90:b", "--distinct=c", "--max=a"]
    wanted = None
    for options in (["--workers", "1", "--memory", "30M"], ["--workers", "2"]):
        found = run("group", "--csv", *figures, tmp_path / "in.csv", *options).stdout
        assert found == (wanted or found)
        wanted = found
    assert wanted is not None
    largest, median, low, high, different = wanted.splitlines()[1].split(",")
    assert median.partition(".")[0] == str(count // 2 - 1)
    assert (low, high) == (str(-(count - count // 10)), str(-(count // 10)))
    assert different == str(count // 2)
    assert largest.partition(".")[0] == str(count - 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--csv", "--by", "c"], 'no column "c"'),
        (["--csv", "--tsv"], "exclude each other"),
        (["--no-header", "--by", "1"], "lines have no header"),
        (["--by", "a"], "is not the number of a field"),
        (["--by", "0"], "is not the number of a field"),
        (["--csv", "--percentile", "n"], "95:latency"),
        (["--csv", "--percentile", "101:n"], "95:latency"),
        (["-t", "ab"], "does not separate fields"),
    ],
)
def test_wrong_options(options: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"a,n\nx,1\n")
    assert said in failure("group", *options, tmp_path / "in", "-o", tmp_path / "out", status=2)
    assert names(tmp_path) == ["in"]


def test_wrong_cells_and_rows_are_named(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b'a,n\n"x\ny",1\nz,two\n')
    said = failure("group", "--csv", "--sum", "n", tmp_path / "in.csv")
    assert 'n_sum takes numbers, not "two" (column #2' in said
    assert "in.csv" in said
    assert "row 3, line 4" in said
    (tmp_path / "in.csv").write_bytes(b"a,n\nx,1\ny\n")
    said = failure("group", "--csv", "--by", "a", tmp_path / "in.csv")
    assert "the row has 1 field, and the header has 2 fields" in said
    (tmp_path / "lines").write_bytes(b"a 1\nb x\n")
    said = failure("group", "--sum", "2", tmp_path / "lines")
    assert "line 2" in said
    assert "lines" in said


def test_bad_rows_may_be_left_out(tmp_path: Path) -> None:
    text = "".join("bad\n" if at % 100_000 == 7 else f"{at % 5},{at}\n" for at in range(1_000_000))
    (tmp_path / "in.csv").write_text(f"k,n\n{text}")
    command = ("group", "--csv", "--by", "k", "--count", tmp_path / "in.csv")
    assert "give --skip-bad 10" in failure(*command, "--skip-bad", "9")
    found = report(*command, "--skip-bad", "10", "-o", tmp_path / "out")
    rows = (tmp_path / "out").read_text().splitlines()[1:]
    assert sum(int(row.split(",")[1]) for row in rows) == 999_990
    assert len(found["left_out"]) == 10
    assert "the row has 1 field" in found["left_out"][0]
    assert "skip-bad is for tables" in failure(
        "group", "--skip-bad", "1", tmp_path / "in.csv", status=2
    )


def test_the_whole_output_may_be_sorted(tmp_path: Path) -> None:
    chance = random.Random(2)
    rows = [(f"{chance.getrandbits(64):x}", "1") for _ in range(20_000)]
    (tmp_path / "in.csv").write_bytes(written([("k", "n"), *rows]))
    command = ("group", "--csv", "--by", "k", tmp_path / "in.csv")
    printed = run(*command, "--sorted").stdout.splitlines()
    assert printed[1:] == sorted(printed[1:])
    plan = report("explain", *command, "--sorted")
    assert plan["parts"] == 1
    assert "one of sorted and parts" in failure(*command, "--sorted", "--parts", "2", status=2)


def test_tables_of_another_encoding_are_refused(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes("a,b\n1,2\n".encode("utf-16"))
    said = failure("group", "--csv", tmp_path / "in.csv")
    assert "looks like UTF-16" in said
    assert "iconv" in said
