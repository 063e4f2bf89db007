r"""Records as fields, and lines of tsv as fields.

("a", 1)            a, 1
(("a", "b"), 1.5)   a, b, 1.5       tuples are flattened
a\tb⇥c              a⇥b, c          in tsv: \t \n \r \\ for tab, newline, return and backslash

The engine's LineWriter makes lines of fields.
"""

import re
from collections.abc import Iterator

from gristmill.mapreduce.kinds import is_dict, is_tuple

__all__ = ["fields_of", "tsv_fields"]

_ESCAPED = re.compile(r"\\(.)")
_MEANINGS = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}


def fields_of(record: object) -> Iterator[object]:
    """Return what a record holds, tuples within it flattened; dicts give their values.

    Example:
        >>> list(fields_of((("a", ("b", 2)), 1))), list(fields_of("a")), list(fields_of({"x": 1}))
        (['a', 'b', 2, 1], ['a'], [1])
    """
    if is_dict(record):
        record = tuple(record.values())
    if not is_tuple(record):
        yield record
        return
    for part in record:
        if is_tuple(part):
            yield from fields_of(part)
        else:
            yield part


def tsv_fields(line: str) -> tuple[str, ...]:
    r"""Return the fields of a line of a tsv file.

    Example:
        >>> tsv_fields("a\\tb\t1\t")
        ('a\tb', '1', '')
    """
    fields = line.split("\t")
    if "\\" in line:
        return tuple(_ESCAPED.sub(_meaning, field) for field in fields)
    return tuple(fields)


def _meaning(found: re.Match[str]) -> str:
    return _MEANINGS.get(found[1], found[0])
