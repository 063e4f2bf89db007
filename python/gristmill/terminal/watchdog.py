"""The end of a process that cannot end by itself: a mount hangs, and its threads with it.

    signals ──wakeup fd──▶ a thread beside the main one, which may hang as well
      first Ctrl-C, nothing after 2 s    "waiting for FILE; press Ctrl-C again ..."
      SIGTERM, SIGHUP, a second signal   within 2 s, if a file is awaited, or the main thread hears
                                         nothing: children killed, exit
      a second signal, whatever hangs    after 10 s the same

A process that cleans up is left alone: an impatient second Ctrl-C breaks nothing off while files
answer. What stays behind where it ends so, is removed by the next job. State of the process, like
the signals themselves.
"""

import _thread
import os
import select
import signal
import sys
import time
from contextlib import suppress

__all__ = ["watch"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOOK_S = 0.1
_FIRM_S = 1.25
"""How long a file may be awaited after a signal that ends the process, and how long the main thread
may be deaf: the end itself takes a moment, and it shall come within 2 s."""
_SAID_S = 2.0
_LAST_S = 10.0
"""How long a second signal is answered by cleaning up that waits for something else."""
_CURSOR = "\x1b[?25h"

_heard_s = 0.0
"""When Python last ran a signal's handler."""


def heard() -> None:
    """Note that the main thread runs a signal's handler."""
    global _heard_s  # noqa: PLW0603 - state of the process, as signal handlers are
    _heard_s = time.monotonic()


def watch() -> None:
    """Watch over the end of this process from now on."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    _thread.start_new_thread(_watch, (reader,))


def _watch(reader: int) -> None:
    came: list[tuple[int, float]] = []
    while not came:
        came += _signals(os.read(reader, 64))
    said = False
    while True:
        if select.select([reader], [], [], _LOOK_S)[0]:
            came += _signals(os.read(reader, 64))
        awaited = _awaited(_FIRM_S)
        since_s = time.monotonic() - came[0][1]
        if _is_over(came, awaited=bool(awaited)):
            _end(came[0][0], awaited)
        if not said and awaited and since_s > _SAID_S:
            said = True
            _say(f"waiting for {awaited}; press Ctrl-C again to end without cleaning up")


def _signals(read: bytes) -> list[tuple[int, float]]:
    """The signals that came, and when."""
    return [(number, time.monotonic()) for number in read if number in _SIGNALS]


def _awaited(at_least_s: float) -> str | None:
    """The file that is awaited longest, if one is."""
    from gristmill import _core

    found = _core.files_awaited(at_least_s)
    return found[0][0] if found else None


def _is_over(came: list[tuple[int, float]], *, awaited: bool) -> bool:
    firm = [at_s for number, at_s in came if number != signal.SIGINT] + [
        at_s for _, at_s in came[1:]
    ]
    if not firm:
        return False
    since_s = time.monotonic() - min(firm)
    is_deaf = _heard_s < max(at_s for _, at_s in came) - 2 * _LOOK_S
    if len(came) > 1 and since_s > _LAST_S:
        return True
    return since_s > _FIRM_S and (awaited or is_deaf)


def _end(number: int, awaited: str | None) -> None:
    from gristmill import _core

    waited = "" if awaited is None else f" while it waited for {awaited}"
    _say(f"ended without cleaning up{waited}; the next job removes what is left")
    _core.kill_children()
    os._exit(128 + number)


def _say(line: str) -> None:
    """Write a line to stderr if that takes it at once."""
    with suppress(OSError, ValueError, AttributeError):
        number = sys.__stderr__.fileno()  # type: ignore[union-attr]
        shown = _CURSOR if os.isatty(number) else ""
        if select.select([], [number], [], 0)[1]:
            os.write(number, f"{shown}gristmill: {line}\n".encode(errors="surrogateescape"))
