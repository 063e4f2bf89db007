"""A job done simply: in this process, in memory, in the plainest way that gives the right output.

    splits ─map─▶ pairs ─[combine]─▶ sorted by (group, key, sort key, position) ─reduce─▶ records

It is what the engine is compared with, and what `check` runs a job on under circumstances that
change from trial to trial: other splits, more or fewer passes of the combiner, random groups of a
key's values combined, values of a key in another order, attempts that are broken off and begun
again. Only "hash" partitions differ from the engine's.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice, pairwise
from random import Random
from typing import Any

from gristmill import _core
from gristmill.mapreduce.aggregates import Aggregate
from gristmill.mapreduce.check.last_call import noted
from gristmill.mapreduce.check.plain_aggregates import aggregated
from gristmill.mapreduce.context import Context
from gristmill.mapreduce.definition import Functions, pickled
from gristmill.mapreduce.formats.plan import Split
from gristmill.mapreduce.formats.table_writer import rows_of
from gristmill.mapreduce.functions import PAIRS, bound, records_of
from gristmill.mapreduce.kinds import is_batch
from gristmill.mapreduce.pickling import as_it_is, loads
from gristmill.mapreduce.plain_order import by_worth, plain_key
from gristmill.mapreduce.spec import Spec
from gristmill.mapreduce.submit.preparing import functions_of, partitions_of, side_files, source_of
from gristmill.mapreduce.worker.columns import unpacked
from gristmill.mapreduce.worker.mapping import batch_function
from gristmill.mapreduce.worker.reducing import batches_of

__all__ = ["Circumstances", "Outcome", "Pair", "run_naively"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What may change from trial to trial without changing the output."""

    name: str = "as planned"
    """What is said of a trial."""
    split_max: int | None = None
    """Splits of at most so many bytes, instead of those of the job."""
    combine_passes: int = 1
    """How often pairs are combined."""
    regroup: Random | None = None
    """Combines random groups of a key's values, wherever they come from, in place of the passes."""
    shuffle: bool = False
    """Whether `regroup` also changes the order of the values."""
    permute: Random | None = None
    """Shuffles the values of a key that one input gave, as far as no sort says how they come."""
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
    mapped: "list[Pair]" = field(default_factory=list["Pair"])
    """What the maps gave, in the order of the input; nothing where nothing is reduced."""
    combined: "list[Pair]" = field(default_factory=list["Pair"])
    """What combine made of that."""
    named_by_map: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    """Those of `named` that the maps wrote."""
    read: int = 0
    """How many records the maps were given."""
    partition: list[int] = field(default_factory=list[int])
    """The partition of each pair of `mapped`."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair that a map gave."""

    order: tuple[Any, ...]
    """What the group, the key and what it is sorted by compare by; the first tells groups apart,
    and ends with the group's encoding."""
    group: Any
    """The key that it is reduced by, as the functions gave it."""
    key: Any
    """Its key."""
    value: Any
    """Its value."""
    source: int = 0
    """The number of the input that it is from, of several."""


@dataclass(slots=True)
class _Collected:
    records: list[Any] = field(default_factory=list[Any])

    def write(self, record: Any) -> None:  # noqa: ANN401 - whatever a format takes
        self.records.extend(rows_of(record) if is_batch(record) else [as_it_is(record)])


def run_naively(job: Spec, how: Circumstances | None = None) -> Outcome:
    """Run a job simply; nothing is written.

    Args:
        job: It reads from files or items, not from another job.
        how: The circumstances.

    Raises:
        Exception: Whatever a function of the job raises.
    """
    return _Run(job, how or Circumstances()).outcome()


