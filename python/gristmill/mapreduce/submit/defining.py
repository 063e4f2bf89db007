"""Job files, while `gristmill run` and `check` load them: they define a job, and run none.

A file that runs its job itself would run it before the command does. Workers could not load its
functions either, as the file's module is not yet whole.
"""

import threading
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["RunsItself", "defining", "refuse_to_run"]

_here = threading.local()


class RunsItself(ValueError):
    """A job file runs a job while it is loaded."""


@contextmanager
def defining() -> Generator[None]:
    """Make `refuse_to_run` refuse in this thread, as long as the context lasts."""
    _here.loads = True
    try:
        yield
    finally:
        _here.loads = False


def refuse_to_run() -> None:
    """Refuse to run a job while a job file is loaded.

    Raises:
        RunsItself: This thread is loading a job file.

    Example:
        >>> refuse_to_run()
        >>> with defining():
        ...     try:
        ...         refuse_to_run()
        ...     except RunsItself as error:
        ...         print(str(error)[:30])
        cannot run a job while its fil
    """
    if getattr(_here, "loads", False):
        raise RunsItself(
            "cannot run a job while its file is loaded. What to do: put job.run() under"
            ' `if __name__ == "__main__":`.'
        )
