"""`gm.csv`: rows of fields, with Python's own `csv` module.

A quoted field may hold a newline. So a newline in the middle of a file may be inside a row, which
only a reader of all bytes before it can tell. The engine looks for the quotes of a large file
before it is cut, which takes a small part of the time that Python takes for its rows. With
`multiline=False` each line is a row, and a row with a newline in a quoted field is a bad record,
wherever the file is cut. A row that has not as many fields as the header is one, too.

Decision: docs/decisions/csv-rows.md.
"""

import codecs
import csv as python_csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar, cast

from gristmill.mapreduce.formats.column_names import (
    as_columns,
    check_columns,
    check_has,
    named_twice,
)
from gristmill.mapreduce.formats.combine_splits import Several, is_shared, shared
from gristmill.mapreduce.formats.csv_writer import RowWriter
from gristmill.mapreduce.formats.format import BadRecord, Format, Reader, Where
from gristmill.mapreduce.formats.lines import decoder, lines_of, plan_lines
from gristmill.mapreduce.formats.paths import StrPath, as_paths
from gristmill.mapreduce.formats.plan import NO_MAX, Plan, Split, split_bytes
from gristmill.signatures import known_options

__all__ = ["Csv", "csv"]

_FIELD_BYTES_MAX = 64 << 20
"""The longest field, as long as the longest line. Python's own limit of 128 kB is too low."""

_ENCODING = "name the encoding with encoding=, or leave such records out with skip_bad=N"

