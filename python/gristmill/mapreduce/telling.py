"""A failed job, told: what failed and where is the exception; the rest are its notes.

RuntimeError: cannot map words: ZeroDivisionError: … at offset 812 of a.txt; the record is '…'.
the frames of the user's code
the last lines of what the worker wrote to stderr
To try that record again: gristmill run job.py --only a.txt:812
"""

from shlex import quote

from gristmill.report import Failure, JobReport

__all__ = ["failure_notes", "tell_failure"]

_LINES = 40
_LINE_CHARACTERS = 400

_DETAILS = {
    "traceback": "In your code:",
    "stack": "Where it stood:",
    "stderr": "The last lines of its stderr:",
}


def tell_failure(error: BaseException, report: JobReport) -> None:
    """Add to an exception what is known of the failure beside its paragraph."""
    if report.error is not None:
        for note in failure_notes(report.error):
            error.add_note(note)


def failure_notes(failure: Failure, program: str = "job.py") -> list[str]:
    """Return what is known of a failure beside its paragraph, a note for each kind of thing.

    Args:
        failure: Of a report.
        program: The file that `gristmill run` was given.

    Example:
        >>> place, details = {"file": "a.txt", "offset": "812"}, {"traceback": "  File ..."}
        >>> failure = Failure(kind="user_code", message="", context=place, details=details)
        >>> for note in failure_notes(failure):
        ...     print(note)
        In your code:
          File ...
        To try that record again: gristmill run job.py --only a.txt:812
    """
    context, details = failure.context, failure.details
    notes: list[str] = []
    for name, title in _DETAILS.items():
        lines = [_shorter(line) for line in details.get(name, "").rstrip().splitlines()[-_LINES:]]
        if lines:
            notes.append("\n".join([title, *lines]))
    if context.get("file") and context.get("offset"):
        place = quote(f"{context['file']}:{context['offset']}")
        notes.append(f"To try that record again: gristmill run {program} --only {place}")
    return notes


def _shorter(line: str) -> str:
    if len(line) <= _LINE_CHARACTERS:
        return line
    return f"{line[: _LINE_CHARACTERS // 2]} [...] {line[-_LINE_CHARACTERS // 2 :]}"
