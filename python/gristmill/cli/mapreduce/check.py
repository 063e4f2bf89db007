"""`gristmill check job.py`: whether a job's output is a function of its input."""

from dataclasses import asdict
from pathlib import Path

import click

from gristmill.cli.failures import DONE, FAILED, Refused, fail
from gristmill.cli.generated import count
from gristmill.cli.groups import PlainCommand
from gristmill.cli.mapreduce.common import in_child, job_options, on_job, said
from gristmill.errors import kind_of
from gristmill.mapreduce.check.determinism import check_output
from gristmill.mapreduce.check.last_call import told
from gristmill.mapreduce.functions import place_of
from gristmill.mapreduce.source import Source
from gristmill.mapreduce.submit.job import Job
from gristmill.mapreduce.worker.failures import sentence, user_frames
from gristmill.names import quote, to_json
from gristmill.terminal import console
from gristmill.units import show_count

__all__ = ["check"]


def _refuse_skip_bad(_: click.Context, __: click.Parameter, given: str | None) -> None:
    if given is not None:
        advice = "name an input without bad records with --input"
        raise Refused("a check leaves no bad records out (--skip-bad)", advice)


@click.command(cls=PlainCommand, context_settings={"help_option_names": ["-h", "--help"]})
@job_options
@click.option(
    "--rounds",
    type=count,
    metavar="N",
    help="How many trials of each kind to run.  [default: 3, or 1 if a run takes over a second]",
)
@click.option(
    "--seed", type=int, default=0, metavar="N", help="Random seed for the trials.  [default: 0]"
)
@click.option("--skip-bad", hidden=True, expose_value=False, callback=_refuse_skip_bad)
@click.option("--no-workers", is_flag=True, help="Run no trial in worker processes.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@in_child("check")
@said("check")
@on_job
def check(
    *,
    job: Job,
    file: Path,
    source: Source | None,  # noqa: ARG001 - as on_job gives it
    rounds: int | None,
    seed: int,
    no_workers: bool,
    as_json: bool,
) -> int:
    """Check that the output of the job in FILE depends on its input alone.

    Runs the job several times: with other splits, with random groups of values combined, with
    values in another order, with attempts that are killed. If the outputs differ, prints which
    function is to blame, where it shows, and what to look for. Of a chain, checks each job.
    Publishes no output. The input must fit in memory: name a small part of it with --input.
    """
    try:
        verdict = check_output(job, rounds=rounds, seed=seed, engine=not no_workers)
    except (Exception, SystemExit) as error:  # user code runs in this process
        if not told() and (kind_of(error) is not None or not user_frames(error.__traceback__)):
            raise
        return _raised(error, file, job)
    if as_json:
        found = asdict(verdict)
        console.put(to_json({"deterministic": verdict.deterministic, **found}))
    else:
        trials = show_count(len(verdict.trials), "trial")
        if verdict.deterministic:
            console.say(f"deterministic: {trials} gave the same output", *_listed(verdict.trials))
        else:
            known: set[tuple[str, str]] = set()
            for difference in verdict.differences:
                what = difference.function, difference.advice
                if what not in known:  # the rounds of a trial find the same
                    console.say(*str(difference).splitlines())
                known.add(what)
            console.say(f"not deterministic: {len(verdict.differences)} of {trials} differ")
        console.say(*(f"note: {note}" for note in verdict.notes))
    return DONE if verdict.deterministic else FAILED


def _listed(trials: list[str]) -> list[str]:
    return [f"  {trial}" for trial in trials]


def _raised(error: BaseException, file: Path, job: Job) -> int:
    frames = user_frames(error.__traceback__)
    where = f" (line {frames[-1].lineno} of {frames[-1].filename})" if frames else _place(job)
    what, _, advice = sentence(error).partition(" What to do: ")
    advice = advice or getattr(error, "advice", "")
    advice = advice or f"see gristmill run {quote(str(file))}, which shows the record"
    at = f" ({told()})" if told() else ""
    fail("check", f"cannot check the job: {what.rstrip('.')}{where}{at}. What to do: {advice}.")
    return FAILED


def _place(job: Job) -> str:
    """Where the function stands that was called last; of a chain it may be of any job."""
    role = told().partition(":")[0]
    return place_of(getattr(job, role)) if role and len(job.chain()) == 1 else ""
