"""A job, begun and waited for.

    options ──spec──▶ _core.Job, on a native thread ──wait──▶ JobReport, or a built-in exception

The Python functions of the commands (functions.py) run their jobs here. The command line begins its
jobs here, too, but waits for them in its own way (cli/runner.py): it has signals and a progress bar
to look after.
"""

import os
import time
from collections.abc import Mapping
from itertools import count

from gristmill import _core
from gristmill.ending import ending_with_signals
from gristmill.errors import attach_report
from gristmill.history.origin import place
from gristmill.options import Value, spec
from gristmill.report import JobReport

__all__ = ["TICK_S", "begin", "new_job_id", "run"]

TICK_S = 0.05
"""Seconds between two looks at signals and progress; the end of a job is noticed at once."""

_numbers = count(1)


def new_job_id() -> str:
    """Return a name for a job: when it begins (UTC), the process, and the how manyth job in it."""
    now = time.strftime("%Y%m%d%H%M%S", time.gmtime())
    number = next(_numbers)
    return f"job_{now}_{os.getpid():04}" + (f"_{number}" if number > 1 else "")


def begin(
    command: str,
    values: Mapping[str, Value],
    job_id: str,
    *,
    history: bool = False,
    command_line: bool = False,
) -> _core.Job:
    """Begin a job.

    Args:
        command: Its name in the engine's table.
        values: Its options.
        job_id: Its name.
        history: Whether its history is kept even if it is short.
        command_line: Whether errors name options as the command line does.

    Raises:
        ValueError: An option makes no sense.
    """
    return _core.Job(
        spec(command, values),
        job_id,
        place(keep_short=history),
        command_line=command_line,
    )


def run(command: str, values: Mapping[str, Value], *, history: bool = False) -> JobReport:
    """Run a job to its end, also when Ctrl-C, a signal or an exception comes in between.

    Args:
        command: Its name in the engine's table.
        values: Its options.
        history: Whether its history is kept even if it is short.

    Raises:
        OSError: Or another built-in exception, which says how the job failed.
    """
    with ending_with_signals():
        return _run_to_end(begin(command, values, new_job_id(), history=history))


def _run_to_end(job: _core.Job) -> JobReport:
    try:
        while not job.wait(TICK_S):
            pass
    except BaseException:
        job.cancel()
        while not job.wait(TICK_S):
            pass
        raise
    report = JobReport.from_json(job.report())
    try:
        job.raise_failure()
    except BaseException as error:
        attach_report(error, report)
        raise
    return report
