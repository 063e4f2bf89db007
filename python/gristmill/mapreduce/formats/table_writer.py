"""Records of any kind to tables, 65,536 rows at a time.

    rows ─▶ a group with a schema of its own ─▶ the schema of all groups so far ─▶ the file
                                                    │ wider than that of the file
                                                    ▼
                    the file is set aside, another begins; `close` makes one file of all

The rule that must hold: what is read is what was written. A schema widens where nothing is lost. A
value that no type holds together with those before is an error that names its record, and so is
one that does not fit the schema that the user gave. See docs/decisions/one-schema.md.
"""

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from reprlib import repr as short
from typing import Any

from gristmill import _core
from gristmill.mapreduce.extras import pyarrow
from gristmill.mapreduce.formats.column_names import check_has, shown_names
from gristmill.mapreduce.formats.column_types import merged
from gristmill.mapreduce.formats.exact_columns import Misfit, as_schema, inferred, of_type
from gristmill.mapreduce.formats.exact_rows import check_names, check_times
from gristmill.mapreduce.formats.fields import fields_of
from gristmill.mapreduce.formats.format import BadRecord
from gristmill.mapreduce.formats.paths import set_aside
from gristmill.mapreduce.formats.refused_rows import missing_value, without_fields
from gristmill.mapreduce.keys import without_order
from gristmill.mapreduce.kinds import is_batch, is_dict, is_pair, is_tuple, settled

__all__ = ["ADVICE", "GROUP_ROWS", "TableWriter", "rows_of", "to_rows"]

GROUP_ROWS = 65_536

_TYPE_CHARACTERS_MAX = 200
"""So much of a type stands in an error: a struct may have a thousand fields."""


