"""The native part of Gristmill; crates/python implements it and stubtest compares the two."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Final, Self, final

__all__ = [
    "COMMIT",
    "DEBUG_BUILD",
    "PROFILE",
    "TARGET",
    "VERSION",
    "Cluster",
    "CompressedReader",
    "CompressedWriter",
    "Emitter",
    "Executor",
    "Groups",
    "History",
    "Job",
    "LineReader",
    "LineWriter",
    "Listing",
    "RangeReader",
    "Search",
    "Unsealer",
    "Values",
    "as_location",
    "available_memory",
    "beat",
    "block_places",
    "check_output",
    "check_outside",
    "check_search",
    "clear_left",
    "commands",
    "decode",
    "decode_key",
    "default_file_system",
    "default_memory",
    "default_spill_dir",
    "default_workers",
    "device_floor",
    "device_rates",
    "dismiss_workers",
    "encode",
    "encode_key",
    "encode_order",
    "exists",
    "explain",
    "files_awaited",
    "find_files",
    "function_names",
    "grep",
    "has_blocks",
    "has_store",
    "is_code_gone",
    "is_remote",
    "kill_children",
    "make_directory",
    "matching",
    "plan_streaming",
    "plan_text",
    "prepare_worker",
    "pulse",
    "pulse_open",
    "put_file",
    "remove_object",
    "remove_whole",
    "rename",
    "resumed_agents",
    "retry_scripts",
    "run_agent",
    "run_tasks",
    "seal",
    "set_ahead_bytes",
    "shared_mount",
    "stat",
    "store_kinds",
    "store_options",
    "use_store_options",
    "user_code",
    "why_not_resumed",
]

VERSION: Final[str]
"""The version of the engine, which is that of the package."""

DEBUG_BUILD: Final[bool]
"""Whether this is an unoptimised build, which no measurement should be taken with."""

COMMIT: Final[str]
"""The commit that was built, with `+changes` if its sources differ; empty where it is not known."""

PROFILE: Final[str]
"""The profile of the build: release or debug."""

TARGET: Final[str]
"""The platform that it was built for, as Rust names it."""

@final
class Cluster:
    """The agents of a job on a cluster.

    Args:
        said: JSON of the job's token and of what each agent said of itself when it had begun.

    Raises:
        OSError: There is no agent.
        ValueError: One is of another version.
    """

    def __new__(cls, said: str) -> Cluster: ...
    def headless(self, address: str | None) -> None:
        """Take in that the head of the cluster does not answer at this address, or that it does.

        Args:
            address: `HOST:PORT`; nothing of a head that answers.
        """

    def joined(self, number: int, hello: str) -> None:
        """Give the job another agent, while it runs.

        Args:
            number: One that no agent of the job had.
            hello: What the agent says of itself.

        Raises:
            ValueError: It is of another version.
        """
    def drained(self, number: int) -> None:
        """Have an agent given no more tasks: its node is about to go."""

@final
class Job:
    """A job, begun when it is made, on a native thread.

    Args:
        spec: JSON of one command and its options, such as
            `{"teragen": {"rows": "1k", "output": "data"}}`.
        job_id: The job's name.
        history: Where its history goes; it has none without it.
        work: Who runs the job's own code, for jobs that have some.
        cluster: The agents that its tasks run in, for jobs on a cluster.
        command_line: Whether errors advise options as the command line has them (`--memory 2G`)
            or as keyword arguments (`memory="2G"`).

    Raises:
        ValueError: An option is unknown, missing or makes no sense.
    """

    def __new__(
        cls,
        spec: str,
        job_id: str,
        history: History | None = None,
        *,
        work: Executor | None = None,
        cluster: Cluster | None = None,
        command_line: bool = False,
    ) -> Job: ...
    def wait(self, timeout_s: float) -> bool:
        """Wait until the job is over, at most `timeout_s` seconds; whether it is."""
    def progress(self) -> tuple[str, int, int, int]:
        """Return the stage's name, its number from 1, its bytes done and its bytes in all.

        Where it is not known how many bytes there are, the last is 0.
        """
    def nodes(self) -> tuple[int, int]:
        """Return how many nodes its tasks run on, 0 on one machine, and how many tasks run."""
    def notices(self) -> list[str]:
        """Return what the user is to be told, and has not been told yet."""
    def cancel(self) -> None:
        """Ask the job to end; it cleans up and is over soon."""
    def leave(self) -> None:
        """Ask the job to end, and have nobody wait for it, even if it never cleans up."""
    def report(self) -> str:
        """Return the report of a job that is over, as JSON.

        Raises:
            ValueError: The job still runs.
        """
    def raise_failure(self) -> None:
        """Raise what made the job fail, as the built-in exception nearest to it.

        Nothing happens if it succeeded.
        """

def files_awaited(at_least_s: float) -> list[tuple[str, float]]:
    """Return the files that this process and its workers wait for, and for how many seconds.

    A file is awaited while a call on it is under way. The one that is awaited longest comes first.
    The seconds are counted from the first look that saw the call.
    """

def kill_children() -> None:
    """Kill all processes below this one, which is about to end without cleaning up."""

@final
class History:
    """Where the history of a job goes, and what it says of the job's beginning.

    Args:
        folder: The folder in which the job gets one.
        keep_short: Whether it is kept of a job of less than a second, too.
        code_goes: Whether the files of the user's code go with the job: what fails is not kept.
        argv: The command line, without secrets.
        host: The machine's name.
        hidden: Words of the command line that may be secret, each with what stands for it in the
            errors that the history keeps.
    """

    def __new__(
        cls,
        folder: str | PathLike[str],
        *,
        keep_short: bool = False,
        code_goes: bool = False,
        argv: Sequence[str] = ...,
        host: str = ...,
        hidden: Sequence[tuple[str, str]] = ...,
    ) -> History: ...

@final
class Listing:
    """What lies right below a location, as its store lists it: each with what `stat` says of it.

    Nothing is said of it where the listing does not. A name that is both an object and the
    beginning of others comes twice, as an object first.
    """

    def __new__(cls, path: str | PathLike[str]) -> Listing: ...
    def __iter__(self) -> Listing: ...
    def __next__(self) -> tuple[str, tuple[bool, int, float, str] | None]:
        """Return the next location.

        Raises:
            OSError: The store says why not.
        """

def as_location(path: str | PathLike[str]) -> str:
    """Return a location as the engine spells it: `file:///a` is `/a`, `s3a://` is `s3://`."""

def store_kinds() -> list[dict[str, Any]]:
    """Return the table of stores: what Python asks of each kind.

    - `name`: its name, for people
    - `schemes`: the schemes of its locations, its own one first
    - `has_authority`: whether a bucket or a host stands behind the scheme
    - `advised`: how a location is written, for advice; nothing of a store for reading, or for tests
    - `variables`: how variables of the environment begin that agents of a cluster need for it
    """

def has_blocks(path: str | PathLike[str]) -> bool:
    """Whether files of a location have blocks that a job may choose."""

def has_store(path: str | PathLike[str]) -> bool:
    """Whether there is a store for the scheme of a location."""

def matching(
    path: str | PathLike[str],
) -> list[tuple[str, tuple[bool, int, float, str] | None]]:
    """Return what a location, or a pattern in a store, leads to, in the order of the names.

    Each comes with what `stat` says of it, where that was seen on the way.

    Raises:
        OSError: The store says why not.
    """

def use_store_options(options: str | None) -> str | None:
    """Have this thread use stores with options, as JSON, or with none; returns those before.

    Raises:
        ValueError: There is no such option, or a value makes no sense.
    """

def store_options() -> str | None:
    """Return the options that this thread uses stores with, as JSON."""

def stat(path: str | PathLike[str]) -> tuple[bool, int, float, str] | None:
    """Return whether a location is a directory, its bytes, when it changed last, its version.

    Raises:
        OSError: The store says why not.
    """

def put_file(source: str | PathLike[str], target: str | PathLike[str]) -> None:
    """Write a file, of this machine or of a store, to an object.

    Raises:
        OSError: It cannot be read, or the store does not take it.
    """

def remove_object(path: str | PathLike[str]) -> None:
    """Remove an object; nothing there is no error.

    Raises:
        OSError: The store says why not.
    """

def rename(source: str | PathLike[str], target: str | PathLike[str]) -> bool:
    """Give something in a store another name there; false where only copying does that.

    Raises:
        OSError: The store says why not.
    """

def make_directory(path: str | PathLike[str]) -> None:
    """Make a directory, and those above it, in HDFS; an object store has none to make.

    Raises:
        OSError: The store says why not.
    """

def remove_whole(path: str | PathLike[str]) -> None:
    """Remove a directory and all in it; nothing there is no error.

    Raises:
        OSError: The store says why not.
    """

def default_spill_dir(directory: str | PathLike[str]) -> str:
    """Return the directory for what a job in this one keeps that has no place beside its output.

    That one; where nothing can be made in it, TMPDIR or /tmp.
    """

def default_file_system() -> str | None:
    """Return the default file system of Hadoop's configuration, where it is one of HDFS."""

