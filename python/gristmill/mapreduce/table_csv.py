"""`gm.csv`: rows of fields, with Python's own `csv` module.

A quoted field may hold a newline. Then a place in the middle of a file may be in the middle of a
row, and nobody can tell without having read all before it: so a file is one split, unless the job
says `multiline=False`. Then each line is a row, and a quoted field that holds a newline makes its
row a bad record, wherever the file is cut. So does another number of fields than the header's.
"""

import csv as python_csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from reprlib import repr as short
from typing import Any, ClassVar

from gristmill import _core
from gristmill.mapreduce.column_names import (
    as_columns,
    check_columns,
    check_has,
    named_twice,
    shown_names,
)
from gristmill.mapreduce.combine_splits import Several, is_shared, shared
from gristmill.mapreduce.fields import fields_of
from gristmill.mapreduce.formats import BadRecord, Format, Reader, Where, Writer
from gristmill.mapreduce.kinds import is_dict, is_list, is_pair
from gristmill.mapreduce.lines import decoder, lines_of, plan_lines
from gristmill.mapreduce.paths import StrPath, as_paths
from gristmill.mapreduce.plan import Plan, Split, split_bytes
from gristmill.signatures import known_options

__all__ = ["Csv", "csv"]

_END = "\r\n"

_FIELD_BYTES_MAX = 64 << 20
"""The longest field, as the longest line; Python's own limit is 128 kB, which texts exceed."""

_LINES_OF_ONE_FIELD = "leave multiline=False out if a quoted field holds a newline"


@dataclass(frozen=True)
class Csv(Format):
    """Rows of fields; see `csv`."""

    NAME: ClassVar[str] = "csv"
    SUFFIX: ClassVar[str] = ".csv"
    CAN_SKIP: ClassVar[bool] = True

    header: bool = True
    delimiter: str = ","
    quotechar: str = '"'
    multiline: bool = True
    encoding: str = "utf-8"
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        decoder(self.encoding, "strict")
        check_columns(self, self.columns)
        try:
            self.rows(iter(()))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"cannot read the options: {error}. What to do: give gm.csv a delimiter and a"
                " quotechar of one character each."
            ) from None

    def plan(self, split_min: int, split_max: int) -> Plan:
        """Cut the files at line ends, if rows end there; small ones share a split."""
        plan = plan_lines(self, split_min, split_max, cut=not self.multiline, combine=False)
        splits = plan.splits
        if self.header:
            splits = [self._with_header(split) for split in splits]
        size = split_bytes(plan.bytes, split_min, split_max)
        return replace(plan, splits=shared(splits, size))

    def _with_header(self, split: Split) -> Split:
        (piece,) = split.what["pieces"]
        if piece["start"] == 0:
            return split
        first = {**piece, "start": 0, "bytes": min(piece["file_bytes"], 1 << 16)}
        try:
            names = _RowReader(self, {"pieces": [first]}).names()
        except ValueError as error:
            raise ValueError(f"cannot plan the job: {piece['path']}: {error}") from None
        return Split(split.bytes, {**split.what, "header": names})

    def open(self, what: dict[str, Any], *, tolerant: bool = False) -> Reader:
        """Open a split."""
        if is_shared(what):
            return Several(what, self.open, tolerant=tolerant)
        return _RowReader(self, what)  # tolerant: rows are parsed one by one

    def rows(self, lines: Iterator[str]) -> Iterator[list[str]]:
        """Return the rows of `lines`."""
        return python_csv.reader(
            lines, delimiter=self.delimiter, quotechar=self.quotechar, strict=True
        )

    def writer(self, path: str) -> Writer:
        """Make a file of rows."""
        return _RowWriter(path, self)


@known_options
def csv(
    paths: StrPath | Iterable[StrPath] = (),
    *,
    header: bool = True,
    delimiter: str = ",",
    quotechar: str = '"',
    multiline: bool = True,
    encoding: str = "utf-8",
    columns: Iterable[str] | None = None,
    codec: str | None = None,
    tag: str = "",
) -> Csv:
    """Rows of fields, as the `csv` module of Python reads and writes them.

    As an input, a record is a dict by the names of the file's first row, or without `header` and
    `columns` a tuple; all values are texts. As an output, dicts are rows by their names, a key and
    its value are columns `key` and `value` (numbered where they are tuples), any other tuple is
    `column_1`, `column_2` and so on.

    Args:
        paths: As an input files, directories, patterns; as an output a directory.
        header: Whether the first row of each file names the columns.
        delimiter: What stands between fields.
        quotechar: What stands around fields that hold a delimiter or a newline.
        multiline: Whether a quoted field may hold a newline. Then files are not cut: say `False`
            to let large files be read by several workers, if no field does. One that does is an
            error.
        encoding: Of the input; the output is UTF-8.
        columns: The columns of the table, in this order, both to read and to write. Of rows that
            have names (a header, dicts) these columns are taken, and each must be there; of rows
            without names (`header=False`, tuples) they name all fields.
        codec: How the output is compressed: `gzip`, `bzip2`, `zstd`, `lz4`, `xz` or `snappy`.
        tag: A name for this input, if a job has several: `context.tag` while the job reads it.

    Raises:
        ValueError: An option makes no sense.

    Example:
        >>> csv("sales/*.csv.gz", delimiter=";").delimiter
        ';'
    """
    names = as_columns(columns)
    return Csv(
        as_paths(paths), codec, header, delimiter, quotechar, multiline, encoding, names, tag=tag
    )


