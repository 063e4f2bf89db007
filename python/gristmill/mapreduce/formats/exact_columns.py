"""Values of Python as columns of Arrow, each as it was: pyarrow alone makes 3 of 3.99.

    values ─inferred─▶ array         of the type that holds them all
    values ─of_type──▶ array         of a schema that the user gave
    table  ─as_schema─▶ table        with the columns of a schema

What does not fit is a `Misfit`. A type that the user gave may convert values, if they can be
converted back: numbers to times, text to bytes. A float32 rounds, as it says.
"""

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from itertools import chain
from typing import Any

from gristmill.mapreduce.extras import pyarrow
from gristmill.mapreduce.formats.column_types import Type, type_of, wider
from gristmill.mapreduce.kinds import is_dict, is_list, is_tuple

__all__ = ["Misfit", "as_schema", "inferred", "of_type"]

_WRONG = (ValueError, TypeError, OverflowError, NotImplementedError)
"""What pyarrow raises of values that a type cannot hold."""

_PLAIN: dict[str, set[type]] = {
    "bool": {bool},
    "int64": {int},
    "double": {float, int},  # pyarrow refuses an int that is no float
    "string": {str},
    "binary": {bytes},
    "date32[day]": {date},
}
"""By type, the types of Python whose values pyarrow keeps or refuses: no need to compare."""


class Misfit(Exception):
    """A value that a column cannot hold as it is."""

    def __init__(self, index: int, kind: Type, column: str = "") -> None:
        super().__init__(index, kind, column)
        self.index = index
        """Which of the values."""
        self.kind = kind
        """The type that cannot hold it: that of the values before it, or the one that was given."""
        self.column = column
        """The name of the column, where a table is made."""


def inferred(values: Sequence[object]) -> Any:  # noqa: ANN401 - a pyarrow.Array
    """Return values as an array of the type that holds them all.

    Raises:
        Misfit: There is none.

    Example:
        >>> inferred([1, 2.5, None]).type, inferred([2**63]).type
        (DataType(double), DataType(uint64))
    """
    with suppress(*_WRONG):
        made = pyarrow().array(values)
        if _is_kept(made, values):
            return made
    return _checked(values, _joint_type(values), given=False)


def of_type(values: Sequence[object], kind: Type) -> Any:  # noqa: ANN401 - a pyarrow.Array
    """Return values as an array of the type that the user gave.

    Raises:
        Misfit: It does not hold one of them.
    """
    return _checked(values, kind, given=True)


def as_schema(table: Any, schema: Any) -> Any:  # noqa: ANN401 - pyarrow's
    """Return a table with the columns of a schema; of those that it has not, all is null.

    Raises:
        Misfit: A type of the schema does not hold a value.
    """
    arrow = pyarrow()
    if table.schema.equals(schema):
        return table
    columns: list[Any] = []
    for field in schema:
        place = table.schema.get_field_index(field.name)
        if place < 0:
            columns.append(arrow.nulls(table.num_rows, field.type))
            continue
        try:
            columns.append(_cast(table.column(place), field.type))
        except Misfit as misfit:
            raise Misfit(misfit.index, misfit.kind, field.name) from None
    return arrow.table(columns, schema=schema)


def _cast(column: Any, kind: Type) -> Any:  # noqa: ANN401 - a pyarrow.ChunkedArray
    if column.type == kind:
        return column
    with suppress(*_WRONG):
        made = column.cast(kind)
        if wider(column.type, kind) == kind or _is_same(column, made):
            return made
    # No cast says which value it was.
    rows = range(len(column)) if len(column) > 1 else ()
    raise Misfit(next((row for row in rows if not _casts(column.slice(row, 1), kind)), 0), kind)


def _casts(column: Any, kind: Type) -> bool:  # noqa: ANN401 - a pyarrow.ChunkedArray
    try:
        _cast(column, kind)
    except Misfit:
        return False
    return True


