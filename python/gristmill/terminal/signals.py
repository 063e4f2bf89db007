"""Ctrl-C and its like: an exception while nothing is at stake, a note while a job runs.

    SIGINT, SIGTERM, SIGHUP ──▶ `Interrupted`, anywhere in Python code
                            ──▶ inside `deferred()`: noted; the holder looks, cleans up and goes on
                            ──▶ after `ignore()`: nothing, for the exit code is settled
                            ──▶ in both, inside `writing(...)`: the write is given up if its reader
                                takes nothing: one that never comes, a terminal that was stopped

The first signal counts. Those that follow are ignored: what was begun is being cleaned up, which an
impatient second Ctrl-C must not break off, unless a file never answers (watchdog.py). A signal that
the parent has set to be ignored (`nohup`, a background job) stays ignored. State of the process,
like the signals themselves.
"""

import errno
import select
import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import TextIO

from gristmill.terminal import watchdog

__all__ = [
    "Interrupted",
    "Pending",
    "deferred",
    "exit_code",
    "ignore",
    "install",
    "leave",
    "writing",
]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


_seen = False
"""Whether one of the signals has come."""

_writes: list[TextIO] = []
"""What is written to now, the innermost last."""

_MOMENT_S = 0.5
"""How long a reader has to make room, once a signal has come."""


class Interrupted(KeyboardInterrupt):
    """The user wants an end."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


def exit_code(signum: int) -> int:
    """What shells expect of a program that ended for this signal."""
    return 128 + signum


class Pending:
    """Whether a signal has come, and which."""

    __slots__ = ("raising", "signum")

    def __init__(self, *, raising: bool = False) -> None:
        self.signum: int | None = None
        self.raising = raising

    def stops(self) -> bool:
        """Whether what runs shall end. From now on signals are only noted."""
        self.raising = False
        return self.signum is not None

    def check(self) -> None:
        """Raise `Interrupted` if a signal has come."""
        if self.signum is not None:
            raise Interrupted(self.signum)


def install() -> None:
    """From now on the signals raise `Interrupted`."""
    watchdog.watch()
    for number in _handled():
        signal.signal(number, _interrupt)


@contextmanager
def deferred(*, raising: bool = False) -> Generator[Pending]:
    """Only note the signals that come meanwhile. Who holds the note says what follows from them.

    Args:
        raising: Signals raise `Interrupted` as before, until `stops` is asked for the first time.
    """
    pending = Pending(raising=raising)

    def note(signum: int, frame: FrameType | None) -> None:
        watchdog.heard()
        if pending.raising:
            _interrupt(signum, frame)
        if pending.signum is None:
            pending.signum = signum
        _end_write()

    before = {number: signal.signal(number, note) for number in _handled()}
    try:
        yield pending
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is note:  # else they are ignored by now
                signal.signal(number, handler if pending.signum is None else _nothing)


def ignore() -> None:
    """From now on the signals do nothing, but to a write that waits."""
    for number in _handled():
        signal.signal(number, _nothing)


def leave() -> None:
    """Ignore the signals while Python ends, which would give them back their defaults."""
    for number in _handled():
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def writing(stream: TextIO) -> Generator[None]:
    """Say that a stream is written to: once a signal has come, no write waits for a reader.

    A write that is over, or goes on by itself, is left alone: what is said after the signal is to
    go to the same stream.

    Raises:
        BrokenPipeError: A signal came, before or meanwhile, and the stream takes nothing.
    """
    _writes.append(stream)
    try:
        if _seen:
            _break_off()
        yield
    finally:
        _writes.pop()


def _handled() -> list[signal.Signals]:
    return [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]


def _nothing(_signum: int, _frame: FrameType | None) -> None:
    _end_write()


def _end_write() -> None:
    global _seen  # noqa: PLW0603 - state of the process, as signal handlers are
    _seen = True
    watchdog.heard()
    if _writes:
        _break_off()


def _break_off() -> None:
    """Raise `BrokenPipeError` if what is written to takes nothing within a moment."""
    try:
        is_taken = bool(select.select([], [_writes[-1]], [], _MOMENT_S)[1])
    except ValueError:  # the stream is in memory, or closed
        return
    if not is_taken:
        raise BrokenPipeError(errno.EPIPE, "a signal came, and there is no reader")


def _interrupt(signum: int, _frame: FrameType | None) -> None:
    global _seen  # noqa: PLW0603 - as above
    _seen = True
    watchdog.heard()
    ignore()
    raise Interrupted(signum)
