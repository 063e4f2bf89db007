"""From a job to its result, after the jobs that it reads from.

    Job ─▶ preparing.py: splits, functions ─▶ submitting.py: the engine ─▶ JobReport ─▶ Result

Of a chain each job is recorded as it begins and as it ends (chain.py), so that another process can
go on behind the last one (resuming.py).
"""

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from gristmill import _core
from gristmill.ending import ending_with_signals
from gristmill.errors import report_of
from gristmill.job import new_job_id
from gristmill.locations import absolute, is_remote, workplace
from gristmill.mapreduce.definition import pickled
from gristmill.mapreduce.partitioners import SampledRanges
from gristmill.mapreduce.results.exception_notes import tell_number
from gristmill.mapreduce.results.nothing_out import said_if_nothing
from gristmill.mapreduce.results.read_again import said_if_read_again
from gristmill.mapreduce.results.result import Result, parts_of, success_of
from gristmill.mapreduce.results.skipped_records import with_skipped_records
from gristmill.mapreduce.run_options import Options
from gristmill.mapreduce.spec import Spec
from gristmill.mapreduce.submit.chain import Chain, ChainRecord, is_dead, kept
from gristmill.mapreduce.submit.chain_definition import definition_of
from gristmill.mapreduce.submit.parents import with_parents
from gristmill.mapreduce.submit.planning_told import told_if_slow
from gristmill.mapreduce.submit.preparing import functions_of, prepare, side_files
from gristmill.mapreduce.submit.sampling import sampled
from gristmill.mapreduce.submit.stream_copies import check_seen
from gristmill.mapreduce.submit.streams import redirected, streams_of, with_streams_copied
from gristmill.mapreduce.submit.submitting import Stop, resume_dead, run_prepared
from gristmill.mapreduce.worker.one_schema import renewed_in_store
from gristmill.names import show_path
from gristmill.report import JobReport
from gristmill.store_options import with_store_options

__all__ = ["check_outputs", "run", "run_jobs", "run_one"]

_SHORT_S = 1.0
"""What takes longer has a history."""

_STREAM = "what it read from a pipe is gone"


def run(job: Spec, options: Options, stop: Stop = lambda: False) -> Result:
    """Run a job, and before it those that it reads from."""
    with with_store_options(options.get("store_option")):
        return _run(Chain.of(job, options), options, stop)


def _run(chain: Chain, options: Options, stop: Stop) -> Result:
    first = redirected(chain.jobs[0])
    reads = bool(streams_of(first.input))
    on_nodes = options.get("on") == "ray"
    with ending_with_signals(), with_parents(chain.jobs):
        if reads or len(chain.jobs) > 1:  # what has been read, or done, would be in vain
            check_outputs(chain.jobs, options)
            _check_sent(chain.jobs)
        if reads and on_nodes:
            assert first.output is not None
            collect = bool(options.get("collect"))
            check_seen(streams_of(first.input), first.output.folder, collect=collect)
        is_resumable = len(chain.jobs) > 1 and options.listed and not reads
        definition = definition_of(chain, options) if is_resumable else None
        copies = _copies(first, options)
        copying = with_streams_copied(
            first, copies, stop, progress=options.progress, for_nodes=on_nodes
        )
        with kept(chain, definition) as record, copying as first:
            chain = replace(chain, jobs=(first, *chain.jobs[1:]))
            return run_jobs(chain, options, stop, record, once=_STREAM if reads else None)


def run_jobs(
    chain: Chain, options: Options, stop: Stop, record: ChainRecord, *, once: str | None = None
) -> Result:
    """Run the jobs of a chain one after the other, but for those that the record has the end of.

    Args:
        chain: The jobs; what the first one reads is there.
        options: How they are run.
        stop: Whether they shall end.
        record: What a dead process has recorded, and where it is recorded what they do.
        once: Why they could not be resumed.

    Raises:
        Exception: What made a job fail; says which job of the chain it was.
    """
    results: list[Result] = []
    began = time.monotonic()
    for number, one in enumerate(chain.jobs):
        ours = _of_chain(chain, number, options)
        if number and (time.monotonic() - began > _SHORT_S or any(r.history for r in results)):
            ours = ours.but(history=True)  # `last` is then the last job of the chain
        try:
            results.append(_run_recorded(one, ours, stop, record, number, once))
        except Exception as error:
            if number or once:
                _keep_record(error)
            if len(chain.jobs) > 1:
                tell_number(error, f"{number + 1} of {len(chain.jobs)}, {one.name}")
            raise
    return with_skipped_records(chain.jobs, chain.kept, results)


def _run_recorded(
    job: Spec, options: Options, stop: Stop, record: ChainRecord, number: int, once: str | None
) -> Result:
    """Run a job of a chain, or what a dead process has left of it to do."""
    before = record.names.get(number)
    if before is not None:
        report = record.reports.get(number) or _published(job, before)
        if report is None and (number == 0 or is_dead(before)):  # only its own definition has the
            report = resume_dead(before, options, stop)  # input of the first
        if report is not None:
            record.ended(number, report)
            return _result(job, options, report)
    job_id = new_job_id()
    record.begins(number, job_id)
    place = None if record.place is None else {**record.place, "job": number + 1}
    result = run_one(job, options, stop, once=once, chain=place, job_id=job_id)
    record.ended(number, result.report)
    return result


def _published(job: Spec, job_id: str) -> JobReport | None:
    """The little that is known of a job that was killed behind its end, before it was recorded."""
    assert job.output is not None
    try:
        found = success_of(job.output.folder)
    except (OSError, ValueError):
        return None
    if found.get("job_id") != job_id or is_dead(job_id):  # whose history tells more
        return None
    return JobReport(job_id=job_id, command="mapreduce", status="succeeded")


def _of_chain(chain: Chain, number: int, options: Options) -> Options:
    """The options of the job of this number in its chain."""
    source = options.source
    if source is not None:
        options = replace(options, source=replace(source, number=number))
    output = chain.jobs[number].output
    assert output is not None
    if number < len(chain.jobs) - 1 and not _core.has_blocks(output.folder):
        options = options.but(replication=None, block_size=None)  # of a named place
    return options.but(no_sync=True) if chain.kept[number] else options


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


def run_one(
    job: Spec,
    options: Options,
    stop: Stop = lambda: False,
    *,
    once: str | None = None,
    chain: Mapping[str, Any] | None = None,
    job_id: str | None = None,
) -> Result:
    """Run a job whose input is there.

    Args:
        job: The job.
        options: How it is run.
        stop: Whether it shall end.
        once: Why it could not be resumed.
        chain: Which job of which chain it is, for those who resume it.
        job_id: Its name.
    """
    if isinstance(job.partition_by, SampledRanges):
        job = sampled(job, job.partition_by, options, stop)
    with told_if_slow(options.progress):
        prepared = prepare(job, options, once=once, chain=chain)
    return _result(job, options, run_prepared(prepared, stop, job_id))


def _result(job: Spec, options: Options, report: JobReport) -> Result:
    """The result of a job that has succeeded."""
    assert job.output is not None
    if is_remote(job.output.folder):
        parts = renewed_in_store(job.output, job.outputs)
        report = replace(report, output_bytes=sum(part.bytes for part in parts))
    else:
        parts = parts_of(job.output.folder)
    report = said_if_nothing(said_if_read_again(report), job, parts)
    return Result(report, job.output, dict(job.outputs), parts, options.get("store_option"))