def block_places(path: str | PathLike[str]) -> list[tuple[int, int, list[tuple[str, str]]]]:
    """Return which nodes hold the blocks of a file in HDFS; nothing where nobody says so.

    Of each block its first byte, the byte behind its last one, and its data nodes: address, name.
    """

def is_remote(path: str | PathLike[str]) -> bool:
    """Whether a location is `scheme://...`, not a path of this machine."""

def set_ahead_bytes(size: int) -> None:
    """Say how much memory readers have for what they ask of stores before they want it."""

def exists(path: str | PathLike[str]) -> bool:
    """Whether something is at a location.

    Raises:
        OSError: The store cannot be reached.
    """

def find_files(path: str | PathLike[str]) -> list[str]:
    """Return the files that a location stands for: itself, or those in it; of an output, its parts.

    Raises:
        FileNotFoundError: Nothing is there, or no file is in it.
    """

@final
class RangeReader:
    """A file of any store, read in ranges.

    Args:
        path: Its location.

    Raises:
        OSError: It cannot be opened.
    """

    def __new__(cls, path: str | PathLike[str]) -> RangeReader: ...
    @property
    def size(self) -> int:
        """The file's length."""
    def read_at(self, offset: int, size: int) -> bytes:
        """Return the bytes from `offset` on, at most `size`.

        Raises:
            OSError: They cannot be read.
        """

