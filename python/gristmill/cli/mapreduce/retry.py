"""`gristmill retry ID`: what user code failed at, again and alone, in this process."""

from typing import TYPE_CHECKING

import click

from gristmill.cli.commands.jobs import ID, failing
from gristmill.cli.failures import DONE, FAILED, fail
from gristmill.cli.groups import PlainCommand
from gristmill.terminal import console

if TYPE_CHECKING:
    from gristmill.mapreduce.results.failed import FailedTask

__all__ = ["retry"]


@click.command(cls=PlainCommand, context_settings={"help_option_names": ["-h", "--help"]})
@ID
@click.option(
    "--whole-task", is_flag=True, help="Map all records of the split, not only the failed one."
)
@failing
def retry(job_id: str, *, whole_task: bool) -> int:
    """Run the failed part of a job again, in this process.

    Runs user code on what it failed at: one record of a map, one key and its values of a reduce,
    or one task of scripts. It uses the job's file as it is now, and says so if the file has
    changed. It uses the job's working directory and environment, and writes nothing. breakpoint()
    works. ID is a job's name, a part of it that no other job has, or `last`: the latest job that
    failed in user code. The exit code is 1 if it fails again.
    """
    from gristmill.mapreduce.results.failed import failed_task
    from gristmill.mapreduce.retry.retrying import retry as run_again

    failed = failed_task(job_id)
    if job_id != failed.job_id:
        console.note(f"gristmill: what {failed.job_id} failed at runs again")

    def say(line: str) -> None:
        console.say(line)
        console.flush()  # user code may end this process

    found = run_again(failed, say, whole_task=whole_task)
    if found is None:
        console.note(_passed(failed, job_id, whole_task))
        return DONE
    advice = found.advice if found.advice and not found.advice["options"] else {"text": ""}
    what_to_do = f" What to do: {advice['text']}." if advice["text"] else ""
    fail("retry", f"cannot {found.message}.{what_to_do}")
    if found.traceback:
        console.note("In your code:", *found.traceback.splitlines())
    return FAILED


def _passed(failed: "FailedTask", job_id: str, whole_task: bool) -> str:
    what = "the record" if failed.of_map else "the key"
    if failed.of_scripts:
        kept = "with the last 32 MB of its input, which were kept" * (not failed.header["whole"])
        return f"the task did not fail this time {kept}".rstrip()
    if not failed.header["whole"]:
        return f"{what} did not fail with the values that were kept, the first 64 MB of them"
    if whole_task:
        return "the task did not fail this time"
    more = f"; gristmill retry {job_id} --whole-task also maps the records before it"
    return f"{what} did not fail this time{more if failed.of_map else ''}"