def _is_same(column: Any, made: Any) -> bool:  # noqa: ANN401 - pyarrow.ChunkedArrays
    """Whether a cast lost nothing; a narrower float rounds, as it says."""
    types, compute = pyarrow().types, pyarrow("compute")
    if types.is_floating(column.type) and types.is_floating(made.type):
        infinite = compute.sum(compute.is_inf(made)), compute.sum(compute.is_inf(column))
        return infinite[0].as_py() == infinite[1].as_py()
    naive = {kind.tz is None for kind in (column.type, made.type) if types.is_timestamp(kind)}
    return len(naive) < 2 and made.cast(column.type).equals(column)


def _checked(values: Sequence[object], kind: Type, *, given: bool) -> Any:  # noqa: ANN401
    with suppress(*_WRONG):
        made = pyarrow().array(values, type=kind)
        if _is_kept(made, values, given=given):
            return made
    for index, value in enumerate(values):
        try:
            made = pyarrow().array([value], type=kind)
        except _WRONG:
            raise Misfit(index, kind) from None
        if not _is_kept(made, [value], given=given):
            raise Misfit(index, kind)
    raise Misfit(0, kind)


def _joint_type(values: Iterable[object]) -> Type:
    found: Type = pyarrow().null()
    for index, value in enumerate(values):
        kind = type_of(value)
        joint = None if kind is None else wider(found, kind)
        if joint is None:
            raise Misfit(index, found)
        found = joint
    return found


def _is_kept(made: Any, values: Sequence[object], *, given: bool = False) -> bool:  # noqa: ANN401
    """Whether an array holds these values."""
    if _is_plain(made.type, values):
        return True
    with suppress(*_WRONG):
        return all(map(partial(_holds, given=given), made.to_pylist(), values))
    return False


def _is_plain(kind: Type, values: Sequence[Any]) -> bool:
    """Whether pyarrow keeps or refuses such values, as a look at their types tells."""
    types = pyarrow().types
    found = set(map(type, values)) - {type(None)}
    plain = _PLAIN.get(str(kind))
    if plain is not None:
        return found <= plain
    if types.is_timestamp(kind) and found == {datetime} and kind.unit == "us":
        zone = {None: None, "UTC": UTC}.get(kind.tz, kind)
        return all(value is None or value.tzinfo is zone for value in values)
    if types.is_list(kind) and found <= {list, tuple}:
        return _is_plain(kind.value_type, list(chain.from_iterable(filter(None, values))))
    if types.is_struct(kind) and found <= {dict}:
        rows: list[dict[str, Any]] = [value for value in values if value]
        return {field.name for field in kind}.issuperset(chain.from_iterable(rows)) and all(
            _is_plain(field.type, [row.get(field.name) for row in rows]) for field in kind
        )
    return types.is_null(kind)


def _holds(stored: Any, value: Any, *, given: bool) -> bool:  # noqa: ANN401 - any values
    """Whether what a column holds is the value."""
    if hasattr(value, "as_py"):  # a scalar of pyarrow
        value = value.as_py()
    if stored is None:
        return value is None or type(value).__name__ in ("NAType", "NaTType")
    if isinstance(stored, bool) != (type(value).__name__ in ("bool", "bool_")):
        return False
    if is_dict(stored):
        return is_dict(value) and all(
            _holds(stored.get(name), part, given=given) for name, part in value.items()
        )
    if is_list(stored) or is_tuple(stored):
        items = _items(value)
        return len(items) == len(stored) and all(map(partial(_holds, given=given), stored, items))
    if bool(stored == value) or bool(stored != stored and value != value):
        return True
    return given and _converts(stored, value)


def _items(value: Any) -> list[Any]:  # noqa: ANN401 - a list, a set, an array, a map
    return list(value.items() if is_dict(value) else value)


def _converts(stored: Any, value: Any) -> bool:  # noqa: ANN401 - any values
    """Whether the value can be had from what is stored, in a column whose type the user gave."""
    if isinstance(stored, float) and isinstance(value, float):
        return math.isinf(stored) == math.isinf(value)
    if type(value) is int:
        return isinstance(stored, (date, time, timedelta))
    if isinstance(stored, bytes) and isinstance(value, str):
        return stored == value.encode()
    return isinstance(stored, str) and isinstance(value, bytes) and stored.encode() == value
