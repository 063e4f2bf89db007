"""Splits as Arrow batches, for `map_batches`.

    text   ──blocks of 4 MB, cut at the last line end──▶ a column `line`
    tables ──row groups, or batches of the file────────▶ the file's columns

The borders of batches depend on the split alone, so that what a function makes of a batch does not
change with memory or workers. Lines belong to the split in which they begin, as in the native
reader.
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from gristmill import _core
from gristmill.mapreduce.extras import pyarrow
from gristmill.mapreduce.formats import BadRecord, Where

__all__ = ["TextBatches"]

BLOCK_BYTES = 4_000_000
"""Bytes of text in a batch: columns that fit the cache of a core's neighbours, and few calls."""


class TextBatches:
    """The lines of a text split, a batch at a time."""

    def __init__(self, pieces: list[dict[str, Any]], *, as_text: bool = True) -> None:
        arrow = pyarrow()
        self._pieces = pieces
        self._type = arrow.string() if as_text else arrow.binary()
        self._arrow = arrow
        self._compute = pyarrow("compute")
        self._at: tuple[str, int] = ("", 0)
        self._batches = 0
        self._bytes = 0

    def __iter__(self) -> Iterator[Any]:
        for number, piece in enumerate(self._pieces):
            before = self._bytes
            for offset, block in _blocks(piece):
                self._at = (piece["path"], offset)
                self._batches += 1
                done = min(offset - piece["start"], piece["bytes"])
                _core.pulse(self._batches, offset, number, before + max(done, 0))
                yield self._batch(block)
            self._bytes = before + piece["bytes"]

    def where(self) -> Where:
        """Return where the batch that came last begins."""
        return (*self._at, max(self._batches - 1, 0), 0)

    def raw(self) -> object:
        """Return a word for the batch that came last."""
        return f"batch {self._batches - 1} of the split"

    def bytes_read(self) -> int:
        """Return how many bytes of the split are read."""
        return self._bytes

    def records_read(self) -> int:
        """Return how many batches have come."""
        return self._batches

    def _batch(self, block: bytes) -> Any:  # noqa: ANN401 - a RecordBatch
        """Whole lines as a batch: the block is one value, which is then split natively."""
        arrow = self._arrow
        text = block[:-1] if block.endswith(b"\n") else block
        borders = arrow.array([0, len(text)], arrow.int32()).buffers()[1]
        whole = arrow.Array.from_buffers(self._type, 1, [None, borders, arrow.py_buffer(text)])
        try:
            whole.validate(full=True)
        except arrow.ArrowInvalid:
            raise _not_text(text, self._at[1]) from None
        lines = self._compute.split_pattern(whole, "\n").flatten()
        return arrow.RecordBatch.from_arrays([lines], ["line"])


def _blocks(piece: dict[str, Any]) -> Iterator[tuple[int, bytes]]:
    """Whole lines of a piece of a file, with the offset of the first byte, some MB at a time."""
    if piece["codec"] is not None:
        yield from _whole_lines(_core.CompressedReader(piece["path"]), 0, None)
        return
    start, end = piece["start"], piece["start"] + piece["bytes"]
    with Path(piece["path"]).open("rb") as file:
        if start > 0:  # the line that the byte before belongs to is the split's before
            file.seek(start - 1)
            start = start - 1 + len(file.readline())
        if start < end:
            yield from _whole_lines(file, start, end)


def _whole_lines(
    file: "BinaryIO | _core.CompressedReader", at: int, end: int | None
) -> Iterator[tuple[int, bytes]]:
    """Blocks of lines that begin before `end`; the last of them is read to its end."""
    rest = b""
    while True:
        wanted = BLOCK_BYTES if end is None else min(BLOCK_BYTES, end - at - len(rest))
        block = file.read(wanted) if wanted > 0 else b""
        if not block:
            if rest and isinstance(file, io.IOBase) and not rest.endswith(b"\n"):
                rest += file.readline()
            if rest:
                yield at, rest
            return
        block = rest + block
        cut = block.rfind(b"\n") + 1
        if cut == 0:  # a line longer than a block
            rest = block
            continue
        yield at, block[:cut]
        at, rest = at + cut, block[cut:]


def _not_text(block: bytes, offset: int) -> BadRecord:
    try:
        block.decode()
    except UnicodeDecodeError as error:
        where = offset + error.start
        return BadRecord(
            f"the byte at offset {where} is no UTF-8 text. To go on: give gm.text encoding=None,"
            " which makes the column binary."
        )
    return BadRecord("the block is no UTF-8 text")
