"""A job done simply: in this process, in memory, in the plainest way that gives the right output.

    splits ─map─▶ pairs ─[combine]─▶ sorted by (group, key, sort key, position) ─reduce─▶ records

It is what the engine is compared with, and what `check` runs a job on under circumstances that
change from trial to trial: other splits, more or fewer passes of the combiner, values of a key in
another order, attempts that are broken off and begun again. Only "hash" partitions differ from the
engine's.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from random import Random
from typing import Any

from gristmill import _core
from gristmill.mapreduce.aggregates import Aggregate
from gristmill.mapreduce.columns import unpacked
from gristmill.mapreduce.context import Context
from gristmill.mapreduce.definition import Functions, pickled
from gristmill.mapreduce.functions import bound, records_of
from gristmill.mapreduce.job import Job
from gristmill.mapreduce.launching import functions_of, partitions_of, side_files, source_of
from gristmill.mapreduce.mapping import batch_function
from gristmill.mapreduce.pickling import as_it_is, loads
from gristmill.mapreduce.plain_aggregates import aggregated
from gristmill.mapreduce.plan import Split
from gristmill.mapreduce.reducing import batches_of
from gristmill.mapreduce.table_writer import is_batch, rows_of

__all__ = ["Circumstances", "Outcome", "run_naively"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What may change from trial to trial without changing the output."""

    name: str = "as planned"
    """What is said of a trial."""
    split_max: int | None = None
    """Splits of at most so many bytes, instead of those of the job."""
    combine_passes: int = 1
    """How often pairs are combined."""
    permute: Random | None = None
    """Shuffles the values of a key, as far as no sort says how they come."""
    kill: Random | None = None
    """Breaks each attempt off once, somewhere, and begins it again."""
    order: Random | None = None
    """Shuffles the order in which tasks run."""


@dataclass(slots=True)
class Outcome:
    """What a job put out."""

    parts: list[list[Any]]
    """The records of each part; a job without a reduction has one."""
    named: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    """Those of named outputs, in the order of the tasks."""


@dataclass(frozen=True, slots=True)
class _Pair:
    order: tuple[bytes, bytes, bytes]
    """Encodings of the group, the key and what it is sorted by."""
    key: Any
    value: Any


@dataclass(slots=True)
class _Collected:
    records: list[Any] = field(default_factory=list[Any])

    def write(self, record: Any) -> None:  # noqa: ANN401 - whatever a format takes
        self.records.extend(rows_of(record) if is_batch(record) else [as_it_is(record)])


def run_naively(job: Job, how: Circumstances | None = None) -> Outcome:
    """Run a job simply; nothing is written.

    Args:
        job: It reads from files or items, not from another job.
        how: The circumstances.

    Raises:
        Exception: Whatever a function of the job raises.
    """
    return _Run(job, how or Circumstances()).outcome()


