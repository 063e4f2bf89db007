"""A reduce task: the merged runs of a partition ─▶ groups ─▶ the user's reduce ─▶ the output.

The values of a group are read while they are asked for: a key may have more of them than memory
holds.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gristmill import _core
from gristmill.mapreduce.context import Context, whole_record
from gristmill.mapreduce.extras import pyarrow
from gristmill.mapreduce.formats.format import BadRecord
from gristmill.mapreduce.functions import ContractError, name_of, place_of, records_of
from gristmill.mapreduce.pickling import as_it_is
from gristmill.mapreduce.results.read_again import Watch
from gristmill.mapreduce.worker.failures import TaskFailure, describe, line_of
from gristmill.mapreduce.worker.skipping import Skipping, TooManyBad

__all__ = ["Reducer", "batches_of", "of_pairs"]

_ONCE = (
    "if you need the values of a key more than once, or as a list, make one first: values ="
    " list(values); they can be read once"
)
_NO_PAIRS = "let combine yield values, not pairs of a key and a value"

Group = tuple[Any, Iterable[Any]]

BATCH_ROWS = 65_536
"""Rows of a batch for `reduce_batches`, at least; it goes on to the end of a key."""

BATCH_ROWS_MAX = 1_048_576
"""But not beyond this: then a key's rows go on in the next batch."""


@dataclass(slots=True)
class Reducer:
    """One pass over a partition."""

    groups: _core.Groups
    consume: Callable[[Iterable[Any]], None]
    """Writes all records of an iterable."""
    context: Context | None = None
    """What the user's code counts in, where bad groups are left out."""
    combined: bool = False
    """Whether the job has a combiner, so that values may be what that gave."""

    def aggregated(self, take: Callable[[_core.Groups], None]) -> None:
        """Write what the engine has made of each key."""
        try:
            take(self.groups)
        except (Exception, SystemExit) as error:
            raise TaskFailure(describe(error, doing="write the output")) from error

    def each(self, function: Callable[..., Any], skipping: Skipping | None) -> None:
        """Reduce all groups."""
        doing = f"reduce {name_of(function)}"
        reduce = records_of(function, "reduce", "records")
        watch = Watch("reduce", function)
        if skipping is not None:
            self._skipping(reduce, skipping, doing, watch)
        else:
            self._all(reduce, doing, watch, place_of(function))
        if self.context is not None:
            self.context.counters.update(watch.found())

    def _all(self, reduce: Callable[..., Any], doing: str, watch: Watch, place: str) -> None:
        consume, watched = self.consume, watch.over
        key, values, given = None, None, None
        try:
            for key, raw in self.groups:
                values = watched(raw)
                given = reduce(key, values)
                consume(given)
                given = None  # a long list must not stay while the next one is made
        except (Exception, SystemExit) as error:
            advice = (of_pairs(error) if self.combined else "") or _of_values(error, values)
            at = line_of(given) or place
            failure = describe(error, doing=doing, key=key, has_key=True, advice=advice, at=at)
            raise TaskFailure(failure) from error

    def batches(self, function: Callable[..., Any]) -> None:
        """Reduce all groups of the partition, in batches."""
        doing = f"reduce_batches {name_of(function)}"
        reduce = records_of(function, "reduce_batches", "records or tables")
        try:
            self.consume(reduce(batches_of(self.groups, self.groups.begin_batch)))
        except (Exception, SystemExit) as error:
            raise TaskFailure(describe(error, doing=doing)) from error

    def _skipping(
        self, reduce: Callable[..., Any], skipping: Skipping, doing: str, watch: Watch
    ) -> None:
        """All of a group's records or none: they are collected before they are written."""
        for key, values in self.groups:
            try:
                with whole_record(self.context):
                    records = list(map(as_it_is, reduce(key, watch.over(values))))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code
                _leave_out(skipping, key, error, doing)
                continue
            try:
                self.consume(records)
            except Exception as error:
                if len(records) != 1 or not isinstance(error, BadRecord):
                    raise TaskFailure(
                        describe(error, doing=doing, key=key, has_key=True)
                    ) from error
                _leave_out(skipping, key, error, doing)  # its only one is not written


def _leave_out(skipping: Skipping, key: object, error: BaseException, doing: str) -> None:
    try:
        skipping.leave_out(None, {"key": key}, error)
    except TooManyBad as many:
        failure = describe(error, doing=doing, key=key, has_key=True, more=str(many))
        raise TaskFailure(failure) from many


def of_pairs(error: BaseException) -> str:
    """Return what to do about values that may be pairs, since a combiner gave them.

    Example:
        >>> of_pairs(TypeError("unsupported operand type(s) for +: 'int' and 'tuple'"))
        'let combine yield values, not pairs of a key and a value'
    """
    return _NO_PAIRS if isinstance(error, TypeError) and "'tuple'" in str(error) else ""


def _of_values(error: BaseException, values: Any) -> str:  # noqa: ANN401 - _core.Values
    """What to do about values that were taken for a list, or read a second time."""
    if isinstance(error, ContractError) or values is None:
        return ""
    as_list = isinstance(error, TypeError) and "Values'" in str(error)
    return _ONCE if as_list or getattr(values, "read_again", False) else ""


def batches_of(groups: Iterator[Group], begin: Callable[[], None] = lambda: None) -> Iterator[Any]:
    """Return groups as batches with the columns `key` and `value`.

    A key's rows are in one batch, unless there are more than a million of them. `begin` is called
    before each batch.

    Example:
        >>> [batch.to_pylist() for batch in batches_of(iter([("a", iter([1, 2])), ("b", [3])]))]
        [[{'key': 'a', 'value': 1}, {'key': 'a', 'value': 2}, {'key': 'b', 'value': 3}]]
    """
    keys: list[Any] = []
    values: list[Any] = []
    begin()
    for key, of_key in groups:
        for value in of_key:
            keys.append(key)
            values.append(value)
            if len(keys) >= BATCH_ROWS_MAX:
                yield _batch(keys, values)
                begin()
        if len(keys) >= BATCH_ROWS:
            yield _batch(keys, values)
            begin()
    if keys:
        yield _batch(keys, values)


def _batch(keys: list[Any], values: list[Any]) -> Any:  # noqa: ANN401 - a RecordBatch
    """A batch of the lists, which are emptied."""
    arrow = pyarrow()
    try:
        batch = arrow.RecordBatch.from_pydict({"key": keys, "value": values})
    except (arrow.ArrowInvalid, arrow.ArrowTypeError, OverflowError) as error:
        raise BadRecord(
            f"keys and values from {keys[0]!r} on make no columns: {error}",
            "make each of one type, or give the job reduce= in place of reduce_batches=",
        ) from None
    keys.clear()
    values.clear()
    return batch
