"""A map task: reader ─▶ the user's map ─▶ the engine's collector, or the output.

The loop over records is the hot path of every job, so it is nothing but a call and a call. What is
wanted only sometimes, such as leaving out bad records, has a loop of its own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from operator import index
from reprlib import repr as short
from typing import Any

from gristmill import _core
from gristmill.mapreduce.aggregates import Aggregate, check_value
from gristmill.mapreduce.context import Context, whole_record
from gristmill.mapreduce.formats.format import BadRecord, Reader
from gristmill.mapreduce.functions import PAIRS, ContractError, name_of, place_of, records_of
from gristmill.mapreduce.kinds import is_pair
from gristmill.mapreduce.pickling import as_it_is
from gristmill.mapreduce.shown import shown
from gristmill.mapreduce.worker.failures import (
    Failure,
    TaskFailure,
    describe,
    line_of,
    user_frames,
)
from gristmill.mapreduce.worker.skipping import Skipping, TooManyBad

__all__ = ["Mapper", "batch_function", "map_function"]

Consume = Callable[[Iterable[Any]], None]

_RECORDS = "records"
_NO_PAIRS = "the map must give pairs"
"""How the engine's collector refuses what is no pair (crates/python/src/work/pairs.rs)."""
_KEYED = {
    "what sort_by returns": "sort_by",
    "what group_by returns": "group_by",
    "the partitioner returned": "partition_by",
}
"""How it refuses what another function than the map has returned: the function's role."""
_YIELD = "yield a tuple of two, (key, value)"
_SKIP = "leave such records out with skip_bad=N, or gristmill run --skip-bad N"


def map_function(function: Callable[..., Any] | None, *, pairs: bool) -> Callable[..., Any] | None:
    """Return the map as the loop calls it; `None` for a job without, whose records go on."""
    if function is None:
        return None
    return records_of(function, "map", PAIRS if pairs else _RECORDS)


def batch_function(function: Callable[..., Any], *, pairs: bool) -> Callable[..., Any]:
    """Return the map of batches likewise; what it gives may be tables."""
    return records_of(function, "map_batches", "pairs or tables" if pairs else _RECORDS)


