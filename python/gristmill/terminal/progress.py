"""A progress bar on stderr, where that is a terminal and the wait is long enough to wonder.

    map       ━━━━━━━━━━━━━━━──────────  61 %  610 MB of 1.00 GB  1.20 GB/s  0:00:01
    map       ━━━━━━━───  61 %  610 MB of 1.00 GB  1.20 GB/s  0:00:01  3 nodes, 48 tasks

In a notebook the same is one display that changes, and elsewhere, if it is asked for, lines without
the bar. One bar, for the stage that runs. The caller that waits for the job draws it, five times a
second; it has no thread of its own. It uses no library: the memory of one would count
against the job's budget.
"""

import json
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TextIO

from gristmill.terminal import console
from gristmill.units import show_bytes, show_count, show_rate

__all__ = ["Progress", "progress_bar", "send_to", "without_bar"]

FIRST_S = 0.5
"""How long nothing is drawn."""

EVERY_S = 0.2
"""The time between two drawings."""

LINE_EVERY_S = 5.0
"""The time between two lines where none can be written over: of a log."""

SEND_EVERY_S = 0.5
"""The time between two lines that are sent to another machine."""

_NOTEBOOK = "ipykernel.iostream"
"""The module of a notebook's stderr."""


_COLUMNS = 80
"""The width of a terminal that does not say."""

_BAR_MIN = 5
"""Columns below which a bar is left out."""


