"""`top` against `sorted` of all records, and of those of each group."""

import random
from typing import Any

from tests.fuzz.answers import answered
from tests.fuzz.campaign import Case
from tests.fuzz.groups import NO_COLUMNS, by_words, groups_of
from tests.fuzz.inputs import Record, input_of, one_in
from tests.fuzz.keys import Key, drawn_keys

__all__ = ["top_case"]


def top_case(chosen: random.Random) -> Case:
    kinds = [
        chosen.choice(["word", "few", "text", "number"]) for _ in range(chosen.randrange(1, 5))
    ]
    made = input_of(chosen, kinds, large=one_in(chosen, 150))
    options, key = drawn_keys(chosen, made, descending=True)
    number = chosen.choice([1, 1, 2, 3, 5, 10, 100, 10_000])
    ties = chosen.choice(["", "", "first", "all", "all"])
    options += ["--ties", ties] if ties else []
    by = by_words(chosen, made) if one_in(chosen, 2) else NO_COLUMNS
    written = [
        record.whole
        for _, records in groups_of(made, by[1])
        for record in first_of(records, number, key, ties=ties == "all")
    ]
    command = ["top", f"{number}", *options, *by[0]]
    return answered(chosen, command, [made], made.header, written, parts=bool(by[0]))


def first_of(records: list[Record], number: int, key: Key, *, ties: bool) -> list[Record]:
    """What a stable sort begins with, and what is equal to the last of that."""
    ordered = sorted(records, key=key)
    last: Any = key(ordered[number - 1]) if len(ordered) >= number else None
    rest = ordered[number:] if ties and last is not None else []
    return ordered[:number] + [record for record in rest if key(record) == last]
