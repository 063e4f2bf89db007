"""`join` against a dict of the rows of each input, by key."""

import random
from dataclasses import replace
from itertools import product

from tests.fuzz.answers import answered
from tests.fuzz.campaign import Case
from tests.fuzz.groups import cell_of
from tests.fuzz.inputs import Cells, Column, Input, Record, input_of, one_in

__all__ = ["Joined", "join_case"]

KINDS = ["inner", "inner", "left", "right", "full", "semi", "anti"]

Keys = list[list[Column]]
"""The columns of the key, of each input."""


def join_case(chosen: random.Random) -> Case:
    """A join of two inputs, or of three; without --sorted the order is not looked at."""
    inputs = drawn_inputs(chosen)
    keys = [
        [chosen.choice(one.columns) for one in inputs] for _ in range(chosen.choice([1, 1, 1, 2]))
    ]
    words = [by_word(columns) for columns in keys]
    options = ["--by", ",".join(words)]
    if one_in(chosen, 2):
        options = [part for word in words for part in ("--by", word)]
    how = chosen.choice(KINDS)
    options += ["--how", how] if how != "inner" or one_in(chosen, 2) else []
    left = inputs[0]
    empty = chosen.choice(["-", "a,b", '"', "NULL"]) if left.is_table and one_in(chosen, 3) else ""
    options += ["--empty", empty] if empty else []
    is_sorted = one_in(chosen, 2)
    options += ["--sorted"] * is_sorted
    if not left.options:
        left.separator = b" "  # GNU join writes one blank
    if left.is_table:  # of an input that is empty nothing is known
        left.end = next((one.end for one in inputs if one.begun), b"\n")
    by_input = [list(columns) for columns in zip(*keys, strict=True)]
    if how in ("semi", "anti"):
        header, rows = selected(inputs, by_input, how)
    else:
        header, rows = Joined(inputs, by_input, how, empty.encode()).output()
    case = answered(chosen, ["join", *options], inputs, header, rows, parts=not is_sorted)
    return replace(case, any_order=not is_sorted)


def drawn_inputs(chosen: random.Random) -> list[Input]:
    """Inputs of which one alone may have many rows."""
    kinds = [chosen.choice(["few", "word", "many", "text"]) for _ in range(chosen.randrange(1, 4))]
    large = one_in(chosen, 150)
    most = (2000, 5 if large else 60) if large or one_in(chosen, 2) else (60, 2000)
    left = input_of(chosen, kinds, name="left", most=most[0], large=large)
    others = [*chosen.sample(kinds, len(kinds)), "word"]
    right = input_of(chosen, others, name="right", like=left, most=most[1])
    if not one_in(chosen, 4):
        return [left, right]
    return [left, right, input_of(chosen, others[::-1], name="third", like=left, most=5)]


def by_word(columns: list[Column]) -> str:
    words = [column.word for column in columns]
    return words[0] if len({*words}) == 1 else "=".join(words)


def grouped(made: Input, columns: list[Column]) -> dict[Cells, list[Record]]:
    found: dict[Cells, list[Record]] = {}
    for record in made.records:
        key = tuple(cell_of(record, column) for column in columns)
        found.setdefault(key, []).append(record)
    return found


def selected(inputs: list[Input], keys: Keys, how: str) -> tuple[bytes, list[bytes]]:
    """Rows of the left as they are, by their keys: those that all others have, or none."""
    found, *others = [grouped(one, columns) for one, columns in zip(inputs, keys, strict=True)]
    left = inputs[0]
    wanted = [
        key for key in sorted(found) if all((key in there) == (how == "semi") for there in others)
    ]
    rows = [
        (record.raw or (b'""' if left.is_table else b"")) + left.end
        for key in wanted
        for record in found[key]
    ]
    return left.header, rows


class Joined:
    """Rows of all inputs, put together from left to right."""

    def __init__(self, inputs: list[Input], keys: Keys, how: str, empty: bytes) -> None:
        self._inputs, self._keys, self._how, self._empty = inputs, keys, how, empty

    def output(self) -> tuple[bytes, list[bytes]]:
        """The header and the rows, in the order of their keys."""
        pairs = zip(self._inputs, self._keys, strict=True)
        found = [grouped(made, columns) for made, columns in pairs]
        keys = sorted({key for there in found for key in there})
        rows = [
            self._inputs[0].row([*key, *cells])
            for key in keys
            for cells in self.rows_of([there.get(key, []) for there in found])
        ]
        return self.header(), rows

    def rows_of(self, records: list[list[Record]]) -> list[list[bytes]]:
        """All rows of a key without it; these are the records that each input has of it."""
        joined = [self.cells(0, record) for record in records[0]]
        for at in range(1, len(records)):
            others = [self.cells(at, record) for record in records[at]]
            if not others and self._how in ("left", "full"):
                others = [self.absent(at)]
            elif not joined and self._how in ("right", "full"):
                joined = [[cell for before in range(at) for cell in self.absent(before)]]
            joined = [one + other for one, other in product(joined, others)]
        return joined

    def header(self) -> bytes:
        inputs = self._inputs
        known = [at for at, made in enumerate(inputs) if made.has_names() and made.header]
        if not known:
            return b""
        names = [column.name for column in self._keys[known[0]]]
        for at in known:
            suffix = b"_right" if len(inputs) == 2 else b"_%d" % (at + 1)
            for column in self.others(at):
                name = column.name
                while at > 0 and name in names:
                    name += suffix
                names.append(name)
        return inputs[0].row(names)

    def others(self, at: int) -> list[Column]:
        """The columns of an input that are no key."""
        numbers = {column.number for column in self._keys[at]}
        return [column for column in self._inputs[at].columns if column.number not in numbers]

    def absent(self, at: int) -> list[bytes]:
        """What stands for the cells of an input that has no row; lines have no columns."""
        made = self._inputs[at]
        is_known = bool(made.header if made.has_names() else made.records)
        return [self._empty for _ in self.others(at)] if made.is_table and is_known else []

    def cells(self, at: int, record: Record) -> list[bytes]:
        made = self._inputs[at]
        numbers = {column.number for column in self._keys[at]}
        there = record.cells if made.is_table else fields_of(made, record)
        return [cell for number, cell in enumerate(there) if number not in numbers]


def fields_of(made: Input, record: Record) -> Cells:
    """The fields of a line as GNU join counts them: blanks at its end begin one more."""
    if made.options:
        return record.cells if record.raw else ()
    has_more = record.cells and record.raw.endswith((b" ", b"\t"))
    return (*record.cells, b"") if has_more else record.cells