class _Run:
    def __init__(self, job: Spec, how: Circumstances) -> None:
        self.job = job
        self.how = how
        self.source = source_of(job)
        # Loaded as a worker would: globals of the job's file are not those of the trial before.
        self.functions: Functions = loads(pickled(functions_of(job)))
        self.partitions = partitions_of(job, self.source.plan(*job.split_sizes()))
        self.named: dict[str, dict[tuple[str, int], _Collected]] = {
            name: {} for name in job.outputs
        }
        self.contexts: dict[int, Context] = {}
        self.of_input = 0
        self.read = 0

    def outcome(self) -> Outcome:
        least, most = self.job.split_sizes()
        if self.how.split_max is not None:
            least, most = 0, self.how.split_max
        splits = list(enumerate(self.source.plan(least, most).splits))
        if self.how.order is not None:
            self.how.order.shuffle(splits)
        mapped = {number: self._attempts(number, split) for number, split in splits}
        lists = [mapped[number] for number in sorted(mapped)]
        found = Outcome([], read=self.read)
        if self.functions.reduces:
            found.mapped = [pair for pairs in lists for pair in pairs]
            found.partition = [self._partition(pair) for pair in found.mapped]
            found.combined = [pair for pairs in self._combined(lists) for pair in pairs]
            parts = self._shared(found)
            found.parts = [
                self._reduced(number, parts[number]) for number in range(self.partitions)
            ]
        else:
            found.parts = [[record for records in lists for record in records]]
        found.named = self._written("map", "reduce")
        found.named_by_map = self._written("map")
        return found

    def _written(self, *kinds: str) -> dict[str, list[Any]]:
        return {
            name: [
                record
                for kind, task in sorted(tasks)
                if kind in kinds
                for record in tasks[kind, task].records
            ]
            for name, tasks in self.named.items()
        }

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
        context = self.contexts[number] = self._context("map", number, attempt)
        context.place = reader.where
        context.tag = self.source.tag_of(split.what)
        self.of_input = split.what.get("input", 0)
        if functions.setup is not None:
            functions.setup(context)
        if functions.map_batches is not None:
            function = batch_function(bound(functions.map_batches, context), pairs=pairs)
            function = _unpacking(function) if pairs else function
        elif functions.map is not None:
            expected = PAIRS if pairs else "records"
            function = records_of(bound(functions.map, context), "map", expected)
        else:
            function = _itself
        found: list[Any] = [
            as_it_is(given)
            for record in noted("map", number, islice(reader, limit))
            for given in function(record)
        ]
        if limit is not None:
            return []
        self.read += reader.records_read()
        if functions.teardown is not None:
            found.extend(records_of(functions.teardown, "teardown", "records")(context))
        if not pairs:
            return [row for record in found for row in _rows(record)]
        return [self._pair(key, value) for key, value in found]

    def _pair(self, key: Any, value: Any) -> Pair:  # noqa: ANN401 - the user's
        group_by, sort_by = self.functions.group_by, self.functions.sort_by
        plain = plain_key(key)
        group = key if group_by is None else group_by(plain)
        first: tuple[Any, ...] = (_core.encode_key(group),)
        if self.functions.cuts is not None:  # then parts are in order by what keys are worth
            first = (by_worth(group), *first)
        within = () if group_by is None else by_worth(key)
        sort = () if sort_by is None else by_worth(sort_by(plain, value))
        return Pair((first, within, sort), group, plain, value, self.of_input)

    def _combined(self, lists: list[list[Pair]]) -> list[list[Pair]]:
        """What becomes of the pairs of each map before they are reduced."""
        combine, random = self.functions.combine, self.how.regroup
        if combine is None:
            return lists
        if random is not None:
            lists = [[pair for pairs in lists for pair in pairs]]
        found: list[list[Pair]] = []
        for number, pairs in enumerate(lists if self.contexts else ()):
            context = self.contexts[number]
            function = records_of(bound(combine, context), "combine", "values")
            if random is not None:
                found.append(self._regrouped(pairs, function, random))
                continue
            left = pairs
            for _ in range(self.how.combine_passes):
                ordered = _runs(sorted(left, key=_by_order), _by_order)
                left = [pair for same in ordered for pair in self._once(same, function)]
            found.append(left)
        return found

    def _once(self, pairs: list[Pair], combine: Callable[..., Any]) -> list[Pair]:
        """Pairs of a key, combined."""
        key = pairs[0].key
        values = combine(key, (pair.value for pair in pairs))
        self.of_input = pairs[0].source
        return [self._pair(pairs[0].group, as_it_is(value)) for value in values]

    def _regrouped(
        self, pairs: list[Pair], combine: Callable[..., Any], random: Random
    ) -> list[Pair]:
        """Some of a key's values combined with some others, a few times; others never."""
        found: list[Pair] = []
        for same in _runs(sorted(pairs, key=_by_order), _by_order):
            left = same
            for _ in range(random.randint(1, 3)):
                if self.how.shuffle:
                    random.shuffle(left)
                left = [
                    pair
                    for together in _groups_of(left, random)
                    for pair in (together if len(together) == 1 else self._once(together, combine))
                ]
            found += left
        return found

    def _shared(self, found: Outcome) -> dict[int, list[Pair]]:
        """The combined pairs of each partition."""
        pairs, of = found.combined, iter(found.partition)
        if self.functions.combine is not None:
            of = map(self._partition, pairs)
        parts: dict[int, list[Pair]] = {number: [] for number in range(self.partitions)}
        for pair, number in zip(pairs, of, strict=True):
            parts.setdefault(number, []).append(pair)  # of no partition: the workers refuse it
        return parts

    def _reduced(self, partition: int, mine: list[Pair]) -> list[Any]:
        if self.how.permute is not None and not isinstance(self.functions.reduce, Aggregate):
            self.how.permute.shuffle(mine)
            mine.sort(key=_by_source)
        mine.sort(key=_by_order)
        if self.how.kill is None:
            return self._reduce(partition, mine, attempt=0, limit=None)
        self._reduce(partition, mine, attempt=0, limit=self.how.kill.randrange(0, 20))
        for tasks in self.named.values():  # what a killed attempt wrote is not seen
            tasks.pop(("reduce", partition), None)
        return self._reduce(partition, mine, attempt=1, limit=None)

    def _reduce(
        self, partition: int, pairs: list[Pair], *, attempt: int, limit: int | None
    ) -> list[Any]:
        functions = self.functions
        context = self._context("reduce", partition, attempt)
        groups = noted("reduce", partition, _groups(pairs, grouped=functions.group_by))
        if functions.setup is not None:
            functions.setup(context)
        found = _Collected()
        for record in islice(self._records(groups, context), limit):
            found.write(record)
        if limit is None and functions.teardown is not None:
            for record in records_of(functions.teardown, "teardown", "records")(context):
                found.write(record)
        return found.records

    def _records(self, groups: Iterator[tuple[Any, Iterable[Any]]], context: Context) -> Any:  # noqa: ANN401
        functions = self.functions
        if functions.aggregate is not None:
            spec, counts = functions.aggregate.spec, functions.aggregate.counts
            made = ((key, aggregated(spec, list(values))) for key, values in groups)
            return ((key, len(found)) for key, found in made) if counts else made
        if functions.reduce_batches is not None:
            function = bound(functions.reduce_batches, context)
            return records_of(function, "reduce_batches", "records")(batches_of(groups))
        assert callable(functions.reduce)
        reduce = records_of(bound(functions.reduce, context), "reduce", "records")
        return (record for key, values in groups for record in reduce(key, iter(values)))

    def _partition(self, pair: Pair) -> int:
        functions = self.functions
        if functions.partition is not None:
            return functions.partition(plain_key(pair.group), self.partitions)
        if functions.cuts is not None:
            return sum(by_worth(cut) <= by_worth(pair.group) for cut in functions.cuts)
        return zlib.crc32(pair.order[0][-1]) % self.partitions

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
    pairs: list[Pair], *, grouped: Callable[..., Any] | None
) -> Iterator[tuple[Any, list[Any]]]:
    for together in _runs(pairs, lambda pair: pair.order[0]):
        key = together[0].key
        yield (
            key if grouped is None else plain_key(together[0].group),
            [pair.value for pair in together],
        )


def _runs(pairs: list[Pair], key: Callable[[Pair], Any]) -> Iterator[list[Pair]]:
    return (list(together) for _, together in groupby(pairs, key))


def _groups_of(pairs: list[Pair], random: Random) -> Iterator[list[Pair]]:
    """Cut a list at random places; of three pairs or more, neither all together nor each alone."""
    count = len(pairs)
    most = min(max(count - 2, 1), 8)
    cuts = random.sample(range(1, count), random.randint(1, most)) if count > 1 else []
    ends = [0, *sorted(cuts), count]
    return (pairs[start:end] for start, end in pairwise(ends))


def _by_order(pair: Pair) -> tuple[Any, ...]:
    return pair.order


def _by_source(pair: Pair) -> int:
    return pair.source


def _unpacking(function: Callable[..., Any]) -> Callable[..., Any]:
    def unpacking(batch: object) -> Iterator[Any]:
        return unpacked(function(batch))

    return unpacking


def _rows(record: object) -> list[Any]:
    return rows_of(record) if is_batch(record) else [record]


def _itself(record: object) -> tuple[object]:
    return (record,)
