"""One record again: what `gristmill run job.py --only FILE:OFFSET` does.

    the split that holds the place ─reader─▶ the record there ─map, in this process─▶ what it yields

In this process, so that a debugger can be used; without a shuffle, so that it takes no time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gristmill.errors import ours
from gristmill.mapreduce.context import Context
from gristmill.mapreduce.formats.format import BadRecord, Input, Reader, Where
from gristmill.mapreduce.functions import PAIRS, bound, records_of
from gristmill.mapreduce.spec import Spec
from gristmill.mapreduce.submit.job import Job
from gristmill.mapreduce.submit.preparing import side_files, source_of
from gristmill.mapreduce.submit.streams import redirected, saved_as
from gristmill.mapreduce.worker.failures import sentence

__all__ = ["ReplayedRecord", "parse_place", "replay_record"]


@dataclass(frozen=True, slots=True)
class ReplayedRecord:
    """A record, and what the map makes of it."""

    where: Where
    """Where it is."""
    record: Any
    """The record."""
    yielded: Callable[[], Iterator[Any]]
    """Maps it."""
    named: dict[str, list[Any]]
    """What it writes to named outputs."""
    context: Context
    """The context, with the counters."""


def parse_place(text: str) -> tuple[str, int]:
    """Return file and offset of `FILE:OFFSET`.

    Raises:
        ValueError: It is of another form.

    Example:
        >>> parse_place("a:b.txt:812")
        ('a:b.txt', 812)
    """
    file, _, offset = text.rpartition(":")
    if not file or not offset.isdigit():
        raise ValueError(f"{text!r} is not FILE:OFFSET")
    return file, int(offset)


def replay_record(job: Job, file: str, offset: int) -> ReplayedRecord:
    """Return the record of a job's input at a place, ready to be mapped.

    Raises:
        ValueError: The input has no record there, or it cannot be read.
    """
    first = saved_as(redirected(job.chain()[0]), file)
    where, record, tag = _find(source_of(first), first, file, offset)
    named: dict[str, list[Any]] = {name: [] for name in job.outputs}
    context = Context(
        job_id="single",
        task=0,
        kind="map",
        partitions=job.parts or int(job.reduces),
        _files=side_files(job),
        tag=tag,
        place=lambda: where,
        _open_output=lambda name: _Kept(named[name]),
    )
    return ReplayedRecord(where, record, lambda: _mapped(first, record, context), named, context)


@dataclass(frozen=True, slots=True)
class _Kept:
    records: list[Any]

    def write(self, record: Any) -> None:  # noqa: ANN401 - whatever a format takes
        self.records.append(record)


def _mapped(job: Spec, record: object, context: Context) -> Iterator[Any]:
    if job.setup is not None:
        job.setup(context)
    function = job.map if job.map_batches is None else job.map_batches
    if function is None:
        yield record
    else:
        expected = PAIRS if job.reduces else "records"
        yield from records_of(bound(function, context), "map", expected)(record)


def _find(source: Input, job: Spec, file: str, offset: int) -> tuple[Where, Any, str]:
    wanted = Path(file).absolute()
    near: list[int] = []
    for split in source.plan(*job.split_sizes()).splits:
        if not _may_hold(split.what, wanted, offset):
            continue
        batches = job.map_batches is not None
        passes = not batches and source.can_skip(split.what)
        if batches:
            reader = source.open_batches(split.what)
        else:
            reader = source.open(split.what, tolerant=passes)
        for where, record in _records(reader, passes=passes):
            if Path(where[0]).absolute() != wanted and where[0] != file:
                continue
            if where[1] == offset:
                if isinstance(record, _Unreadable):
                    raise _no_record(record.error, offset, file)
                return where, record, source.tag_of(split.what)
            near = [*near[-1:], where[1]]
            if where[1] > offset:
                break
    raise ValueError(
        f"cannot find the record: none of {source} begins at offset {offset} of {file}."
        f" What to do: {_advice(near)}."
    )


def _advice(near: list[int]) -> str:
    """What to do about an offset at which no record begins, by the offsets around it."""
    if not near:
        return "name a file of the job's input, and take the offset from the failure"
    return f"give the offset of a record's first byte, such as {' or '.join(map(str, near))}"


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """In the place of a record that is not what its format says."""

    error: Exception


def _records(reader: Reader, *, passes: bool) -> Iterator[tuple[Where, Any]]:
    """The records of a split with their places; bad ones too, where the reader passes over them."""
    records = iter(reader)
    while True:
        try:
            record: Any = next(records)
        except StopIteration:
            return
        except (BadRecord, UnicodeError) as error:
            if not passes:
                raise
            record = _Unreadable(error)
        yield reader.where(), record


def _no_record(error: Exception, offset: int, file: str) -> ValueError:
    """What is wrong with the record itself."""
    found = f"cannot read the record at offset {offset} of {file}: {sentence(error)}."
    return ours(ValueError(f"{found} What to do: correct it, or leave it out."), "bad_input")


def _may_hold(what: dict[str, Any], file: Path, offset: int) -> bool:
    """Whether a split may hold a record; of text, that is known without reading it."""
    pieces = what.get("pieces")
    if pieces is None:
        return "path" not in what or Path(what["path"]).absolute() == file
    return any(
        Path(piece["path"]).absolute() == file
        and (
            piece.get("codec") is not None
            or ("found" in piece and piece["bytes"] == piece["file_bytes"])  # nobody has looked
            or "start" not in piece
            or 0 <= offset - piece["start"] < piece["bytes"]
        )
        for piece in pieces
    )
