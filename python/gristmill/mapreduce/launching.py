"""From a job to its result: planned here, run by the engine, waited for.

    Job ─▶ input.plan ─▶ splits ─┐
        ─▶ functions ─pickled────┴─▶ _core.Job: a native thread, workers ─▶ JobReport ─▶ Result

A job that reads from another one runs after it. What the first one keeps for the second, if it has
no output of its own, lies beside the second's output and is removed at the end.
"""

import atexit
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gristmill import _core, worker
from gristmill.amounts import parse_bytes
from gristmill.errors import attach_report
from gristmill.history.home import jobs_folder
from gristmill.job import TICK_S, new_job_id
from gristmill.mapreduce.code import code_files
from gristmill.mapreduce.definition import Definition, Functions, pickled, record_classes
from gristmill.mapreduce.formats import Input, Output
from gristmill.mapreduce.given import check_options
from gristmill.mapreduce.job import Job
from gristmill.mapreduce.keyvalue import kv
from gristmill.mapreduce.partitioners import Ranges, SampledRanges
from gristmill.mapreduce.paths import StrPath
from gristmill.mapreduce.pickling import dumps
from gristmill.mapreduce.plan import PARTITION_BYTES, Plan
from gristmill.mapreduce.result import Result
from gristmill.mapreduce.telling import tell_failure
from gristmill.report import JobReport

__all__ = [
    "Options",
    "Prepared",
    "Stop",
    "begin",
    "chained",
    "check_outputs",
    "functions_of",
    "partitions_of",
    "prepare",
    "run",
    "run_one",
    "run_prepared",
    "side_files",
    "source_of",
]

Stop = Callable[[], bool]
"""Whether a job that runs shall end."""

_CHAIN = "it is one of a chain of jobs, of which the others would not run"

_NO_FILES = "its input is in no files, and nobody knows whether that has changed"

_BAR_AFTER_S = 2.0

_TIMEOUT_S = 600.0
"""As Hadoop's `mapreduce.task.timeout`."""