_ASCII_IS_ITSELF = re.compile(r"utf-8|ascii|iso8859-\d+|cp(125\d|437|85\d)|koi8-[rtu]|mac-roman")
"""Encodings in which a byte below 128 is that character, and never a part of another one."""

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
            self._check_marks()
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"cannot read the options: {error}. What to do: give gm.csv a delimiter and a"
                " quotechar of one character each."
            ) from None

    def _check_marks(self) -> None:
        """Refuse what the `csv` module takes, though no table can be told apart by it."""
        marks = set[str | None]((self.delimiter, self.quotechar))
        if None in marks:
            raise ValueError("quotechar is None")
        if len(marks | {"\r", "\n"}) < 4:
            raise ValueError("delimiter and quotechar are not two that end no line")

    def plan(self, split_min: int, split_max: int) -> Plan:
        """Cut the files where rows begin; small files share a split."""
        csv = self._found_in_bytes() if self.multiline else None
        cut = csv is not None or not self.multiline
        plan = plan_lines(
            self, split_min, split_max, cut=cut, combine=False, csv=csv, ends_with_lf=True
        )
        splits = plan.splits
        if self.header:
            splits = [self._with_header(split) for split in splits]
        size = split_bytes(plan.bytes, split_min, split_max)
        return replace(plan, splits=shared(splits, size))

    def _found_in_bytes(self) -> tuple[str, str] | None:
        """Return the delimiter and the quote, if they can be found before a file is decoded."""
        plain = _ASCII_IS_ITSELF.fullmatch(codecs.lookup(self.encoding).name)
        found = (self.delimiter, self.quotechar)
        return found if plain and "".join(found).isascii() else None

    def _with_header(self, split: Split) -> Split:
        (piece,) = split.what["pieces"]
        if piece["start"] == 0:
            return split
        size = piece["file_bytes"]
        first = {**piece, "start": 0, "bytes": size if self.multiline else min(size, 1 << 16)}
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
        return python_csv.reader(lines, strict=True, **self._dialect())

    def _dialect(self) -> dict[str, Any]:
        return {"delimiter": self.delimiter, "quotechar": self.quotechar}

    def open_file(self, path: str) -> Iterator[Any]:
        """Read a file that `writer` has made: it is not cut, and not read for that."""
        own = self.as_written().at(path)
        for split in own.plan(NO_MAX, NO_MAX).splits:
            yield from own.open(split.what)

    def writer(self, path: str) -> RowWriter:
        """Make a file of rows."""
        return RowWriter(
            path,
            self.codec,
            self._dialect(),
            self._written_rows,
            header=self.header,
            columns=self.columns,
        )

    def _written_rows(self, path: str) -> Iterator[dict[str, str]]:
        """Read back a file that a writer has written, with a header."""
        return replace(self, columns=None, multiline=True, encoding="utf-8").open_file(path)

    def narrower(self, paths: Sequence[str]) -> Iterator[tuple[int, Callable[[str], int]]]:
        """Yield the parts whose header is not the columns of all parts together."""
        if not self.header or self.columns is not None:
            return
        headers = list(map(self._header_of, paths))
        columns = tuple(dict.fromkeys(chain(*headers)))
        for number, (path, header) in enumerate(zip(paths, headers, strict=True)):
            if tuple(header) != columns:
                yield number, partial(self._rewrite, path, columns)

    def _header_of(self, path: str) -> list[str]:
        plain = replace(self, paths=as_paths(path), encoding="utf-8", multiline=True)
        for split in plan_lines(plain, 0, NO_MAX, cut=False, combine=False).splits:
            with suppress(StopIteration):  # an empty part has no header
                return _RowReader(plain, split.what).names()
        return []

    def _rewrite(self, path: str, columns: tuple[str, ...], target: str) -> int:
        writer = self.writer(target)
        writer.begin(columns)
        for row in self._written_rows(path):
            writer.write(row)
        return writer.close()


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
    `column_1`, `column_2` and so on. All files get the same header, with the names of all dicts; a
    field that a dict lacks is empty.

    Args:
        paths: As an input files, directories, patterns; as an output a directory.
        header: Whether the first row of each file names the columns.
        delimiter: What stands between fields.
        quotechar: What stands around fields that hold a delimiter or a newline.
        multiline: Whether a quoted field may hold a newline. Then a large file is read once more,
            for its quotes, before it is cut; one in a store is not cut. With `False` each line is
            a row, and a field with a newline is an error.
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
    """Reads the rows of a split. The position of a row is that of its first line."""

    def __init__(self, source: Csv, what: dict[str, Any]) -> None:
        self._native = lines_of(what, text=False)
        self._multiline = source.multiline
        self._decode = decoder(source.encoding, "strict")
        self._at: Where | None = None
        self._raw: list[bytes] = []
        self._count = 0
        self._not_text: UnicodeDecodeError | None = None
        self._source = source
        self._rows = source.rows(self._lines())
        self._names: list[str] | None = what.get("header")
        self._wanted = source.columns
        if not source.header and source.columns is not None:
            self._names, self._wanted = list(source.columns), None
        if python_csv.field_size_limit() < _FIELD_BYTES_MAX:
            python_csv.field_size_limit(_FIELD_BYTES_MAX)

    def names(self) -> list[str]:
        """Return the names of the columns: those given with the split, or those of the first row.

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
        if self._names is None and self._source.header:
            self.names()
        row = self._row()
        while not row:  # an empty line
            row = self._row()
        self._count += 1
        names = self._names
        if names is None:
            return tuple(row)
        if len(row) != len(names):
            raise self._other_length(row, names)
        record = dict(zip(names, row))  # noqa: B905 - the lengths are equal, and this is each row
        return record if self._wanted is None else {name: record[name] for name in self._wanted}

    def _other_length(self, row: list[str], names: list[str]) -> BadRecord:
        by = "the header names" if self._source.header else "columns= names"
        return BadRecord(
            f"the row has {len(row)} fields, and {by} {len(names)}",
            "" if self._multiline else _LINES_OF_ONE_FIELD,
        )

    def _row(self) -> list[str]:
        self._at = self._not_text = None
        self._raw.clear()
        try:
            row = next(self._rows)
        except python_csv.Error as error:
            self._pass_over()
            raise self._bad(f"the row is not CSV: {error}") from None
        except BadRecord:
            self._pass_over()
            raise
        if self._not_text is not None:
            self._count += 1
            raise self._bad("") from None
        return row

    def _bad(self, what: str) -> BadRecord:
        if self._not_text is None:
            return BadRecord(what)
        what = f"the row is not text in {self._source.encoding}: {self._not_text}"
        return BadRecord(what, _ENCODING)

    def _pass_over(self) -> None:
        """Count a bad row, and continue with the line after it."""
        self._rows = self._source.rows(self._lines())
        self._count += 1

    def _lines(self) -> Iterator[str]:
        decode, raw = self._decode, self._raw
        lines = cast("Iterable[bytes]", self._native.native)
        for line in lines:
            raw.append(line)
            try:
                text = decode(line)
            except UnicodeDecodeError as error:  # the row is bad, and ends where it ends
                self._not_text, text = error, line.decode("latin-1")
            yield text + "\n"
            if not raw:  # `_row` has cleared it: a new row begins
                continue
            if not self._multiline:  # the parser asks for another line of the same row
                raise BadRecord(
                    "a quoted field does not end on its line, and with multiline=False it must",
                    "close its quote, or leave multiline=False out if the field holds a newline",
                )
            if self._at is None:
                self._at = self._native.where()

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