class _RowReader:
    """The rows of a split. A row is where its first line is."""

    def __init__(self, source: Csv, what: dict[str, Any]) -> None:
        self._native = lines_of(what, text=False)
        self._decode = decoder(source.encoding, "strict")
        self._at: Where | None = None
        self._raw: list[bytes] = []
        self._count = 0
        self._source = source
        self._rows = source.rows(self._lines())
        self._names: list[str] | None = what.get("header")
        self._wanted = source.columns
        if not source.header and source.columns is not None:
            self._names, self._wanted = list(source.columns), None
        if python_csv.field_size_limit() < _FIELD_BYTES_MAX:
            python_csv.field_size_limit(_FIELD_BYTES_MAX)

    def names(self) -> list[str]:
        """Return the names of the columns: those of the first row, if the split has not others.

        Raises:
            ValueError: That row cannot be read, or names a column twice.
        """
        if self._names is None:
            try:
                names = self._row()
            except BadRecord as error:  # which a job may leave out, but for this one
                raise ValueError(f"the first row names no columns: {error}") from None
            if not names:
                raise ValueError(
                    "the first line is empty, and should name the columns."
                    " What to do: remove it, or"
                    " say header=False."
                )
            twice = named_twice(names)
            if twice:
                raise ValueError(
                    f"two columns are named {min(twice)!r}. What to do: rename one of them, or say"
                    " header=False, and leave the first row out."
                )
            self._names = names
            check_has(names, self._wanted)
        return self._names

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> object:
        source = self._source
        if source.header:
            self.names()
        row = self._row()
        while not row:  # an empty line
            row = self._row()
        self._count += 1
        if self._names is None:
            return tuple(row)
        if len(row) != len(self._names):
            by = "the header names" if source.header else "columns= names"
            raise BadRecord(
                f"the row has {len(row)} fields, and {by} {len(self._names)}",
                "" if source.multiline else _LINES_OF_ONE_FIELD,
            )
        record = dict(zip(self._names, row, strict=True))
        return record if self._wanted is None else {name: record[name] for name in self._wanted}

    def _row(self) -> list[str]:
        self._at = None
        self._raw.clear()
        try:
            return next(self._rows)
        except (python_csv.Error, UnicodeDecodeError) as error:
            self._pass_over()
            raise BadRecord(f"the row is not CSV: {error}") from None
        except BadRecord:
            self._pass_over()
            raise

    def _pass_over(self) -> None:
        """Go on with the line behind a bad row."""
        self._rows = self._source.rows(self._lines())
        self._count += 1

    def _lines(self) -> Iterator[str]:
        for line in self._native.native:
            assert isinstance(line, bytes)
            if self._at is None:
                self._at = self._native.where()
            self._raw.append(line)
            yield self._decode(line) + "\n"
            if self._raw and not self._source.multiline:  # the same row asks for more
                raise BadRecord(
                    "a quoted field does not end on its line, and with multiline=False it must",
                    "close its quote, or leave multiline=False out if the field holds a newline",
                )

    def where(self) -> Where:
        """Return where the row that came last begins."""
        file, offset, _, line = self._at or self._native.where()
        return file, offset, max(self._count - 1, 0), line

    def raw(self) -> object:
        """Return the lines of the row that came last."""
        return b"\n".join(self._raw)

    def bytes_read(self) -> int:
        """Return how many bytes of the split are read."""
        return self._native.native.bytes_read()

    def records_read(self) -> int:
        """Return how many rows have come."""
        return self._count


class _RowWriter:
    """A file of rows, with a header by the first of them."""

    def __init__(self, path: str, form: Csv) -> None:
        self._lines = _core.LineWriter(path, form.codec)
        self._form = form
        self._names: tuple[str, ...] | None = None
        self._buffer = io.StringIO()
        self._csv = python_csv.writer(
            self._buffer,
            delimiter=form.delimiter,
            quotechar=form.quotechar,
            lineterminator=_END,  # what it quotes in fields, besides
        )

    def write(self, record: Any) -> None:  # noqa: ANN401 - whatever the csv module takes
        """Write a record as a row."""
        row: object = tuple(record) if is_list(record) else record
        values = list(fields_of(row))
        if self._names is None:
            self._names = self._form.columns or _names_of(row, len(values))
            if self._form.header:
                self._row(self._names)
        names = self._names
        if is_dict(row):
            values = self._selected(row, names)
        elif len(values) != len(names):
            raise BadRecord(f"the record {short(row)} has not {len(names)} columns, {self._as()}")
        self._row(values)

    def _selected(self, row: dict[str, Any], names: tuple[str, ...]) -> list[object]:
        """The row's values by the names of the columns; only `columns=` may leave some out."""
        selects = self._form.columns is not None
        if not (row.keys() >= set(names) if selects else row.keys() == set(names)):
            raise BadRecord(
                f"the record {short(row)} has not the columns {shown_names(names)}, {self._as()}"
            )
        return [row[name] for name in names]

    def _as(self) -> str:
        return "as those before" if self._form.columns is None else "which columns= names"

    def close(self) -> int:
        """Finish the file; returns how many bytes it has."""
        if self._names is None and self._form.columns and self._form.header:
            self._row(self._form.columns)
        return self._lines.close()

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


def _names_of(record: object, fields: int) -> tuple[str, ...]:
    if is_dict(record):
        return tuple(map(str, record))
    if is_pair(record):
        keys = len(list(fields_of(record[0])))
        return (*_numbered("key", keys), *_numbered("value", fields - keys))
    return tuple(f"column_{number + 1}" for number in range(fields))


def _numbered(name: str, count: int) -> Iterator[str]:
    return (name if count == 1 else f"{name}_{number + 1}" for number in range(count))