def is_code_gone(folder: str | PathLike[str]) -> bool:
    """Return whether what a dead job of user code needs to be resumed is gone from this machine.

    Args:
        folder: The folder of its history.
    """

def clear_left(folder: str | PathLike[str], *, dry_run: bool) -> list[str]:
    """Remove the hidden folders that a dead job left beside its output and where it spilled.

    A folder goes only if it has the job's name and the lock of a job that no process holds.

    Args:
        folder: The folder of its history, whose lock the caller holds.
        dry_run: Whether they are only looked for.

    Returns:
        The folders.

    Raises:
        ValueError: The history is damaged, or a folder has a link in it.
        FileExistsError: A folder is in use, or holds the only copy of an output.
        OSError: The history cannot be read, or a folder cannot be removed.
    """

def grep(
    patterns: list[bytes],
    conditions: list[tuple[str, bool, list[bytes]]],
    inputs: list[str],
    options: str,
    note: Callable[[str, bytes], object],
) -> tuple[int, int, int, int]:
    """Search files, and write what is found to standard output.

    Args:
        patterns: A line that matches one of them is selected.
        conditions: What also holds for it: as `gristmill.search.conditions` makes them.
        inputs: Files and folders of any store; `-` for standard input.
        options: JSON, as `gristmill.search.engine_options` makes it.
        note: Is given "trouble" with a message, or "binary" with the name of a file.

    Returns:
        Files and bytes that were searched, lines that were selected, files that cannot be read.

    Raises:
        ValueError: A pattern is wrong; the message shows where.
        BrokenPipeError: Nobody reads the output.
        OSError: The output cannot be written.
    """