class Progress:
    """A bar that may never be drawn."""

    def __init__(
        self, *, stream: TextIO | None, terminal: bool = False, first_s: float | None = None
    ) -> None:
        """Draw on `stream`, if there is one, once `first_s` seconds are over."""
        first_s = FIRST_S if first_s is None else first_s
        self._next_s = time.monotonic() + first_s if stream is not None else float("inf")
        self._stream = stream
        self._terminal = terminal
        self._stage = Stage("", 0, 0.0)
        self._width = 0

    def show(
        self, stage: str, done_bytes: int, bytes_in_all: int, cluster: tuple[int, int] = (0, 0)
    ) -> None:
        """Say how far `stage` is; with no `bytes_in_all` only that it goes on.

        Args:
            stage: Its name.
            done_bytes: Bytes that are done.
            bytes_in_all: Bytes to do.
            cluster: The nodes that it runs on, and the tasks that run there; none on one machine.
        """
        now_s = time.monotonic()
        if self._stream is None or now_s < self._next_s:
            return
        self._next_s = now_s + EVERY_S
        if not self._terminal:
            self._next_s += LINE_EVERY_S - EVERY_S
            line = plain_line(stage, done_bytes, bytes_in_all) + _of_cluster(*cluster)
            self._put(f"{line}\n")
            return
        if stage != self._stage.name:
            self._stage = Stage(stage, done_bytes, now_s)
        room = _columns(self._stream), _of_cluster(*cluster)
        line = self._stage.line(done_bytes, bytes_in_all, now_s, *room)
        self._width = len(line)
        self._draw(line)

    def _draw(self, line: str) -> None:
        encoding = getattr(self._stream, "encoding", None) or "ascii"
        if "utf" not in encoding.lower():
            line = line.replace(_DONE, "#").replace(_LEFT, "-")
        self._put(f"\r{line}\x1b[K")

    def _put(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            console.draw(self._stream, text)
        except BrokenPipeError:  # the job goes on without
            console.give_up(self._stream)
            self._stream = None

    def close(self) -> None:
        """Remove the bar."""
        if self._width:
            self._draw("")
        self._width = 0


class _Displayed(Progress):
    """A bar in a notebook: one display, whose text changes; its stream would keep each drawing."""

    def __init__(self, stream: TextIO, *, first_s: float | None) -> None:
        super().__init__(stream=stream, terminal=True, first_s=first_s)
        self._handle: Any = None

    def _draw(self, line: str) -> None:
        shown = {"text/plain": line}
        if self._handle is None:
            display: Any = import_module("IPython.display")
            self._handle = display.display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


class _Sent(Progress):
    """Progress of a job whose user is on another machine: a line for each percent, at most."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream=None)
        self._to = stream
        self._said: tuple[object, ...] = ()
        self._next = 0.0

    def show(
        self, stage: str, done_bytes: int, bytes_in_all: int, cluster: tuple[int, int] = (0, 0)
    ) -> None:
        """Send how far `stage` is, if that is news."""
        share = 100 * done_bytes // bytes_in_all if bytes_in_all else None
        said = (stage, share, cluster[0])
        if said == self._said or time.monotonic() < self._next:
            return
        self._said, self._next = said, time.monotonic() + SEND_EVERY_S
        text = json.dumps([stage, done_bytes, bytes_in_all, *cluster])
        self._to.write(f"at {text}\n")
        self._to.flush()


_DONE, _LEFT = "━", "─"


class Stage:
    """A stage on its way: since when, and where it stood then."""

    def __init__(self, name: str, began_bytes: int, began_s: float) -> None:
        self.name = name
        self.began_bytes = began_bytes
        self.began_s = began_s

    def line(
        self, done_bytes: int, bytes_in_all: int, now_s: float, columns: int, more: str = ""
    ) -> str:
        """Return the line for a terminal so many columns wide, one of which stays free.

        What there is to say `more` stands at its end, where there is room.

        Example:
            >>> Stage("map", 0, 0.0).line(610_000_000, 1_000_000_000, 0.5, 72)
            'map       ━━━━━━━━━──────   61 %  610 MB of 1.00 GB  1.22 GB/s  0:00:00'
        """
        done_bytes = min(done_bytes, bytes_in_all) if bytes_in_all else done_bytes
        rate = (done_bytes - self.began_bytes) / max(now_s - self.began_s, 1e-3)
        speed = f"  {show_rate(rate, 1)}" if rate > 0 else ""
        if not bytes_in_all:
            return f"{self.name:<8}  {show_bytes(done_bytes)}{speed}{more}"[: columns - 1]
        amounts = f"{show_bytes(done_bytes)} of {show_bytes(bytes_in_all)}"
        left = f"  {_clock((bytes_in_all - done_bytes) / rate)}" if rate > 0 else ""
        rest = f"  {100 * done_bytes // bytes_in_all:3d} %  {amounts}{speed}{left}{more}"
        room = columns - 1 - len(f"{self.name:<8}  ") - len(rest)
        filled = room * done_bytes // bytes_in_all
        bar = _DONE * filled + _LEFT * (room - filled) if room >= _BAR_MIN else ""
        return f"{self.name:<8}  {bar}{rest}"[: columns - 1]


def plain_line(stage: str, done_bytes: int, bytes_in_all: int) -> str:
    """Return the line for a log.

    Example:
        >>> plain_line("map", 500_000, 2_000_000)
        'map       25 %  of 2.00 MB'
    """
    share = f"{100 * done_bytes // bytes_in_all:3d} %  " if bytes_in_all else ""
    amount = f"of {show_bytes(bytes_in_all)}" if bytes_in_all else show_bytes(done_bytes)
    return f"{stage:<8} {share}{amount}"


def _of_cluster(nodes: int, tasks: int) -> str:
    return f"  {show_count(nodes, 'node')}, {show_count(tasks, 'task')}" if nodes else ""


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or _COLUMNS
    except OSError:
        return _COLUMNS


_sent_to: TextIO | None = None
"""Where progress is sent, in a process whose user is on another machine."""


def send_to(stream: TextIO) -> None:
    """From now on send progress to a stream, as lines `at [STAGE, DONE, ALL, NODES, TASKS]`."""
    global _sent_to  # noqa: PLW0603 - state of the process, as its streams are
    _sent_to = stream


_drawn = True
"""Whether bars are drawn at all."""


@contextmanager
def without_bar() -> Generator[None]:
    """Draw no bar for as long as this lasts: another program reads what is said."""
    global _drawn  # noqa: PLW0603 - state of the process, as its streams are
    before, _drawn = _drawn, False
    try:
        yield
    finally:
        _drawn = before


@contextmanager
def progress_bar(
    *, quiet: bool, first_s: float | None = None, anywhere: bool = False
) -> Generator[Progress]:
    """A bar for as long as something is waited for, on a terminal or in a notebook.

    Args:
        quiet: Never draw it.
        first_s: How long nothing is drawn, in seconds; by default half a second.
        anywhere: Write lines where there is neither.
    """
    if _sent_to is not None and not quiet:
        yield _Sent(_sent_to)
        return
    stream: TextIO | None = sys.stderr
    terminal = console.is_terminal(stream)
    notebook = type(stream).__module__ == _NOTEBOOK
    on = stream if (terminal or anywhere or notebook) and _drawn and not quiet else None
    progress = (
        _Displayed(on, first_s=first_s)
        if on is not None and notebook
        else Progress(stream=on, terminal=terminal, first_s=first_s)
    )
    try:
        yield progress
    finally:
        progress.close()
