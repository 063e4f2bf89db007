"""Which partition a key goes to; a partition is one part file of the output.

    "hash" (the default)   by a stable hash of the key: parts of about the same size
    gm.ranges([cuts])      by order: keys below the first cut, then below the second, and so on
    gm.sampled_ranges()    the same, with cuts from a sample of the map's keys
    a function             f(key, partitions) -> a number from 0 to partitions - 1

With ranges the part files are in order one after another: the whole output is sorted by key, and
numbers by value whatever their type. A cut may be `gm.desc(key)`, for keys that are.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Partitioner", "Ranges", "SampledRanges", "ranges", "sampled_ranges"]


@dataclass(frozen=True, slots=True)
class Ranges:
    """Partitions by cuts in the order of keys."""

    cuts: tuple[Any, ...]
    """The first key of each partition but the first."""


@dataclass(frozen=True, slots=True)
class SampledRanges:
    """Partitions by cuts that a sample gives."""

    records: int
    """How many records are mapped for the sample."""


Partitioner = Literal["hash"] | Ranges | SampledRanges | Callable[[Any, int], int]


def ranges(cuts: Iterable[Any]) -> Ranges:
    """Cut the keys into ranges; a cut is the first key of a range.

    Args:
        cuts: Keys, in ascending order.

    Example:
        >>> ranges(["h", "q"])  # a to g, h to p, q to z
        Ranges(cuts=('h', 'q'))
    """
    return Ranges(tuple(cuts))


def sampled_ranges(records: int = 100_000) -> SampledRanges:
    """Cut the keys into ranges of about the same size, by mapping a sample of the input first.

    Args:
        records: How many records to map, from even places of the input.

    Raises:
        ValueError: `records` is less than 1.

    Example:
        >>> sampled_ranges(1000)
        SampledRanges(records=1000)
    """
    if records < 1:
        raise ValueError("cannot sample 0 records. What to do: give records >= 1.")
    return SampledRanges(records)
