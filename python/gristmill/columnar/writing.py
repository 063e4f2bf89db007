"""CSV as Parquet: types for what a command has written as text.

names that the inputs have ─▶ their types      others ─▶ a pass over them: the first of int64,
                                                         double, decimal, string that holds all
the file again ─▶ Parquet; a type that does not hold its cells after all makes way for the above

Decision: docs/decisions/parquet-as-csv.md.
"""

import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from gristmill.mapreduce.extras import pyarrow
from gristmill.mapreduce.formats.format import BadRecord
from gristmill.names import show_path

__all__ = ["Csv", "write_parquet"]

_BLOCK_BYTES = 1 << 24
_DECIMAL = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$"
_PARTS = r"^-?(?P<before>\d+)(?:\.(?P<after>\d+))?$"
_OF_OTHERS = re.compile("(_right|_[0-9]+)$")
"""Behind a name that a join has from several inputs (crates/engine/src/jobs/join/names.rs)."""
_EXACT_DIGITS = 15
"""So many decimal digits a double always holds."""
_DECIMAL_DIGITS = 38
_COLUMN = re.compile(r"In CSV column #(\d+)")


class Csv:
    """Files of CSV with equal columns."""

    def __init__(
        self,
        paths: Sequence[Path],
        separator: str,
        headers: int,
        tell: Callable[[int, int], None] = lambda _done, _all: None,
    ) -> None:
        """Look at the first one; so many of them have a header, from the first one on.

        `tell` is called with the bytes that are read, and with those of all files.
        """
        self._paths = paths
        self._tell = tell
        self._separator = separator
        self._with_header = frozenset(paths[:headers])
        self.names: list[str] = []
        try:
            with paths[0].open("rb") as file:
                self.names = self._open(file, {}, None, paths[0]).schema.names
        except pyarrow().ArrowInvalid:
            raise BadRecord(
                "the output has no columns: there is neither a header nor a row",
                "give an input that has a header",
            ) from None

    def batches(
        self, path: Path, kinds: Mapping[str, Any], columns: list[str] | None = None
    ) -> Iterator[Any]:
        """Yield the rows of a file; a cell without anything is null, and `""` is a text.

        Args:
            path: The file.
            kinds: The types of columns.
            columns: Those that are wanted.

        Raises:
            _Misfit: A cell is not of its type.
            BadRecord: A row is no row of a table.
        """
        before = sum(other.stat().st_size for other in self._paths[: self._paths.index(path)])
        whole = sum(other.stat().st_size for other in self._paths)
        with path.open("rb") as file, self._misfits():
            for batch in self._open(file, kinds, columns, path):
                yield batch
                self._tell(before + file.tell(), whole)

    @contextmanager
    def _misfits(self) -> Generator[None]:
        """Say which column it is of which a cell is not of its type."""
        try:
            yield
        except pyarrow().ArrowInvalid as error:
            found = _COLUMN.search(str(error))
            if found is None:
                raise BadRecord(f"the rows make no table: {error}".rstrip(".")) from None
            raise _Misfit(self.names[int(found[1])]) from None

    def _open(
        self, file: BinaryIO, kinds: Mapping[str, Any], columns: list[str] | None, path: Path
    ) -> Any:  # noqa: ANN401 - pyarrow's reader
        module = pyarrow("csv")
        made: dict[str, Any] = {}
        if path not in self._with_header:
            known = bool(self._with_header)
            made = {"column_names": self.names} if known else {"autogenerate_column_names": True}
        return module.open_csv(
            file,
            module.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False, **made),
            module.ParseOptions(delimiter=self._separator, newlines_in_values=True),
            module.ConvertOptions(
                column_types=dict(kinds),
                include_columns=columns,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=len(self.names) == 1,
            ),
        )

    def paths(self) -> Sequence[Path]:
        """Return the files."""
        return self._paths


def write_parquet(
    source: Csv, targets: Sequence[Path], known: Mapping[str, Any], codec: str
) -> None:
    """Write each file as Parquet, all with one schema.

    Args:
        source: The files.
        targets: Where each goes.
        known: Types of columns, by their names.
        codec: How pages are compressed.

    Raises:
        BadRecord: A row is no row of a table of text.
        OSError: A file cannot be written.
    """
    kinds = {name: kind for name in source.names if (kind := _known(name, known)) is not None}
    of_inputs = set(kinds)
    while True:
        kinds |= _inferred(source, [name for name in source.names if name not in kinds])
        try:
            for path, target in zip(source.paths(), targets, strict=True):
                _write(source, path, target, kinds, codec)
        except _Misfit as misfit:
            if misfit.column not in of_inputs:
                kinds[misfit.column] = pyarrow().string()  # which holds all
            else:
                of_inputs.remove(misfit.column)
                del kinds[misfit.column]
        else:
            return


