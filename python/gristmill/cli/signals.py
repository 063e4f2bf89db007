"""Ctrl-C and its like: an exception while nothing is at stake, a note while a job runs.

    SIGINT, SIGTERM, SIGHUP ──▶ `Interrupted`, anywhere in Python code
                            ──▶ inside `deferred()`: noted; the holder looks, cleans up and goes on
                            ──▶ after `ignore()`: nothing, for the exit code is settled

The first signal counts. Those that follow are ignored: what was begun is being cleaned up, which an
impatient second Ctrl-C must not break off. A signal that the parent has set to be ignored (`nohup`,
a background job) stays ignored. State of the process, like the signals themselves.
"""

import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

__all__ = ["Interrupted", "Pending", "deferred", "exit_code", "ignore", "install"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """The user wants an end."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


def exit_code(signum: int) -> int:
    """What shells expect of a program that ended for this signal."""
    return 128 + signum


@dataclass(slots=True)
class Pending:
    """Whether a signal has come, and which."""

    signum: int | None = None

    def check(self) -> None:
        """Raise `Interrupted` if a signal has come."""
        if self.signum is not None:
            raise Interrupted(self.signum)


def install() -> None:
    """From now on the signals raise `Interrupted`."""
    for number in _handled():
        signal.signal(number, _interrupt)


@contextmanager
def deferred() -> Generator[Pending]:
    """Only note the signals that come meanwhile. Who holds the note says what follows from them."""
    pending = Pending()

    def note(signum: int, _frame: FrameType | None) -> None:
        if pending.signum is None:
            pending.signum = signum

    before = {number: signal.signal(number, note) for number in _handled()}
    try:
        yield pending
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is note:  # else they are ignored by now
                signal.signal(number, handler if pending.signum is None else signal.SIG_IGN)


def ignore() -> None:
    """From now on the signals do nothing."""
    for number in _handled():
        signal.signal(number, signal.SIG_IGN)


def _handled() -> list[signal.Signals]:
    return [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]


def _interrupt(signum: int, _frame: FrameType | None) -> None:
    ignore()
    raise Interrupted(signum)
