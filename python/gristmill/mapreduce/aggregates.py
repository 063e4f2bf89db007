"""Reductions that the engine does itself, on both sides of the shuffle.

    gm.sum()  gm.count()  gm.min()  gm.max()  gm.mean()  gm.first()  gm.last()
    gm.top(n)  gm.distinct()  gm.count_distinct()  gm.approx_distinct()  gm.collect()
    gm.quantiles([0.5, 0.99])

A worker keeps one state for each key while it maps, so that a key that comes a million times
crosses the shuffle once for each task. No result depends on how the input was cut: sums of floats
are exact before they are rounded once, and the approximate ones are deterministic.

One rule for missing values: with `skip_none=True` a `None` is no value for any of them. A key of
which all values are missing stays, with what the reduction makes of no values: 0 for sums and
counts, an empty tuple for `top`, `distinct` and `collect`, otherwise `None`. Without it, `None` is
a value like others: the least of all, and nothing that can be added up.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from reprlib import repr as short
from typing import Any

from gristmill import _core

__all__ = [
    "Aggregate",
    "approx_distinct",
    "check_value",
    "collect",
    "count",
    "count_distinct",
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
    skip_none: bool = False
    """Whether `None` does not count as a value."""
    counts: bool = False
    """Whether the output has how many values the engine's result has, in the place of them."""

    def __repr__(self) -> str:
        return f"gm.{self.name}({'skip_none=True' if self.skip_none else ''})"


def _made(name: str, spec: object, skip_none: object) -> Aggregate:
    if not isinstance(skip_none, bool):
        raise TypeError(
            f"cannot make gm.{name}(): skip_none is {skip_none!r}."
            " What to do: give skip_none=True or skip_none=False."
        )
    return Aggregate(name, json.dumps({"skip_none": spec} if skip_none else spec), skip_none)


def sum(*, skip_none: bool = False) -> Aggregate:  # noqa: A001 - as the builtin that it stands for
    """Add up the values of a key: ints of up to 255 bytes, floats exactly (rounded at the end).

    With `skip_none=True` values that are `None` are passed over, as in all reductions here.
    Numbers of numpy count as Python's. Of other types, such as `Decimal`, a value is refused, since
    their sums would be rounded: give `float(...)`, or whole units as `int`, or write a function.

    Example:
        >>> sum(), sum(skip_none=True)
        (gm.sum(), gm.sum(skip_none=True))
    """
    return _made("sum", "sum", skip_none)


def count(*, skip_none: bool = False) -> Aggregate:
    """Count the values of a key, whatever they are."""
    return _made("count", "count", skip_none)


def min(*, skip_none: bool = False) -> Aggregate:  # noqa: A001 - as the builtin that it stands for
    """Keep the least value of a key; numbers compare by what they are worth.

    Values are of the types that keys are of; others, which have no order here, are refused.
    """
    return _made("min", "min", skip_none)


def max(*, skip_none: bool = False) -> Aggregate:  # noqa: A001 - as the builtin that it stands for
    """Keep the greatest value of a key; numbers compare by what they are worth.

    Values are of the types that keys are of; others, which have no order here, are refused.
    """
    return _made("max", "max", skip_none)


def mean(*, skip_none: bool = False) -> Aggregate:
    """Return the mean of a key's numbers, as a float: their exact sum, divided once."""
    return _made("mean", "mean", skip_none)


def first(*, skip_none: bool = False) -> Aggregate:
    """Keep the value of a key that comes first in the input; with `sort_by`, in that order.

    With `sort_by` it is Python that reads the sorted values, and nothing is combined before the
    shuffle: `gm.min_by` shuffles less.
    """
    return _made("first", "first", skip_none)


def last(*, skip_none: bool = False) -> Aggregate:
    """Keep the value of a key that comes last in the input; with `sort_by`, in that order.

    With `sort_by` it is Python that reads the sorted values, all of them, and nothing is combined
    before the shuffle: `gm.max_by` shuffles less.
    """
    return _made("last", "last", skip_none)


