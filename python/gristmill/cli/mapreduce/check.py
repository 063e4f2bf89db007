"""`gristmill check job.py`: whether a job's output is a function of its input."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from gristmill.cli import console
from gristmill.cli.failures import DONE, FAILED, fail
from gristmill.cli.mapreduce.common import job_options, on_job, said
from gristmill.mapreduce.checking import check_output
from gristmill.mapreduce.failures import text_of, user_frames
from gristmill.mapreduce.job import Job
from gristmill.units import show_count

__all__ = ["check"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@job_options
@click.option(
    "--rounds", type=int, default=3, metavar="N", help="Trials of each kind.  [default: 3]"
)
@click.option("--seed", type=int, default=0, metavar="N", help="Of the trials.  [default: 0]")
@click.option("--no-workers", is_flag=True, help="Leave out the trial in workers.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as one JSON object.")
@said("check")
@on_job
def check(
    *,
    job: Job,
    file: Path,
    rounds: int,
    seed: int,
    no_workers: bool,
    as_json: bool,
) -> int:
    """Run the job that FILE defines under circumstances that should not matter, and compare.

    Other splits, no or more passes of combine, values in another order, attempts that are killed:
    if the output differs, says where, and what to look for. Nothing is written. The input must fit
    in memory: name a small part of it with --input.
    """
    try:
        verdict = check_output(job, rounds=rounds, seed=seed, engine=not no_workers)
    except (ValueError, TypeError, OSError) as error:
        if str(error).startswith("cannot "):
            raise
        return _raised(error, file)
    except Exception as error:  # noqa: BLE001 - the user's own code, in this process
        return _raised(error, file)
    if as_json:
        found = asdict(verdict)
        console.say(json.dumps({"deterministic": verdict.deterministic, **found}))
    else:
        trials = show_count(len(verdict.trials), "trial")
        if verdict.deterministic:
            console.say(f"deterministic: {trials} gave the same output", *_listed(verdict.trials))
        else:
            for difference in verdict.differences:
                console.say(str(difference))
            console.say(f"not deterministic: {len(verdict.differences)} of {trials} differ")
    return DONE if verdict.deterministic else FAILED


def _listed(trials: list[str]) -> list[str]:
    return [f"  {trial}" for trial in trials]


def _raised(error: Exception, file: Path) -> int:
    frames = user_frames(error.__traceback__)
    place = f" (line {frames[-1].lineno} of {frames[-1].filename})" if frames else ""
    what = f"{type(error).__name__}: {text_of(error)}{place}"
    advice = f"gristmill run {file} says at which record"
    fail("check", f"cannot check the job: {what}. To go on: {advice}.")
    return FAILED
