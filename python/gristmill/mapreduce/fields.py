r"""Records as fields, and fields as lines with tabs in between.

("a", 1)            a⇥1
(("a", "b"), 1.5)   a⇥b⇥1.5         tuples are flattened
("a⇥b", None)       a\tb⇥           in tsv: \t \n \r \\ for tab, newline, return and backslash
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from gristmill.mapreduce.kinds import is_dict, is_tuple

__all__ = ["fields_of", "join_fields", "tsv_fields"]

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_SPECIAL = re.compile(r"[\\\t\n\r]")
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


def join_fields(fields: Iterable[Any], *, escape: bool) -> str | bytes:
    r"""Return a line of `fields`; bytes among them make it bytes.

    Example:
        >>> join_fields(["a\tb", 1, None], escape=True), join_fields([b"\xff", 1], escape=True)
        ('a\\tb\t1\t', b'\xff\t1')
    """
    texts = [_text(field) for field in fields]
    if escape:
        texts = [text.translate(_ESCAPES) if _SPECIAL.search(text) else text for text in texts]
    line = "\t".join(texts)
    return line if line.isascii() else _settled(line)


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


def _text(field: object) -> str:
    match field:
        case str():
            return field
        case bytes():
            return field.decode("utf-8", "surrogateescape")
        case None:
            return ""
        case _:
            return str(field)


def _settled(line: str) -> str | bytes:
    """The line as bytes where it holds some that are no text."""
    try:
        line.encode()
    except UnicodeEncodeError:
        return line.encode("utf-8", "surrogateescape")
    return line
