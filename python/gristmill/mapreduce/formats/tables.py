"""`gm.parquet` and `gm.arrow`: tables, through pyarrow.

    parquet   a split is some row groups        arrow   a split is some record batches

As records, rows are dicts; `map_batches` gets them as they are. An offset is the number of a row in
the file. As outputs, columns take the types that hold all values (`table_writer`).
"""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from gristmill import _core
from gristmill.locations import absolute, is_remote, open_read, size_of
from gristmill.mapreduce.extras import pyarrow
from gristmill.mapreduce.formats.column_names import as_columns, check_columns, take_some
from gristmill.mapreduce.formats.combine_splits import Before, Several, before_of, is_shared, shared
from gristmill.mapreduce.formats.exact_rows import Nanoseconds, check_names, check_times
from gristmill.mapreduce.formats.format import BadRecord, Format, Reader, Where, Writer
from gristmill.mapreduce.formats.paths import StrPath, as_paths
from gristmill.mapreduce.formats.plan import Plan, Split, split_bytes
from gristmill.mapreduce.formats.table_parts import narrower
from gristmill.mapreduce.formats.table_writer import TableWriter
from gristmill.mapreduce.shown import shown
from gristmill.names import show_path
from gristmill.signatures import known_options

__all__ = ["Arrow", "Parquet", "arrow", "opened_table", "parquet", "reading_table"]

BATCH_ROWS = 65_536


class _Tables(Format):
    """What both formats share: a split has batches, and what it gives are their rows."""

    SUFFIX: ClassVar[str]

    @property
    def suffix(self) -> str:
        """The end of its files' names: the compression is inside."""
        return self.SUFFIX

    @property
    def batched(self) -> bool:
        """It is made of batches."""
        return True

    def open(self, what: dict[str, Any], *, tolerant: bool = False) -> Reader:
        """Open a split as rows."""
        if is_shared(what):
            return Several(what, self.open, tolerant=tolerant)
        return _Rows(self._opened(what))  # what is damaged has no rows to go on with

    def open_batches(self, what: dict[str, Any]) -> Reader:
        """Open a split as batches."""
        if is_shared(what):
            return Several(what, self._opened, tolerant=False)
        return self._opened(what)

    def _opened(self, what: dict[str, Any]) -> "_Batches":
        path = absolute(what["path"])  # user code may go elsewhere
        return _Batches(what, self._batches(path, what))

    def _batches(self, path: str, what: dict[str, Any]) -> Iterator[Any]:
        raise NotImplementedError


