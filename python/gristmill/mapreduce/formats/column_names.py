"""The option `columns` of formats of tables: which columns, in which order.

It means the same to readers and writers: of rows that have names these columns are taken, and each
must be there.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gristmill.mapreduce.formats.format import BadRecord

if TYPE_CHECKING:
    from gristmill.mapreduce.formats.format import Format

__all__ = ["as_columns", "check_columns", "check_has", "named_twice", "shown_names", "take_some"]

_SHOWN_MAX = 20
"""So many names stand in an error: a table may have a hundred thousand columns."""


def as_columns(columns: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the names of columns as a tuple.

    Raises:
        TypeError: They are one text, not a list of names.

    Example:
        >>> as_columns(["a", "b"])
        ('a', 'b')
    """
    if isinstance(columns, str):
        raise TypeError(
            f"cannot read the options: columns is the text {columns!r}."
            f" What to do: give a list of names, [{columns!r}]."
        )
    return None if columns is None else tuple(columns)


def check_columns(form: "Format", columns: tuple[str, ...] | None) -> None:
    """Refuse columns that make no table.

    Raises:
        ValueError: There is none, or one is named twice.
    """
    if columns is None:
        return
    twice = named_twice(columns)
    if twice or not columns:
        wrong = f"columns names {min(twice)!r} twice" if twice else "columns names none"
        raise ValueError(
            f"cannot read the options: of gm.{form.NAME}, {wrong}."
            " What to do: name each column once, or leave columns out."
        )


def check_has(names: Iterable[str], wanted: Iterable[str] | None) -> None:
    """Refuse a file that lacks one of the wanted columns.

    Raises:
        BadRecord: It does.
    """
    if wanted is None:
        return
    known = dict.fromkeys(names)
    for name in wanted:
        if name not in known:
            raise BadRecord(f"the file has no column {name!r}", take_some(list(known)))


def take_some(names: Sequence[str]) -> str:
    """Return what to do about a column that a file has not.

    Example:
        >>> take_some(["a", "b"]), take_some([])
        ("take some of 'a', 'b'", 'check the file: it has no columns')
    """
    return f"take some of {shown_names(names)}" if names else "check the file: it has no columns"


def named_twice(names: Iterable[str]) -> set[str]:
    """Return the names that come more than once.

    Example:
        >>> named_twice(["a", "b", "a"])
        {'a'}
    """
    return {name for name, count in Counter(names).items() if count > 1}


def shown_names(names: Sequence[str]) -> str:
    """Return names as an error shows them: the first ones, and how many more there are.

    Example:
        >>> shown_names(["a", "b"]), shown_names(["a"] * 30)[-15:]
        ("'a', 'b'", "'a' and 10 more")
    """
    more = len(names) - _SHOWN_MAX
    return ", ".join(map(repr, names[:_SHOWN_MAX])) + (f" and {more:,} more" if more > 0 else "")
