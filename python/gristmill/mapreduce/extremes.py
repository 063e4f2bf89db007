"""Reductions that keep one value of a key, by an order that a function gives.

    gm.max_by(by)  gm.min_by(by)              the value of which by(value) is greatest, or least
    gm.first(), gm.last() with sort_by=       the value that comes first, or last, in that order

They are Python, and read the values one by one. `max_by` and `min_by` also combine: of a key only
one value for each map task is shuffled.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from reprlib import repr as short
from typing import Any

from gristmill import _core
from gristmill.mapreduce.aggregates import Aggregate
from gristmill.mapreduce.functions import (
    ContractError,
    can_be_called,
    name_of,
    place_of,
    signature_of,
    taken,
)

__all__ = ["Extreme", "max_by", "min_by", "of_sorted"]


@dataclass(frozen=True)
class Extreme:
    """A reduction that `max_by` or `min_by` has made."""

    by: Callable[[Any], Any]
    """What values are compared by."""
    greatest: bool
    """Whether the greatest is kept, or the least."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "__qualname__", repr(self))  # what the job calls it

    def __repr__(self) -> str:
        return f"gm.{'max' if self.greatest else 'min'}_by({name_of(self.by)})"

    def __call__(self, key: Any, values: Iterable[Any]) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401
        """Reduce a key."""
        yield key, self.kept(values)

    @property
    def combine(self) -> Callable[[Any, Iterable[Any]], Iterator[Any]]:
        """What keeps one of some of a key's values."""
        return _Combiner(self)

    def kept(self, values: Iterable[Any]) -> Any:  # noqa: ANN401 - one of them
        """Return the greatest or least of some values."""

        def order(value: Any) -> bytes:  # noqa: ANN401 - any value
            found = self.by(value)
            try:
                return _core.encode_order(found)
            except (TypeError, ValueError) as error:
                raise self._refused(error, value) from None

        # Of equal ones Python's max and min both keep the first.
        return max(values, key=order) if self.greatest else min(values, key=order)

    def _refused(self, error: Exception, value: object) -> ContractError:
        """What is said of a value of which `by` returned no key."""
        what, _, advice = str(error).partition(" What to do: ")
        what = what.replace("a key must", f"what the by of {self} returns must", 1).rstrip(".")
        return ContractError(
            f"{what}, for the value {short(value)}{place_of(self.by)}",
            advice.rstrip(".") or "let it return a key",
        )


@dataclass(frozen=True)
class _Combiner:
    extreme: Extreme

    def __post_init__(self) -> None:
        object.__setattr__(self, "__qualname__", repr(self.extreme))

    def __call__(self, _key: object, values: Iterable[Any]) -> Iterator[Any]:
        yield self.extreme.kept(values)


def max_by(by: Callable[[Any], Any]) -> Extreme:
    """Keep the value of a key of which `by(value)` is greatest: of equal ones the first.

    `by` returns a key: text, a number, a date, a tuple of these, compared as `sort_by` compares
    them. The value itself may be anything. The function is Python: it is called for each value.

    Args:
        by: Called with a value.

    Raises:
        TypeError: It is not a function of one value.

    Example:
        >>> import tempfile, gristmill as gm
        >>> rows = [{"id": 7, "at": 3, "v": "c"}, {"id": 8, "at": 1, "v": "a"}, {"id": 7, "at": 2}]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     job = gm.Job(
        ...         gm.items(rows),
        ...         map=lambda row: [(row["id"], row)],
        ...         reduce=gm.max_by(lambda row: row["at"]),
        ...         output=gm.kv(f"{folder}/newest"),
        ...     )
        ...     for newest in job.run(workers=1):
        ...         print(newest)
        (7, {'id': 7, 'at': 3, 'v': 'c'})
        (8, {'id': 8, 'at': 1, 'v': 'a'})
    """
    return _made(by, greatest=True)


def min_by(by: Callable[[Any], Any]) -> Extreme:
    """Keep the value of a key of which `by(value)` is least: of equal ones the first.

    Args:
        by: Called with a value; see `max_by`.

    Raises:
        TypeError: It is not a function of one value.

    Example:
        >>> min_by(len)
        gm.min_by(len)
    """
    return _made(by, greatest=False)


def _made(by: object, *, greatest: bool) -> Extreme:
    if not callable(by):
        name = "max_by" if greatest else "min_by"
        raise TypeError(
            f"cannot make gm.{name}({by!r}): it takes a function of a value."
            f" What to do: give for example gm.{name}(lambda value: value[0])."
        )
    made = Extreme(by, greatest)
    signature = signature_of(by)
    if signature is not None and not can_be_called(signature, 1):
        raise TypeError(
            f"cannot make {made}: its function takes {taken(signature)}, and is called with one"
            " argument, the value. What to do: change its parameters."
        )
    return made


def of_sorted(aggregate: Aggregate) -> Callable[[Any, Iterable[Any]], Iterator[tuple[Any, Any]]]:
    """Return `gm.first()` or `gm.last()` as a function of values that `sort_by` has sorted.

    Example:
        >>> from gristmill.mapreduce.aggregates import last
        >>> list(of_sorted(last(skip_none=True))("k", iter([1, 2, None])))
        [('k', 2)]
    """
    return _OfSorted(aggregate.name == "last", aggregate.skip_none)


@dataclass(frozen=True)
class _OfSorted:
    last: bool
    skip_none: bool

    def __post_init__(self) -> None:
        name = "gm.last()" if self.last else "gm.first()"
        object.__setattr__(self, "__qualname__", name)

    def __call__(self, key: Any, values: Iterable[Any]) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401
        found = None
        for value in values:
            if value is None and self.skip_none:
                continue
            found = value
            if not self.last:
                break
        yield key, found
