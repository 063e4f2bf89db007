"""Splits as Arrow batches, for `map_batches`.

    text   ──lines of 4 MB, or the rest of a file──▶ a column `line`
    tables ──row groups, or batches of the file────▶ the file's columns

The borders of batches depend on the split alone, so that what a function makes of a batch does not
change with memory or workers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from gristmill.mapreduce.extras import pyarrow
from gristmill.mapreduce.formats.format import BadRecord, Where
from gristmill.mapreduce.formats.lines import Lines

__all__ = ["TextBatches"]

BATCH_BYTES = 4_000_000
"""Bytes of text in a batch: columns that fit the cache of a core's neighbours, and few calls."""


@dataclass(slots=True)
class TextBatches:
    """The lines of a text split, a batch at a time."""

    source: Lines
    """What reads them."""
    as_text: bool
    """Whether they are UTF-8, and the column is of text."""
    decode: Callable[[bytes], str] | None = None
    """What makes text of a line of another encoding."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:  # noqa: ANN401 - a RecordBatch
        found = self.source.native.batch(BATCH_BYTES)
        if found is None:
            raise StopIteration
        rows, offsets, data, no_text = found
        if no_text is not None:
            raise BadRecord(
                f"the byte at offset {no_text} is not UTF-8 text",
                "give gm.text encoding=None, which makes the column binary",
            )
        arrow = pyarrow()
        kind = arrow.string() if self.as_text else arrow.binary()
        buffers = [None, arrow.py_buffer(offsets), arrow.py_buffer(data)]
        lines = arrow.Array.from_buffers(kind, rows, buffers, 0)
        if self.decode is not None:
            lines = arrow.array(map(self.decode, lines.to_pylist()), arrow.string())
        return arrow.RecordBatch.from_arrays([lines], ["line"])

    def where(self) -> Where:
        """Return where the batch that came last begins."""
        return self.source.where()

    def raw(self) -> object:
        """Return a word for the batch that came last."""
        return f"batch {self.where()[2]} of the split"

    def bytes_read(self) -> int:
        """Return how many bytes of the split are read."""
        return self.source.native.bytes_read()

    def records_read(self) -> int:
        """Return how many batches have come."""
        return self.source.native.records_read()
