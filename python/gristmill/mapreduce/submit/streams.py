"""Inputs that are streams: standard input, pipes, FIFOs, terminals. They can be read only once.

    "-", /dev/stdin, /dev/fd/N ─┬─ a file, at its beginning ─▶ that file, by its own path
    a FIFO, a terminal          └─ anything else ─block by block─▶ a copy on disk ─▶ `Copied`
    on a cluster                                                  ▶ a copy beside the output

Workers read an input in splits, and a failed task reads its split again, so a stream is copied to
disk before the job is planned. The copy has no name in any folder: workers open it as
`/proc/PID/fd/N`, and the system removes it when this process ends, however it ends. Users see the
name that they gave, in records, splits, errors and histories. The nodes of a cluster must see the
copy: there it has a name, in a folder beside the output, and another process removes that.
"""

import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gristmill.mapreduce.formats.format import Format, Input, Reader, Where
from gristmill.mapreduce.formats.inputs import Inputs
from gristmill.mapreduce.formats.paths import descriptor_of, is_stream
from gristmill.mapreduce.formats.plan import Plan, Split
from gristmill.mapreduce.formats.text import Text
from gristmill.mapreduce.kinds import is_dict, is_list
from gristmill.mapreduce.submit.stream_copies import copied_for_nodes, copied_here, file_of, shown
from gristmill.mapreduce.worker.failures import renamed
from gristmill.names import show_path

if TYPE_CHECKING:
    from gristmill.mapreduce.spec import Spec

__all__ = [
    "Copied",
    "check_streams",
    "names_of",
    "redirected",
    "saved_as",
    "streams_of",
    "unread",
    "with_streams_copied",
]


def streams_of(source: object) -> list[str]:
    """Return the paths of an input that are streams, as they were given.

    Example:
        >>> import gristmill as gm
        >>> streams_of(gm.text(["-", "a.txt"]))
        ['-']
    """
    return [path for one in _formats(source) for path in one.paths if is_stream(path)]


def check_streams(jobs: Iterable["Spec"]) -> None:
    """Refuse jobs that would read the same stream.

    Raises:
        ValueError: Two of them, or two inputs of one, are the same stream.
    """
    _check_once([path for job in jobs for path in streams_of(job.input)])


def redirected(job: "Spec") -> "Spec":
    """Return a job that reads, in the place of streams that are files, these files.

    `gristmill run job.py < FILE` reads FILE in splits, and can be resumed.

    Raises:
        ValueError: Two inputs are the same stream.
    """
    check_streams([job])
    paths = streams_of(job.input)
    files = {path: file for path in paths if (file := file_of(path)) is not None}
    return _with(job, lambda one: one.at(tuple(files.get(path, path) for path in one.paths)))


def unread(job: "Spec") -> "Spec":
    """Return a job without what it would have to read from streams, to plan the rest of it."""
    return _with(job, _Unread)


def saved_as(job: "Spec", file: str) -> "Spec":
    """Return a job that reads a file in the place of its streams, which was saved from one.

    Raises:
        ValueError: The file is a stream itself.
    """
    streams = streams_of(job.input)
    if not streams:
        return job
    if is_stream(file) or file in map(shown, streams):
        raise ValueError(
            f"cannot find the record: what was read from {shown(file)} is gone."
            " What to do: save it"
            " to a file first, and give --only the name of that file."
        )
    others = [known for one in _formats(job.input) for known in _lasting(one)]
    if any(os.path.abspath(known) == os.path.abspath(file) for known in others):  # noqa: PTH100
        return unread(job)
    return _with(
        job, lambda one: one.at(tuple(file if is_stream(path) else path for path in one.paths))
    )


@contextmanager
def with_streams_copied(
    job: "Spec",
    folder: str,
    stop: Callable[[], bool] = lambda: False,
    *,
    progress: bool | None = False,
    for_nodes: bool = False,
) -> Generator["Spec"]:
    """A job whose streams have been copied to disk; the copies last as long as the context.

    Args:
        job: It reads from no other job.
        folder: Where the copies go; if it does not exist, the first one above it that does.
        stop: Whether to end before all is read.
        progress: As for `Job.run`.
        for_nodes: Whether the nodes of a cluster read the copies, which have names then.

    Raises:
        ValueError: Two inputs are the same stream.
        OSError: A stream cannot be read, or the disk is full.
        KeyboardInterrupt: `stop` said so.
    """
    job = redirected(job)
    streams = streams_of(job.input)
    names: dict[str, str] = {}
    with ExitStack() as held:
        paths: dict[str, str] = {}
        for stream in streams:
            copied = copied_for_nodes if for_nodes else copied_here
            paths[stream] = held.enter_context(copied(stream, folder, stop, progress))
            names[paths[stream]] = shown(stream)
        try:
            yield _with(job, lambda one: Copied(one, paths))
        except BaseException as error:
            _rename(error, names)
            raise


def names_of(source: Input) -> dict[str, str]:
    """Return what users call the copies of an input's streams, by the paths of the copies."""
    found: dict[str, str] = {}
    for one in source.sources if isinstance(source, Inputs) else (source,):
        if isinstance(one, Copied):
            found.update(one.names)
    return found


@dataclass(frozen=True, eq=False)
class _OfStreams(Input):
    """In the place of an input of which some paths are streams."""

    given: Format
    """That input."""

    def __str__(self) -> str:
        return str(self.given)

    @property
    def keyed(self) -> bool:
        """As the input."""
        return self.given.keyed

    @property
    def batched(self) -> bool:
        """As the input."""
        return self.given.batched

    def tag_of(self, what: dict[str, Any]) -> str:
        """Return the input's tag."""
        return self.given.tag_of(what)

    def open(self, what: dict[str, Any], *, tolerant: bool = False) -> Reader:
        """Open a split."""
        return self.given.open(what, tolerant=tolerant)

    def open_batches(self, what: dict[str, Any]) -> Reader:
        """Open a split, for `map_batches`."""
        return self.given.open_batches(what)


