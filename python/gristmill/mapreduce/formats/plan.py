"""What an input says before a job begins: its splits, its files.

A split is a value that goes to the worker as JSON. What is in it is between the input that plans it
and the reader that opens it; the engine knows how many bytes it is, and that a reader must report
as many. Splits are a function of the input and of the job's options, never of workers or memory.
"""

from dataclasses import dataclass
from typing import Any

__all__ = [
    "NO_MAX",
    "PARTITION_BYTES",
    "Plan",
    "Split",
    "partitions",
    "split_bytes",
    "split_records",
]

PARTITION_BYTES = 256_000_000
"""One partition for as many bytes of input, unless the job says how many."""

NO_MAX = 2**62
"""The most bytes of a split where the job does not say: more than there are."""

# As in the engine (split/text.rs): at most some seconds of Python a task, and enough tasks to share
# evenly.
_SPLITS_WANTED = 32
_SPLIT_MIN_BYTES = 1 << 20
_SPLIT_MAX_BYTES = 64 << 20

_COUNTED_SPLITS = 128
"""Splits of an input whose records are what costs. A task takes about 0.5 ms, so that the cheapest
records cost 0.1 s more than in one task; and the last of many workers waits little for the others.
"""


@dataclass(frozen=True, slots=True)
class Split:
    """A part of the input, for one map task."""

    bytes: int
    """How many bytes of input it is."""
    what: dict[str, Any]
    """What the reader needs to know of it; JSON."""


@dataclass(frozen=True, slots=True)
class Plan:
    """An input, cut."""

    splits: list[Split]
    """The splits, in the order of the input."""
    files: list[str]
    """The files, which must not change while the job runs."""
    display: list[str]
    """What people call the input: the paths as they were given."""

    @property
    def bytes(self) -> int:
        """Bytes of the whole input."""
        return sum(split.bytes for split in self.splits)


def partitions(input_bytes: int, *, of_user: bool) -> int:
    """Return how many partitions a job has by default; more where user code reduces them.

    Decision: docs/decisions/parts-of-user-code.md.

    Example:
        >>> [partitions(size * 1_000_000, of_user=True) for size in (0, 1, 5, 300, 10_000)]
        [1, 1, 5, 32, 40]
        >>> [partitions(size * 1_000_000, of_user=False) for size in (0, 1, 5, 300, 10_000)]
        [1, 1, 1, 2, 40]
    """
    least = max(1, -(-input_bytes // PARTITION_BYTES))
    if not of_user:
        return least
    return max(least, min(-(-input_bytes // _SPLIT_MIN_BYTES), _SPLITS_WANTED))


def split_bytes(input_bytes: int, split_min: int, split_max: int) -> int:
    """Return how long splits of so much input are, within what the user allows.

    Example:
        >>> split_bytes(1 << 30, 0, NO_MAX) == 32 << 20, split_bytes(1 << 40, 0, 1000)
        (True, 1000)
    """
    good = min(max(input_bytes // _SPLITS_WANTED, _SPLIT_MIN_BYTES), _SPLIT_MAX_BYTES)
    return max(split_min, min(split_max, good), 1)


def split_records(records: int) -> int:
    """Return how many records a split has, of inputs whose records are what costs.

    Objects of a program and whole files have few bytes and may take seconds each: URLs, images,
    parameters of a simulation. So their splits are a function of how many there are.

    Example:
        >>> split_records(40), split_records(1_000_000)
        (1, 7813)
    """
    return max(-(-records // _COUNTED_SPLITS), 1)
