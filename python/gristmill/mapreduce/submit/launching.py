"""From a job to its result, after the jobs that it reads from.

    Job ─▶ preparing.py: splits, functions ─▶ submitting.py: the engine ─▶ JobReport ─▶ Result

What a job of a chain keeps for the next one, if it has no output of its own, lies beside the last
one's output (or where runs go, if that is in a store and the job runs on this machine) and is
removed at the end.
"""

import os
import shutil
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from gristmill import _core
from gristmill.ending import ending_with_signals
from gristmill.errors import report_of
from gristmill.job import new_job_id
from gristmill.locations import absolute, is_remote, workplace
from gristmill.mapreduce.definition import pickled
from gristmill.mapreduce.formats.format import Format, Input, Output
from gristmill.mapreduce.formats.keyvalue import kv
from gristmill.mapreduce.partitioners import SampledRanges
from gristmill.mapreduce.results.exception_notes import tell_number
from gristmill.mapreduce.results.nothing_out import said_if_nothing
from gristmill.mapreduce.results.read_again import said_if_read_again
from gristmill.mapreduce.results.result import Result, parts_of
from gristmill.mapreduce.results.skipped_records import with_skipped_records
from gristmill.mapreduce.run_options import Options
from gristmill.mapreduce.spec import Spec
from gristmill.mapreduce.submit.parents import with_parents
from gristmill.mapreduce.submit.planning_told import told_if_slow
from gristmill.mapreduce.submit.preparing import functions_of, prepare, side_files
from gristmill.mapreduce.submit.sampling import sampled
from gristmill.mapreduce.submit.stream_copies import check_seen
from gristmill.mapreduce.submit.streams import redirected, streams_of, with_streams_copied
from gristmill.mapreduce.submit.submitting import Stop, run_prepared
from gristmill.mapreduce.worker.one_schema import renewed_in_store
from gristmill.names import show_path
from gristmill.store_options import with_store_options

__all__ = ["chained", "check_outputs", "run", "run_one"]

_CHAIN = "it is one of a chain of jobs, of which the others would not run"

_STREAM = "what it read from a pipe is gone"


def run(job: Spec, options: Options, stop: Stop = lambda: False) -> Result:
    """Run a job, and before it those that it reads from."""
    with with_store_options(options.get("store_option")):
        return _run(job, options, stop)


def _run(job: Spec, options: Options, stop: Stop) -> Result:
    results: list[Result] = []
    with ending_with_signals(), chained(job, options) as jobs, with_parents(jobs):
        first = redirected(jobs[0])
        reads = bool(streams_of(first.input))
        once = _CHAIN if len(jobs) > 1 else _STREAM if reads else None
        check_outputs(jobs if once else (), options)
        on_nodes = options.get("on") == "ray"
        if reads:  # for what has been read is gone, if it is found out afterwards
            _check_sent(jobs)
            if on_nodes:
                assert first.output is not None
                collect = bool(options.get("collect"))
                check_seen(streams_of(first.input), first.output.folder, collect=collect)
        copies = _copies(first, options)
        copying = with_streams_copied(
            first, copies, stop, progress=options.progress, for_nodes=on_nodes
        )
        with copying as first:
            for number, one in enumerate((first, *jobs[1:])):
                try:
                    ours = _of_chain(options, number)
                    if number < len(jobs) - 1:
                        ours = _between(one, ours)
                    elif any(result.history for result in results):
                        ours = ours.but(history=True)  # `last` is then the last job of the chain
                    results.append(run_one(one, ours, stop, once=once))
                except Exception as error:
                    if number or reads:
                        _keep_record(error)
                    if len(jobs) > 1:
                        tell_number(error, f"{number + 1} of {len(jobs)}, {one.name}")
                    raise
        return with_skipped_records(job, results)


def _of_chain(options: Options, number: int) -> Options:
    """The options of the job of this number in its chain."""
    source = options.source
    return options if source is None else replace(options, source=replace(source, number=number))


def _between(job: Spec, options: Options) -> Options:
    """The options of a job whose output the next one reads: blocks are of a named place."""
    assert job.output is not None
    if _core.has_blocks(job.output.folder):
        return options
    return options.but(replication=None, block_size=None)


def _check_sent(jobs: Iterable[Spec]) -> None:
    """Refuse what cannot be sent to workers."""
    for job in jobs:
        side_files(job)
        pickled(functions_of(job))


