"""The order of keys by what they are worth, in plain Python: for the naive run, and as an oracle.

    None < bytes < text < tuples < numbers < dates < datetimes without a zone < with one < desc

Numbers of all types are compared exactly; all NaNs are equal, and behind the other numbers.
"""

import math
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import total_ordering
from typing import Any

from gristmill import _core
from gristmill.mapreduce.keys import Desc

__all__ = ["by_worth", "plain_key"]


@total_ordering
@dataclass(frozen=True, slots=True)
class _Turned:
    order: Any

    def __lt__(self, other: "_Turned") -> bool:
        return other.order < self.order


def by_worth(key: Any) -> tuple[Any, ...]:  # noqa: ANN401 - any key
    """Return something that compares as a key does by what it is worth.

    Example:
        >>> sorted([2, 2.5, 10, 1.5, Decimal("1.75"), True], key=by_worth)
        [True, 1.5, Decimal('1.75'), 2, 2.5, 10]
        >>> sorted(["b", None, Desc("b"), Desc("c"), (2,), (1.5, "a")], key=by_worth)
        [None, 'b', (1.5, 'a'), (2,), gm.desc('c'), gm.desc('b')]
    """
    return _ranked(key if isinstance(key, Desc) else _core.decode_key(_core.encode_key(key)))


def _ranked(key: Any) -> tuple[Any, ...]:  # noqa: ANN401 - any key, of one of Python's own types
    match key:
        case None:
            found: tuple[Any, ...] = (0,)
        case bytes():
            found = (1, key)
        case str():
            found = (2, key)
        case tuple():
            found = (3, tuple([_ranked(element) for element in key]))  # pyright: ignore[reportUnknownVariableType]
        case int() | float() | Decimal():
            found = (4, *_number(key))
        case datetime():
            found = (6 if key.tzinfo is None else 7, key)
        case date():
            found = (5, key)
        case _:
            found = (8, _Turned(by_worth(key.key)))
    return found


def _number(number: "int | float | Decimal") -> tuple[int, Fraction]:
    if math.isnan(number):
        return 2, Fraction(0)
    if math.isinf(number):
        return (1 if number > 0 else -1), Fraction(0)
    return 0, Fraction(number)


def plain_key(key: Any) -> Any:  # noqa: ANN401 - any key
    """Return a key as functions of a job get it: without `gm.desc`.

    Example:
        >>> plain_key((Desc("a"), 1))
        ('a', 1)
    """
    return _core.decode(_core.encode_key(key)) if _turned(key) else key


def _turned(key: object) -> bool:
    return isinstance(key, Desc) or (isinstance(key, tuple) and any(map(_turned, key)))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