@dataclass(slots=True)
class Mapper:
    """One pass over a split."""

    reader: Reader
    function: Callable[..., Any] | None
    consume: Consume
    doing: str
    """What a failure in the user's code says was done, such as `map words`."""
    reading: str
    """What a failure of the reader says was done."""
    limit: int | None = None
    skipping: Skipping | None = None
    can_skip: bool = False
    """Whether the input lets bad records be left out."""
    keyed: bool = True
    """Whether what is consumed are pairs."""
    aggregate: Aggregate | None = None
    """The engine's reduction of their values, if it is one."""
    key_functions: Mapping[str, Callable[..., Any] | None] = field(
        default_factory=dict[str, Callable[..., Any] | None]
    )
    """The functions that are called with what the map gives, by their roles."""
    context: Context | None = None
    """What the user's code counts in, where bad records are left out."""
    of_combiner: Callable[[BaseException, str], Failure | None] = lambda _error, _more: None
    """The failure, if it was the combiner that raised: of what it got no record is to blame."""

    def run(self) -> None:
        """Map all records.

        Raises:
            TaskFailure: What the failure is.
        """
        records: Iterator[Any] = iter(self.reader)
        if self.limit is not None:
            records = islice(records, self.limit)
        if self.skipping is not None:
            self._skipping(records, self.skipping)
        elif self.function is None:
            self._plain(records)
        else:
            self._each(records, self.function)

    def _each(self, records: Iterator[Any], function: Callable[..., Any]) -> None:
        consume = self.consume
        given = None
        try:
            for record in records:
                try:
                    given = function(record)
                    consume(given)
                    given = None  # a long list must not stay while the next one is made
                except (
                    BaseException
                ) as error:  # SystemExit, and what asyncio raises when it is cancelled
                    raise TaskFailure(self._refused(error, record, given)) from error
        except TaskFailure:
            raise
        except Exception as error:
            raise TaskFailure(self._misread(error)) from error

    def _plain(self, records: Iterator[Any]) -> None:
        misread = False

        def read() -> Iterator[Any]:
            nonlocal misread
            try:
                yield from records
            except Exception:
                misread = True
                raise

        try:
            self.consume(read())
        except Exception as error:
            record = self.reader.raw()
            failure = self._misread(error) if misread else self._failure(error, record)
            raise TaskFailure(failure) from error

    def _skipping(self, records: Iterator[Any], skipping: Skipping) -> None:
        """All of a record's pairs or none: they are collected before they are consumed."""
        function = self.function or _itself
        record = None
        number = -1
        while True:
            try:
                record = next(records)
            except StopIteration:
                return
            except (Exception, SystemExit) as error:
                where = self.reader.where()
                if where[2] == number or not isinstance(error, (BadRecord, UnicodeError)):
                    raise TaskFailure(self._misread(error)) from error
                number = where[2]
                self._leave_out(skipping, self.reader.raw(), error, misread=True)
                continue
            number = self.reader.where()[2]
            try:
                with whole_record(self.context):
                    pairs = list(map(as_it_is, function(record)))
                    if self.keyed:
                        _check_pairs(pairs, self.aggregate)
                        self._check_keys(pairs)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code
                self._leave_out(skipping, self.reader.raw(), error)
                continue
            try:
                self.consume(pairs)
            except Exception as error:
                if len(pairs) != 1 or self.keyed or not isinstance(error, BadRecord):
                    raise TaskFailure(self._failure(error, record)) from error
                self._leave_out(skipping, self.reader.raw(), error)  # its only one is not written

    def _check_keys(self, pairs: list[Any]) -> None:
        """Call the functions that the collector calls with what the map gives."""
        group_by, sort_by = self.key_functions.get("group_by"), self.key_functions.get("sort_by")
        partition = self.key_functions.get("partition_by")
        for key, value in pairs:
            grouped = key if group_by is None else group_by(key)
            _core.encode_key(grouped)
            if sort_by is not None:
                _core.encode_order(sort_by(key, value))
            if partition is not None and self.context is not None:
                chosen, parts = partition(grouped, self.context.partitions), self.context.partitions
                if not 0 <= index(chosen) < parts:
                    raise ContractError(
                        f"for the key {shown(grouped)} the partitioner returned {shown(chosen)}",
                        f"let it return a number from 0 to {parts - 1}",
                    )

    def _leave_out(
        self, skipping: Skipping, record: object, error: BaseException, *, misread: bool = False
    ) -> None:
        try:
            skipping.leave_out(self.reader.where(), record, error)
        except TooManyBad as many:
            failure = self._misread if misread else partial(self._failure, record=record)
            raise TaskFailure(failure(error, more=str(many))) from many

    def _refused(self, error: BaseException, record: object, given: object) -> Failure:
        """The failure, with the line that yielded what was refused; of no pair, what to do too."""
        at = line_of(given) or place_of(self.function)
        no_pair = isinstance(error, TypeError) and str(error).startswith(_NO_PAIRS)
        if not no_pair or error.__traceback__ is None or error.__traceback__.tb_next is not None:
            return self._failure(error, record, at=at)
        said = str(error).replace(f"it gave {shown(record)}", "it gave the record itself")
        return self._failure(ContractError(said, _YIELD), record, more=said, at=at)

    def _failure(
        self, error: BaseException, record: object, more: str = "", at: str = ""
    ) -> Failure:
        failure = self.of_combiner(error, more)
        if failure is not None:
            return failure
        doing, where = self.doing, self.reader.where()
        role = self._blamed(error)
        if role is not None:
            function = self.key_functions[role]
            doing, at = f"{role} {name_of(function)}", place_of(function)
        return describe(error, doing=doing, where=where, record=record, more=more, at=at)

    def _blamed(self, error: BaseException) -> str | None:
        """The role of the function that returned what the collector refuses, if not the map."""
        if user_frames(error.__traceback__):
            return None
        text = str(error)
        return next(
            (role for how, role in _KEYED.items() if how in text and self.key_functions.get(role)),
            None,
        )

    def _misread(self, error: BaseException, more: str = "") -> Failure:
        return describe(
            error,
            doing=self.reading,
            where=self.reader.where(),
            record=self.reader.raw(),
            kind="io" if isinstance(error, OSError) else "bad_input",
            more=more,
            advice=self._or_skip(error),
        )

    def _or_skip(self, error: BaseException) -> str:
        """What to do about a record that cannot be read, if its format does not say it."""
        skips = self.can_skip and self.skipping is None
        return _SKIP if skips and isinstance(error, BadRecord) and not error.advice else ""


def _itself(record: object) -> tuple[object]:
    return (record,)


def _check_pairs(pairs: list[Any], aggregate: Aggregate | None) -> None:
    """Refuse what the collector would refuse, before any of it is collected."""
    for pair in pairs:
        if not is_pair(pair):
            raise ContractError(f"a map yields {PAIRS}, and {short(pair)} is not one", _YIELD)
        _core.encode_key(pair[0])
        check_value(aggregate, pair[1])
