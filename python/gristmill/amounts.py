"""Amounts as people write them, as in the engine (plan/amount.rs): `64M` is 64 million."""

import operator
import re
from typing import Any

__all__ = ["parse_bytes", "whole_number"]

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*((?:[kmgt]i?)?)b?", re.IGNORECASE)
_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12} | {
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
}
_AMOUNT_MAX = 1 << 60


def parse_bytes(amount: int | str, name: str) -> int:
    """Return `amount` in bytes; `name` is the option that it was given for.

    Raises:
        TypeError: It is neither a whole number nor text.
        ValueError: It is no amount from 1 on.

    Example:
        >>> parse_bytes("64M", "memory"), parse_bytes(10, "memory"), parse_bytes("1.5KiB", "memory")
        (64000000, 10, 1536)
    """
    size = _written(amount) if isinstance(amount, str) else whole_number(amount)
    if size is None:
        raise TypeError(_refusal(name, amount, "which is not a size"))
    if not 1 <= size <= _AMOUNT_MAX:
        raise ValueError(_refusal(name, amount, "which is not a size from 1 byte on"))
    return size


def whole_number(value: Any) -> int | None:  # noqa: ANN401 - what was given
    """Return a whole number, also one of another library's; `None` if it is none.

    Example:
        >>> whole_number(3), whole_number(True), whole_number(3.0)
        (3, None, None)
    """
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def _written(amount: str) -> int:
    found = _AMOUNT.fullmatch(amount.strip())
    size = float(found[1]) * _FACTORS[found[2].lower()] if found else 0.0
    return int(min(size, 2.0 * _AMOUNT_MAX))


def _refusal(name: str, amount: object, what: str) -> str:
    shown = repr(amount)[:100]
    return f"cannot read the options: {name} is {shown}, {what}. What to do: write for example 64M."