def check_search(
    patterns: list[bytes], conditions: list[tuple[str, bool, list[bytes]]], options: str
) -> None:
    """Check patterns, conditions and options of a search that is not begun.

    Raises:
        ValueError: A pattern is wrong; the message shows where.
    """

@final
class Search:
    """A search that runs, a little ahead of whoever takes what it finds."""

    def __new__(
        cls,
        patterns: list[bytes],
        conditions: list[tuple[str, bool, list[bytes]]],
        inputs: list[str],
        options: str,
    ) -> Self:
        """Begin a search: arguments as of `grep`.

        Raises:
            ValueError: A pattern is wrong; the message shows where.
        """

    def take(self) -> list[tuple[Any, ...]] | None:
        """Return what was found next, in order; `None` at the end.

        `("file", name)` begins a file, `("line", is_selected, number, offset, spans, line)` is a
        line of it, `("end", lines)` ends it. `("binary", name)`, `("suspected", name, encoding)`
        and `("trouble", name, kind, message)` are what is to be said of it.
        """

    @property
    def summary(self) -> tuple[int, int, int, int] | None:
        """What `grep` returns; `None` before the end."""

    def close(self) -> None:
        """End the search."""

def function_names() -> list[str]:
    """Return the names of the functions of the engine's commands."""

def commands() -> str:
    """Return the table of commands and their options, as JSON."""

def user_code() -> str:
    """Return the command of user code, as JSON: the options that it has in common with others."""

def dismiss_workers() -> None:
    """Kill and reap the workers that wait for a task.

    What they took of the processors then counts as that of this process's children, as `time` shows
    it. For the end of a program: a later job starts others.

    Example:
        >>> dismiss_workers()
    """

def prepare_worker(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    scratch: str | PathLike[str],
    folder: str | PathLike[str] | None = None,
) -> None:
    """Start a worker that the first task will take, unless one waits; it begins while others plan.

    Args:
        command: As for `Executor`, as are the others.
        environment: All of the worker's environment.
        scratch: A folder for temporary files.
        folder: The folder that it starts in; that of this process without it.
    """

def explain(spec: str, *, cluster: str | None = None, command_line: bool = False) -> str:
    """Return what a job would do, as JSON; nothing is written.

    Args:
        spec: As that of `Job`.
        cluster: The agents that it would run in, as `gristmill.cluster.planned` has them.
        command_line: As that of `Job`.

    Raises:
        ValueError: An option makes no sense.
        FileNotFoundError: An input does not exist.
        MemoryError: The memory is too small for any plan.
        OSError: An input cannot be looked at.
    """

def pulse_open(descriptor: int) -> None:
    """Open the pulse of this worker, the page in which it tells its driver where it stands.

    The driver left it open as `descriptor`, which is closed. Once is enough: the first one stays.

    Raises:
        OSError: There is none.
    """

def pulse(record: int, offset: int, file: int, bytes_done: int) -> None:
    """Say where this worker stands; nothing happens in a process that is none.

    The number of the record in this attempt, where it begins in its file, the index of that file
    in the split, and how many bytes of the split are done.
    """

def beat() -> None:
    """Say that this worker makes progress of some kind; as `pulse` in a process that is none."""