class TableWriter:
    """A file of a table."""

    def __init__(
        self,
        path: str,
        begin: Callable[[Any], Any],
        read: Callable[[str], Iterator[Any]],
        schema: Any,  # noqa: ANN401 - a pyarrow.Schema
        columns: tuple[str, ...] | None = None,
    ) -> None:
        """Make a writer; `begin` makes the file, for a schema, and `read` gives its batches."""
        self._arrow = pyarrow()
        self._path = path
        self._begin = begin
        self._read = read
        self._given = schema
        self._schema = schema
        self._columns = columns
        self._file: Any = None
        self._aside: list[str] = []
        self._written = 0
        self._rows: list[dict[str, Any]] = []
        self._names: set[str] | None = None if schema is None else set(schema.names)

    def write(self, record: Any) -> None:  # noqa: ANN401 - dicts, pairs, batches
        """Write a record, or all rows of a batch or table."""
        if type(record) is not dict and is_batch(record):
            self._flush()
            self._put(
                self._selected(self._arrow.table(record) if _is_record_batch(record) else record)
            )
            return
        row = settled(self._row(record))  # as it is now: user code may change what it yielded
        if self._names is not None and not self._names.issuperset(row):
            raise self._unknown(row)
        self._rows.append(row)
        if len(self._rows) >= GROUP_ROWS:
            self._flush()

    def _row(self, record: Any) -> dict[str, Any]:  # noqa: ANN401 - any record
        """The record as a row of the columns that the output names, or else of all."""
        names = self._columns
        if names is None:
            return to_rows(record)
        if is_tuple(record):
            # A key that is a tuple is columns of its own, as in csv, if all have names.
            values = record if len(record) == len(names) else tuple(fields_of(record))
            if len(values) == len(names):
                return {name: _value(value) for name, value in zip(names, values, strict=True)}
        if not is_dict(record) or not record.keys() >= set(names):
            raise BadRecord(
                f"the record {short(record)} has not the columns {shown_names(names)},"
                " which columns= names"
            )
        return {name: record[name] for name in names}

    def _selected(self, table: Any) -> Any:  # noqa: ANN401 - a pyarrow.Table
        check_names(table)
        if self._columns is None:
            return table
        check_has(table.schema.names, self._columns)
        return table.select(list(self._columns))

    def close(self) -> int:
        """Finish the file; returns how many bytes it has."""
        self._flush()
        if self._aside:
            self._set_aside()
            self._join()
        if self._file is None:
            self._open()
        self._close()
        return Path(self._path).stat().st_size

    def _flush(self) -> None:
        if not self._rows:
            return
        table = self._of_rows()
        self._put(table)
        self._rows.clear()

    def _of_rows(self) -> Any:  # noqa: ANN401 - a pyarrow.Table
        try:
            return self._made()
        except Misfit:
            # Keys in descending order are not Arrow's: only now, as a look at each row takes time.
            self._rows[:] = map(without_order, self._rows)
        try:
            return self._made()
        except Misfit as misfit:
            raise self._misfit(misfit, self._rows[misfit.index]) from None

    def _made(self) -> Any:  # noqa: ANN401 - a pyarrow.Table
        if self._given is None:
            names = dict.fromkeys(() if self._schema is None else self._schema.names)
            names |= dict.fromkeys(chain.from_iterable(self._rows))
            if not names:
                raise BadRecord("a record has no columns", ADVICE)
            if not all(map(_is_text, names)):
                raise self._no_text()
            return self._arrow.table({name: self._column(name, inferred) for name in names})
        columns = [
            self._column(field.name, lambda values, kind=field.type: of_type(values, kind))
            for field in self._given
        ]
        return self._arrow.table(columns, schema=self._given)

    def _no_text(self) -> BadRecord:
        """The first name of a column that is not text, with its record."""
        number, row, name = next(
            (number, row, name)
            for number, row in enumerate(self._rows, self._written + 1)
            for name in row
            if not _is_text(name)
        )
        return BadRecord(
            f"record {number:,} of the part, {short(row)}, has a column named {short(name)}, which"
            " is not text",
            "make the keys of each dict text",
        )

    def _column(self, name: str, make: Callable[[list[Any]], Any]) -> Any:  # noqa: ANN401
        try:
            return make([row.get(name) for row in self._rows])
        except Misfit as misfit:
            raise Misfit(misfit.index, misfit.kind, name) from None

    def _put(self, table: Any) -> None:  # noqa: ANN401 - a pyarrow.Table
        if not table.num_rows and self._schema is not None:
            return  # it changes no type
        if self._given is None:
            self._widen(table)
        elif self._given.names != table.schema.names:
            self._check_known(table.schema.names)
        try:
            table = as_schema(table, self._schema)
        except Misfit as misfit:
            row = table.slice(misfit.index, 1).to_pylist()[0]
            raise self._misfit(misfit, row) from None
        missing = missing_value(table)
        if missing is not None:
            row, column = missing
            what = f"{self._record(table, row)} no value in the column {column!r}"
            advice = "give each record a value, or the column nullable=True in schema="
            raise BadRecord(f"{what}, which is not nullable", advice)
        if self._file is None:
            self._open(table)
        self._write(table)
        self._written += table.num_rows

    def _widen(self, table: Any) -> None:  # noqa: ANN401 - a pyarrow.Table
        """Let the schema hold the table, too; a file of a narrower one is set aside."""
        if self._schema is None:
            self._schema = table.schema
        if table.schema.equals(self._schema):
            return
        try:
            wide = merged(self._schema, table.schema)
        except ValueError as error:
            name = str(error)
            column = table.column(name)
            index = next((at for at, value in enumerate(column) if value.is_valid), 0)
            row = table.slice(index, 1).to_pylist()[0]
            raise self._misfit(Misfit(index, self._schema.field(name).type, name), row) from None
        if not wide.equals(self._schema):
            self._set_aside()
            self._schema = wide

    def _set_aside(self) -> None:
        if self._file is None:
            return
        self._close()
        self._aside.append(set_aside(self._path, len(self._aside)))

    def _join(self) -> None:
        """Make one file of those that were set aside."""
        self._open()
        self._written = 0
        for path in self._aside:
            for batch in self._read(path):
                self._put(self._arrow.table(batch))
                _core.beat()
            Path(path).unlink()

    def _record(self, table: Any, row: int) -> str:  # noqa: ANN401 - a pyarrow.Table
        """How an error about a row of a table begins."""
        shown = short(table.slice(row, 1).to_pylist()[0])
        return f"record {self._written + row + 1:,} of the part, {shown}, has"

    def _open(self, table: Any = None) -> None:  # noqa: ANN401 - a pyarrow.Table, the first
        if self._schema is None:
            null = self._arrow.null()
            self._schema = self._arrow.schema([(name, null) for name in self._columns or ()])
        try:
            with self._named():
                self._file = self._begin(self._schema)
        except NotImplementedError as error:
            empty = None if table is None else without_fields(table)
            if empty is not None:
                row, column = empty
                what = f"{self._record(table, row)} a dict without keys in the column {column!r}"
                advice = "leave the column out, give the dict a key, or write gm.arrow or gm.jsonl"
                raise BadRecord(f"{what}, which Parquet cannot hold", advice) from None
            raise BadRecord(f"the records make no table: {error}".rstrip("."), ADVICE) from None

    def _write(self, table: Any) -> None:  # noqa: ANN401 - a pyarrow.Table
        with self._named():
            self._file.write_table(table)

    def _close(self) -> None:
        file, self._file = self._file, None
        with self._named():
            file.close()

    @contextmanager
    def _named(self) -> Generator[None]:
        """Name the file that cannot be written: pyarrow does not, of a disk that is full."""
        try:
            yield
        except OSError as error:
            if error.errno is None or error.filename is not None:
                raise
            raise OSError(error.errno, os.strerror(error.errno), self._path) from None

    def _check_known(self, columns: Iterable[str]) -> None:
        names = self._names or set[str]()
        if not names.issuperset(columns):
            raise self._unknown(columns)

    def _unknown(self, columns: Iterable[str]) -> BadRecord:
        """What a row holds that the table has no column for: leaving it out would lose it."""
        names = self._names or set[str]()
        more = shown_names([str(name) for name in columns if name not in names])
        return BadRecord(
            f"a row has the columns {more}, and the table has {shown_names(sorted(names))}",
            "give every row the same columns, or the output schema= with all of them",
        )

    def _misfit(self, misfit: Misfit, row: dict[str, Any]) -> BadRecord:
        """What does not fit, with its record and its column."""
        value = row.get(misfit.column)
        number = self._written + misfit.index + 1
        has = (
            f"record {number:,} of the part, {short(row)}, has {short(value)}"
            f" of type {type(value).__name__}"
        )
        if self._arrow.types.is_null(misfit.kind):
            return BadRecord(f"{has} in the column {misfit.column!r}, which no type holds", ADVICE)
        kind = str(misfit.kind)[:_TYPE_CHARACTERS_MAX]
        return BadRecord(
            f"the column {misfit.column!r} is {kind}, and {has}, which it cannot hold without loss",
            ADVICE if self._given is None else _ADVICE_GIVEN,
        )


