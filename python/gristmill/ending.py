"""A job in somebody's own program ends as that program is ended, and leaves nothing behind.

    SIGTERM, SIGHUP ──▶ `Ended`, in the main thread ──▶ the job is cancelled, its folders removed
                                                    ──▶ the signal again, with its own effect
    Ctrl-C          ──▶ `KeyboardInterrupt`         ──▶ the job is cancelled; a second one leaves it
                                                        if it is not over within 2 s

A job whose threads wait for a file on a mount that hangs never ends. It is left then: its threads
stay until the file answers, or the process ends.

Only where a signal would end the process at once: a handler of the program's own, and a signal that
is ignored (`nohup`), stay as they are. Python itself turns SIGINT into an exception already. In
another thread than the main one no handler can be set, and the process ends without cleaning up;
`gristmill jobs prune` and the next job to the same output do so then.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from gristmill import _core

__all__ = ["cancel", "ending_with_signals"]

_TICK_S = 0.05
_SAID_S = 2.0
_LEFT_S = 1.5

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


def cancel(job: _core.Job, why: BaseException, tell: Callable[[str], None]) -> None:
    """Cancel a job, and wait until it has cleaned up; or leave it where that may never be.

    Args:
        job: The job.
        why: What ends it: where a signal ends the process, a file is not waited for.
        tell: Tells the user something.
    """
    job.cancel()
    began_s, said, again_s = time.monotonic(), False, None
    while True:
        try:
            if job.wait(_TICK_S):
                return
            now_s = time.monotonic()
            awaited = _core.files_awaited(_LEFT_S)
            firm = (again_s is not None and now_s - again_s > _LEFT_S) or isinstance(why, Ended)
            if firm and (awaited or not isinstance(why, Ended)):
                job.leave()
                name = f" for {awaited[0][0]}" if awaited else ""
                tell(f"the job is left: its threads wait{name}; the next job removes what is left")
                return
            if awaited and not said and now_s - began_s > _SAID_S:
                said = True
                tell(f"waiting for {awaited[0][0]}; press Ctrl-C again to leave the job")
        except KeyboardInterrupt:
            again_s = again_s or time.monotonic()
