"""The engine's reductions, in a line of Python each: for the naive run, and as an oracle in tests.

Numbers compare by what they are worth, and of equal ones an int is before a float before a bool.
"""

import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from gristmill import _core
from gristmill.mapreduce.plain_order import by_worth

__all__ = ["aggregated"]


def aggregated(spec: str, values: list[Any]) -> Any:  # noqa: ANN401 - what the values are
    """Return what a reduction makes of values, in input order.

    Example:
        >>> aggregated('"sum"', [0.1] * 10), aggregated('{"top": 2}', [1, 3, 2])
        (1.0, (3, 2))
    """
    found: str | dict[str, Any] = json.loads(spec)
    if isinstance(found, dict) and "skip_none" in found:
        there = [value for value in values if value is not None]
        return aggregated(json.dumps(found["skip_none"]), there)
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
    """Of values that are worth the same the types decide, as in encodings."""
    return (by_worth(value), _core.encode_key(value))


def _distinct(values: list[Any]) -> tuple[Any, ...]:
    found = {_core.encode(value): value for value in values}
    return tuple(found[encoded] for encoded in sorted(found))


def _quantiles(values: list[Any], ranks: list[float]) -> tuple[Any, ...]:
    ordered = sorted(values, key=_rank)
    if not ordered:
        return tuple(None for _ in ranks)
    places = (max(math.ceil(len(ordered) * rank - 1.0), 0) for rank in ranks)  # as NumPy rounds
    return tuple(ordered[place] for place in places)


def _top(values: list[Any], most: int) -> tuple[Any, ...]:
    return tuple(sorted(values, key=by_worth, reverse=True)[:most])


_ANY = frozenset({"count", "first", "last", "collect"})

_FUNCTIONS: dict[str, Callable[[list[Any], Any], Any]] = {
    "sum": lambda values, _: _sum(values),
    "count": lambda values, _: len(values),
    "min": lambda values, _: min(values, key=_rank, default=None),
    "max": lambda values, _: max(sorted(values, key=_core.encode_key), key=by_worth, default=None),
    "mean": lambda values, _: _mean(values) if values else None,
    "first": lambda values, _: values[0] if values else None,
    "last": lambda values, _: values[-1] if values else None,
    "top": _top,
    "distinct": lambda values, _: _distinct(values),
    "approx_distinct": lambda values, _: len(_distinct(values)),
    "collect": lambda values, _: tuple(values),
    "quantiles": _quantiles,
}
