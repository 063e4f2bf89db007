"""Reductions that the engine does itself, on both sides of the shuffle.

    gm.sum()  gm.count()  gm.min()  gm.max()  gm.mean()  gm.first()  gm.last()
    gm.top(n)  gm.distinct()  gm.approx_distinct()  gm.collect()  gm.quantiles([0.5, 0.99])

A worker keeps one state for each key while it maps, so that a key that comes a million times
crosses the shuffle once for each task. No result depends on how the input was cut: sums of floats
are exact before they are rounded once, and the approximate ones are deterministic.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = [
    "Aggregate",
    "approx_distinct",
    "collect",
    "count",
    "distinct",
    "first",
    "last",
    "max",
    "mean",
    "min",
    "quantiles",
    "sum",
    "top",
]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A reduction of the engine's; made by the functions of this module."""

    name: str
    """What it is called."""
    spec: str
    """What the engine calls it; JSON."""

    def __repr__(self) -> str:
        return f"gm.{self.name}()"


def _plain(name: str) -> Aggregate:
    return Aggregate(name, json.dumps(name))


def sum() -> Aggregate:  # noqa: A001 - as the builtin that it stands for
    """Add up the values of a key: ints without limit, floats exactly (rounded once, at the end).

    Numbers of numpy count as Python's. Of other types, such as `Decimal`, a value is refused, since
    their sums would be rounded: give `float(...)`, or whole units as `int`, or write a function.

    Example:
        >>> sum()
        gm.sum()
    """
    return _plain("sum")


def count() -> Aggregate:
    """Count the values of a key, whatever they are."""
    return _plain("count")


def min() -> Aggregate:  # noqa: A001 - as the builtin that it stands for
    """Keep the least value of a key; numbers compare by what they are worth.

    Values are of the types that keys are of; others, which have no order here, are refused.
    """
    return _plain("min")


def max() -> Aggregate:  # noqa: A001 - as the builtin that it stands for
    """Keep the greatest value of a key; numbers compare by what they are worth.

    Values are of the types that keys are of; others, which have no order here, are refused.
    """
    return _plain("max")


def mean() -> Aggregate:
    """Return the mean of a key's numbers, as a float: their exact sum, divided once."""
    return _plain("mean")


def first() -> Aggregate:
    """Keep the value of a key that comes first in the input."""
    return _plain("first")


def last() -> Aggregate:
    """Keep the value of a key that comes last in the input."""
    return _plain("last")


def top(n: int) -> Aggregate:
    """Keep the `n` largest values of a key, largest first.

    Args:
        n: How many, from 1 on.

    Raises:
        ValueError: `n` is less than 1.

    Example:
        >>> top(3).spec
        '{"top": 3}'
    """
    if n < 1:
        raise ValueError(f"cannot make gm.top({n}): it keeps at least one. To go on: give n >= 1.")
    return Aggregate("top", json.dumps({"top": n}))


def distinct() -> Aggregate:
    """Keep the different values of a key, in the order of keys: 1, 1.0 and True are three."""
    return _plain("distinct")


def approx_distinct() -> Aggregate:
    """Count the different values of a key to about one per cent, in 16 kB at most (HyperLogLog)."""
    return _plain("approx_distinct")


def collect() -> Aggregate:
    """Collect the values of a key into a tuple, in the order of the input."""
    return _plain("collect")


def quantiles(ranks: Iterable[float]) -> Aggregate:
    """Return quantiles of a key's values, as a tuple: each is one of the values.

    Args:
        ranks: Which, each from 0 to 1: 0.5 is the median.

    Raises:
        ValueError: A rank is not from 0 to 1, or there is none.

    Example:
        >>> quantiles([0.5, 0.99]).spec
        '{"quantiles": [0.5, 0.99]}'
    """
    wanted = [float(rank) for rank in ranks]
    wrong = [rank for rank in wanted if not 0 <= rank <= 1]
    if wrong or not wanted:
        raise ValueError(
            f"cannot make gm.quantiles({wanted}): each rank is from 0 to 1, and there is one at"
            " least. To go on: give for example [0.5, 0.99]."
        )
    return Aggregate("quantiles", json.dumps({"quantiles": wanted}))
