"""Keys of records, as an oracle compares them: text, letters of both cases, numbers."""

import random
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.fuzz.inputs import Input, Record, one_in

__all__ = ["Code", "Key", "drawn_keys"]

Code = Any
"""What compares with others of its kind."""

Key = Callable[[Record], Code]


def as_text(cell: bytes) -> Code:
    return cell


def as_letters(cell: bytes) -> Code:
    return cell.upper()


def as_number(cell: bytes) -> Code:
    """The number that a cell begins with, as C reads it; what begins with none comes first."""
    found = re.match(
        rb"[ \t\n\v\f\r]*([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)", cell
    )
    return (1, Fraction(Decimal(found[1].decode()))) if found else (0, Fraction())


def as_plain_number(cell: bytes) -> Code:
    """The same as `sort -n` reads it: no plus, no exponent; none is zero."""
    found = re.match(rb"[ \t\n]*(-?[0-9]*(?:\.[0-9]*)?)", cell)
    digits = found[1].decode() if found else ""
    return Fraction(Decimal(digits)) if re.search("[0-9]", digits) else Fraction()


class Descending:
    """A value that compares the other way round."""

    def __init__(self, value: Code) -> None:
        self.value = value

    def __lt__(self, other: "Descending") -> bool:
        return other.value < self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


def drawn_keys(chosen: random.Random, made: Input, *, descending: bool) -> tuple[list[str], Key]:
    """Options that name keys, and what a record has that must be equal, or compares."""
    if made.is_table:
        return keys_of_rows(chosen, made, descending=descending)
    return keys_of_lines(chosen, made, descending=descending)


def keys_of_rows(chosen: random.Random, made: Input, *, descending: bool) -> tuple[list[str], Key]:
    if one_in(chosen, 4):
        return [], lambda record: record.cells
    columns = [chosen.choice(made.columns) for _ in range(chosen.choice([1, 1, 2, 3]))]
    named: list[str] = []
    reads: list[tuple[int, Callable[[bytes], Code], bool]] = []
    for column in columns:
        word, read = chosen.choice(
            [
                ("", as_text),
                ("", as_text),
                (":text", as_text),
                (":nocase", as_letters),
                (":num", as_number),
            ]
        )
        down = descending and one_in(chosen, 3)
        named.append(column.word + word + (":desc" if down else ""))
        reads.append((column.number, read, down))
    options = ["--key", ",".join(named)] if one_in(chosen, 2) else [
        word for name in named for word in ("-k", name)
    ]  # fmt: skip
    return options, lambda record: tuple(
        Descending(read(record.cells[at])) if down else read(record.cells[at])
        for at, read, down in reads
    )


def keys_of_lines(chosen: random.Random, made: Input, *, descending: bool) -> tuple[list[str], Key]:
    letters = chosen.choice(["", "", "", "n", "f"])
    read = {"": as_text, "n": as_plain_number, "f": as_letters}[letters]
    down = descending and one_in(chosen, 3)
    options = [f"-{letter}" for letter in letters + "r" * down]
    first, last = 0, -1
    if made.options and one_in(chosen, 2):
        first = chosen.randrange(1, 4)
        last = first + chosen.randrange(2)
        options += ["-k", f"{first},{last}"]
    separator = made.separator

    def key(record: Record) -> Code:
        fields = record.raw.split(separator)[first - 1 : last] if first else [record.raw]
        found = read(separator.join(fields))
        return Descending(found) if down else found

    return options, key
