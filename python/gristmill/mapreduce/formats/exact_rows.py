"""Rows of Arrow as objects of Python: what these cannot hold is refused, where pyarrow drops it.

A dict has one value of a name, and a time of Python has no nanoseconds. Stamps and durations with
nanoseconds are those of pandas.
"""

from typing import Any

from gristmill.mapreduce.extras import pyarrow
from gristmill.mapreduce.formats.column_names import named_twice
from gristmill.mapreduce.formats.format import BadRecord

__all__ = ["Nanoseconds", "check_names", "check_times"]


class Nanoseconds(BadRecord):
    """A time that Python would cut."""

    def __init__(self, row: int, column: str) -> None:
        super().__init__(
            f"the column {column!r} has a time with nanoseconds, which no time of Python holds",
            "write the column as time64[us] or int64, or read it by map_batches",
        )
        self.row = row
        """Which of the rows."""


def check_names(table: Any) -> None:  # noqa: ANN401 - a batch or table
    """Refuse a table of which a dict would lose a column.

    Raises:
        BadRecord: Two columns have one name.
    """
    twice = named_twice(table.schema.names)
    if twice:
        raise BadRecord(f"two columns of a table are named {min(twice)!r}", "rename one of them")


def check_times(table: Any) -> None:  # noqa: ANN401 - a batch or table
    """Refuse times that Python would cut.

    Raises:
        Nanoseconds: There is one.
    """
    for field, column in zip(table.schema, table.columns, strict=True):
        if "time64[ns]" not in str(field.type):
            continue
        if not _is_kept(column):
            rows = range(len(column))
            row = next(row for row in rows if not _is_kept(column.slice(row, 1)))
            raise Nanoseconds(row, field.name)


def _is_kept(column: Any) -> bool:  # noqa: ANN401 - an array, in pieces or not
    """Whether no time in a column, or in what its values hold, has nanoseconds."""
    arrow = pyarrow()
    if isinstance(column, arrow.ChunkedArray):
        return all(map(_is_kept, column.chunks))
    if column.type == arrow.time64("ns"):
        try:
            column.cast(arrow.time64("us"))
        except arrow.ArrowInvalid:
            return False
        return True
    if arrow.types.is_dictionary(column.type):
        return _is_kept(column.dictionary_decode())
    if arrow.types.is_struct(column.type):
        return all(map(_is_kept, column.flatten()))
    if arrow.types.is_map(column.type):
        first, end = column.offsets[0].as_py(), column.offsets[-1].as_py()
        return all(_is_kept(part.slice(first, end - first)) for part in (column.keys, column.items))
    return not arrow.types.is_nested(column.type) or _is_kept(column.flatten())
