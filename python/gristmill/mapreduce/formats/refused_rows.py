"""Which row of a table a file cannot hold: pyarrow names none, or writes what nobody can read.

missing_value    nothing, in a column of a schema with nullable=False
without_fields   {}, which is no value of a column of Parquet
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from gristmill.mapreduce.extras import pyarrow
from gristmill.mapreduce.formats.column_types import Type, type_of
from gristmill.mapreduce.kinds import is_dict

__all__ = ["missing_value", "without_fields"]


def missing_value(table: Any) -> tuple[int, str] | None:  # noqa: ANN401 - a pyarrow.Table
    """Return the first row that lacks a value, and the column.

    Example:
        >>> arrow = pyarrow()
        >>> schema = arrow.schema([arrow.field("n", arrow.int64(), nullable=False)])
        >>> missing_value(arrow.table({"n": [1, None]}, schema=schema))
        (1, 'n')
    """
    for field in table.schema:
        inside = "not null" in str(field.type)
        if inside or (not field.nullable and table.column(field.name).null_count):
            row = _first(table.column(field.name), partial(_lacks, field))
            if row is not None:
                return row, field.name
    return None


def without_fields(table: Any) -> tuple[int, str] | None:  # noqa: ANN401 - a pyarrow.Table
    """Return the first row with a dict of nothing, and the column."""
    for field in table.schema:
        if _EMPTY in str(field.type):
            row = _first(table.column(field.name), lambda value: _EMPTY in str(type_of(value)))
            return row or 0, field.name
    return None


_EMPTY = "struct<>"


def _first(column: Any, wrong: Callable[[object], bool]) -> int | None:  # noqa: ANN401
    return next((row for row, value in enumerate(column.to_pylist()) if wrong(value)), None)


def _lacks(field: Any, value: Any) -> bool:  # noqa: ANN401 - a pyarrow.Field, any value
    """Whether a value of a field is nothing where something must be."""
    if value is None:
        return not field.nullable
    kind: Type = field.type
    types = pyarrow().types
    if types.is_struct(kind) and is_dict(value):
        return any(_lacks(part, value.get(part.name)) for part in kind)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return any(_lacks(kind.value_field, item) for item in value)
    return False
