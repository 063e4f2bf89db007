"""A failed job, told: what failed and where is the exception; the rest are its notes.

RuntimeError: cannot map words: ZeroDivisionError: … at offset 812 of a.txt; the record is '…'.
the frames of the user's code
the last lines of what the worker wrote to stdout, and to stderr
To try it again alone: gristmill retry job_20260101120000_5f3c09d1e2a7b648
"""

import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from gristmill.errors import attach_report, report_of
from gristmill.mapreduce.results.cells import in_cells, named_by_cells
from gristmill.names import quote
from gristmill.report import Failure, JobReport
from gristmill.shadows import shadows_in

__all__ = ["failure_notes", "program", "retry_note", "tell_failure", "tell_warnings"]

OF_CHAIN = "job of the chain"
"""In the context of a failure: which job of a chain failed."""

_LINES = 40
_LINE_CHARACTERS = 400

_DETAILS = {
    "traceback": "In your code:",
    "stack": "Where it stood:",
    "stdout": "The last lines of its stdout:",
    "stderr": "The last lines of its stderr:",
}


def tell_failure(error: BaseException, report: JobReport) -> None:
    """Add to an exception what is known of the failure beside its paragraph."""
    named_by_cells(error)
    if report.error is not None:
        for note in failure_notes(report.error, report.job_id):
            error.add_note(in_cells(note))


def tell_number(error: BaseException, which: str) -> None:
    """Add to an exception, and to the report in it, which job of a chain failed."""
    error.add_note(_which(which))
    error.__notes__.insert(0, error.__notes__.pop())  # how to try it again stays the last one
    report = report_of(error)
    if report is not None and report.error is not None:
        context = {**report.error.context, OF_CHAIN: which}
        attach_report(error, replace(report, error=replace(report.error, context=context)))


def tell_warnings(report: JobReport) -> None:
    """Print what did not go as it should in a job that succeeded, a line each, to stderr."""
    stream: TextIO | None = sys.stderr  # None where it was closed before the start
    if stream is not None:
        stream.writelines(f"gristmill: {warning}\n" for warning in report.warnings)


def failure_notes(failure: Failure, job_id: str) -> list[str]:
    """Return what is known of a failure beside its paragraph, a note for each kind of thing.

    Args:
        failure: Of a report.
        job_id: The job's name.

    Example:
        >>> failure = Failure(kind="user_code", message="", details={"traceback": "  File ..."})
        >>> for note in failure_notes(failure, "job_1"):
        ...     print(note)
        In your code:
          File ...
    """
    details = failure.details
    notes: list[str] = []
    for name, title in _DETAILS.items():
        told = details.get(name, "").rstrip().splitlines()
        lines = [_shorter(line) for line in (_of_user(told) if name == "stack" else told)[-_LINES:]]
        if lines:
            notes.append("\n".join([title, *lines]))
    notes += shadows_in(" ".join([failure.message, *details.values()]))
    if OF_CHAIN in failure.context:
        notes.append(_which(failure.context[OF_CHAIN]))
    if "retry" in details:
        notes.append(retry_note(job_id))
    return notes


def _of_user(stack: list[str]) -> list[str]:
    """The lines of a worker's stack without the frames of its Gristmill, if others are left.

    Example:
        >>> ours = ('  File "/x/gristmill/worker.py", line 1 in main', '  File "/x/gristmill/a.py"')
        >>> _of_user(["Thread:", '  File "/y/job.py", line 2 in slow', *ours])
        ['Thread:', '  File "/y/job.py", line 2 in slow']
    """
    found = (re.match(r'  File "(.*/)worker\.py", line \d+ in main$', line) for line in stack)
    ours = next((f'  File "{match[1]}' for match in found if match), None)
    if ours is None:
        return stack
    users = [line for line in stack if not line.startswith(ours)]
    return users if any(line.startswith("  File ") for line in users) else stack


def retry_note(job_id: str) -> str:
    """Return the line that says how what a job failed at is tried again."""
    return f"To try it again alone: {program()} retry {job_id}"


def program() -> str:
    """Return this Gristmill, as the user's shell finds it."""
    found = shutil.which("gristmill")
    if found is not None and Path(found).parent == Path(sys.executable).parent:
        return "gristmill"
    return f"{quote(sys.executable)} -m gristmill"


def _which(job: str) -> str:
    return f"It was job {job}, of the chain."


def _shorter(line: str) -> str:
    if len(line) <= _LINE_CHARACTERS:
        return line
    return f"{line[: _LINE_CHARACTERS // 2]} [...] {line[-_LINE_CHARACTERS // 2 :]}"
