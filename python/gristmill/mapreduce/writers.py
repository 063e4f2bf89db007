"""Files of lines, written in pieces of a quarter of a megabyte, compressed on the way."""

from collections.abc import Callable

from gristmill import _core

__all__ = ["LineWriter"]

_PIECE_BYTES = 256_000


class LineWriter:
    """A file with a line for each record."""

    def __init__(
        self, path: str, codec: str | None, line_of: Callable[[object], str | bytes]
    ) -> None:
        self._file = _core.CompressedWriter(path, codec)
        self._line_of = line_of
        self._lines: list[bytes] = []
        self._held_bytes = 0

    def write(self, record: object) -> None:
        """Write a record as a line."""
        line = self._line_of(record)
        data = line.encode() if isinstance(line, str) else line
        self._lines.append(data)
        self._held_bytes += len(data)
        if self._held_bytes >= _PIECE_BYTES:
            self._flush()

    def close(self) -> int:
        """Finish the file; returns how many bytes it has."""
        self._flush()
        return self._file.close()

    def _flush(self) -> None:
        if self._lines:
            self._lines.append(b"")
            self._file.write(b"\n".join(self._lines))
            self._lines.clear()
            self._held_bytes = 0