@dataclass(frozen=True, eq=False)
class _Unread(_OfStreams):
    """The files of an input, without its streams."""

    def plan(self, split_min: int, split_max: int) -> Plan:
        """Cut the files."""
        paths = tuple(path for path in self.given.paths if not is_stream(path))
        return self.given.at(paths).plan(split_min, split_max) if paths else Plan([], [], [])


@dataclass(frozen=True, eq=False)
class Copied(_OfStreams):
    """An input whose streams have been copied to disk. Splits have the names that users know."""

    paths: dict[str, str]
    """The paths of copies, by those of streams as they were given."""
    names: dict[str, str] = field(init=False)
    """What users call the copies, by their paths."""

    def __post_init__(self) -> None:
        mine = {self.paths[path]: shown(path) for path in self.given.paths if path in self.paths}
        object.__setattr__(self, "names", mine)

    def plan(self, split_min: int, split_max: int) -> Plan:
        """Cut the copies as any file."""
        paths = tuple(self.paths.get(path, path) for path in self.given.paths)
        plan = self.given.at(paths).plan(split_min, split_max)
        files = [file for file in plan.files if file not in self.names]
        for name in self.names.values():
            if name in files:
                raise ValueError(
                    f"cannot plan the job: one of its files is called {show_path(name)}, as the"
                    f" stream is. What to do: name the file ./{name}."
                )
        return Plan(
            [Split(split.bytes, _with_paths(split.what, self.names)) for split in plan.splits],
            files,
            [self.names.get(path, path) for path in plan.display],
        )

    def open(self, what: dict[str, Any], *, tolerant: bool = False) -> Reader:
        """Open a split of the copies."""
        whole = isinstance(self.given, Text) and self.given.whole
        reader = self.given.open(self._of_copies(what), tolerant=tolerant)
        return _Renamed(reader, self.names, whole)

    def open_batches(self, what: dict[str, Any]) -> Reader:
        """Open a split of the copies, for `map_batches`."""
        return _Renamed(self.given.open_batches(self._of_copies(what)), self.names)

    def _of_copies(self, what: dict[str, Any]) -> dict[str, Any]:
        return _with_paths(what, {name: path for path, name in self.names.items()})


@dataclass(frozen=True, slots=True)
class _Renamed:
    """A reader that says the names that users know."""

    reader: Reader
    names: dict[str, str]
    whole: bool = False
    """Whether records are files with their names."""

    def __iter__(self) -> Iterator[Any]:
        return map(self._named, self.reader) if self.whole else iter(self.reader)

    def _named(self, record: tuple[str, Any]) -> tuple[str, Any]:
        path, content = record
        return self.names.get(path, path), content

    def where(self) -> Where:
        """Return where the record that came last begins."""
        file, offset, record, line = self.reader.where()
        return self.names.get(file, file), offset, record, line

    def raw(self) -> object:
        """Return the record that came last as it stands in the stream."""
        return self.reader.raw()

    def bytes_read(self) -> int:
        """Return how many bytes of the split are read."""
        return self.reader.bytes_read()

    def records_read(self) -> int:
        """Return how many records have come."""
        return self.reader.records_read()


def _formats(source: object) -> list[Format]:
    sources = source.sources if isinstance(source, Inputs) else (source,)
    return [one for one in sources if isinstance(one, Format)]


def _lasting(one: Format) -> list[str]:
    """The files of an input that are no streams."""
    paths = tuple(path for path in one.paths if not is_stream(path))
    return one.at(paths).files() if paths else []


def _with(job: "Spec", change: Callable[[Format], Input]) -> "Spec":
    """A job with something else in the place of each input that has streams."""

    def changed(one: Input) -> Input:
        return change(one) if isinstance(one, Format) and streams_of(one) else one

    if not streams_of(job.input):
        return job
    if isinstance(job.input, Inputs):
        return replace(job, input=replace(job.input, sources=(*map(changed, job.input.sources),)))
    assert isinstance(job.input, Input)
    return replace(job, input=changed(job.input))


def _with_paths(what: Any, paths: Mapping[str, str]) -> Any:  # noqa: ANN401 - a split, or part of one
    """A split with other paths."""
    if is_dict(what):
        return {
            name: paths.get(part, part) if name == "path" else _with_paths(part, paths)
            for name, part in what.items()
        }
    if is_list(what):
        return [_with_paths(part, paths) for part in what]
    return what


def _status(path: str) -> os.stat_result:
    number = descriptor_of(path)
    return os.stat(path if number is None else number)  # noqa: PTH116 - of a number, too


def _check_once(paths: list[str]) -> None:
    known: dict[object, str] = {}
    for path in paths:
        key: object = descriptor_of(path)
        try:
            found = _status(path)
        except OSError:  # which is said when it is opened
            pass
        else:
            if key is None and stat.S_ISCHR(found.st_mode):
                continue  # such as /dev/null, which anybody can read
            key = found.st_dev, found.st_ino
        if key in known:
            same = "" if known[key] == shown(path) else f", which is also named {known[key]},"
            raise ValueError(
                f"cannot plan the job: {shown(path)}{same} is named twice, and can be read only"
                " once. What to do: save it to a file, and name that."
            )
        known[key] = shown(path)


def _rename(error: BaseException, names: Mapping[str, str]) -> None:
    error.args = tuple(renamed(part, names) for part in error.args)
    notes: list[str] = getattr(error, "__notes__", [])
    notes[:] = [renamed(note, names) for note in notes]