def _copies(job: Spec, options: Options) -> str:
    """Where copies of streams go: beside the output, or where runs go.

    Raises:
        FileNotFoundError: The first spill directory does not exist.
    """
    here = () if options.get("on") == "ray" else options.spill_dirs  # else they are the nodes'
    for folder in here:
        if not Path(folder).is_dir():
            found = "is not a directory" if os.path.lexists(folder) else "does not exist"
            raise FileNotFoundError(
                f"cannot use a spill directory: {show_path(folder)} {found}."
                f" What to do: give {options.spell('spill_dir')}"
                " a directory that exists, on a file system with room."
            )
        return folder
    assert job.output is not None
    return str(workplace(job.output.folder, []))


def _keep_record(error: Exception) -> None:
    """Keep the record that a job failed at whose input goes with the chain, or with the stream."""
    report = report_of(error)
    if report is not None and report.error is not None and "retry" in report.error.details:
        from gristmill.mapreduce.results.failed import keep_record

        with suppress(Exception):  # the job's own failure is what counts
            keep_record(report.job_id)


def check_outputs(jobs: Iterable[Spec], options: Options) -> None:
    """Refuse outputs that could not be written, before the first of several jobs begins.

    Raises:
        FileExistsError: One exists.
        ValueError: Two jobs write the same, or one in the output of another.
    """
    folders: list[str] = []
    for job in jobs:
        assert job.output is not None
        folder = absolute(job.output.folder)
        for other in folders:
            if os.path.realpath(folder) == os.path.realpath(other):
                raise _wrong_output(job, f"two jobs write to {folder}")
            for outer, inner in ((folder, other), (other, folder)):
                if os.path.realpath(inner).startswith(f"{os.path.realpath(outer)}/"):
                    raise _wrong_output(job, f"the output {inner} is in the output {outer}")
        folders.append(folder)
    for folder in folders:
        _core.check_output(
            folder, overwrite="overwrite" in options.given, command_line=options.command_line
        )


def _wrong_output(job: Spec, what: str) -> ValueError:
    return ValueError(f"cannot run {job.name}: {what}. What to do: name another output.")


@contextmanager
def chained(job: Spec, options: Options) -> Generator[list[Spec]]:
    """The jobs of a chain, each with an output, and with an input that is no job.

    Outputs that nobody asked for exist while the context does.
    """
    if job.output is None:
        raise ValueError(
            f"cannot run {job.name}: it has no output. What to do: give output=, such as"
            ' gm.tsv("counts/").'
        )
    kept: list[str] = []
    jobs: list[Spec] = []
    before: Output | None = None
    try:
        for number, one in enumerate(job.chain()):
            output = one.output
            if output is None:
                output = kv(_kept_for(job.output.folder, number, options))
                kept.append(output.folder)
            elif (
                isinstance(output, Format) and "/../" in output.folder
            ):  # so that it is read where it was written
                output = replace(output, paths=(absolute(output.folder),))
            source = one.input if before is None else before
            assert isinstance(source, (Input, Spec))
            jobs.append(replace(one, input=source, output=output))
            before = output.as_written()
        yield jobs
    finally:
        for folder in kept:
            if is_remote(folder):
                with suppress(OSError):
                    _core.remove_whole(folder)
            shutil.rmtree(folder, ignore_errors=True)


def _kept_for(last: str, number: int, options: Options) -> str:
    """Where a job keeps its output for the next one: the nodes of a cluster see no disk of ours."""
    name = f".{Path(last).name}.{new_job_id()}-{number}"
    if is_remote(last) and options.get("on") == "ray":
        return f"{last.rstrip('/').rpartition('/')[0]}/{name}"
    return str(workplace(last, options.spill_dirs) / name)


def run_one(
    job: Spec, options: Options, stop: Stop = lambda: False, *, once: str | None = None
) -> Result:
    """Run a job whose input is there; `once` says why it could not be resumed."""
    if isinstance(job.partition_by, SampledRanges):
        job = sampled(job, job.partition_by, options, stop)
    with told_if_slow(options.progress):
        prepared = prepare(job, options, once=once)
    report = run_prepared(prepared, options.progress, stop)
    assert job.output is not None
    if is_remote(job.output.folder):
        parts = renewed_in_store(job.output, job.outputs)
        report = replace(report, output_bytes=sum(part.bytes for part in parts))
    else:
        parts = parts_of(job.output.folder)
    report = said_if_nothing(said_if_read_again(report), job, parts)
    store_option = options.get("store_option")
    return Result(report, job.output, dict(job.outputs), parts, store_option)
