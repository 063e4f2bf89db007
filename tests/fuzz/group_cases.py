"""`group` against figures that are worked out group by group, with fractions."""

import math
import random
import re
from fractions import Fraction

from tests.fuzz.answers import answered
from tests.fuzz.campaign import Case
from tests.fuzz.groups import NO_COLUMNS, by_words, cell_of, groups_of
from tests.fuzz.inputs import Column, Input, Record, input_of, one_in

__all__ = ["figure_of", "group_case", "number"]

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
OF_NUMBERS = {"sum", "mean", "median", "percentile"}
PERCENTS = ["0", "1", "50", "90", "95", "99.9", "100"]
MEAN_DIGITS = 17
NUMBER = re.compile(rb"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")

Figure = tuple[str, Column | None, str]
"""Its name, its column, and of a percentile the percents."""


def group_case(chosen: random.Random) -> Case:
    kinds = ["few", chosen.choice(["word", "text"]), "number", chosen.choice(["whole", "small"])]
    made = input_of(chosen, kinds, large=one_in(chosen, 150))
    by = by_words(chosen, made) if not one_in(chosen, 8) else NO_COLUMNS
    figures = drawn_figures(chosen, made)
    words = [word for figure in figures for word in words_of(figure)]
    header = b""
    if made.has_names() and made.header:
        header = made.row([*(column.name for column in by[1]), *map(name_of, figures)])
    made.is_wrong = made.is_wrong or any(is_wrong(made, figure) for figure in figures)
    if not figures:
        figures = [("count", None, "")]
        header = header and made.row([*(column.name for column in by[1]), b"count"])
    rows: list[bytes] = []
    if not made.is_wrong:
        for cells, records in groups_of(made, by[1]):
            rows.append(made.row([*cells, *(figure_of(records, figure) for figure in figures)]))
    return answered(chosen, ["group", *by[0], *words], [made], header, rows)


def drawn_figures(chosen: random.Random, made: Input) -> list[Figure]:
    """Figures in the order of the output."""
    found: list[Figure] = []
    for name in FIGURES:
        if not one_in(chosen, 4):
            continue
        with_numbers = name in OF_NUMBERS and not one_in(chosen, 20)
        column = (
            made.columns[chosen.randrange(2, 4)] if with_numbers else chosen.choice(made.columns)
        )
        percent = chosen.choice(PERCENTS) if name == "percentile" else ""
        found.append((name, None if name == "count" else column, percent))
    return found


def words_of(figure: Figure) -> list[str]:
    """The option that asks for it."""
    name, column, percent = figure
    if column is None:
        return ["--count"]
    return [f"--{name}", f"{percent}:{column.word}" if percent else column.word]


def name_of(figure: Figure) -> bytes:
    name, column, percent = figure
    if column is None:
        return b"count"
    return column.name + b"_" + (f"p{percent}" if percent else name).encode()


def number(cell: bytes) -> Fraction | None:
    """The number that is all of a cell, but for blanks around it."""
    text = cell.strip(b" \t\n\r\x0c")
    return Fraction(text.decode()) if NUMBER.fullmatch(text) else None


def is_wrong(made: Input, figure: Figure) -> bool:
    """Whether a figure of numbers is asked for of a cell that has none."""
    name, column, _ = figure
    if column is None or name not in OF_NUMBERS:
        return False
    cells = (cell_of(record, column) for record in made.records)
    return any(cell and number(cell) is None for cell in cells)


def figure_of(records: list[Record], figure: Figure) -> bytes:
    name, column, percent = figure
    if column is None:
        return b"%d" % len(records)
    cells = [cell for record in records if (cell := cell_of(record, column))]
    if name == "distinct":
        return b"%d" % len(set(cells))
    if name == "sum":
        return plain(sum(worths(cells)))
    if not cells:
        return b""
    if name in ("first", "last"):
        return cells[0 if name == "first" else -1]
    if name in ("min", "max"):
        return extreme(cells, name)
    if name == "mean":
        return mean(cells)
    ranked = sorted(cells, key=lambda cell: (worths([cell]), cell))
    share = Fraction(percent) / 100 if percent else Fraction(1, 2)
    return ranked[max(math.ceil(share * len(ranked)), 1) - 1]


def worths(cells: list[bytes]) -> list[Fraction]:
    return [worth for cell in cells if (worth := number(cell)) is not None]


def extreme(cells: list[bytes], name: str) -> bytes:
    """The first of equal ones as it is written; text is below all numbers."""

    def order(cell: bytes) -> tuple[bool, Fraction, bytes]:
        worth = number(cell)
        return (worth is not None, worth or Fraction(), b"" if worth is not None else cell)

    return (min if name == "min" else max)(cells, key=order)


def mean(cells: list[bytes]) -> bytes:
    """To 17 digits: to more, where the sum has more before the point, or behind it."""
    total = sum(worths(cells), Fraction())
    exact = abs(total) / len(cells)
    before = 0  # digits before the point; below zero: zeros behind it
    while 10**before <= exact:
        before += 1
    while exact and Fraction(10) ** (before - 1) > exact:
        before -= 1
    behind = max(MEAN_DIGITS - before, len(plain(total).partition(b".")[2]))
    rounded = Fraction(round(exact * 10**behind), 10**behind)
    return plain(-rounded if total < 0 else rounded)


def plain(worth: Fraction | int) -> bytes:
    """All digits, without an exponent and without zeros that say nothing."""
    scale, scaled = 0, Fraction(worth)
    while scaled.denominator != 1:
        scale, scaled = scale + 1, scaled * 10
    digits = f"{abs(int(scaled)):0{scale + 1}d}"
    text = f"{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}" if scale else digits
    return (b"-" if scaled < 0 else b"") + text.encode()
