"""`gm.Job`: what to read, the functions, where to write.

    gm.Job(input, map=..., reduce=..., output=...)  ─ a value; nothing happens
        .run()      runs it, in worker processes; returns a Result
        .explain()  says what it would do
        .then(...)  a job that reads what this one writes

A job that makes no sense is refused when it is made, not when it has run for an hour.
"""

import inspect
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Self, Unpack

from gristmill.amounts import whole_number
from gristmill.mapreduce.run_options import RUN, Options
from gristmill.mapreduce.spec import Spec
from gristmill.mapreduce.submit.defining import refuse_to_run
from gristmill.mapreduce.submit.first_worker import begin_worker
from gristmill.mapreduce.typed import RunOptions
from gristmill.mapreduce.validate_job import check_job
from gristmill.signatures import refuse_unknown, takes

if TYPE_CHECKING:
    from gristmill.mapreduce.results.result import Result

__all__ = ["Job"]

_OPTIONS = tuple(one.name for one in fields(Spec))


class Job(Spec):
    r"""A job of your own functions.

    A function that has a parameter `context` gets the task's `Context`.

    Args:
        input: What to read, such as `gm.text("books/*.txt")`; or a job, to read what that one
            writes (`kv` in a directory of its own, if it has no output). Or a list of inputs of
            any formats, each with a `tag=`: while the job reads an input, `context.tag` is its tag.
        map: Called with each record; yields pairs of a key and a value (without a reduction:
            records of the output), or returns a list of them, or `None`. Without a map, records
            must be pairs.
        map_batches: In place of `map`: called with each `pyarrow.RecordBatch`; yields pairs,
            or tables with two columns, keys and values.
        setup: Called with the `Context` before the first record of each task, of map and reduce.
        teardown: Called with the `Context` after the last record of each task; may yield
            records, as `map` or `reduce` does.
        combine: Called with a key and an iterator of some of its values, between map and reduce,
            any number of times; yields values that stand for them.
        reduce: Called with a key and an iterator of its values; yields records of the output.
            Or one of `gm.sum()`, `gm.count()`, `gm.min()` and so on, which run natively.
        reduce_batches: In place of `reduce`: called with an iterator of batches with the
            columns `key` and `value`, in order of keys, for each partition.
        sort_by: Called with key and value; the values of a key come in the order of what it
            returns, which is a key itself. Otherwise they come in input order.
        group_by: Called with a key; keys for which it returns the same are reduced together, in
            their order, and `reduce` gets what it returned.
        partition_by: Which part a key goes to: `"hash"`, `gm.ranges([...])`,
            `gm.sampled_ranges()`, or a function of the key (with `group_by`, of what that
            returned) and the number of partitions.
        parts: How many partitions, each a file of the output. By default one for each 256 MB of
            input; where user code reduces, one for each MiB up to 32, so that several workers
            reduce.
        output: Where to write, such as `gm.tsv("counts/")`: a directory, which is made.
        outputs: More outputs, by names: `{"errors": gm.jsonl()}` are the files `errors-*` in the
            output, written to by `context.output("errors").write(record)`.
        files: Side files, which `context.file(name)` finds by their last names.
        skip_bad: How many records may be left out: because a function fails at them, because they
            are not what the format says, or because the job cannot take a key or a value of
            theirs. They are put into files `_bad-*` of the output; `Result.skipped` counts them.
        split_min: The least bytes of input for a map task, such as `"1M"`.
        split_max: The most; by default a 32nd of the input, within 4 and 64 MiB. Small files are
            combined up to it. Items and whole files are cut into up to 128 tasks.
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

    def __new__(cls, *_input: object, **options: object) -> Self:
        """Refuse unknown options, with a better message than Python's own."""
        refuse_unknown("gm.Job", options, _OPTIONS)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_job(self)
        for name in ("parts", "skip_bad"):
            object.__setattr__(self, name, whole_number(getattr(self, name)))
        if not self.name:
            object.__setattr__(self, "name", self._named())

    @takes(RUN)
    def run(self, *, progress: bool | None = None, **options: Unpack[RunOptions]) -> "Result":
        r"""Run the job, after the job that it reads from, if it does.

        `memory` is for sorting and merging, in all workers together. The memory of your functions
        is not part of it. An exception that comes twice at the same record ends the job, whatever
        `attempts` says.

        Args:
            progress: `None`: draw a bar after two seconds, if stderr is a terminal or a notebook.
                True: elsewhere also, as lines. False: draw nothing and print no warnings; the
                report has them.
            options: Those of `gristmill run`.

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
        from gristmill.mapreduce.results.tracebacks import without_our_frames

        refuse_to_run()
        try:
            given = Options(given=options, progress=progress, function="Job.run")
            begin_worker(given)
            from gristmill.mapreduce.results.exception_notes import tell_warnings
            from gristmill.mapreduce.submit.launching import run

            result = run(self, given)
        except BaseException as error:
            without_our_frames(error)
            raise
        if progress is not False:
            tell_warnings(result.report)
        return result

    @takes(RUN)
    def explain(self, **options: Unpack[RunOptions]) -> str:
        """Return what the job would do, for people: splits, partitions, memory; nothing is run.

        Args:
            options: As for `run`.

        Raises:
            ValueError: An option makes no sense.
            FileNotFoundError: An input does not exist.
            MemoryError: `memory` is too small.
        """
        from gristmill.mapreduce.results.tracebacks import without_our_frames
        from gristmill.mapreduce.submit.explaining import explain

        try:
            return explain(self, Options(given=options, function="Job.explain"))
        except BaseException as error:
            without_our_frames(error)
            raise

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


Job.__signature__ = inspect.signature(Spec)  # pyright: ignore[reportAttributeAccessIssue] - PEP 362