def run_tasks(pulse: int) -> None:
    """Run tasks for the driver at the other end of stdin and stdout, until that closes stdin.

    What a worker process of the runner `processes` does from its beginning to its end.

    Args:
        pulse: The page in which it shows that it lives.

    Raises:
        OSError: There is no pulse.
        RuntimeError: The driver sent what is not a task.
    """

def run_agent(spec: str, hello: Callable[[str], object]) -> None:
    """Run an agent: a process on a node of a cluster that runs tasks of one job.

    It ends with the job, or when stdin ends.

    Args:
        spec: JSON of what it is told: job, number, token, workers, address, spill directories.
        hello: Is given what the agent says of itself, as JSON, when it has begun.

    Raises:
        OSError: It cannot listen at its address, or write to its folders.
    """

@final
class Unsealer:
    """A key of this process: what is sealed by its public key opens here and nowhere else."""

    def __init__(self) -> None: ...
    def public_key(self) -> bytes:
        """Return what others seal by; all may know it."""
    def open(self, sealed: bytes) -> bytes:
        """Return the text that was sealed.

        Raises:
            ValueError: It was sealed by another key, or was changed.
        """

def seal(public_key: bytes, text: bytes) -> bytes:
    """Seal a text for the process that made a key.

    Raises:
        ValueError: The key is not a key.
    """

def default_memory() -> int:
    """Return the memory of a job that is given none, in bytes: 60 % of what is available.

    Available is what the machine has, and what every control group of this process leaves.
    """

def available_memory() -> int | None:
    """Return the memory that new work can have, in bytes, of which `default_memory` is a part."""

def shared_mount(path: str | PathLike[str]) -> str | None:
    """Return the kind of the mount that a path lies in, such as nfs4, if machines share it."""

def default_workers() -> int:
    """Return the workers of a job that is given none: one for each core that it may use.

    Control groups and the affinity of this process count.
    """

def device_rates(
    folder: str | PathLike[str], size_bytes: int, streams: int
) -> tuple[float, float, float]:
    """Return how fast the device below `folder` is at this moment, in bytes per second.

    Writing past the cache with `streams` streams, made durable; reading likewise; and reading from
    the page cache; from a try with `size_bytes` bytes.

    Raises:
        OSError: The folder cannot be written.
    """

def device_floor(folder: str | PathLike[str], size_bytes: int, streams: int) -> tuple[float, float]:
    """Return what the device below `folder` takes for plain transfers of `size_bytes` bytes.

    The seconds to write them past the cache with `streams` streams, made durable; and the seconds
    to read as many from the page cache.

    Raises:
        OSError: The folder cannot be written.
    """

@final
class Executor:
    """Worker processes that run a job's own code, taken from those that this process keeps warm.

    Args:
        command: The program and its arguments; the path of the pulse is added to them.
        definition: What all tasks have in common: the pickled functions.
        key: 32 bytes that name the definition.
        environment: All of the workers' environment.
        scratch: A folder for temporary files.
        workers: How many processes to keep.
        folder: The folder that they start in; that of this process without it.
        timeout_s: The longest time without progress; any without it.
        worker_memory: The most bytes of memory of a worker and its children; any without it.
    """

    def __new__(
        cls,
        command: Sequence[str],
        definition: bytes,
        key: bytes,
        *,
        environment: Mapping[str, str],
        scratch: str | PathLike[str],
        workers: int,
        folder: str | PathLike[str] | None = None,
        timeout_s: float | None = None,
        worker_memory: int | None = None,
    ) -> Executor: ...
    @staticmethod
    def scripts(definition: str) -> Executor:
        """Return what runs a job's scripts, in this process.

        Args:
            definition: The engine's `task::streaming::Definition`, as JSON.

        Raises:
            ValueError: It makes no sense.
            OSError: A file that it names cannot be read.
        """

