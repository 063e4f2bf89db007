"""Amounts as people write them: `64M` is 64 million, as in the engine (plan/amount.rs)."""

import re

__all__ = ["parse_bytes"]

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)[bB]?")
_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def parse_bytes(amount: int | str, name: str) -> int:
    """Return `amount` in bytes; `name` is the option that it was given for.

    Raises:
        ValueError: It is no amount from 1 on.

    Example:
        >>> parse_bytes("64M", "split_max"), parse_bytes(10, "split_max"), parse_bytes("1.5k", "x")
        (64000000, 10, 1500)
    """
    found = _AMOUNT.fullmatch(str(amount).strip())
    size = int(float(found[1]) * _FACTORS[found[2].lower()]) if found else 0
    if size < 1:
        raise ValueError(
            f"cannot read the options: {name} is {amount!r}, which is no size from 1 byte on."
            " To go on: write for example 64M."
        )
    return size
