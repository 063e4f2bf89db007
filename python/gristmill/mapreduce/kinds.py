"""What a record is, told so that type checkers know too."""

from typing import Any, TypeGuard

__all__ = ["is_batch", "is_dict", "is_list", "is_pair", "is_tuple", "settled"]

_SETTLED = frozenset((str, int, float, bool, bytes, type(None)))
"""Types of values that stay as they are; the most usual ones."""


def is_batch(record: object) -> bool:
    """Whether a record is a table or a batch of pyarrow's, which need not be installed.

    Example:
        >>> is_batch({"a": 1})
        False
    """
    kind = type(record)
    return kind.__module__ == "pyarrow.lib" and kind.__name__ in ("RecordBatch", "Table")


def is_pair(record: object) -> TypeGuard[tuple[Any, Any]]:
    """Whether a record is a key with its value: a tuple of two.

    Example:
        >>> is_pair(("a", 1)), is_pair(["a", 1])
        (True, False)
    """
    return is_tuple(record) and len(record) == 2


def is_tuple(record: object) -> TypeGuard[tuple[Any, ...]]:
    """Whether a record is a tuple."""
    return isinstance(record, tuple)


def is_dict(record: object) -> TypeGuard[dict[str, Any]]:
    """Whether a record is a row by the names of its columns."""
    return isinstance(record, dict)


def is_list(record: object) -> TypeGuard[list[Any]]:
    """Whether a record is a list."""
    return isinstance(record, list)


def settled(value: Any) -> Any:  # noqa: ANN401 - of the same type
    """Return a value that stays as it is now, whatever user code does to what it yielded.

    Lists, dicts and tuples are copied, in depth; nothing else is.

    Example:
        >>> row = {"seen": [1]}
        >>> kept = settled(row)
        >>> row["seen"].append(2)
        >>> kept
        {'seen': [1]}
    """
    if type(value) in _SETTLED:
        return value
    if is_dict(value):
        return {
            name: part if type(part) in _SETTLED else settled(part)  # a call a part would cost most
            for name, part in value.items()
        }
    if is_list(value):
        return [settled(part) for part in value]
    if is_tuple(value):
        return tuple([settled(part) for part in value])
    return value
