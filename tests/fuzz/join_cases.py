"""`join` against a dict of the rows of the right, by key."""

import random
from dataclasses import replace

from tests.fuzz.answers import answered
from tests.fuzz.campaign import Case
from tests.fuzz.groups import cell_of
from tests.fuzz.inputs import Cells, Column, Input, Record, input_of, one_in

__all__ = ["join_case"]

KINDS = ["inner", "inner", "left", "right", "full", "semi", "anti"]


def join_case(chosen: random.Random) -> Case:
    kinds = [chosen.choice(["few", "word", "many", "text"]) for _ in range(chosen.randrange(1, 4))]
    large = one_in(chosen, 150)
    most = (2000, 5 if large else 60) if large or one_in(chosen, 2) else (60, 2000)
    left = input_of(chosen, kinds, name="left", most=most[0], large=large)
    kinds = [*chosen.sample(kinds, len(kinds)), "word"]
    right = input_of(chosen, kinds, name="right", like=left, most=most[1])
    count = chosen.choice([1, 1, 1, 2])
    keys = [(chosen.choice(left.columns), chosen.choice(right.columns)) for _ in range(count)]
    words = [by_word(one, other) for one, other in keys]
    options = (
        ["--by", ",".join(words)]
        if one_in(chosen, 2)
        else [w for word in words for w in ("--by", word)]
    )
    how = chosen.choice(KINDS)
    empty = chosen.choice(["-", "a,b", '"', "NULL"]) if left.is_table and one_in(chosen, 3) else ""
    options += [
        *(["--empty", empty] if empty else []),
        *(["--how", how] if how != "inner" or one_in(chosen, 2) else []),
    ]
    is_sorted = one_in(chosen, 2)
    options += ["--sorted"] * is_sorted
    if not left.options:
        left.separator = b" "  # GNU join writes one blank
    if left.is_table and not left.begun:  # nothing is known of it
        left.end = right.end if right.begun else b"\n"
    if how in ("semi", "anti"):
        header, rows = selected(left, right, keys, how)
    else:
        header, rows = Joined(left, right, keys, how, empty.encode()).output()
    command = ["join", *options]
    case = answered(chosen, command, [left, right], header, rows, parts=not is_sorted)
    return replace(case, any_order=not is_sorted)


def by_word(one: Column, other: Column) -> str:
    return one.word if one.word == other.word else f"{one.word}={other.word}"


Keys = list[tuple[Column, Column]]


def key_of(record: Record, columns: list[Column]) -> Cells:
    return tuple(cell_of(record, column) for column in columns)


def grouped(made: Input, columns: list[Column]) -> dict[Cells, list[Record]]:
    found: dict[Cells, list[Record]] = {}
    for record in made.records:
        found.setdefault(key_of(record, columns), []).append(record)
    return found


def selected(left: Input, right: Input, keys: Keys, how: str) -> tuple[bytes, list[bytes]]:
    """Rows of the left as they are, in the order of their keys."""
    there = grouped(right, [key[1] for key in keys])
    found = grouped(left, [key[0] for key in keys])
    rows = [
        (record.raw or (b'""' if left.is_table else b"")) + left.end
        for key in sorted(found)
        if (key in there) == (how == "semi")
        for record in found[key]
    ]
    return left.header, rows


class Joined:
    """Rows of both sides, put together."""

    def __init__(self, left: Input, right: Input, keys: Keys, how: str, empty: bytes) -> None:
        self._left, self._right, self._how, self._empty = left, right, how, empty
        self._keys = ([key[0] for key in keys], [key[1] for key in keys])

    def others(self, made: Input, side: int) -> list[Column]:
        numbers = {column.number for column in self._keys[side]}
        return [column for column in made.columns if column.number not in numbers]

    def header(self) -> bytes:
        left, right = self._left, self._right
        if not left.has_names() or not (left.header or right.header):
            return b""
        keys = self._keys[0] if left.header else self._keys[1]
        names = [column.name for column in keys]
        names += [column.name for column in self.others(left, 0)] if left.header else []
        for column in self.others(right, 1) if right.header else []:
            name = column.name
            while name in names:
                name += b"_right"
            names.append(name)
        return left.row(names)

    def output(self) -> tuple[bytes, list[bytes]]:
        left, right = grouped(self._left, self._keys[0]), grouped(self._right, self._keys[1])
        keys = {*left, *right}
        rows: list[bytes] = []
        for key in sorted(keys):
            ones, others = left.get(key, []), right.get(key, [])
            if self._how in ("left", "full") and not others:
                rows += [self.row(key, one, None) for one in ones]
            elif self._how in ("right", "full") and not ones:
                rows += [self.row(key, None, other) for other in others]
            else:
                rows += [self.row(key, one, other) for one in ones for other in others]
        return self.header(), rows

    def row(self, key: Cells, one: Record | None, other: Record | None) -> bytes:
        cells = [*self.cells(self._left, 0, one), *self.cells(self._right, 1, other)]
        return self._left.row([*key, *cells])

    def cells(self, made: Input, side: int, record: Record | None) -> list[bytes]:
        others = self.others(made, side)
        if record is None:
            is_known = bool(made.header if made.has_names() else made.records)
            return [self._empty for _ in others] if made.is_table and is_known else []
        numbers = {column.number for column in self._keys[side]}
        there = record.cells if made.is_table else fields_of(made, record)
        return [cell for at, cell in enumerate(there) if at not in numbers]


def fields_of(made: Input, record: Record) -> Cells:
    """The fields of a line as GNU join counts them: blanks at its end begin one more."""
    if made.options:
        return record.cells if record.raw else ()
    return (
        (*record.cells, b"")
        if record.cells and record.raw.endswith((b" ", b"\t"))
        else record.cells
    )
