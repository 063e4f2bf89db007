"""Records of any kind to tables, 65,536 rows at a time.

The first rows decide the types; a record that does not fit them is an error that names it, since a
column has one type, and says how to give the types beforehand.
"""

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from reprlib import repr as short
from typing import Any

from gristmill.mapreduce.column_names import check_has, shown_names
from gristmill.mapreduce.extras import pyarrow
from gristmill.mapreduce.fields import fields_of
from gristmill.mapreduce.formats import BadRecord
from gristmill.mapreduce.keys import without_order
from gristmill.mapreduce.kinds import is_dict, is_pair, is_tuple, settled

__all__ = ["TableWriter", "is_batch", "rows_of", "to_rows"]

_GROUP_ROWS = 65_536


class TableWriter:
    """A file of a table."""

    def __init__(
        self,
        path: str,
        begin: Callable[[Any], Any],
        schema: Any,  # noqa: ANN401 - a pyarrow.Schema
        columns: tuple[str, ...] | None = None,
    ) -> None:
        self._arrow = pyarrow()
        self._path = path
        self._begin = begin
        self._schema = schema
        self._columns = columns
        self._file: Any = None
        self._rows: list[dict[str, Any]] = []
        self._names: set[str] | None = None if schema is None else set(schema.names)

    def write(self, record: Any) -> None:  # noqa: ANN401 - dicts, pairs, batches
        """Write a record, or all rows of a batch or table."""
        if is_batch(record):
            self._flush()
            self._put(
                self._selected(self._arrow.table(record) if _is_record_batch(record) else record)
            )
            return
        row = settled(self._row(record))  # as it is now: user code may change what it yielded
        if self._names is not None and not self._names.issuperset(row):
            raise self._unknown(row)
        self._rows.append(row)
        if len(self._rows) >= _GROUP_ROWS:
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
        if self._columns is None:
            return table
        check_has(table.schema.names, self._columns)
        return table.select(list(self._columns))

    def close(self) -> int:
        """Finish the file; returns how many bytes it has."""
        self._flush()
        if self._file is None:
            self._open(self._schema or self._arrow.schema([]))
        file: Any = self._file
        with self._named():
            file.close()
        return Path(self._path).stat().st_size

    def _flush(self) -> None:
        if not self._rows:
            return
        table = self._table(self._of_rows)
        self._rows.clear()
        self._put(table)

    def _of_rows(self) -> Any:  # noqa: ANN401 - a pyarrow.Table
        if self._schema is not None:
            return self._arrow.Table.from_pylist(self._rows, schema=self._schema)
        names = dict.fromkeys(name for row in self._rows for name in row)
        return self._arrow.table({name: [row.get(name) for row in self._rows] for name in names})

    def _table(self, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - a pyarrow.Table
        arrow = self._arrow
        wrong = (arrow.ArrowInvalid, arrow.ArrowTypeError, OverflowError, TypeError)
        try:
            with suppress(*wrong):
                return make()
            # Keys in descending order are not Arrow's: only now, as a look at each row takes time.
            self._rows[:] = map(without_order, self._rows)
            return make()
        except wrong as error:
            raise self._mixed(error) from None

    def _put(self, table: Any) -> None:  # noqa: ANN401 - a pyarrow.Table
        if self._file is None:
            self._open(self._schema or table.schema)
        if table.schema != self._schema:
            unknown = [name for name in table.schema.names if name not in (self._names or ())]
            if unknown:
                raise self._unknown(unknown)
            try:
                table = table.select(self._schema.names).cast(self._schema)
            except (KeyError, self._arrow.ArrowInvalid) as error:
                raise BadRecord(
                    f"rows do not have the columns of those before: {error}", _ADVICE
                ) from None
        if self._file is not None and hasattr(self._file, "write_table"):
            with self._named():
                self._file.write_table(table)

    def _open(self, schema: Any) -> None:  # noqa: ANN401 - a pyarrow.Schema
        self._schema = schema
        self._names = set(schema.names)
        with self._named():
            self._file = self._begin(schema)

    @contextmanager
    def _named(self) -> Generator[None]:
        """Name the file that cannot be written: pyarrow does not, of a disk that is full."""
        try:
            yield
        except OSError as error:
            if error.errno is None or error.filename is not None:
                raise
            raise OSError(error.errno, os.strerror(error.errno), self._path) from None

    def _unknown(self, columns: Iterable[str]) -> BadRecord:
        """What a row holds that the table has no column for: leaving it out would lose it."""
        names = self._names or set[str]()
        more = shown_names([str(name) for name in columns if name not in names])
        return BadRecord(
            f"a row has the columns {more}, and the table has {shown_names(sorted(names))}",
            "give every row the same columns, or the output schema= with all of them",
        )

    def _mixed(self, error: Exception) -> BadRecord:
        """What went wrong, with the first record that the ones before it do not go with."""
        seen: dict[str, str] = {}
        for row in self._rows:
            for name, value in row.items():
                kind = _kind(value)
                before = seen.get(name, kind)
                if kind is None or before is None:
                    continue
                if kind != before and {kind, before} != {"int", "float"}:
                    return BadRecord(
                        f"the column {name} holds values of type {before}, and the record"
                        f" {short(row)} one of type {kind}: a table has one type in a column",
                        _ADVICE,
                    )
                seen[name] = kind
        return BadRecord(f"the records make no table: {error}", _ADVICE)


_ADVICE = "make the types equal, or give the output schema="


def is_batch(record: object) -> bool:
    """Whether a record is a table or a batch of pyarrow's, which need not be installed.

    Example:
        >>> is_batch({"a": 1})
        False
    """
    kind = type(record)
    return kind.__module__ == "pyarrow.lib" and kind.__name__ in ("RecordBatch", "Table")


def rows_of(batch: Any) -> list[Any]:  # noqa: ANN401 - a batch or table
    """Return the rows of a batch: pairs, if its columns are `key` and `value`; else dicts.

    Example:
        >>> rows_of(pyarrow().table({"key": ["a"], "value": [1]}))
        [('a', 1)]
    """
    if batch.schema.names == ["key", "value"]:
        keys, values = (batch.column(number).to_pylist() for number in range(2))
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


def _value(value: Any) -> Any:  # noqa: ANN401 - any value
    return list(value) if is_tuple(value) else value


def _kind(value: object) -> str | None:
    return None if value is None else type(value).__name__
