"""The option `columns` of formats of tables: which columns, in which order.

It means the same to readers and writers: of rows that have names these columns are taken, and each
must be there.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gristmill.mapreduce.formats import BadRecord

if TYPE_CHECKING:
    from gristmill.mapreduce.formats import Format

__all__ = ["as_columns", "check_columns", "check_has"]


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
    twice = {name for name in columns if columns.count(name) > 1}
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
    known = list(names)
    for name in wanted or ():
        if name not in known:
            raise BadRecord(f"the file has no column {name!r}", f"take some of {', '.join(known)}")
