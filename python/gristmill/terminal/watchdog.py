"""The end of a process that cannot end by itself: a mount hangs, and its threads with it.

    signals ──wakeup fd──▶ a thread beside the main one, which may hang as well
      first Ctrl-C, nothing after 2 s    "waiting for FILE; press Ctrl-C again ..."
      SIGTERM, SIGHUP, a second signal   within 2 s, if a file is awaited: children killed, exit
      any signal                         the same, if the main thread itself hangs and hears nothing
      a second signal, whatever hangs    after 10 s the same

A process that cleans up is left alone: an impatient second Ctrl-C breaks nothing off while files
answer. What stays behind where it ends so, is removed by the next job. The engine says which files
its threads wait for; of the main thread, which may look at files before a job begins, that is seen
here. State of the process, like the signals themselves.
"""

import _thread
import fcntl
import os
import select
import signal
import sys
import time
from contextlib import suppress

__all__ = ["heard", "watch"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STANDARD = 3
"""How many descriptors are those of stdin, stdout, stderr."""
_IDLE_S = 0.25
_LOOK_S = 0.1
_FIRM_S = 1.25
"""How long a file may be awaited after a signal that ends the process, and how long the main thread
may be deaf: the end itself takes a moment, and it shall come within 2 s."""
_SAID_S = 2.0
_LAST_S = 10.0
"""How long a second signal is answered by cleaning up that waits for something else."""
_QUIET_S, _AGAIN_S = 10.0, 30.0
_CURSOR = "\x1b[?25h"
_STATUS = "/proc/self/status"
_CALLS = frozenset(
    {"exists", "is_dir", "is_file", "iterdir", "lstat", "mkdir", "readlink", "rmdir", "stat"}
)
"""Methods of paths that ask the file system."""

_heard_s = 0.0
"""When Python last ran a signal's handler."""


def heard() -> None:
    """Note that the main thread runs a signal's handler."""
    global _heard_s  # noqa: PLW0603 - state of the process, as signal handlers are
    _heard_s = time.monotonic()


def watch() -> None:
    """Watch over the end of this process from now on."""
    reader, writer = map(_beyond_standard, os.pipe())
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    _thread.start_new_thread(_Watch(reader, _thread.get_ident()).run, ())


def _beyond_standard(descriptor: int) -> int:
    """The same in a place that is none of stdin, stdout, stderr, which may be closed."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _STANDARD)
    os.close(descriptor)
    return moved


class _Watch:
    """What the thread knows."""

    def __init__(self, reader: int, main: int) -> None:
        self._reader, self._main = reader, main
        self._came: list[tuple[int, float]] = []
        self._pending: frozenset[int] = frozenset()
        self._call: tuple[int, str] | None = None
        """What the main thread waits for: its frame, and the file."""
        self._call_s = 0.0
        self._tell_s = _QUIET_S
        self._said = False

    def run(self) -> None:
        """Look, as long as the process lives."""
        while True:
            wait_s = _LOOK_S if self._came else _IDLE_S
            if select.select([self._reader], [], [], wait_s)[0]:
                read = os.read(self._reader, 64)
                self._came += [(one, time.monotonic()) for one in read if one in _SIGNALS]
            self._look_at_main()
            if self._came:
                self._end_if_over()
            elif self._call and time.monotonic() - self._call_s > self._tell_s:
                _say(f"waiting {time.monotonic() - self._call_s:.0f} s for {self._call[1]}")
                self._tell_s += _AGAIN_S

    def _look_at_main(self) -> None:
        """See what the main thread waits for, and which signals do not get through to it."""
        call = _call_of(self._main)
        if call is None or call != self._call:
            self._call, self._call_s, self._tell_s = call, time.monotonic(), _QUIET_S
        pending = _pending() if call else frozenset[int]()
        known = {number for number, _ in self._came}
        stuck = (pending & self._pending) - known
        self._came += [(number, time.monotonic()) for number in stuck]
        self._pending = pending

    def _end_if_over(self) -> None:
        now_s, awaited = time.monotonic(), self._awaited()
        (first, first_s), (_, last_s) = self._came[0], self._came[-1]
        firm = [at_s for number, at_s in self._came if number != signal.SIGINT]
        firm += [at_s for _, at_s in self._came[1:]]
        since_s = now_s - min(firm) if firm else 0.0
        is_deaf = _heard_s < last_s - 2 * _IDLE_S and now_s - last_s > _FIRM_S
        if is_deaf and (firm or self._call):
            _end(first, awaited)
        if (since_s > _FIRM_S and awaited) or (len(self._came) > 1 and since_s > _LAST_S):
            _end(first, awaited)
        if awaited and not self._said and now_s - first_s > _SAID_S:
            self._said = True
            _say(f"waiting for {awaited}; press Ctrl-C again to end without cleaning up")

    def _awaited(self) -> str | None:
        """The file that is awaited longest, if one is."""
        from gristmill import _core

        found = _core.files_awaited(_FIRM_S)
        if found:
            return found[0][0]
        return self._call[1] if self._call and time.monotonic() - self._call_s > _FIRM_S else None


def _call_of(main: int) -> tuple[int, str] | None:
    """The call on a file that the main thread makes from Python."""
    frame = sys._current_frames().get(main)  # pyright: ignore[reportPrivateUsage]
    if frame is None or frame.f_code.co_name not in _CALLS:
        return None
    if "pathlib" not in frame.f_code.co_filename:
        return None
    from gristmill.names import show_path

    return id(frame), show_path(str(frame.f_locals.get("self")))


def _pending() -> frozenset[int]:
    """The signals of this process that no thread has taken yet."""
    with suppress(OSError), open(_STATUS, encoding="ascii", errors="replace") as status:  # noqa: PTH123
        for line in status:
            if line.startswith("ShdPnd:"):
                bits = int(line.split()[1], 16)
                return frozenset(number for number in _SIGNALS if bits >> (number - 1) & 1)
    return frozenset()


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