@final
class LineReader:
    """The records of a split of text: an iterator.

    Args:
        pieces: JSON of the split's pieces, as `plan_text` gives them.
        text: Whether records are str (of UTF-8) or bytes.
        terminator: What ends a line; LF without it.
        strip_cr: Whether a CR before the LF is no part of the line either.
        lines: How many lines are a record, which is a list then if they are more than one.
        whole: Whether a file is a record, as a pair of its path and its content.
        fixed: The length of records of bytes.
        before: Files, records and bytes that come before these pieces in their task.

    Raises:
        ValueError: A record is not what the options say; or an option makes no sense.
        OSError: A file cannot be read.
    """

    def __new__(
        cls,
        pieces: str,
        *,
        text: bool = True,
        terminator: bytes | None = None,
        strip_cr: bool = False,
        lines: int = 1,
        whole: bool = False,
        fixed: int | None = None,
        before: tuple[int, int, int] = ...,
    ) -> LineReader: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...  # noqa: ANN401 - whatever was asked for, or put in
    def batch(self, size: int) -> tuple[int, bytes, bytes, int | None] | None:
        """Return the next lines as a column of Arrow, `size` bytes of them or the rest of a file.

        That is their number; the buffers of the column, which are offsets of 32 bits and data; and
        where in the file bytes begin that are no text, if there are any. Nothing at the end.
        """
    def where(self) -> tuple[str, int, int, int]:
        """Return file and offset of the present record, its number in the split, its line or 0."""
    def raw(self) -> bytes:
        """Return the bytes of the present record."""
    def bytes_read(self) -> int:
        """Return the bytes of input consumed; at the end all of the split's lines."""
    def records_read(self) -> int:
        """Return how many records there were so far."""

@final
class Emitter:
    """Takes the pairs of a map, and leaves them in sorted runs.

    Args:
        spec: JSON of the task.
        aggregate: JSON of the aggregate of each key's values, if that is all that is wanted.
        cuts: Keys at which partitions begin, ascending; one less than there are partitions.
        partition: Called with a key and the number of partitions; returns one.
        group_by: Makes the key that pairs are grouped and partitioned by of a pair's key.
        sort_by: Makes what values of a key are ordered by of a key and a value.
        combine: Called with a key and an iterator of some of its values; gives fewer values.

    Raises:
        ValueError: The arguments do not go together.
    """

    def __new__(
        cls,
        spec: str,
        *,
        aggregate: str | None = None,
        cuts: Sequence[object] | None = None,
        partition: Callable[[Any, int], int] | None = None,
        group_by: Callable[[Any], Any] | None = None,
        sort_by: Callable[[Any, Any], Any] | None = None,
        combine: Callable[[Any, Iterator[Any]], Iterable[Any]] | None = None,
    ) -> Emitter: ...
    def emit(self, key: object, value: object) -> None:
        """Take one pair.

        Raises:
            TypeError: The key is of a type that has no order.
            ValueError: The aggregate does not take the value.
            MemoryError: The pair is larger than the memory of a worker.
        """
    def consume(self, pairs: Iterable[tuple[object, object]] | None) -> None:
        """Take all pairs of an iterable; errors are those of `emit`, and of the iterable."""
    def consume_columns(
        self,
        rows: int,
        keys: tuple[str, int, Sequence[object]],
        values: tuple[str, int, Sequence[object]],
    ) -> None:
        """Take the pairs of a table's rows; errors are those of `emit`.

        A column is the format string that the C data interface of Arrow has for its type, how many
        values come before its first, and its buffers.
        """
    def combining(self) -> bool:
        """Whether it was the combiner that raised."""
    def finish(self) -> str:
        """Leave all pairs in runs.

        Returns:
            JSON: runs, records_out, bytes_out, combine_in, combine_out.
        """

