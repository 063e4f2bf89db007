"""Small files share a split, of formats that are opened one file at a time.

    a.csv  b.csv  c.csv    big.kv          neighbours, up to the size of a split
    └──── a task ─────┘    └ tasks ┘

A task costs some milliseconds and a file of runs, so that 10,000 files of their own tasks would
take twenty times as long as together. What the records of each file are does not change.
"""

from collections.abc import Callable, Iterator
from typing import Any

from gristmill.mapreduce.formats.format import Reader, Where
from gristmill.mapreduce.formats.plan import Split

__all__ = ["Before", "Several", "before_of", "is_shared", "shared"]

Before = tuple[int, int, int]
"""How many files, records and bytes of a split come before what a reader reads."""


def shared(splits: list[Split], size: int) -> list[Split]:
    """Put neighbouring splits together that are shorter than `size`, to such of about that size.

    Example:
        >>> splits = [Split(size, {"path": name}) for size, name in ((3, "a"), (4, "b"), (9, "c"))]
        >>> [(split.bytes, is_shared(split.what)) for split in shared(splits, 8)]
        [(7, True), (9, False)]
    """
    made: list[Split] = []
    held: list[Split] = []
    held_bytes = 0
    for split in splits:
        if held and (split.bytes >= size or held_bytes + split.bytes > size):
            made.append(_together(held))
            held, held_bytes = [], 0
        if split.bytes >= size:
            made.append(split)
        else:
            held.append(split)
            held_bytes += split.bytes
    return [*made, _together(held)] if held else made


def _together(splits: list[Split]) -> Split:
    if len(splits) == 1:
        return splits[0]
    each = [split.what for split in splits]
    pieces = [piece for what in each for piece in what.get("pieces", [{"path": what.get("path")}])]
    return Split(sum(split.bytes for split in splits), {"several": each, "pieces": pieces})


def is_shared(what: dict[str, Any]) -> bool:
    """Whether a split is several put together."""
    return "several" in what


def before_of(what: dict[str, Any]) -> Before:
    """Return what comes before, of a split that is one of several."""
    files, records, size = what.get("before", (0, 0, 0))
    return files, records, size


class Several:
    """The records of a shared split: a reader after the other."""

    def __init__(
        self, what: dict[str, Any], opened: Callable[[dict[str, Any]], Reader], *, tolerant: bool
    ) -> None:
        self._left = iter(what["several"])
        self._opened = opened
        self._tolerant = tolerant
        self._reader: Reader | None = None
        self._records: Iterator[Any] | None = None
        self._before: Before = (0, 0, 0)
        self._opening: Where = ("", 0, 0, 0)

    def __iter__(self) -> Iterator[Any]:
        # A generator is quicker, and ends with the first error.
        return self if self._tolerant else self._all()

    def _all(self) -> Iterator[Any]:
        while self._open():
            assert self._records is not None
            yield from self._records
            self._close()

    def __next__(self) -> object:
        while True:
            if self._records is None and not self._open():
                raise StopIteration
            assert self._records is not None
            for record in self._records:
                return record
            self._close()

    def _open(self) -> bool:
        what = next(self._left, None)
        if what is None:
            return False
        path = what["path"] if "path" in what else what["pieces"][0]["path"]
        self._opening = (path, 0, self._before[1], 0)
        self._reader = self._opened({**what, "before": self._before})
        self._records = iter(self._reader)
        return True

    def _close(self) -> None:
        assert self._reader is not None
        files, _, _ = self._before
        self._before = (files + 1, self.records_read(), self.bytes_read())
        self._reader = self._records = None

    def where(self) -> Where:
        """Return where the record that came last begins."""
        if self._reader is None:
            return self._opening
        file, offset, record, line = self._reader.where()
        return file, offset, self._before[1] + record, line

    def raw(self) -> object:
        """Return the record that came last as it stands in the file."""
        return None if self._reader is None else self._reader.raw()

    def bytes_read(self) -> int:
        """Return how many bytes of the split are read."""
        return self._before[2] + (0 if self._reader is None else self._reader.bytes_read())

    def records_read(self) -> int:
        """Return how many records have come."""
        return self._before[1] + (0 if self._reader is None else self._reader.records_read())
