"""Types of columns, and the type that holds all values of two.

    int64, double      ─wider─▶ double          null, T      ─wider─▶ T
    timestamp us, ns   ─wider─▶ timestamp ns    {x}, {x, y}  ─wider─▶ {x, y}
    int64, string      ─wider─▶ none

A wider type may still not hold each value: a double does not hold 2**53 + 1. `exact_columns` checks
values.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gristmill.mapreduce.extras import pyarrow
from gristmill.mapreduce.kinds import is_dict, is_list, is_tuple

__all__ = ["Type", "merged", "type_of", "wider"]

Type = Any
"""A pyarrow.DataType, whose stubs are partial."""

_UNITS = ("s", "ms", "us", "ns")

_INT_DIGITS = 20
"""Decimal digits of 64 bits."""


def merged(one: Any, other: Any) -> Any:  # noqa: ANN401 - pyarrow.Schemas
    """Return the schema with the columns of both, each of the type that holds both.

    Raises:
        ValueError: There is none; the message is the name of the first such column.
    """
    arrow = pyarrow()
    fields = {field.name: field for field in one}
    for field in other:
        before = fields.get(field.name)
        if before is None:
            fields[field.name] = field
            continue
        kind = wider(before.type, field.type)
        if kind is None:
            raise ValueError(field.name)
        fields[field.name] = arrow.field(field.name, kind, before.nullable or field.nullable)
    return arrow.schema(_optional(fields.values(), one, other), one.metadata)


def _optional(fields: Iterable[Any], *schemas: Any) -> Iterator[Any]:  # noqa: ANN401
    """The fields; one that a schema has not may be null."""
    names = [set(schema.names) for schema in schemas]
    for field in fields:
        everywhere = all(field.name in known for known in names)
        yield field if everywhere else field.with_nullable(True)


def wider(one: Type, other: Type) -> Type | None:
    """Return the type that holds the values of both types, if there is one.

    Example:
        >>> arrow = pyarrow()
        >>> print(wider(arrow.int64(), arrow.float64()), wider(arrow.int64(), arrow.string()))
        double None
    """
    types = pyarrow().types
    if one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    if types.is_dictionary(one):
        return wider(one.value_type, other)
    if types.is_dictionary(other):
        return wider(one, other.value_type)
    for alike, join in _RULES:
        if alike(one) and alike(other):
            return join(one, other)
    return None


def type_of(value: object) -> Type | None:
    """Return the type of a value of Python, `None` if no type holds it.

    Example:
        >>> print(type_of(2**63), type_of([1, 2.5]), type_of({"a": None}))
        uint64 list<item: double> struct<a: null>
    """
    arrow = pyarrow()
    if type(value) is int and not -(2**63) <= value < 2**63:
        return arrow.uint64() if 0 <= value < 2**64 else None
    if is_dict(value):
        fields: dict[Any, Type | None] = {name: type_of(part) for name, part in value.items()}
        named = all(isinstance(name, str) and kind is not None for name, kind in fields.items())
        return arrow.struct(list(fields.items())) if named else None
    if is_list(value) or is_tuple(value):
        kind = _type_of_all(value)
        return None if kind is None else arrow.list_(kind)
    try:
        kind = arrow.scalar(value).type
    except (ValueError, TypeError, OverflowError, NotImplementedError):
        return None
    return _with_nanoseconds(kind) if hasattr(value, "nanoseconds") or _is_stamp(value) else kind


def _type_of_all(values: Iterable[object]) -> Type | None:
    found: Type | None = pyarrow().null()
    for value in values:
        kind = type_of(value)
        found = None if kind is None else wider(found, kind)
        if found is None:
            return None
    return found


def _is_stamp(value: object) -> bool:
    """Whether a value is a time of pandas, which has nanoseconds."""
    return hasattr(value, "nanosecond")


def _with_nanoseconds(kind: Type) -> Type:
    arrow = pyarrow()
    if arrow.types.is_timestamp(kind):
        return arrow.timestamp("ns", kind.tz)
    return arrow.duration("ns") if arrow.types.is_duration(kind) else kind


def _integers(one: Type, other: Type) -> Type:
    arrow = pyarrow()
    low, high = sorted((one, other), key=lambda kind: kind.bit_width)
    signed = [arrow.types.is_signed_integer(kind) for kind in (low, high)]
    if signed[0] == signed[1] or (signed[1] and low.bit_width < high.bit_width):
        return high
    if high.bit_width == 64:
        return arrow.uint64()  # if no value is negative
    return {8: arrow.int16(), 16: arrow.int32(), 32: arrow.int64()}[high.bit_width]


def _numbers(one: Type, other: Type) -> Type:
    arrow = pyarrow()
    if arrow.types.is_floating(one) and arrow.types.is_floating(other):
        return max(one, other, key=lambda kind: kind.bit_width)
    return arrow.float64()


def _decimals(one: Type, other: Type) -> Type | None:
    arrow = pyarrow()
    kinds = [kind for kind in (one, other) if arrow.types.is_decimal(kind)]
    scale = max(kind.scale for kind in kinds)
    digits = [kind.precision - kind.scale for kind in kinds]
    if len(kinds) == 1:
        digits.append(_INT_DIGITS)
    precision = max(digits) + scale
    if precision > 76:
        return None
    return (arrow.decimal128 if precision <= 38 else arrow.decimal256)(precision, scale)


def _timestamps(one: Type, other: Type) -> Type | None:
    if (one.tz is None) != (other.tz is None):
        return None
    return pyarrow().timestamp(_finer(one, other), one.tz if one.tz == other.tz else "UTC")


def _durations(one: Type, other: Type) -> Type:
    return pyarrow().duration(_finer(one, other))


def _times(one: Type, other: Type) -> Type:
    return max(one, other, key=lambda kind: _UNITS.index(kind.unit))


def _finer(one: Type, other: Type) -> str:
    return max(one.unit, other.unit, key=_UNITS.index)


def _texts(_one: Type, _other: Type) -> Type:
    return pyarrow().large_string()


def _byte_strings(_one: Type, _other: Type) -> Type:
    return pyarrow().large_binary()


def _lists(one: Type, other: Type) -> Type | None:
    arrow = pyarrow()
    kind = wider(one.value_type, other.value_type)
    large = arrow.types.is_large_list(one) or arrow.types.is_large_list(other)
    return None if kind is None else (arrow.large_list if large else arrow.list_)(kind)


def _structs(one: Type, other: Type) -> Type | None:
    arrow = pyarrow()
    try:
        return arrow.struct(list(merged(arrow.schema(list(one)), arrow.schema(list(other)))))
    except ValueError:
        return None


def _maps(one: Type, other: Type) -> Type | None:
    keys, items = wider(one.key_type, other.key_type), wider(one.item_type, other.item_type)
    return None if keys is None or items is None else pyarrow().map_(keys, items)


def _is(*names: str) -> Callable[[Type], bool]:
    """Whether a type is of one of these kinds, as `pyarrow.types` tells them."""

    def alike(kind: Type) -> bool:
        types = pyarrow().types
        return any(getattr(types, f"is_{name}")(kind) for name in names)

    return alike


_RULES: tuple[tuple[Callable[[Type], bool], Callable[[Type, Type], Type | None]], ...] = (
    (_is("integer"), _integers),
    (_is("integer", "floating"), _numbers),
    (_is("integer", "decimal"), _decimals),
    (_is("timestamp"), _timestamps),
    (_is("duration"), _durations),
    (_is("time"), _times),
    (_is("string", "large_string", "string_view"), _texts),
    (_is("binary", "large_binary", "fixed_size_binary"), _byte_strings),
    (_is("list", "large_list", "fixed_size_list"), _lists),
    (_is("struct"), _structs),
    (_is("map"), _maps),
)
"""Kinds of types that widen to one another, and how."""
