"""Records of any kind to rows of `gm.csv`, with one header.

    row ─▶ the columns so far ─▶ the file
               │ another column
               ▼
    the file is set aside, another begins; `close` makes one file of all

The first row names the columns. What a row has not is an empty field, and what it has more is one
more column: so it is with `gm.parquet`. Where no header could tell, each row has the columns of
the first.
"""

import csv as python_csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from reprlib import repr as short
from typing import Any

from gristmill import _core
from gristmill.mapreduce.formats.column_names import shown_names
from gristmill.mapreduce.formats.fields import fields_of
from gristmill.mapreduce.formats.format import BadRecord
from gristmill.mapreduce.formats.paths import set_aside
from gristmill.mapreduce.kinds import is_dict, is_list, is_pair

__all__ = ["RowWriter"]

_END = "\r\n"

_ADVICE = "give every row the same columns, or the output columns= with their names"


class RowWriter:
    """A file of rows, with a header by the first of them, or by the columns that are given."""

    def __init__(
        self,
        path: str,
        codec: str | None,
        dialect: Mapping[str, Any],
        read: Callable[[str], Iterator[dict[str, str]]],
        *,
        header: bool,
        columns: tuple[str, ...] | None,
    ) -> None:
        """Make a writer; `read` gives the rows of a file of the same form."""
        self._path = path
        self._codec = codec
        self._read = read
        self._header = header
        self._columns = columns
        self._lines = _core.LineWriter(path, codec)
        self._aside: list[str] = []
        self._names: tuple[str, ...] | None = None
        self._known = frozenset[str]()
        self._buffer = io.StringIO()
        self._csv = python_csv.writer(
            self._buffer,
            lineterminator=_END,  # what it quotes in fields, besides
            **dialect,
        )

    def write(self, record: Any) -> None:  # noqa: ANN401 - whatever the csv module takes
        """Write a record as a row."""
        row: object = tuple(record) if is_list(record) else record
        if self._names is None:
            self.begin(self._columns or _names_of(row))
        self._row(self._selected(row) if is_dict(row) else self._fields(row))

    def _fields(self, row: object) -> list[object]:
        """The fields of a row without names."""
        fields = list(fields_of(row))
        if len(fields) != len(self._names or ()):
            raise self._unlike(row, f"{len(self._names or ())} columns")
        return fields

    def _selected(self, row: dict[str, Any]) -> list[object]:
        """The row's fields by the names of the columns, of which there may be more now."""
        if row.keys() != self._known:
            self._check(row)
        return [row.get(name) for name in self._names or ()]

    def _check(self, row: dict[str, Any]) -> None:
        """Refuse a row with other columns, or let it have them."""
        more = row.keys() - self._known
        if self._columns is not None:
            fits = row.keys() >= self._known
        else:
            fits = self._header and set(map(type, more)) <= {str}
        if not fits:
            raise self._unlike(row, f"the columns {shown_names(self._names or ())}")
        if more and self._columns is None:
            self._set_aside()
            self.begin(tuple(dict.fromkeys([*(self._names or ()), *row])))

    def _unlike(self, row: object, columns: str) -> BadRecord:
        said = "as those before" if self._columns is None else "which columns= names"
        return BadRecord(f"the record {short(row)} has not {columns}, {said}", _ADVICE)

    def begin(self, names: tuple[str, ...]) -> None:
        """Name the columns; the first row does, where nobody has."""
        if not names:
            raise BadRecord("a record has no columns", _ADVICE)
        self._names, self._known = names, frozenset(names)
        if self._header:
            self._row(names)

    def _set_aside(self) -> None:
        self._lines.close()
        self._aside.append(set_aside(self._path, len(self._aside)))
        self._lines = _core.LineWriter(self._path, self._codec)

    def close(self) -> int:
        """Finish the file; returns how many bytes it has."""
        if self._aside:
            self._join()
        if self._names is None and self._columns:
            self.begin(self._columns)
        return self._lines.close()

    def _join(self) -> None:
        """Make one file of those that were set aside."""
        self._set_aside()
        names = self._names or ()
        self.begin(names)
        for path in self._aside:
            for row in self._read(path):
                self._row([row.get(name) for name in names])
            Path(path).unlink()

    def _row(self, values: Iterable[object]) -> None:
        self._buffer.seek(0)
        self._buffer.truncate()
        self._csv.writerow(list(map(_field, values)))
        self._lines.write(self._buffer.getvalue().removesuffix(_END))


def _field(value: object) -> object:
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise BadRecord(
            f"bytes that are not text have no csv: {error}", "decode them, or write gm.kv"
        ) from None


def _names_of(record: object) -> tuple[str, ...]:
    fields = len(list(fields_of(record)))
    if is_dict(record):
        return tuple(map(str, record))
    if is_pair(record):
        keys = len(list(fields_of(record[0])))
        return (*_numbered("key", keys), *_numbered("value", fields - keys))
    return tuple(f"column_{number + 1}" for number in range(fields))


def _numbered(name: str, count: int) -> Iterator[str]:
    return (name if count == 1 else f"{name}_{number + 1}" for number in range(count))