ADVICE = "make the types equal, or give the output schema="
"""What to do about values that no type of a column holds together."""

_ADVICE_GIVEN = "give the column of schema= a type that holds all values"


def rows_of(batch: Any) -> list[Any]:  # noqa: ANN401 - a batch or table
    """Return the rows of a batch: pairs, if its columns are `key` and `value`; else dicts.

    Raises:
        BadRecord: Objects of Python do not hold them.

    Example:
        >>> rows_of(pyarrow().table({"key": ["a"], "value": [1]}))
        [('a', 1)]
    """
    check_names(batch)
    check_times(batch)
    if sorted(batch.schema.names) == ["key", "value"]:
        keys, values = (batch.column(name).to_pylist() for name in ("key", "value"))
        return list(zip(keys, values, strict=True))
    return batch.to_pylist()


def _is_record_batch(record: object) -> bool:
    return type(record).__name__ == "RecordBatch"


def to_rows(record: Any) -> dict[str, Any]:  # noqa: ANN401 - any record
    """Return a record as a row: a pair has the columns `key` and `value`.

    Example:
        >>> to_rows(("a", 1)), to_rows("line")
        ({'key': 'a', 'value': 1}, {'value': 'line'})
    """
    if is_dict(record):
        return record
    if is_pair(record):
        return {"key": _value(record[0]), "value": _value(record[1])}
    if is_tuple(record):
        return {f"column_{at + 1}": _value(value) for at, value in enumerate(record)}
    return {"value": _value(record)}


def _is_text(name: object) -> bool:
    return isinstance(name, str)


def _value(value: Any) -> Any:  # noqa: ANN401 - any value
    return list(value) if is_tuple(value) else value
