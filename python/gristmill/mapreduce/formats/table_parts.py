"""Parts of a table, each written by a task of its own, to the schema of all.

    part 0   id int64                  ─rewritten─▶ id int64, price double
    part 1   id int64, price int64     ─rewritten─▶ id int64, price double
    part 2   id int64, price double    stays

The rule that must hold: no value changes. Where no type holds the values of all parts, that is an
error that names the column.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from pathlib import PurePath
from reprlib import repr as short
from typing import Any

from gristmill.mapreduce.extras import pyarrow
from gristmill.mapreduce.formats.column_types import merged
from gristmill.mapreduce.formats.format import BadRecord, Writer
from gristmill.mapreduce.formats.table_writer import ADVICE

__all__ = ["narrower"]


def narrower(
    paths: Sequence[str],
    schema_of: Callable[[str], Any],
    read: Callable[[str], Iterator[Any]],
    writer: Callable[[Any], Callable[[str], Writer]],
) -> Iterator[tuple[int, Callable[[str], int]]]:
    """Yield the parts whose schema is narrower than that of all, and what writes each anew.

    Args:
        paths: The parts.
        schema_of: Gives the schema of a part.
        read: Gives its batches.
        writer: Gives for a schema what makes a file at a path.

    Raises:
        BadRecord: A column has no type that holds the values of all parts.
    """
    schemas = list(map(schema_of, paths))
    try:
        schema = reduce(merged, schemas)
    except ValueError as error:
        raise _apart(str(error), paths, schemas, read) from None
    for number, (path, own) in enumerate(zip(paths, schemas, strict=True)):
        if not own.equals(schema):
            yield number, partial(_rewrite, path, read=read, writer=writer(schema))


def _rewrite(
    path: str, target: str, read: Callable[[str], Iterator[Any]], writer: Callable[[str], Writer]
) -> int:
    file = writer(target)
    try:
        for batch in read(path):
            file.write(batch)
        return file.close()
    except BadRecord as error:
        raise BadRecord(f"in {PurePath(path).name}, {error.what}", ADVICE) from None


def _apart(
    column: str,
    paths: Sequence[str],
    schemas: Sequence[Any],
    read: Callable[[str], Iterator[Any]],
) -> BadRecord:
    """The first part with a column of a type that does not go with those before, and its record."""
    before, joint = "", schemas[0]
    for path, schema in zip(paths, schemas, strict=True):
        try:
            joint = merged(joint, schema)
        except ValueError:
            number, row = _first(column, read(path))
            return BadRecord(
                f"the column {column!r} is {joint.field(column).type} in {before}, and record"
                f" {number:,} of {PurePath(path).name}, {short(row)}, has"
                f" {short(row[column])} of type {type(row[column]).__name__}",
                ADVICE,
            )
        if column in schema.names and schema.field(column).type != pyarrow().null():
            before = PurePath(path).name
    raise AssertionError(column)


def _first(column: str, batches: Iterator[Any]) -> tuple[int, dict[str, Any]]:
    """The first row with a value in a column, and its number."""
    rows = (row for batch in batches for row in batch.to_pylist())
    found = ((at, row) for at, row in enumerate(rows, 1) if row[column] is not None)
    return next(found, (0, {column: None}))