def top(n: int, *, skip_none: bool = False) -> Aggregate:
    """Keep the `n` largest values of a key, largest first.

    Args:
        n: How many, from 1 on.
        skip_none: Whether `None` does not count as a value.

    Raises:
        TypeError: `n` is not a whole number.
        ValueError: `n` is less than 1.

    Example:
        >>> top(3).spec
        '{"top": 3}'
    """
    if isinstance(n, bool) or not isinstance(n, int):  # pyright: ignore[reportUnnecessaryIsInstance] - not all check
        raise TypeError(
            f"cannot make gm.top({n!r}): it takes a whole number. What to do: give for example 10."
        )
    if not 1 <= n < 1 << 63:
        raise ValueError(
            f"cannot make gm.top({n}): it keeps at least one, and less than 2 to the power of 63."
            " What to do: give for example 10."
        )
    return _made("top", {"top": n}, skip_none)


def distinct(*, skip_none: bool = False) -> Aggregate:
    """Keep the different values of a key, in the order of keys: 1, 1.0 and True are three.

    Values that cannot be keys are compared as they are stored: dicts and sets that were filled in
    another order differ.
    """
    return _made("distinct", "distinct", skip_none)


def count_distinct(*, skip_none: bool = False) -> Aggregate:
    """Count the different values of a key, exactly: 1, 1.0 and True are three.

    Memory holds the different values of a key; `approx_distinct` takes 16 kB. Dicts and sets that
    were filled in another order differ, as for `distinct`.

    Example:
        >>> import tempfile, gristmill as gm
        >>> visits = [("/", "ann"), ("/", "bob"), ("/", "ann"), ("/cart", "bob")]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     counts = gm.kv(f"{folder}/visitors")
        ...     job = gm.Job(gm.items(visits), reduce=gm.count_distinct(), output=counts)
        ...     list(job.run(workers=1))
        [('/', 2), ('/cart', 1)]
    """
    made = _made("count_distinct", "distinct", skip_none)
    return replace(made, counts=True)


def approx_distinct(*, skip_none: bool = False) -> Aggregate:
    """Count the different values of a key to about one per cent, in 16 kB at most (HyperLogLog).

    Dicts and sets that were filled in another order differ, as for `distinct`.
    """
    return _made("approx_distinct", "approx_distinct", skip_none)


def collect(*, skip_none: bool = False) -> Aggregate:
    """Collect the values of a key into a tuple, in the order of the input."""
    return _made("collect", "collect", skip_none)


def quantiles(ranks: Iterable[float], *, skip_none: bool = False) -> Aggregate:
    """Return quantiles of a key's values, as a tuple: each is one of the values.

    Args:
        ranks: Which, each from 0 to 1: 0.5 is the median.
        skip_none: Whether `None` does not count as a value; of no values each quantile is `None`.

    Raises:
        TypeError: They are not numbers, or not a list of them.
        ValueError: A rank is not from 0 to 1, or there is none.

    Example:
        >>> quantiles([0.5, 0.99]).spec
        '{"quantiles": [0.5, 0.99]}'
    """
    try:
        wanted = [float(rank) for rank in ranks]
    except (TypeError, ValueError):
        raise TypeError(
            f"cannot make gm.quantiles({ranks!r}): it takes a list of numbers."
            " What to do: give for example [0.5, 0.99]."
        ) from None
    wrong = [rank for rank in wanted if not 0 <= rank <= 1]
    if wrong or not wanted:
        raise ValueError(
            f"cannot make gm.quantiles({wanted}): each rank is from 0 to 1, and there is one at"
            " least. What to do: give for example [0.5, 0.99]."
        )
    return _made("quantiles", {"quantiles": wanted}, skip_none)


_ADDS = frozenset({"sum", "mean"})
_COMPARES = frozenset({"min", "max", "top", "quantiles"})


def check_value(aggregate: Aggregate | None, value: Any) -> None:  # noqa: ANN401 - any value
    """Refuse a value that a reduction would refuse.

    Raises:
        TypeError: It is not one that can be added up, or compared.
        ValueError: It has no encoding.

    Example:
        >>> check_value(sum(), 1.5)
        >>> try:
        ...     check_value(sum(), "n/a")
        ... except TypeError as error:
        ...     print(error)
        gm.sum() takes numbers, not 'n/a'
    """
    if aggregate is None or aggregate.name not in _ADDS | _COMPARES:
        return
    if value is None and aggregate.skip_none:
        return
    plain = _core.decode(_core.encode_key(value))  # a number of numpy is one of Python's
    if aggregate.name in _ADDS and not isinstance(plain, (int, float)):
        raise TypeError(f"{aggregate!r} takes numbers, not {short(value)}")