class _Run:
    def __init__(self, job: Job, how: Circumstances) -> None:
        self.job = job
        self.how = how
        self.source = source_of(job)
        # Loaded as a worker would: globals of the job's file are not those of the trial before.
        self.functions: Functions = loads(pickled(functions_of(job)))
        self.partitions = partitions_of(job, self.source.plan(*job.split_sizes()))
        self.named: dict[str, dict[tuple[str, int], _Collected]] = {
            name: {} for name in job.outputs
        }

    def outcome(self) -> Outcome:
        least, most = self.job.split_sizes()
        if self.how.split_max is not None:
            least, most = 0, self.how.split_max
        splits = list(enumerate(self.source.plan(least, most).splits))
        if self.how.order is not None:
            self.how.order.shuffle(splits)
        mapped = {number: self._attempts(number, split) for number, split in splits}
        lists = [mapped[number] for number in sorted(mapped)]
        if self.functions.reduces:
            parts = [self._reduced(number, lists) for number in range(self.partitions)]
        else:
            parts = [[record for records in lists for record in records]]
        named = {
            name: [record for task in sorted(tasks) for record in tasks[task].records]
            for name, tasks in self.named.items()
        }
        return Outcome(parts, named)

    def _attempts(self, number: int, split: Split) -> list[Any]:
        if self.how.kill is None:
            return self._map(number, split, attempt=0, limit=None)
        self._map(number, split, attempt=0, limit=self.how.kill.randrange(0, 20))
        for tasks in self.named.values():  # what a killed attempt wrote is not seen
            tasks.pop(("map", number), None)
        return self._map(number, split, attempt=1, limit=None)

    def _map(self, number: int, split: Split, *, attempt: int, limit: int | None) -> list[Any]:
        functions, pairs = self.functions, self.functions.reduces
        if functions.map_batches is not None:
            reader = self.source.open_batches(split.what)
        else:
            reader = self.source.open(split.what)
        context = self._context("map", number, attempt)
        context.place = reader.where
        if functions.setup is not None:
            functions.setup(context)
        if functions.map_batches is not None:
            function = batch_function(bound(functions.map_batches, context), pairs=pairs)
            function = _unpacking(function) if pairs else function
        elif functions.map is not None:
            function = records_of(bound(functions.map, context), "map", "pairs")
        else:
            function = _itself
        found: list[Any] = [
            as_it_is(given) for record in islice(reader, limit) for given in function(record)
        ]
        if limit is not None:
            return []
        if functions.teardown is not None:
            found.extend(records_of(functions.teardown, "teardown", "records")(context))
        if not pairs:
            return [row for record in found for row in _rows(record)]
        paired = [self._pair(key, value) for key, value in found]
        return self._combined(paired, context)

    def _pair(self, key: Any, value: Any) -> _Pair:  # noqa: ANN401 - the user's
        group_by, sort_by = self.functions.group_by, self.functions.sort_by
        encoded = _core.encode_key(key)
        group = encoded if group_by is None else _core.encode_key(group_by(key))
        sort = b"" if sort_by is None else _core.encode_key(sort_by(key, value))
        return _Pair((group, encoded, sort), key, value)

    def _combined(self, pairs: list[_Pair], context: Context) -> list[_Pair]:
        combine = self.functions.combine
        if combine is None:
            return pairs
        function = records_of(bound(combine, context), "combine", "values")
        for _ in range(self.how.combine_passes):
            pairs = [
                self._pair(together[0].key, as_it_is(value))
                for together in _runs(sorted(pairs, key=_by_order), lambda pair: pair.order)
                for value in function(together[0].key, (pair.value for pair in together))
            ]
        return pairs

    def _reduced(self, partition: int, lists: list[list[_Pair]]) -> list[Any]:
        functions = self.functions
        context = self._context("reduce", partition, 0)
        pairs = [pair for pairs in lists for pair in pairs if self._partition(pair) == partition]
        if self.how.permute is not None and not isinstance(functions.reduce, Aggregate):
            self.how.permute.shuffle(pairs)
        pairs.sort(key=_by_order)
        groups = _groups(pairs, grouped=functions.group_by)
        if functions.setup is not None:
            functions.setup(context)
        found = _Collected()
        for record in self._records(groups, context):
            found.write(record)
        if functions.teardown is not None:
            for record in records_of(functions.teardown, "teardown", "records")(context):
                found.write(record)
        return found.records

    def _records(self, groups: Iterator[tuple[Any, Iterable[Any]]], context: Context) -> Any:  # noqa: ANN401
        functions = self.functions
        if functions.aggregate is not None:
            spec = functions.aggregate.spec
            return ((key, aggregated(spec, list(values))) for key, values in groups)
        if functions.reduce_batches is not None:
            function = bound(functions.reduce_batches, context)
            return records_of(function, "reduce_batches", "records")(batches_of(groups))
        assert callable(functions.reduce)
        reduce = records_of(bound(functions.reduce, context), "reduce", "records")
        return (record for key, values in groups for record in reduce(key, iter(values)))

    def _partition(self, pair: _Pair) -> int:
        functions = self.functions
        group = pair.order[0]
        if functions.partition is not None:
            return functions.partition(_core.decode(group), self.partitions)
        if functions.cuts is not None:
            return sum(_core.encode_key(cut) <= group for cut in functions.cuts)
        return zlib.crc32(group) % self.partitions

    def _context(self, kind: str, number: int, attempt: int) -> Context:
        def output(name: str) -> _Collected:
            found = self.named[name]
            return found.setdefault((kind, number), _Collected())

        return Context(
            job_id="naive",
            task=number,
            kind=kind,
            attempt=attempt,
            partition=number if kind == "reduce" else None,
            partitions=self.partitions,
            _files=side_files(self.job),
            _open_output=output,
        )


def _groups(
    pairs: list[_Pair], *, grouped: Callable[..., Any] | None
) -> Iterator[tuple[Any, list[Any]]]:
    for together in _runs(pairs, lambda pair: pair.order[0]):
        key = together[0].key
        yield key if grouped is None else grouped(key), [pair.value for pair in together]


def _runs(pairs: list[_Pair], key: Callable[[_Pair], Any]) -> Iterator[list[_Pair]]:
    return (list(together) for _, together in groupby(pairs, key))


def _by_order(pair: _Pair) -> tuple[bytes, bytes, bytes]:
    return pair.order


def _unpacking(function: Callable[..., Any]) -> Callable[..., Any]:
    def unpacking(batch: object) -> Iterator[Any]:
        return unpacked(function(batch))

    return unpacking


def _rows(record: object) -> list[Any]:
    return rows_of(record) if is_batch(record) else [record]


def _itself(record: object) -> tuple[object]:
    return (record,)
