"""Groups of records: those whose cells in some columns say the same."""

import random

from tests.fuzz.inputs import Cells, Column, Input, Record, one_in

__all__ = ["NO_COLUMNS", "by_words", "cell_of", "column_words", "groups_of"]


NO_COLUMNS: tuple[list[str], list[Column]] = ([], [])
"""The words that name no column, and no column."""


def by_words(
    chosen: random.Random, made: Input, option: str = "--by", most: int = 2
) -> tuple[list[str], list[Column]]:
    """An option that names columns, and these."""
    columns = [chosen.choice(made.columns) for _ in range(chosen.randrange(1, most + 1))]
    return column_words(chosen, columns, option), columns


def column_words(chosen: random.Random, columns: list[Column], option: str) -> list[str]:
    words = [column.word for column in columns]
    if one_in(chosen, 2):
        return [option, ",".join(words)]
    return [part for word in words for part in (option, word)]


def cell_of(record: Record, column: Column) -> bytes:
    """A cell; empty where a line has not so many fields."""
    return record.cells[column.number] if column.number < len(record.cells) else b""


def groups_of(made: Input, columns: list[Column]) -> list[tuple[Cells, list[Record]]]:
    """The groups in the order of their cells, each in the order of the input."""
    found: dict[Cells, list[Record]] = {}
    for record in made.records:
        found.setdefault(tuple(cell_of(record, column) for column in columns), []).append(record)
    return sorted(found.items())
