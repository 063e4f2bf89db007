"""`gm.Job`: what to read, the functions, where to write.

    gm.Job(input, map=..., reduce=..., output=...)  ─ a value; nothing happens
        .run()      does it, in worker processes; returns a Result
        .explain()  says what it would do
        .then(...)  a job that reads what this one writes

A job that makes no sense is refused when it is made, not when it has run for an hour.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gristmill.amounts import parse_bytes, whole_number
from gristmill.mapreduce.aggregates import Aggregate
from gristmill.mapreduce.formats import Format, Input, Output
from gristmill.mapreduce.functions import name_of
from gristmill.mapreduce.partitioners import Partitioner
from gristmill.mapreduce.paths import StrPath
from gristmill.mapreduce.plan import NO_MAX

if TYPE_CHECKING:
    from gristmill.mapreduce.result import Result

__all__ = ["Job"]

Function = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Job:
    r"""A job of your own functions.

    A function that has a parameter `context` gets the task's `Context`.

    Args:
        input: What to read, such as `gm.text("books/*.txt")`; or a job, to read what that one
            writes (`kv` in a folder of its own, if it has no output).
        map: Called with each record; yields pairs of a key and a value (without a reduction:
            records of the output), or returns a list of them, or `None`. Without a map, records
            must be pairs.
        map_batches: In the place of `map`: called with each `pyarrow.RecordBatch`; yields pairs,
            or tables with two columns, keys and values.
        setup: Called with the `Context` before the first record of each task, of map and reduce.
        teardown: Called with it after the last; may yield what the task's function may.
        combine: Called with a key and an iterator of some of its values, between map and reduce,
            any number of times; yields values that stand for them.
        reduce: Called with a key and an iterator of its values; yields records of the output.
            Or one of `gm.sum()`, `gm.count()`, `gm.min()` and so on, which run natively.
        reduce_batches: In the place of `reduce`: called with an iterator of batches with the
            columns `key` and `value`, in order of keys, for each partition.
        sort_by: Called with key and value; the values of a key come in the order of what it
            returns, which is a key itself. Otherwise they come in input order.
        group_by: Called with a key; keys for which it returns the same are reduced together, in
            their order, and `reduce` gets what it returned.
        partition_by: Which part a key goes to: `"hash"`, `gm.ranges([...])`,
            `gm.sampled_ranges()`, or a function of the key (with `group_by`, of what that
            returned) and the number of partitions.
        parts: How many partitions, each a file of the output; by default one for each 256 MB of
            input.
        output: Where to write, such as `gm.tsv("counts/")`: a directory, which is made.
        outputs: More outputs, by names: `{"errors": gm.jsonl()}` are the files `errors-*` in the
            output, written to by `context.output("errors").write(record)`.
        files: Side files, which `context.file(name)` finds by their last names.
        skip_bad: How many records may be left out because a function fails at them (or they are
            not what the format says); they are put into files `_bad-*` of the output.
        split_min: The least bytes of input for a map task, such as `"1M"`.
        split_max: The most; by default a 32nd of the input, within 4 and 64 MiB. Small files are
            combined up to it.
        name: What the job is called where jobs are listed; by default as its functions.

    Raises:
        ValueError: The options contradict each other.
        TypeError: One of them is not what it should be.

    Example:
        >>> import tempfile, gristmill as gm
        >>> def words(line):
        ...     for word in line.split():
        ...         yield word, 1
        >>> job = gm.Job(gm.text("books/*.txt"), map=words, reduce=gm.sum(), output=gm.tsv("out/"))
        >>> job
        <Job words, gm.sum(): gm.text('books/*.txt') to gm.tsv('out/')>
    """

    input: "Input | Job"
    map: Function | None = field(default=None, kw_only=True)
    map_batches: Function | None = field(default=None, kw_only=True)
    setup: Function | None = field(default=None, kw_only=True)
    teardown: Function | None = field(default=None, kw_only=True)
    combine: Function | None = field(default=None, kw_only=True)
    reduce: Function | Aggregate | None = field(default=None, kw_only=True)
    reduce_batches: Function | None = field(default=None, kw_only=True)
    sort_by: Function | None = field(default=None, kw_only=True)
    group_by: Function | None = field(default=None, kw_only=True)
    partition_by: Partitioner = field(default="hash", kw_only=True)
    parts: int | None = field(default=None, kw_only=True)
    output: Output | None = field(default=None, kw_only=True)
    outputs: Mapping[str, Output] = field(default_factory=dict[str, Output], kw_only=True)
    files: Iterable[StrPath] = field(default=(), kw_only=True)
    skip_bad: int = field(default=0, kw_only=True)
    split_min: int | str | None = field(default=None, kw_only=True)
    split_max: int | str | None = field(default=None, kw_only=True)
    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        from gristmill.mapreduce.checks import check_job
        from gristmill.mapreduce.paths import as_paths

        object.__setattr__(self, "files", as_paths(self.files, "files"))
        check_job(self)
        for name in ("parts", "skip_bad"):
            object.__setattr__(self, name, whole_number(getattr(self, name)))
        if not self.name:
            object.__setattr__(self, "name", self._named())

    def __repr__(self) -> str:
        source = self.input.name if isinstance(self.input, Job) else str(self.input)
        target = "nowhere" if self.output is None else str(self.output)
        return f"<Job {self.name}: {source} to {target}>"

    def run(
        self,
        *,
        memory: int | str | None = None,
        workers: int | None = None,
        attempts: int | None = None,
        timeout_s: float | None = None,
        worker_memory: int | str | None = None,
        spill_dir: StrPath | Iterable[StrPath] | None = None,
        overwrite: bool = False,
        no_sync: bool = False,
        progress: bool | None = None,
        history: bool = False,
    ) -> "Result":
        r"""Run the job, after the job that it reads from, if it does.

        Args:
            memory: Most memory for sorting and merging in all workers, in bytes or as `"8G"`; by
                default 60 % of what is available.
            workers: How many tasks run at once; by default one for each core. The output does
                not depend on it.
            attempts: How often a task is tried, when something fails that a retry can help; by
                default four times. An exception that comes twice at the same record ends the job.
            timeout_s: How long a function may take for one record, in seconds, before its worker
                is killed; by default 600.
            worker_memory: Most memory of a worker's process, beyond which it is killed.
            spill_dir: Where runs go; by default beside the output.
            overwrite: Replace the output if it exists, in one exchange of names.
            no_sync: Do not wait until the output is durable.
            progress: Draw a bar, after two seconds; by default where stderr is a terminal or a
                notebook, and if True, elsewhere as well, as lines.
            history: Keep the job's history also if the job takes less than a second.

        Returns:
            What the job did, and where its output is.

        Raises:
            RuntimeError: A function failed; the paragraph says which, at which record of which
                file, and notes of the exception have the traceback and a command to try it again.
            TypeError: A function holds what cannot be sent to a worker.
            ValueError: An option makes no sense, or the input is not what the format says.
            FileNotFoundError: An input does not exist.
            FileExistsError: The output exists.
            MemoryError: `memory` is too small, or a worker took more than `worker_memory`.
            OSError: A file cannot be read or written.

        Example:
            >>> import tempfile, gristmill as gm
            >>> from pathlib import Path
            >>> def words(line):
            ...     for word in line.split():
            ...         yield word, 1
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     _ = Path(folder, "in.txt").write_text("to be or not to be\n")
            ...     job = gm.Job(
            ...         gm.text(f"{folder}/in.txt"),
            ...         map=words,
            ...         reduce=gm.sum(),
            ...         output=gm.tsv(f"{folder}/counts"),
            ...     )
            ...     result = job.run(workers=1)
            ...     sorted(result.read())
            [('be', '2'), ('not', '1'), ('or', '1'), ('to', '2')]
        """
        from gristmill.mapreduce.launching import Options, run

        options = Options(
            memory=memory,
            workers=workers,
            attempts=attempts,
            timeout_s=timeout_s,
            worker_memory=worker_memory,
            spill_dir=spill_dir,
            overwrite=overwrite,
            no_sync=no_sync,
            progress=progress,
            history=history,
        )
        return run(self, options)

    def explain(self, *, memory: int | str | None = None, workers: int | None = None) -> str:
        """Return what the job would do, for people: splits, partitions, memory; nothing is run.

        Args:
            memory: As for `run`.
            workers: As for `run`.

        Raises:
            ValueError: An option makes no sense.
            FileNotFoundError: An input does not exist.
            MemoryError: `memory` is too small.
        """
        from gristmill.mapreduce.explaining import explain
        from gristmill.mapreduce.launching import Options

        return explain(self, Options(memory=memory, workers=workers))

    def then(self, **options: Any) -> "Job":  # noqa: ANN401 - those of Job
        """Return a job that reads what this one writes; `run` runs both.

        Args:
            options: Those of `Job`, but for `input`.

        Example:
            >>> import gristmill as gm
            >>> counts = gm.Job(gm.text("a.txt"), map=lambda line: [(line, 1)], reduce=gm.sum())
            >>> counts.then(map=lambda pair: [(pair[1], pair[0])], output=gm.tsv("by-count/"))
            <Job <lambda>: <lambda>, gm.sum() to gm.tsv('by-count/')>
        """
        return Job(self, **options)

    def with_input(self, paths: StrPath | Iterable[StrPath]) -> "Job":
        """Return the same job with other files to read.

        Raises:
            TypeError: Its input is no files.
        """
        from gristmill.mapreduce.paths import as_paths

        if isinstance(self.input, Job):
            return replace(self, input=self.input.with_input(paths))
        if not isinstance(self.input, Format):
            raise TypeError(f"cannot read files in the place of {self.input}: it is none.")
        return replace(self, input=self.input.at(as_paths(paths)))

    def with_output(self, path: StrPath) -> "Job":
        """Return the same job with another directory to write.

        Raises:
            TypeError: It has no output.
        """
        if not isinstance(self.output, Format):
            raise TypeError("cannot name another output: the job has none, so no format either.")
        return replace(self, output=self.output.at(path))

    def chain(self) -> list["Job"]:
        """Return the jobs that must run, in order; the last is this one."""
        before = self.input.chain() if isinstance(self.input, Job) else []
        return [*before, self]

    @property
    def reduces(self) -> bool:
        """Whether there is anything to shuffle."""
        return self.reduce is not None or self.reduce_batches is not None

    def split_sizes(self) -> tuple[int, int]:
        """Return the least and the most bytes of a split."""
        least, most = self.split_min, self.split_max
        return (
            0 if least is None else parse_bytes(least, "split_min"),
            NO_MAX if most is None else parse_bytes(most, "split_max"),
        )

    def _named(self) -> str:
        return ", ".join(self._names()) or "job"

    def _names(self) -> Iterator[str]:
        for function in (self.map, self.map_batches, self.reduce, self.reduce_batches):
            if isinstance(function, Aggregate):
                yield repr(function)
            elif function is not None:
                yield name_of(function)