@dataclass(frozen=True)
class Parquet(_Tables):
    """Parquet files; see `parquet`."""

    NAME: ClassVar[str] = "parquet"
    SUFFIX: ClassVar[str] = ".parquet"

    columns: tuple[str, ...] | None = None
    schema: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_codec(self, ("snappy", "zstd", "gzip", "lz4"))
        check_columns(self, self.columns)
        _check_schema(self, self.schema)

    def plan(self, split_min: int, split_max: int) -> Plan:
        """Cut the files between row groups."""
        reading = pyarrow("parquet")
        files = self.files()
        size = split_bytes(_total(files), split_min, split_max)
        splits: list[Split] = []
        for path in files:
            with reading_table(path):
                found = reading.read_metadata(opened_table(path))
                names = found.schema.to_arrow_schema().names
            if names or found.num_rows:  # a part that its job left empty may have no columns
                self._check_columns(path, names)
            groups = [found.row_group(number) for number in range(found.num_row_groups)]
            sizes = [_group_bytes(group) for group in groups]
            rows = [group.num_rows for group in groups]
            splits.extend(_cut(path, sizes, rows, size))
        return Plan(shared(splits, size), files, list(self.paths))

    def _batches(self, path: str, what: dict[str, Any]) -> Iterator[Any]:
        with reading_table(path), pyarrow("parquet").ParquetFile(opened_table(path)) as file:
            # One group at a time: the borders of batches are then a function of the file alone.
            for group in range(what["first"], what["last"]):
                yield from file.iter_batches(
                    BATCH_ROWS, row_groups=[group], columns=self._wanted(), use_threads=False
                )

    def _check_columns(self, path: str, names: list[str]) -> None:
        """Refuse columns that a file has not: pyarrow would leave them out without a word."""
        known = set(names)
        for name in self.columns or ():
            if name not in known and name.split(".")[0] not in known:
                raise BadRecord(
                    f"cannot read {show_path(path)}: it has no column {name!r}",
                    take_some(names),
                )

    def _wanted(self) -> list[str] | None:
        return None if self.columns is None else list(self.columns)

    def writer(self, path: str) -> Writer:
        """Make a file."""
        reading = pyarrow("parquet")
        codec = self.codec or "snappy"

        def begin(schema: Any) -> Any:  # noqa: ANN401 - pyarrow's
            return reading.ParquetWriter(opened_table(path, "wb"), schema, compression=codec)

        return TableWriter(path, begin, _parquet_batches, self.schema, self.columns)

    def narrower(self, paths: Sequence[str]) -> Iterator[tuple[int, Callable[[str], int]]]:
        """Yield the parts that have not the schema of all."""
        if self.schema is not None:
            return iter(())
        return narrower(paths, _parquet_schema, _parquet_batches, self._with_schema)

    def _with_schema(self, schema: Any) -> Callable[[str], Writer]:  # noqa: ANN401 - pyarrow's
        return replace(self, schema=schema, columns=None).writer


@dataclass(frozen=True)
class Arrow(_Tables):
    """Arrow IPC files; see `arrow`."""

    NAME: ClassVar[str] = "arrow"
    SUFFIX: ClassVar[str] = ".arrow"

    schema: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_codec(self, ("zstd", "lz4"))
        _check_schema(self, self.schema)

    def plan(self, split_min: int, split_max: int) -> Plan:
        """Cut the files between record batches."""
        ipc = pyarrow("ipc")
        files = self.files()
        size = split_bytes(_total(files), split_min, split_max)
        splits: list[Split] = []
        for path in files:
            with (
                reading_table(path),
                _mapped(path) as source,
                ipc.open_file(source) as file,
            ):
                batches = [file.get_batch(number) for number in range(file.num_record_batches)]
                sizes = [max(batch.nbytes, 1) for batch in batches]
                rows = [batch.num_rows for batch in batches]
            splits.extend(_cut(path, sizes, rows, size))
        return Plan(shared(splits, size), files, list(self.paths))

    def _batches(self, path: str, what: dict[str, Any]) -> Iterator[Any]:
        ipc = pyarrow("ipc")
        with (
            reading_table(path),
            _mapped(path) as source,
            ipc.open_file(source) as file,
        ):
            for number in range(what["first"], what["last"]):
                yield file.get_batch(number)

    def writer(self, path: str) -> Writer:
        """Make a file."""
        ipc = pyarrow("ipc")
        options = ipc.IpcWriteOptions(compression=self.codec)

        def begin(schema: Any) -> Any:  # noqa: ANN401 - pyarrow's
            return ipc.new_file(opened_table(path, "wb"), schema, options=options)

        return TableWriter(path, begin, _arrow_batches, self.schema)

    def narrower(self, paths: Sequence[str]) -> Iterator[tuple[int, Callable[[str], int]]]:
        """Yield the parts that have not the schema of all."""
        if self.schema is not None:
            return iter(())
        return narrower(paths, _arrow_schema, _arrow_batches, self._with_schema)

    def _with_schema(self, schema: Any) -> Callable[[str], Writer]:  # noqa: ANN401 - pyarrow's
        return replace(self, schema=schema).writer


