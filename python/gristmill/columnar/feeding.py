"""Parquet files as CSV in a pipe, which a thread fills.

The end of the pipe says that all was written: where a file cannot be read, the pipe stays open, and
who reads it asks `failure` meanwhile.

Decision: docs/decisions/parquet-as-csv.md.
"""

import csv
import io
import os
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO

from gristmill.mapreduce.extras import pyarrow
from gristmill.mapreduce.formats.format import BadRecord
from gristmill.mapreduce.formats.paths import find_files
from gristmill.mapreduce.formats.tables import BATCH_ROWS, opened_table, reading_table
from gristmill.names import show_path

__all__ = ["Feed"]

_BUFFER_BYTES = 1 << 20


class Feed:
    """The files that a path names, as one table of text.

    All have the columns of the first one, in its order.
    """

    def __init__(self, path: str, separator: str, *, header: bool) -> None:
        """Look at the files.

        Raises:
            ValueError: A column has no text, or a file is not Parquet.
            OSError: A file cannot be read.
        """
        self._files = find_files([path])
        self._separator = separator
        self._header = header
        self.failure: Exception | None = None
        """Why not all can be read."""
        self.schema = _schema(self._files[0])
        self._text = _as_text(self._files[0], self.schema)
        self._reader, self._writer = os.pipe()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="gristmill-parquet")

    @property
    def path(self) -> str:
        """Where the table is read, once."""
        return f"/dev/fd/{self._reader}"

    def begin(self) -> None:
        """Begin to write."""
        self._thread.start()

    def close(self) -> None:
        """End, also where nobody has read all."""
        os.close(self._reader)
        if self._thread.ident is not None:
            self._thread.join()
        if not self._ended:
            os.close(self._writer)

    def _run(self) -> None:
        try:
            with open(self._writer, "wb", _BUFFER_BYTES, closefd=False) as pipe:
                self._write(pipe)
            self._ended = True  # another file may have the number from now on
            os.close(self._writer)
        except BrokenPipeError:  # it is not read to its end
            return
        except Exception as error:  # noqa: BLE001 - raised where the table is read
            self.failure = error

    def _write(self, pipe: BinaryIO) -> None:
        names = self.schema.names
        if self._header:
            line = io.StringIO()
            csv.writer(line, delimiter=self._separator, lineterminator="\n").writerow(names)
            pipe.write(line.getvalue().encode())
        module = pyarrow("csv")
        options = module.WriteOptions(include_header=False, delimiter=self._separator)
        with module.CSVWriter(pipe, self._text, write_options=options) as writer:
            for path in self._files:
                for batch in self._batches(path):
                    writer.write(batch)

    def _batches(self, path: str) -> Iterator[Any]:
        """The rows of a file, as types that have a text."""
        names: list[str] = self.schema.names
        with reading_table(path), pyarrow("parquet").ParquetFile(opened_table(path)) as file:
            there: list[str] = file.schema_arrow.names
            if missing := sorted(set(names) ^ set(there)):
                raise BadRecord(
                    f"cannot read {show_path(path)}: it has not the columns of"
                    f" {show_path(self._files[0])}: {', '.join(missing)} are in one of the two",
                    "name files with the same columns",
                )
            for batch in file.iter_batches(BATCH_ROWS, use_threads=False):
                columns = [
                    _text_of(path, name, batch.column(batch.schema.names.index(name)), kind)
                    for name, kind in zip(names, self._text.types, strict=True)
                ]
                if len(columns) == 1:  # an empty line is no row
                    columns = [columns[0].fill_null("")]
                yield pyarrow().record_batch(columns, schema=self._text)


def _schema(path: str) -> Any:  # noqa: ANN401 - a pyarrow.Schema
    with reading_table(path):
        found = pyarrow("parquet").read_schema(opened_table(path))
    if not found.names:
        raise BadRecord(f"cannot read {show_path(path)}: it has no columns")
    twice = {name for name in found.names if found.names.count(name) > 1}
    if twice:
        raise BadRecord(f"cannot read {show_path(path)}: it has two columns {twice.pop()!r}")
    return found


def _as_text(path: str, schema: Any) -> Any:  # noqa: ANN401 - schemas
    """The schema with types of which CSV has a text; of a single column, text."""
    arrow = pyarrow()
    kinds = [(field.name, _with_text(path, field, field.type)) for field in schema]
    return arrow.schema(kinds if len(kinds) > 1 else [(schema.names[0], arrow.string())])


def _with_text(path: str, field: Any, kind: Any) -> Any:  # noqa: ANN401 - pyarrow's
    """A type that holds what another one holds, and of which CSV has a text."""
    arrow, types = pyarrow(), pyarrow("types")
    if types.is_dictionary(kind):
        return _with_text(path, field, kind.value_type)
    if types.is_nested(kind):
        raise BadRecord(
            f"cannot read {show_path(path)} as rows of text: its column {field.name!r} is {kind}",
            "leave the column out of the file, or take a Python job, whose gm.parquet reads it",
        )
    if types.is_float16(kind):
        return arrow.float32()
    if types.is_decimal(kind) and not types.is_decimal128(kind):
        return arrow.string()
    binary = (
        types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    )
    views = types.is_string_view(kind) or types.is_binary_view(kind)
    other = isinstance(kind, arrow.BaseExtensionType)
    return arrow.string() if binary or views or other else kind


def _text_of(path: str, name: str, column: Any, kind: Any) -> Any:  # noqa: ANN401 - pyarrow's
    """A column as a type that has a text."""
    arrow = pyarrow()
    if isinstance(column, arrow.ExtensionArray):
        column = column.storage
    try:
        return column if column.type == kind else column.cast(kind)
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError) as error:
        raise BadRecord(
            f"cannot read {show_path(path)} as rows of text: in the column {name!r},"
            f" of {column.type}: {str(error).rstrip('.')}",
            "leave the column out of the file",
        ) from None