@final
class Groups:
    """The groups of a reduce task: an iterator of keys, each with its values or its aggregate.

    Args:
        spec: JSON of the task.
        aggregate: JSON of the aggregate that the maps' emitters had.
        counts: Whether only the number of values is wanted that its result has.
        ordered: Whether they had `group_by` or `sort_by`.
        ranked: Whether they had `cuts`.
    """

    def __new__(
        cls,
        spec: str,
        *,
        aggregate: str | None = None,
        counts: bool = False,
        ordered: bool = False,
        ranked: bool = False,
    ) -> Groups: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[Any, Any]: ...
    def finish(self) -> str:
        """Go through what is left; return JSON: records_in, bytes_in, groups."""
    def begin_batch(self) -> None:
        """Say that user code has done with all pairs so far."""
    def seen(self) -> tuple[int, int]:
        """Return the number of the group, from 1, and of pairs up to here."""

@final
class Values:
    """The values of a group: an iterator that ends when the next group is asked for."""

    @property
    def read_again(self) -> bool:
        """Whether somebody began to read them once more after their end."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...  # noqa: ANN401 - whatever was asked for, or put in

@final
class CompressedWriter:
    """A new file, compressed or not.

    Args:
        path: The file, which does not exist.
        codec: gzip, bzip2, zstd, lz4, xz, snappy or deflate.

    Raises:
        OSError: The file cannot be made.
        ValueError: There is no such codec.
    """

    def __new__(cls, path: str | PathLike[str], codec: str | None = None) -> CompressedWriter: ...
    def write(self, data: bytes) -> None:
        """Write bytes."""
    def close(self) -> int:
        """End the file; return its length in bytes."""

@final
class LineWriter:
    r"""A new file with a line for each record, compressed or not.

    Text has records as `str` has them, bytes as they are, pairs as key, tab, value. tsv has fields
    with tabs in between, those of tuples and dicts; tab, newline, carriage return and backslash
    are written as `\t`, `\n`, `\r` and `\\`.

    Args:
        path: The file, which does not exist.
        codec: gzip, bzip2, zstd, lz4, xz or snappy.
        tsv: Whether it is tsv.
        line_of: What makes text or bytes of a record, in the place of both.

    Raises:
        OSError: The file cannot be made.
        ValueError: There is no such codec.
    """

    def __new__(
        cls,
        path: str | PathLike[str],
        codec: str | None = None,
        *,
        tsv: bool = False,
        line_of: Callable[[Any], str | bytes] | None = None,
    ) -> LineWriter: ...
    def write(self, record: Any) -> None:  # noqa: ANN401 - anything has a line
        """Write a record; of a batch, all its rows."""
    def consume(self, records: Iterable[Any]) -> None:
        """Write all records of an iterable."""
    def take(self, groups: Groups) -> None:
        """Write each group's key and aggregate."""
    def records(self) -> int:
        """Return how many records are written."""
    def close(self) -> int:
        """End the file; return its length in bytes."""

@final
class CompressedReader:
    """A file as the bytes it stands for, decoded if its name or its first bytes say so.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is damaged; the error says where.
    """

    def __new__(cls, path: str | PathLike[str]) -> CompressedReader: ...
    def read(self, size: int = -1) -> bytes:
        """Return `size` bytes, fewer at the end; all that are left if it is negative."""
    def consumed(self) -> int:
        """Return the bytes of the file that were consumed."""
    def codec(self) -> str | None:
        """Return the codec's name, if it is compressed."""

def check_output(folder: str | PathLike[str], *, overwrite: bool, command_line: bool) -> None:
    """Refuse an output that no job could begin to write now.

    Args:
        folder: The output directory.
        overwrite: Whether the job would replace it.
        command_line: Whether errors name options as the command line does.

    Raises:
        FileExistsError: It exists.
        FileNotFoundError: There is no directory that it could be in.
        OSError: It cannot be looked at.
    """

def resumed_agents(history: History, name: str) -> str | None:
    """Return what must be known to begin the agents of a job that is resumed on a cluster, as JSON.

    Args:
        history: Where histories are.
        name: As the command `resume` takes it.

    Returns:
        The job's whole name, how many tasks run at once, the folders of its runs, and the files
        of its code; nothing of a job that ran on this machine.

    Raises:
        ValueError: No such job can be resumed.
        OSError: Its history cannot be read, or the job is alive.
    """