@known_options
def parquet(
    paths: StrPath | Iterable[StrPath] = (),
    *,
    columns: Iterable[str] | None = None,
    codec: str | None = None,
    schema: Any = None,  # noqa: ANN401 - a pyarrow.Schema, which need not be installed
    tag: str = "",
) -> Parquet:
    """Parquet files: a record is a row as a dict; `map_batches` gets `pyarrow.RecordBatch`es.

    As an output, dicts are rows, a key and its value are the columns `key` and `value`. All files
    get one schema: a column takes the type that holds all its values, and is null where a row lacks
    it. If no type does, the job fails and names the record. Needs pyarrow (the extra `arrow`).

    Args:
        paths: As an input files, directories, patterns; as an output a directory.
        columns: The columns to read, or to write, in this order; by default all. Each must be
            there. Of a key that is a tuple, each element is a column, if all have names.
        codec: How pages of the output are compressed: `snappy` (the default), `zstd`, `gzip`,
            `lz4`.
        schema: The `pyarrow.Schema` of the output; by default the one that holds all records. A
            value that does not fit it is an error, but a `float32` rounds.
        tag: A name for this input, if a job has several: `context.tag` while the job reads it.

    Example:
        >>> parquet("trips/*.parquet", columns=["fare"]).columns
        ('fare',)
    """
    return Parquet(as_paths(paths), codec, as_columns(columns), schema, tag=tag)


@known_options
def arrow(
    paths: StrPath | Iterable[StrPath] = (),
    *,
    codec: str | None = None,
    schema: Any = None,  # noqa: ANN401 - a pyarrow.Schema, which need not be installed
    tag: str = "",
) -> Arrow:
    """Arrow IPC files (also called feather): as `parquet`, but without decoding.

    Args:
        paths: As an input files, directories, patterns; as an output a directory.
        codec: How buffers of the output are compressed: `zstd` or `lz4`; by default not.
        schema: The `pyarrow.Schema` of the output; by default the one that holds all records. A
            value that does not fit it is an error, but a `float32` rounds.
        tag: A name for this input, if a job has several: `context.tag` while the job reads it.

    Example:
        >>> arrow("trips/").suffix
        '.arrow'
    """
    return Arrow(as_paths(paths), codec, schema, tag=tag)


def _check_schema(table: _Tables, schema: Any) -> None:  # noqa: ANN401 - whatever was given
    if schema is not None and not hasattr(schema, "empty_table"):
        raise TypeError(
            f"cannot read the options: of gm.{table.NAME}, schema is {shown(schema)}."
            " What to do: give a pyarrow.Schema, such as pyarrow.schema({'n': pyarrow.int64()})."
        )


def _parquet_schema(path: str) -> Any:  # noqa: ANN401 - a pyarrow.Schema
    with reading_table(path):
        return pyarrow("parquet").read_schema(opened_table(path))


def _arrow_schema(path: str) -> Any:  # noqa: ANN401 - a pyarrow.Schema
    with reading_table(path), _mapped(path) as source, pyarrow("ipc").open_file(source) as file:
        return file.schema


def _parquet_batches(path: str) -> Iterator[Any]:
    with pyarrow("parquet").ParquetFile(opened_table(path)) as file:
        yield from file.iter_batches(BATCH_ROWS, use_threads=False)


def _arrow_batches(path: str) -> Iterator[Any]:
    with _mapped(path) as source, pyarrow("ipc").open_file(source) as file:
        for number in range(file.num_record_batches):
            yield file.get_batch(number)


def _check_codec(form: Format, known: tuple[str, ...]) -> None:
    """Refuse what the format has no pages or buffers of, though files can be compressed so."""
    if form.codec is not None and form.codec not in known:
        raise ValueError(
            f"cannot read the options: gm.{form.NAME} has no codec {form.codec!r}."
            f" What to do: take one of {', '.join(known)}."
        )


