"""`distinct` against a dict of keys: which record of each stays, how often it occurs, where."""

import random

from tests.fuzz.answers import answered, refused
from tests.fuzz.campaign import Case
from tests.fuzz.inputs import Input, Record, input_of, one_in
from tests.fuzz.keys import Code, drawn_keys

__all__ = ["distinct_case"]

INPUT_ORDER = True
"""Whether records are written in the order of the input where --sorted is not given."""


def distinct_case(chosen: random.Random) -> Case:
    kinds = [
        chosen.choice(["word", "few", "text", "number"]) for _ in range(chosen.randrange(1, 5))
    ]
    made = input_of(chosen, kinds, large=one_in(chosen, 150))
    options, key = drawn_keys(chosen, made, descending=False)
    keep = chosen.choice(["", "", "first", "last"])
    options += ["--keep", keep] if keep else []
    counts, once, repeated = one_in(chosen, 3), one_in(chosen, 6), one_in(chosen, 6)
    options += ["--count"] * counts + ["--once"] * once + ["--repeated"] * repeated
    is_sorted = one_in(chosen, 3)
    options += ["--sorted"] * is_sorted
    command = ["distinct", *options]
    if once and repeated:
        return refused(command, made)
    found: dict[Code, list[Record]] = {}
    for record in made.records:
        found.setdefault(key(record), []).append(record)
    in_order = found if INPUT_ORDER and not is_sorted else sorted(found)
    kept = [
        (found[code][-1 if keep == "last" else 0], len(found[code]))
        for code in in_order
        if not (once and len(found[code]) > 1) and not (repeated and len(found[code]) == 1)
    ]
    if INPUT_ORDER and not is_sorted:
        kept.sort(key=lambda one: (one[0].file, one[0].offset))
    header = made.header
    if counts and header:
        header = with_count(made, header.removesuffix(made.end), made.end, b"count")
    written = [counted(made, record, count) if counts else record.whole for record, count in kept]
    return answered(chosen, command, [made], header, written, parts=not is_sorted)


def counted(made: Input, record: Record, count: int) -> bytes:
    if made.is_table:
        return with_count(made, record.raw, record.end, b"%d" % count)
    return b"%7d %s" % (count, record.whole)


def with_count(made: Input, raw: bytes, end: bytes, count: bytes) -> bytes:
    return raw + made.separator + count + end