class _Misfit(Exception):
    """A column has a cell that is not of its type."""

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column


def _known(name: str, known: Mapping[str, Any]) -> Any:  # noqa: ANN401 - pyarrow's, or none
    """The type of the input's column of this name; of `n_right` of a join, that of `n`."""
    while name not in known and (shorter := _OF_OTHERS.sub("", name)) != name:
        name = shorter
    return known.get(name)


def _write(source: Csv, path: Path, target: Path, kinds: Mapping[str, Any], codec: str) -> None:
    arrow = pyarrow()
    kinds = {name: kinds[name] for name in source.names}
    schema = arrow.schema(list(kinds.items()))
    read = {name: _read_as(kind) for name, kind in kinds.items()}
    with (
        _named(target),
        pyarrow("parquet").ParquetWriter(str(target), schema, compression=codec) as writer,
    ):
        for batch in source.batches(path, read):
            columns = [_as_type(batch.column(name), name, kind) for name, kind in kinds.items()]
            writer.write_batch(arrow.record_batch(columns, schema=schema))


def _as_type(column: Any, name: str, kind: Any) -> Any:  # noqa: ANN401 - pyarrow's
    try:
        return column if column.type == kind else column.cast(kind)
    except pyarrow().ArrowInvalid:
        raise _Misfit(name) from None


def _read_as(kind: Any) -> Any:  # noqa: ANN401 - pyarrow's
    """The type as which a column is read, before it is made another."""
    arrow, types = pyarrow(), pyarrow("types")
    plain = (
        types.is_integer(kind) or types.is_float32(kind) or types.is_float64(kind)
        or types.is_temporal(kind) or types.is_boolean(kind) or types.is_null(kind)
        or types.is_decimal128(kind)
    )  # fmt: skip
    return kind if plain else arrow.string()


def _inferred(source: Csv, names: list[str]) -> dict[str, Any]:
    """The types of columns of which nothing is known: those that hold all cells without loss."""
    if not names:
        return {}
    texts = dict.fromkeys(names, pyarrow().string())
    found = {name: _Cells() for name in names}
    for path in source.paths():
        for batch in source.batches(path, texts, names):
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                found[name].take(column)
    return {name: cells.kind() for name, cells in found.items()}


class _Cells:
    """What types hold all cells of a column so far."""

    def __init__(self) -> None:
        self._any = False
        self._integer = True
        self._double = True
        self._decimal = True
        self._before, self._after = 1, 0
        """Digits of decimals, before and after the point."""

    def take(self, column: Any) -> None:  # noqa: ANN401 - an array of texts
        """Look at more cells."""
        compute = pyarrow("compute")
        cells = column.drop_null()
        if not len(cells):
            return
        self._any = True
        self._integer = self._integer and _survives(cells, pyarrow().int64())
        if self._decimal:
            self._decimal = compute.all(compute.match_substring_regex(cells, _DECIMAL)).as_py()
        if self._decimal:
            parts = compute.extract_regex(cells, _PARTS)
            before, after = (compute.max(compute.utf8_length(parts.field(at))) for at in (0, 1))
            self._before = max(self._before, before.as_py())
            self._after = max(self._after, after.as_py() or 0)
            if self._before + self._after <= _EXACT_DIGITS:
                return
        self._double = self._double and _survives(cells, pyarrow().float64())

    def kind(self) -> Any:  # noqa: ANN401 - pyarrow's
        """Return the type."""
        arrow, digits = pyarrow(), self._before + self._after
        if not self._any:
            return arrow.string()
        if self._integer:
            return arrow.int64()
        if self._double:
            return arrow.float64()
        if self._decimal and digits <= _DECIMAL_DIGITS:
            return arrow.decimal128(digits, self._after)
        return arrow.string()


def _survives(cells: Any, kind: Any) -> bool:  # noqa: ANN401 - pyarrow's
    """Whether texts are the same after they were of a type."""
    arrow = pyarrow()
    try:
        return bool(cells.cast(kind).cast(arrow.string()).equals(cells))
    except arrow.ArrowInvalid:
        return False


@contextmanager
def _named(target: Path) -> Generator[None]:
    """Name the file that cannot be written: pyarrow does not."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, show_path(str(target))) from None