@contextmanager
def reading_table(path: str) -> Generator[None]:
    """Say of which file it is that pyarrow finds something wrong."""
    try:
        yield
    except BadRecord:
        raise
    except (ValueError, OSError, KeyError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        text = " ".join(str(error).split()).rstrip(".")
        raise BadRecord(
            f"cannot read {show_path(path)}: {text}",
            "check that it is whole, and of this format",
        ) from None


def opened_table(path: str, mode: str = "rb") -> Any:  # noqa: ANN401 - pyarrow's
    """What pyarrow takes for a file: its name, or the file where that is not UTF-8 or not local."""
    if is_remote(path):
        return open_read(path)
    try:
        path.encode()
    except UnicodeEncodeError:
        return pyarrow().OSFile(os.fsencode(path), mode)
    return path


def _mapped(path: str) -> Any:  # noqa: ANN401 - pyarrow's
    """A file to read batches from: in memory where that takes nothing."""
    return open_read(path) if is_remote(path) else pyarrow().memory_map(os.fsencode(path))


def _total(files: list[str]) -> int:
    return sum(map(size_of, files))


def _group_bytes(group: Any) -> int:  # noqa: ANN401 - pyarrow's
    columns = (group.column(number) for number in range(group.num_columns))
    return max(sum(column.total_compressed_size for column in columns), 1)


def _cut(path: str, sizes: list[int], rows: list[int], size: int) -> Iterator[Split]:
    """Splits of whole groups, about `size` bytes each."""
    first = held = row = rows_held = 0
    for number, (group_bytes, group_rows) in enumerate(zip(sizes, rows, strict=True)):
        held += group_bytes
        rows_held += group_rows
        if held >= size or number + 1 == len(sizes):
            what = {"path": path, "first": first, "last": number + 1, "row": row, "bytes": held}
            yield Split(held, what)
            row += rows_held
            first, held, rows_held = number + 1, 0, 0


class _Batches:
    """The batches of a split."""

    def __init__(self, what: dict[str, Any], batches: Iterator[Any]) -> None:
        self._what = what
        self._before = before_of(what)
        self._batches = batches
        self._row = what["row"]
        self._last_rows = 0
        self._count = 0

    def __iter__(self) -> Iterator[Any]:
        for batch in self._batches:
            self._row += self._last_rows
            self._last_rows = batch.num_rows
            self._count += 1
            files, records, done = self._before
            _core.pulse(records + self._count - 1, self._row, files, done)
            yield batch

    @property
    def before(self) -> Before:
        """What of the task comes before this split."""
        return self._before

    def where(self) -> Where:
        """Return the first row of the batch that came last."""
        return self._what["path"], self._row, max(self._count - 1, 0), 0

    def raw(self) -> object:
        """Return a word for the batch that came last."""
        return f"rows {self._row} to {self._row + self._last_rows - 1}"

    def bytes_read(self) -> int:
        """Return how many bytes of the split are read: all, when it has ended."""
        return self._what["bytes"]

    def records_read(self) -> int:
        """Return how many batches have come."""
        return self._count


class _Rows:
    """The rows of a split, as dicts."""

    def __init__(self, batches: "_Batches") -> None:
        self._batches = batches
        self._path = batches.where()[0]
        self._first = batches.where()[1]
        self._before = batches.before
        self._count = 0
        self._last: object = None

    def __iter__(self) -> Iterator[Any]:
        for batch in self._batches:
            self._check(batch)
            for row in batch.to_pylist():
                self._last = row
                files, records, done = self._before
                _core.pulse(records + self._count, self._first + self._count, files, done)
                self._count += 1
                yield row

    def _check(self, batch: Any) -> None:  # noqa: ANN401 - a RecordBatch
        check_names(batch)
        try:
            check_times(batch)
        except Nanoseconds as error:
            self._count += error.row + 1
            self._last = f"row {self.where()[1]}"
            raise

    def where(self) -> Where:
        """Return the row that came last."""
        record = max(self._count - 1, 0)
        return self._path, self._first + record, record, 0

    def raw(self) -> object:
        """Return the row that came last."""
        return self._last

    def bytes_read(self) -> int:
        """Return how many bytes of the split are read."""
        return self._batches.bytes_read()

    def records_read(self) -> int:
        """Return how many rows have come."""
        return self._count
