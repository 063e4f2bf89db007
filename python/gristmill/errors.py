"""From an exception back to the report of the job that raised it.

A failed job raises the built-in exception that is nearest to what went wrong (the table is
crates/python/src/error.rs): `FileNotFoundError`, `FileExistsError`, `PermissionError`,
`MemoryError`, `OSError` for other trouble with devices, `ValueError` for wrong options and for
data that is not what it should be, `RuntimeError` where Gristmill is wrong. Code that catches these
needs to know nothing of Gristmill; code that wants more asks `report_of`.
"""

from gristmill.report import JobReport

__all__ = ["attach_report", "report_of"]

_ATTRIBUTE = "gristmill_report"


def attach_report(error: BaseException, report: JobReport) -> None:
    """Let `report_of` find `report` from `error`."""
    setattr(error, _ATTRIBUTE, report)


def report_of(error: BaseException) -> JobReport | None:
    """Return the report of the job that raised `error`; `None` if it had not begun or is not ours.

    Example:
        >>> import gristmill
        >>> try:
        ...     gristmill.teravalidate("/no/such/folder")
        ... except FileNotFoundError as error:
        ...     gristmill.report_of(error).error.context
        {'file': '/no/such/folder'}
    """
    report = getattr(error, _ATTRIBUTE, None)
    return report if isinstance(report, JobReport) else None
