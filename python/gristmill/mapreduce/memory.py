"""`gm.items`: data that a program has already."""

import base64
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gristmill import _core
from gristmill.mapreduce.formats import Input, Reader, Where
from gristmill.mapreduce.pickling import dumps
from gristmill.mapreduce.plan import Plan, Split

__all__ = ["Items", "items"]

_CHUNK_ITEMS = 256
_SPLIT_BYTES = 4_000_000


@dataclass(frozen=True, eq=False)
class Items(Input):
    """Items of a list; see `items`."""

    data: tuple[Any, ...]

    def __str__(self) -> str:
        return f"gm.items({len(self.data)} items)" if self.data else "gm.items"

    @property
    def keyed(self) -> bool:
        """Its items may be pairs."""
        return True

    def plan(self, split_min: int, split_max: int) -> Plan:
        """Pickle the items, some hundred at a time, into splits that take their data with them."""
        splits: list[Split] = []
        held: list[bytes] = []
        begun = 0

        def cut(end: int) -> None:
            nonlocal begun
            size = sum(map(len, held))
            chunks = [base64.b64encode(chunk).decode() for chunk in held]
            splits.append(Split(size, {"first": begun, "chunks": chunks}))
            held.clear()
            begun = end

        size = max(split_min, min(split_max, _SPLIT_BYTES))
        for first in range(0, len(self.data), _CHUNK_ITEMS):
            held.append(_pickled(self.data[first : first + _CHUNK_ITEMS], first))
            if sum(map(len, held)) >= size:
                cut(min(first + _CHUNK_ITEMS, len(self.data)))
        if held:
            cut(len(self.data))
        return Plan(splits, [], [str(self)])

    def open(self, what: dict[str, Any], *, tolerant: bool = False) -> Reader:
        """Open a split."""
        del tolerant  # objects are always right
        return _ItemReader(what["first"], what["chunks"])


def items(data: Iterable[Any]) -> Items:
    """Objects that the program has in memory; each is a record.

    Args:
        data: Objects that can be pickled; read once, when the function is called.

    Example:
        >>> str(items(range(3)))
        'gm.items(3 items)'
    """
    return Items(tuple(data))


class _ItemReader:
    """The items of a split; an offset is the place of an item in the data."""

    def __init__(self, first: int, chunks: list[str]) -> None:
        self._first = first
        self._chunks = chunks
        self._last: object = None
        self._count = 0
        self._bytes = 0

    def __iter__(self) -> Iterator[Any]:
        for chunk in self._chunks:
            data = base64.b64decode(chunk)
            for item in pickle.loads(data):  # noqa: S301 - the job's own data
                self._last = item
                self._count += 1
                _core.pulse(self._count, self._first + self._count - 1, 0, self._bytes)
                yield item
            self._bytes += len(data)

    def where(self) -> Where:
        """Return the place of the item that came last."""
        record = max(self._count - 1, 0)
        return "items", self._first + record, record, 0

    def raw(self) -> object:
        """Return the item that came last."""
        return self._last

    def bytes_read(self) -> int:
        """Return how many bytes of the split are read."""
        return self._bytes

    def records_read(self) -> int:
        """Return how many items have come."""
        return self._count


def _pickled(chunk: tuple[Any, ...], first: int) -> bytes:
    try:
        return dumps(list(chunk))
    except Exception as error:  # pickling runs the objects' own code, which may raise anything
        raise TypeError(
            f"cannot plan the job: gm.items cannot pickle the items from {first} on ({error})."
            " To go on: give plain data, and open files or connections in setup."
        ) from error