atexit.register(_core.dismiss_workers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a job is run, whatever it is; see `Job.run`."""

    memory: int | str | None = None
    workers: int | None = None
    attempts: int | None = None
    timeout_s: float | None = None
    worker_memory: int | str | None = None
    spill_dir: StrPath | Iterable[StrPath] | None = None
    overwrite: bool = False
    no_sync: bool = False
    progress: bool | None = None
    history: bool = False
    command_line: bool = False
    """Whether errors name options as the command line does."""

    def __post_init__(self) -> None:
        for name, value in check_options(self).items():
            object.__setattr__(self, name, value)

    def spec(self) -> dict[str, Any]:
        """Return those that were given, as the engine takes them."""
        spill = self.spill_dir
        if spill is not None:
            given = [spill] if isinstance(spill, (str, os.PathLike)) else spill
            spill = [os.path.abspath(folder) for folder in given]  # noqa: PTH100 - links stay
        found = {
            "memory": None if self.memory is None else f"{self.memory}",
            "workers": self.workers,
            "attempts": self.attempts,
            "spill_dir": spill,
            "overwrite": self.overwrite or None,
            "no_sync": self.no_sync or None,
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A job that is ready to begin."""

    job: Job
    spec: dict[str, Any]
    definition: Definition
    plan: Plan
    options: Options


def run(job: Job, options: Options, stop: Stop = lambda: False) -> Result:
    """Run a job, and before it those that it reads from."""
    result: Result | None = None
    with chained(job) as jobs:
        once = _CHAIN if len(jobs) > 1 else None
        check_outputs(jobs if once else (), options)
        for one in jobs:
            result = run_one(one, options, stop, once=once)
    assert result is not None
    return result


def check_outputs(jobs: Iterable[Job], options: Options) -> None:
    """Refuse outputs that could not be written, before the first of several jobs begins.

    Raises:
        FileExistsError: One exists.
        ValueError: Two jobs write the same.
    """
    folders: list[str] = []
    for job in jobs:
        assert job.output is not None
        folder = os.path.abspath(job.output.folder)  # noqa: PTH100 - links stay as written
        if any(os.path.realpath(folder) == os.path.realpath(other) for other in folders):
            raise ValueError(
                f"cannot run {job.name}: two jobs write to {folder}. To go on: name another output."
            )
        folders.append(folder)
    for folder in folders:
        _core.check_output(folder, overwrite=options.overwrite, command_line=options.command_line)


@contextmanager
def chained(job: Job) -> Generator[list[Job]]:
    """The jobs of a chain, each with an output, and with an input that is no job.

    Outputs that nobody asked for exist while the context does.
    """
    if job.output is None:
        raise ValueError(
            f"cannot run {job.name}: it has no output. To go on: give output=, such as"
            ' gm.tsv("counts/").'
        )
    kept: list[str] = []
    jobs: list[Job] = []
    before: Output | None = None
    try:
        for number, one in enumerate(job.chain()):
            output = one.output
            if output is None:
                folder = Path(job.output.folder)
                name = f".{folder.name}.{new_job_id()}-{number}"
                output = kv(folder.parent / name)
                kept.append(output.folder)
            source = one.input if before is None else before
            assert isinstance(source, (Input, Job))
            jobs.append(replace(one, input=source, output=output))
            before = output
        yield jobs
    finally:
        for folder in kept:
            shutil.rmtree(folder, ignore_errors=True)


def run_one(
    job: Job, options: Options, stop: Stop = lambda: False, *, once: str | None = None
) -> Result:
    """Run a job whose input is there; `once` says why it could not be resumed."""
    if isinstance(job.partition_by, SampledRanges):
        from gristmill.mapreduce.sampling import sampled

        job = sampled(job, job.partition_by, options, stop)
    report = run_prepared(prepare(job, options, once=once), options.progress, stop)
    assert job.output is not None
    return Result(report, job.output, dict(job.outputs))


def run_prepared(prepared: Prepared, progress: bool | None, stop: Stop) -> JobReport:
    """Run a job to its end, also when Ctrl-C or another exception comes in between.

    Raises:
        Exception: What made the job fail, with the report and what else is known.
    """
    native = begin(prepared, new_job_id())
    try:
        _wait(native, progress, stop)
    except BaseException:
        native.cancel()
        while not native.wait(TICK_S):
            pass
        raise
    report = JobReport.from_json(native.report())
    try:
        native.raise_failure()
    except BaseException as error:
        attach_report(error, report)
        tell_failure(error, report)
        raise
    return report


def prepare(job: Job, options: Options, *, once: str | None = None) -> Prepared:
    """Plan a job and pickle its functions; `once` says why it could not be resumed.

    Raises:
        TypeError: A function cannot be pickled.
        OSError: An input cannot be read, or a side file is not there.
    """
    source, output = source_of(job), job.output
    assert output is not None
    plan = source.plan(*job.split_sizes())
    files = side_files(job)
    folder = os.path.abspath(output.folder)  # noqa: PTH100 - links stay as the user wrote them
    spec = {
        "name": job.name,
        "inputs": plan.display,
        "files": [*plan.files, *files.values()],
        "code": code_files(),
        "once": once or _once(source, plan),
        "splits": [{"bytes": split.bytes, "what": split.what} for split in plan.splits],
        "partitions": partitions_of(job, plan),
        "output": folder,
        **options.spec(),
    }
    definition = _definition(job, source, files)
    return Prepared(job=job, spec=spec, definition=definition, plan=plan, options=options)


def _once(source: Input, plan: Plan) -> str | None:
    """Why a job with this input could not be resumed, if there is a reason."""
    from gristmill.mapreduce.memory import Items

    with_data = isinstance(source, Items)  # the splits hold it
    return None if plan.files or with_data or not plan.splits else _NO_FILES


def begin(prepared: Prepared, job_id: str) -> "_core.Job":
    """Begin a job.

    Raises:
        ValueError: An option makes no sense.
    """
    spec = json.dumps({"mapreduce": prepared.spec})
    work = _work(dumps(prepared.definition), prepared.options)
    return _core.Job(
        spec,
        job_id,
        jobs_folder(),
        keep_short=prepared.options.history,
        work=work,
        command_line=prepared.options.command_line,
    )


def _work(definition: bytes, options: Options) -> "_core.Work":
    """Processes for a job's functions, started as this one was."""
    program, arguments, environment, folder, scratch = worker.command()
    limit = options.worker_memory
    return _core.Work(
        [program, *arguments],
        definition,
        hashlib.sha256(definition).digest(),
        environment=environment,
        folder=folder,
        scratch=scratch,
        workers=options.workers or os.cpu_count() or 1,
        timeout_s=_TIMEOUT_S if options.timeout_s is None else options.timeout_s,
        worker_memory=None if limit is None else parse_bytes(limit, "worker_memory"),
    )


def source_of(job: Job) -> Input:
    """Return the input of a job that is not chained, or whose chain has run."""
    if isinstance(job.input, Job):
        raise ValueError(f"cannot plan {job.name}: the job that it reads from has not run.")
    return job.input


def partitions_of(job: Job, plan: Plan) -> int:
    """Return how many partitions a job has: a function of its input and options."""
    if not job.reduces:
        return 0
    if isinstance(job.partition_by, Ranges):
        return len(job.partition_by.cuts) + 1
    return job.parts or max(1, -(-plan.bytes // PARTITION_BYTES))


def functions_of(job: Job) -> Functions:
    """Return the user code that a job's workers run."""
    partition = job.partition_by
    return Functions(
        map=job.map,
        map_batches=job.map_batches,
        setup=job.setup,
        teardown=job.teardown,
        combine=job.combine,
        reduce=job.reduce,
        reduce_batches=job.reduce_batches,
        sort_by=job.sort_by,
        group_by=job.group_by,
        partition=partition if callable(partition) else None,
        cuts=partition.cuts if isinstance(partition, Ranges) else None,
    )


def _definition(job: Job, source: Input, files: dict[str, str]) -> Definition:
    output = job.output
    assert output is not None
    outputs: dict[str, Output] = dict(job.outputs)
    return Definition(
        name=job.name,
        input=_bare(source),
        output=output,
        outputs=outputs,
        files=files,
        skip_bad=job.skip_bad,
        payload=pickled(functions_of(job)),
        classes=record_classes(),
        path=[entry or str(Path.cwd()) for entry in sys.path],
    )


def _bare(source: Input) -> Input:
    """The input as workers need it: splits bring their data with them."""
    from gristmill.mapreduce.memory import Items

    return Items(()) if isinstance(source, Items) else source


def side_files(job: Job) -> dict[str, str]:
    """Return the paths of a job's side files by their last names.

    Raises:
        FileNotFoundError: One is not there.
    """
    found: dict[str, str] = {}
    for file in job.files:
        path = Path(file).absolute()
        if not path.is_file():
            raise FileNotFoundError(
                f"cannot plan the job: the side file {path} does not exist."
                " To go on: check the name."
            )
        found[path.name] = str(path)
    return found


def _wait(native: "_core.Job", progress: bool | None, stop: Stop) -> None:
    from gristmill.cli.progress import progress_bar

    quiet, anywhere = progress is False, progress is True
    with progress_bar(quiet=quiet, first_s=_BAR_AFTER_S, anywhere=anywhere) as bar:
        while not native.wait(TICK_S):
            if stop():
                native.cancel()
            name, _, done_bytes, bytes_in_all = native.progress()
            bar.show(name, done_bytes, bytes_in_all)
