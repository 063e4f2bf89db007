"""The engine's reductions, in a line of Python each: for the naive run, and as an oracle in tests.

Numbers compare by what they are worth, and of equal ones an int is before a float before a bool.
"""

import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from gristmill import _core

__all__ = ["aggregated"]


def aggregated(spec: str, values: list[Any]) -> Any:  # noqa: ANN401 - what the values are
    """Return what a reduction makes of values, in input order.

    Example:
        >>> aggregated('"sum"', [0.1] * 10), aggregated('{"top": 2}', [1, 3, 2])
        (1.0, (3, 2))
    """
    found: str | dict[str, Any] = json.loads(spec)
    name, argument = next(iter(found.items())) if isinstance(found, dict) else (found, None)
    plain = values if name in _ANY else [_as_compared(value) for value in values]
    return _FUNCTIONS[name](plain, argument)


def _as_compared(value: Any) -> Any:  # noqa: ANN401 - any value
    """A value as it is added up and compared: numbers of other libraries are Python's."""
    try:
        return _core.decode(_core.encode_key(value))
    except (TypeError, ValueError):  # told apart by what it is pickled to
        return value


def _sum(values: list[Any]) -> Any:  # noqa: ANN401 - int or float
    if not any(isinstance(value, float) for value in values):
        return sum(int(value) for value in values)
    if not all(math.isfinite(value) for value in values):
        return math.fsum(values) if not any(map(math.isnan, values)) else math.nan
    return float(sum(map(Fraction, values)))


def _mean(values: list[Any]) -> float:
    if not all(math.isfinite(value) for value in values):
        return sum(values) / len(values)
    return float(sum(map(Fraction, values)) / len(values))


def _rank(value: Any) -> Any:  # noqa: ANN401 - something to sort by
    kind = 2 if isinstance(value, bool) else 1 if isinstance(value, float) else 0
    return (value, kind)


def _distinct(values: list[Any]) -> tuple[Any, ...]:
    found = {_core.encode(value): value for value in values}
    return tuple(found[encoded] for encoded in sorted(found))


def _quantiles(values: list[Any], ranks: list[float]) -> tuple[Any, ...]:
    ordered = sorted(values, key=_rank)
    places = (max(math.ceil(Fraction(rank) * len(ordered)) - 1, 0) for rank in ranks)
    return tuple(ordered[place] for place in places)


def _top(values: list[Any], most: int) -> tuple[Any, ...]:
    return tuple(sorted(values, reverse=True)[:most])


_ANY = frozenset({"count", "first", "last", "collect"})

_FUNCTIONS: dict[str, Callable[[list[Any], Any], Any]] = {
    "sum": lambda values, _: _sum(values),
    "count": lambda values, _: len(values),
    "min": lambda values, _: min(values, key=_rank),
    "max": lambda values, _: max(values, key=lambda value: (value, -_rank(value)[1])),
    "mean": lambda values, _: _mean(values),
    "first": lambda values, _: values[0],
    "last": lambda values, _: values[-1],
    "top": _top,
    "distinct": lambda values, _: _distinct(values),
    "approx_distinct": lambda values, _: len(_distinct(values)),
    "collect": lambda values, _: tuple(values),
    "quantiles": _quantiles,
}
