"""Tables that `map_batches` gives, as the engine takes them: by the buffers of their columns.

    a table ──65,536 rows at a time──▶ keys, values ──buffers──▶ Emitter.consume_columns
                                             └─other types──▶ objects ──▶ Emitter.consume

Either way the pairs are the same: those of the objects that `to_pylist` makes of the columns. The
first column is the key, unless the second one has that name. A second table that has the columns of
the first one in another order is refused, since one of them would be taken for the other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from gristmill import _core
from gristmill.mapreduce.extras import pyarrow
from gristmill.mapreduce.formats.exact_rows import check_times
from gristmill.mapreduce.functions import ContractError
from gristmill.mapreduce.kinds import is_batch

__all__ = ["Columns", "unpacked"]

PIECE_ROWS = 65_536
"""Rows that are taken at once: their buffers are copied, or objects made of them."""

Buffers = tuple[str, int, list[Any]]
"""The format of a column, how many values come before its first, and its buffers."""


@dataclass(slots=True)
class Columns:
    """Takes what `map_batches` gives: pairs, and tables of pairs."""

    emitter: "_core.Emitter"
    """Where it goes."""
    objects: bool
    """Whether functions of the job want to see keys and values, as objects."""
    _names: tuple[str, ...] | None = None
    """The columns of the first table."""

    def consume(self, found: Iterable[Any]) -> None:
        """Take all of it.

        Raises:
            ContractError: A table has other columns than keys and values, or those of the first
                table in another order.
        """
        rest = iter(found)
        for first in rest:
            if is_batch(first):
                self._table(first)
                continue
            tables: list[Any] = []
            self.emitter.consume(_pairs_before(first, rest, tables))
            for table in tables:
                self._table(table)

    def _table(self, table: Any) -> None:  # noqa: ANN401 - a batch or table
        pieces = _pieces(table)
        self._names = one_order(self._names, table)
        for piece in pieces:
            keys = None if self.objects else _buffers_of(piece.column(0))
            values = None if keys is None else _buffers_of(piece.column(1))
            if keys is None or values is None:
                self.emitter.consume(_pairs_of(piece))
            else:
                self.emitter.consume_columns(piece.num_rows, keys, values)


def unpacked(found: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Return pairs, and those of tables, as objects.

    Example:
        >>> table = pyarrow().table({"word": ["a"], "n": [2]})
        >>> list(unpacked([("b", 1), table]))
        [('b', 1), ('a', 2)]
    """
    names = None
    for given in found:
        if is_batch(given):
            names = one_order(names, given)
            for piece in _pieces(given):
                yield from _pairs_of(piece)
        else:
            yield given


def _pairs_before(first: object, rest: Iterator[Any], tables: list[Any]) -> Iterator[Any]:
    """Pairs up to the next table, which is put into `tables`."""
    yield first
    for given in rest:
        if is_batch(given):
            tables.append(given)
            return
        yield given


def one_order(first: tuple[str, ...] | None, table: Any) -> tuple[str, ...]:  # noqa: ANN401
    """Return the columns of the first table, whose order this one must not change.

    Raises:
        ContractError: It has the same columns in another order.

    Example:
        >>> one_order(None, pyarrow().table({"word": ["a"], "n": [2]}))
        ('word', 'n')
    """
    names = tuple(table.schema.names)
    if first is None or names == first or set(names) != set(first) or "key" in names:
        return first or names
    raise ContractError(
        f"map_batches gave a table with the columns {_listed(names)} after one with"
        f" {_listed(first)}: the first column is the key",
        f"select them in one order: table.select({list(first)!r})",
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _pieces(table: Any) -> Iterator[Any]:  # noqa: ANN401 - batches of a batch or table
    if table.num_columns != 2:
        raise ContractError(
            f"map_batches gave a table with the columns {_listed(table.schema.names)}:"
            " two are expected, keys and values",
            "select them",
        )
    if table.schema.names[1] == "key" != table.schema.names[0]:
        table = table.select([1, 0])
    if hasattr(table, "to_batches"):
        yield from table.to_batches(max_chunksize=PIECE_ROWS)
    else:
        for start in range(0, table.num_rows, PIECE_ROWS):
            yield table.slice(start, PIECE_ROWS)


def _pairs_of(batch: Any) -> Iterable[tuple[Any, Any]]:  # noqa: ANN401 - a batch
    check_times(batch)
    return zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)


def _buffers_of(column: Any) -> Buffers | None:  # noqa: ANN401 - an array
    """The buffers of a column of which the engine knows how its values lie in them."""
    column = _plain(column)
    form = _formats().get(column.type)
    return None if form is None else (form, column.offset, column.buffers())


def _plain(column: Any) -> Any:  # noqa: ANN401 - an array
    """A column whose values are not somewhere else."""
    arrow = pyarrow()
    if arrow.types.is_dictionary(column.type):
        return _plain(column.dictionary_decode())
    try:
        if column.type == arrow.string_view():
            return column.cast(arrow.large_string())
        if column.type == arrow.binary_view():
            return column.cast(arrow.large_binary())
    except arrow.ArrowNotImplementedError:  # in releases that do not know how
        pass
    return column


@cache
def _formats() -> dict[Any, str]:
    """Types with their format strings, as the C data interface of Arrow writes them."""
    arrow = pyarrow()
    return {
        arrow.null(): "n",
        arrow.bool_(): "b",
        arrow.int8(): "c",
        arrow.int16(): "s",
        arrow.int32(): "i",
        arrow.int64(): "l",
        arrow.uint8(): "C",
        arrow.uint16(): "S",
        arrow.uint32(): "I",
        arrow.uint64(): "L",
        arrow.float32(): "f",
        arrow.float64(): "g",
        arrow.string(): "u",
        arrow.large_string(): "U",
        arrow.binary(): "z",
        arrow.large_binary(): "Z",
    }
