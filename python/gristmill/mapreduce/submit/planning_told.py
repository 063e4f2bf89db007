"""What a user is told where a job takes long to plan: its bar comes when it begins to run.

A plan lists the input. Of large files of CSV, and of records of several lines, it reads them once,
as nothing else says where their records begin.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import Timer

__all__ = ["told_if_slow"]

AFTER_S = 2.0

_TOLD = "planning the job: its input is listed, and large files are read for where records begin"


@contextmanager
def told_if_slow(progress: bool | None) -> Generator[None]:
    """Write a line to a terminal if what is done takes longer than two seconds.

    Example:
        >>> with told_if_slow(False):
        ...     pass
    """
    if progress is False or not _on_terminal():
        yield
        return
    timer = Timer(AFTER_S, _tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()  # pyright: ignore[reportUnnecessaryComparison] - `2>&-`


def _tell() -> None:
    from gristmill.terminal import console

    console.tell([_TOLD])
