"""`gristmill run job.py`: a job of one's own functions, from the file that defines it.

job.py ─▶ Job ─▶ run, with progress and signals ─▶ summary or --json;  on stderr: what failed
             ─▶ --only FILE:OFFSET: one record, mapped in this process
             ─▶ --explain: the plan
"""

import traceback
from pathlib import Path
from typing import Any

import click

from gristmill.cli import console, signals
from gristmill.cli.failures import DONE, FAILED, fail
from gristmill.cli.mapreduce.common import job_options, on_job, said
from gristmill.cli.summary import say_done
from gristmill.errors import report_of
from gristmill.mapreduce.explaining import explain as page_of
from gristmill.mapreduce.failures import shown, text_of, user_frames
from gristmill.mapreduce.job import Job
from gristmill.mapreduce.launching import Options
from gristmill.mapreduce.launching import run as run_job
from gristmill.mapreduce.single import map_single, parse_place
from gristmill.mapreduce.telling import failure_notes
from gristmill.report import JobReport

__all__ = ["run"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@job_options
@click.option("--only", metavar="FILE:OFFSET", help="Map only the record there, in this process.")
@click.option("--explain", is_flag=True, help="Say what the job would do, and do nothing.")
@click.option("--memory", metavar="SIZE", help="Most memory.  [default: 60 % of what is available]")
@click.option(
    "--workers", type=int, metavar="N", help="Tasks at once.  [default: one for each core]"
)
@click.option("--attempts", type=int, metavar="N", help="Tries of a task.  [default: 4]")
@click.option(
    "--timeout",
    "timeout_s",
    type=float,
    metavar="SECONDS",
    help="The longest that a record may take.  [default: 600]",
)
@click.option("--worker-memory", metavar="SIZE", help="Most memory of a worker.")
@click.option("--spill-dir", multiple=True, metavar="PATH", help="Where runs go.")
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@click.option("--no-sync", is_flag=True, help="Do not wait until the output is durable.")
@click.option("--history", is_flag=True, help="Keep the job's history also if it is short.")
@click.option("--json", "as_json", is_flag=True, help="Print the job's report as one JSON object.")
@said("run")
@on_job
def run(
    *,
    job: Job,
    file: Path,
    only: str | None,
    explain: bool,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - those of Options
) -> int:
    """Run the job that FILE defines: `job = gm.Job(...)`, or a function `job` that makes it."""
    if only is not None:
        return _only(job, only)
    options["spill_dir"] = options["spill_dir"] or None
    given = Options(**options, progress=False if as_json else None, command_line=True)
    if explain:
        console.say(page_of(job, given))
        return DONE
    return _run(job, given, file, as_json)


def _run(job: Job, options: Options, file: Path, as_json: bool) -> int:
    with signals.deferred() as pending:
        try:
            result = run_job(job, options, lambda: pending.signum is not None)
        except BaseException as error:
            report = report_of(error)
            if report is None or report.error is None:
                raise
            signals.ignore()
            return _failed(report, file, as_json, pending.signum)
        signals.ignore()
    for warning in result.report.warnings:
        console.note(f"gristmill: {warning}")
    if as_json:
        console.say(result.report.to_json())
    else:
        say_done(result.report, result.output)
    return DONE


def _failed(report: JobReport, file: Path, as_json: bool, signum: int | None) -> int:
    assert report.error is not None
    if as_json:
        console.say(report.to_json())
    fail("run", report.error.message)
    for note in failure_notes(report.error, str(file)):
        console.note(note)
    if report.status == "cancelled" and signum is not None:
        return signals.exit_code(signum)
    return FAILED


def _only(job: Job, place: str) -> int:
    try:
        path, offset = parse_place(place)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--only") from None
    single = map_single(job, path, offset)
    console.say(f"record {single.where[2]} of its split: {shown(single.record)}")
    try:
        for found in single.yielded():
            console.say(f"  {shown(found)}")
    except Exception as error:  # noqa: BLE001 - the user's own code, in this process
        frames = "".join(traceback.format_list(user_frames(error.__traceback__)))
        fail("run", f"cannot map the record: {type(error).__name__}: {text_of(error)}.")
        console.note("In your code:", frames.rstrip("\n"))
        return FAILED
    for output, records in single.named.items():
        for record in records:
            console.say(f"  {output}: {shown(record)}")
    return DONE
