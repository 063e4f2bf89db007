"""A job in somebody's own program ends as that program is ended, and leaves nothing behind.

    SIGTERM, SIGHUP ──▶ `Ended`, in the main thread ──▶ the job is cancelled, its folders removed
                                                    ──▶ the signal again, with its own effect

Only where a signal would end the process at once: a handler of the program's own, and a signal that
is ignored (`nohup`), stay as they are. Python itself turns SIGINT into an exception already. In
another thread than the main one no handler can be set, and the process ends without cleaning up;
`gristmill jobs prune` and the next job to the same output do so then.
"""

import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

__all__ = ["ending_with_signals"]

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Ended(BaseException):
    """A signal has come that ends the process."""


@contextmanager
def ending_with_signals() -> Generator[None]:
    """Let a signal that ends the process end what runs in this context first.

    Example:
        >>> with ending_with_signals():
        ...     pass
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def end(signum: int, _frame: FrameType | None) -> None:
        for number in taken:  # those that follow would break off the cleaning up
            signal.signal(number, signal.SIG_IGN)
        came.append(signum)
        raise Ended

    taken = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
        if came:
            os.kill(os.getpid(), came[0])
