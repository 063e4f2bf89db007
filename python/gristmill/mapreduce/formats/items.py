"""`gm.items`: data that a program has already.

    items ─pickled, up to 256 at a time─▶ chunks ─▶ splits, which take their chunks with them

A split ends after its share of the items (`split_records`) or the bytes of `split_max`, whichever
comes first, but not before `split_min`.
"""

import base64
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from reprlib import repr as short
from typing import Any

from gristmill import _core
from gristmill.mapreduce.formats.format import Input, Reader, Where
from gristmill.mapreduce.formats.plan import Plan, Split, split_records
from gristmill.mapreduce.pickling import dumps
from gristmill.signatures import known_options

__all__ = ["Items", "items"]

_CHUNK_ITEMS = 256
_SPLIT_BYTES = 4_000_000

_ROWS = {
    ("pandas", "DataFrame"): 'frame.to_dict("records")',
    ("polars", "DataFrame"): "frame.to_dicts()",
    ("pyarrow", "Table"): "table.to_pylist()",
}
"""How the rows of tables are had, by module and type."""


@dataclass(frozen=True, eq=False)
class Items(Input):
    """Items of a list; see `items`."""

    data: tuple[Any, ...]
    tag: str = ""

    def __str__(self) -> str:
        return f"gm.items({len(self.data)} items)" if self.data else "gm.items"

    def tag_of(self, what: dict[str, Any]) -> str:
        """Return its tag."""
        del what
        return self.tag

    @property
    def keyed(self) -> bool:
        """Its items may be pairs."""
        return True

    def plan(self, split_min: int, split_max: int) -> Plan:
        """Pickle the items, into splits that take their data with them."""
        splits: list[Split] = []
        held: list[bytes] = []
        held_bytes = count = begun = 0
        most_bytes = max(split_min, min(split_max, _SPLIT_BYTES))
        most_items = split_records(len(self.data))

        def cut() -> None:
            nonlocal held_bytes, count, begun
            if held:
                chunks = [base64.b64encode(chunk).decode() for chunk in held]
                splits.append(Split(held_bytes, {"first": begun, "chunks": chunks}))
                begun += count
                held.clear()
                held_bytes = count = 0

        for items_of, chunk in self._chunks(min(most_items, _CHUNK_ITEMS), most_bytes):
            if held_bytes + len(chunk) > most_bytes and held_bytes >= split_min:
                cut()
            held.append(chunk)
            held_bytes += len(chunk)
            count += items_of
            if count >= most_items and held_bytes >= split_min:
                cut()
        cut()
        return Plan(splits, [], [str(self)])

    def _chunks(self, items_of: int, most_bytes: int) -> Iterator[tuple[int, bytes]]:
        """Chunks of so many items, or of fewer where they have more bytes than a split has."""
        for first in range(0, len(self.data), items_of):
            yield from _pickled(self.data[first : first + items_of], first, most_bytes)

    def open(self, what: dict[str, Any], *, tolerant: bool = False) -> Reader:
        """Open a split."""
        del tolerant  # objects are always right
        return _ItemReader(what["first"], what["chunks"])


@known_options
def items(data: Iterable[Any], *, tag: str = "") -> Items:
    """Objects that the program has in memory; each is a record.

    Args:
        data: Objects that can be pickled; read once, when the function is called.
        tag: A name for this input, if a job has several: `context.tag` while the job reads it.

    Raises:
        TypeError: It is a text, a data frame, or no collection.

    Example:
        >>> str(items(range(3)))
        'gm.items(3 items)'
    """
    rows = _ROWS.get((type(data).__module__.partition(".")[0], type(data).__name__))
    if rows is not None:
        raise TypeError(
            "cannot make gm.items: the items of a data frame are not its rows."
            f" What to do: give gm.items({rows})."
        )
    if isinstance(data, str | bytes) or not hasattr(data, "__iter__"):
        raise TypeError(
            f"cannot make gm.items({short(data)}): it takes a collection of records."
            f" What to do: give a list, such as [{short(data)}]."
        )
    return Items(tuple(data), tag=tag)


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
                _core.pulse(self._count - 1, self._first + self._count - 1, 0, self._bytes)
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


def _pickled(chunk: tuple[Any, ...], first: int, most_bytes: int) -> Iterator[tuple[int, bytes]]:
    try:
        data = dumps(list(chunk))
    except Exception as error:  # pickling runs the objects' own code, which may raise anything
        raise TypeError(
            f"cannot plan the job: gm.items cannot pickle the items from {first} on ({error})."
            " What to do: give plain data, and open files or connections in setup."
        ) from error
    if len(data) > most_bytes and len(chunk) > 1:
        half = len(chunk) // 2
        yield from _pickled(chunk[:half], first, most_bytes)
        yield from _pickled(chunk[half:], first + half, most_bytes)
    else:
        yield len(chunk), data
