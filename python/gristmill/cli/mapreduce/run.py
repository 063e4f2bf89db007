"""`gristmill run job.py`: a job of your functions, from the file that defines it.

job.py ─▶ Job ─▶ run, with progress and signals ─▶ summary or --json;  on stderr: what failed
             ─▶ --only FILE:OFFSET: one record, mapped in this process
             ─▶ --explain: the plan
"""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from gristmill.cli.environment import environment_note
from gristmill.cli.failures import DONE, FAILED, as_typed, fail
from gristmill.cli.generated import count, with_options
from gristmill.cli.groups import PlainCommand
from gristmill.cli.mapreduce.common import job_options, on_job, said
from gristmill.cli.render.summary import json_of, say_done
from gristmill.errors import report_of
from gristmill.mapreduce.results.exception_notes import failure_notes
from gristmill.mapreduce.results.result import Result
from gristmill.mapreduce.retry.replay_record import parse_place, replay_record
from gristmill.mapreduce.run_options import RUN, Options
from gristmill.mapreduce.shown import shown, text_of
from gristmill.mapreduce.source import Source
from gristmill.mapreduce.submit.explaining import explain as page_of
from gristmill.mapreduce.submit.explaining import plan_of
from gristmill.mapreduce.submit.first_worker import begin_worker
from gristmill.mapreduce.submit.job import Job
from gristmill.mapreduce.submit.launching import run as run_job
from gristmill.mapreduce.submit.submitting import Stop
from gristmill.mapreduce.worker.failures import user_frames
from gristmill.names import to_json
from gristmill.report import JobReport
from gristmill.terminal import console, signals

__all__ = ["run", "run_to_end"]


@click.command(cls=PlainCommand, context_settings={"help_option_names": ["-h", "--help"]})
@job_options
@click.option(
    "--only",
    metavar="FILE:OFFSET",
    help="Map only the record at this byte of FILE, in this process, and print what the map gives.",
)
@click.option(
    "--skip-bad",
    type=count,
    metavar="N",
    help="How many bad records may be left out, instead of the job's own number; in a chain, of"
    " each job.",
)
@click.option("--explain", is_flag=True, help="Print the plan of the job and do nothing.")
@with_options(RUN)
@click.option("--json", "as_json", is_flag=True, help="Print the job's report as one JSON object.")
@said("run")
@on_job
def run(
    *,
    job: Job,
    file: Path,  # noqa: ARG001 - as on_job gives it
    source: Source | None,
    only: str | None,
    skip_bad: int | None,
    explain: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - those of RUN
) -> int:
    """Run the MapReduce job that the Python file FILE defines.

    FILE holds `job = gm.Job(...)`, or a function `job` that returns one.
    """
    if only is not None:
        return _only(job, only)
    if skip_bad is not None:
        job = job.with_skip_bad(skip_bad)
    progress = False if as_json else None
    given = Options(given=options, progress=progress, command_line=True, source=source)
    if explain and as_json:
        console.put(to_json(plan_of(job, given)))
        return DONE
    if explain:
        console.say(*page_of(job, given).splitlines())
        return DONE
    begin_worker(given)
    return _run(job, given, as_json)


def _run(job: Job, options: Options, as_json: bool) -> int:
    return run_to_end("run", lambda stops: run_job(job, options, stops), as_json=as_json)


def run_to_end(command: str, run_it: Callable[[Stop], Result], *, as_json: bool) -> int:
    """Run a job of functions, with signals heard, and say what it did; returns the exit code."""
    with signals.deferred(raising=True) as pending:
        try:
            result = run_it(pending.stops)
        except BaseException as error:
            report = report_of(error)
            if report is None or report.error is None:
                pending.check()  # it ended before the job began
                raise
            signals.ignore()
            return _failed(command, report, as_json, pending.signum)
        signals.ignore()
    for warning in result.report.warnings:
        console.note(f"gristmill: {warning}")
    if as_json:
        console.put(json_of(result.report, result.of_chain))
    else:
        say_done(result.report, result.form.folder, result.left_out, result.of_chain)
    return DONE


def _failed(command: str, report: JobReport, as_json: bool, signum: int | None) -> int:
    assert report.error is not None
    if as_json:
        console.put(json_of(report))
    error = report.error
    note = environment_note(error.kind, error.details.get("option"))
    fail(command, as_typed(error.message) + note)
    for note in failure_notes(error, report.job_id):
        console.note(*note.split("\n"))
    if report.status == "cancelled" and signum is not None:
        return signals.exit_code(signum)
    return FAILED


def _only(job: Job, place: str) -> int:
    try:
        path, offset = parse_place(place)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--only") from None
    single = replay_record(job, path, offset)
    console.say(f"record {single.where[2]} of its split: {shown(single.record)}")
    try:
        nothing = True
        for found in single.yielded():
            console.say(f"  {shown(found)}")
            nothing = False
        if nothing:
            console.say("  it gives nothing")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - user code, in this process
        frames = "".join(traceback.format_list(user_frames(error.__traceback__)))
        what = f"{type(error).__name__}: {text_of(error)}".rstrip(".: ")
        fail("run", f"cannot map the record: {what} (file {path}, offset {offset}).")
        console.note("In your code:", *frames.splitlines())
        return FAILED
    for output, records in single.named.items():
        for record in records:
            console.say(f"  {output}: {shown(record)}")
    return DONE
