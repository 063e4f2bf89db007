"""`group` against figures that are worked out group by group."""

import math
import random
import re
from decimal import Decimal
from fractions import Fraction

from tests.fuzz.answers import answered
from tests.fuzz.campaign import Case
from tests.fuzz.groups import NO_COLUMNS, by_words, cell_of, groups_of
from tests.fuzz.inputs import Column, Input, Record, input_of, one_in

__all__ = ["group_case"]

FIGURES = [
    "count",
    "sum",
    "mean",
    "min",
    "max",
    "median",
    "percentile",
    "distinct",
    "first",
    "last",
]
CELLS_AS_WRITTEN = False
"""Whether --min and --max give a cell as it stands; else a number as it is written in one way."""

OF_NUMBERS = {"sum", "mean", "median", "percentile"}
PERCENTS = ["0", "1", "50", "90", "95", "99.9", "100"]


def group_case(chosen: random.Random) -> Case:
    kinds = ["few", chosen.choice(["word", "text"]), chosen.choice(["whole", "small"]), "small"]
    made = input_of(chosen, kinds, large=one_in(chosen, 150))
    by = by_words(chosen, made) if not one_in(chosen, 8) else NO_COLUMNS
    asked = asked_figures(chosen, made)
    words = [word for _, _, _, given in asked for word in given]
    columns = [column for column in asked if column[0] != "count" or column[1] is None]
    header = b""
    if made.has_names() and made.header:
        names = [column.name for column in by[1]]
        header = made.row(names + [name_of(*figure[:3]) for figure in columns])
    if any(is_wrong(made, figure[0], figure[1]) for figure in columns):
        made.is_wrong = True
    rows = [] if made.is_wrong else [
        made.row([*cells, *(figure_of(records, *figure[:3]) for figure in columns)])
        for cells, records in groups_of(made, by[1])
    ]  # fmt: skip
    return answered(chosen, ["group", *by[0], *words], [made], header, rows)


Figure = tuple[str, Column | None, str, list[str]]


def asked_figures(chosen: random.Random, made: Input) -> list[Figure]:
    """Figures in the order of the output: their names, columns, percents, and options."""
    found: list[Figure] = []
    for name in FIGURES:
        if not one_in(chosen, 4):
            continue
        if name == "count":
            found.append((name, None, "", ["--count"]))
            continue
        of_numbers = name in OF_NUMBERS and not one_in(chosen, 20)
        of_numbers = of_numbers or name in ("min", "max")
        column = made.columns[2] if of_numbers else chosen.choice(made.columns)
        if (
            name == "mean" and of_numbers
        ):  # of a number below 2^49 all programs write the same digits
            column = made.columns[3]
        percent = chosen.choice(PERCENTS) if name == "percentile" else ""
        word = f"{percent}:{column.word}" if percent else column.word
        found.append((name, column, percent, [f"--{name}", word]))
    return found or [("count", None, "", [])]


def name_of(name: str, column: Column | None, percent: str) -> bytes:
    if column is None:
        return b"count"
    return column.name + b"_" + (f"p{percent}" if percent else name).encode()


def number(cell: bytes) -> int | None:
    text = cell.strip(b" \t\n\r\x0c")
    return int(text) if re.fullmatch(rb"[-+]?[0-9]+", text) else None


def is_wrong(made: Input, name: str, column: Column | None) -> bool:
    """Whether a figure of numbers is asked for of a cell that has none."""
    if column is None or name not in OF_NUMBERS:
        return False
    cells = (cell_of(record, column) for record in made.records)
    return any(cell and number(cell) is None for cell in cells)


def figure_of(records: list[Record], name: str, column: Column | None, percent: str) -> bytes:
    if column is None:
        return b"%d" % len(records)
    cells = [cell for record in records if (cell := cell_of(record, column))]
    if name == "sum":
        return b"%d" % sum(value for cell in cells if (value := number(cell)) is not None)
    if not cells:
        return b"0" if name == "distinct" else b""
    if name in ("min", "max"):
        return extreme(cells, name)
    if name == "distinct":
        return b"%d" % len(set(cells))
    if name in ("first", "last"):
        return cells[0 if name == "first" else -1]
    values = sorted(value for cell in cells if (value := number(cell)) is not None)
    if name == "mean":
        return repr(float(Fraction(sum(values), len(values)))).encode()
    share = Fraction(Decimal(percent)) / 100 if percent else Fraction(1, 2)
    return b"%d" % values[max(math.ceil(share * len(values)), 1) - 1]


def extreme(cells: list[bytes], name: str) -> bytes:
    """Text is below all numbers."""

    def order(cell: bytes) -> tuple[int, int, bytes]:
        value = number(cell)
        return (0, 0, cell) if value is None else (1, value, b"")

    found = (min if name == "min" else max)(cells, key=order)
    value = number(found)
    return found if value is None else b"%d" % value