def why_not_resumed(spec: str, *, program: str, keeps_code: bool) -> str | None:
    """Return why a dead job cannot be resumed, as far as its history tells; `None` if it can.

    Args:
        spec: The job's options as its history has them, as JSON.
        program: The version of Gristmill that began it.
        keeps_code: Whether what its own code is was kept.
    """

def plan_streaming(request: str) -> str:
    """Return the splits of a job with scripts, as Hadoop makes them, and the input's classes.

    Args:
        request: The engine's `plan::streaming::SplitRequest`, as JSON.

    Raises:
        ValueError: It makes no sense, or a file is not of its format.
        OSError: A file cannot be read.
    """

def retry_scripts(task: str | PathLike[str], folder: str | PathLike[str]) -> str:
    """Run a task with scripts again that a failed job has kept; return what it said on stderr.

    Args:
        task: The file that was kept.
        folder: Where its files go; it exists.

    Raises:
        RuntimeError: It fails again; or another exception says why it cannot be run.
    """

def check_outside(inputs: Sequence[str | PathLike[str]], output: str | PathLike[str]) -> None:
    """Refuse an output directory that lies in a directory which is an input.

    Args:
        inputs: The inputs, as they were named; patterns only of stores.
        output: The directory.

    Raises:
        ValueError: It does.
        OSError: A store does not answer.
    """

def plan_text(
    paths: Sequence[str | PathLike[str]],
    split_min: int,
    split_max: int,
    cut: bool,
    combine: bool,
    stride: int = 1,
    lines: int = 1,
    csv: tuple[int, int] | None = None,
) -> str:
    """Return files and their splits as JSON.

    {"files": [...], "splits": [{"bytes", "what": {"pieces": [...]}}, ...]}

    Args:
        paths: Files of this machine, and what stands for files in stores, as for `find_files`.
        split_min: The least bytes of a split, where the file has them.
        split_max: The most.
        cut: Whether plain files are cut.
        combine: Whether small files share a split.
        stride: Splits begin at multiples of this.
        lines: Splits begin where every so many lines of a file do.
        csv: The bytes of a delimiter and of a quote: splits begin where rows of CSV do.

    Raises:
        OSError: A file cannot be read.
        ValueError: A file is not compressed as its name says.
    """

def encode(value: object) -> bytes:
    r"""Return a value's encoding: the FoundationDB tuple layer's, other types pickled.

    Example:
        >>> from gristmill import _core
        >>> _core.encode((1, "a")), _core.decode(_core.encode({"any": "thing"}))
        (b'\x05\x15\x01\x02a\x00\x00', {'any': 'thing'})
    """

def encode_key(key: object) -> bytes:
    """Return a key's encoding, which orders as the keys do.

    Raises:
        TypeError: Keys are str, bytes, int, float, bool, None, Decimal, date, datetime, `gm.desc`
            of one of these, or tuples of them.
        ValueError: A key of such a type has no encoding.
    """

def encode_order(key: object) -> bytes:
    """Return bytes that compare as keys do by what they are worth: `1`, `1.0`, `True` are equal.

    Raises:
        TypeError: As for `encode_key`.
        ValueError: Likewise.

    Example:
        >>> encode_order(1) == encode_order(1.0) < encode_order(1.5) < encode_order(2)
        True
    """

def decode_key(data: bytes) -> Any:  # noqa: ANN401 - any key
    """Return the key of an encoding, where its order is turned with `gm.desc`.

    Raises:
        ValueError: The bytes are no encoding.
    """

def decode(data: bytes) -> Any:  # noqa: ANN401 - whatever was encoded
    """Return the value of an encoding.

    Raises:
        ValueError: The bytes are no encoding.
    """
