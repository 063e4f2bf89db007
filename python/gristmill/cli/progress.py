"""A progress bar on stderr, where that is a terminal and the wait is long enough to wonder.

    map ━━━━━━━━━━━━━━━╸━━━━━━━━━  61 %  0.6/1.0 GB  1.2 GB/s  0:00:01

In a notebook, and elsewhere if it is asked for, the same in plain text. One bar, for the stage that
runs. It is drawn by whoever waits for the job, five times a second, not
by a thread of its own; and rich is imported when the first bar is due, since that takes a tenth of
a second, which short jobs do not even last.
"""

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from gristmill.cli.console import is_terminal
from gristmill.units import show_bytes

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

__all__ = ["Progress", "progress_bar"]

FIRST_S = 0.5
"""How long nothing is drawn."""

EVERY_S = 0.2
"""The time between two drawings: a drawing takes some 2 ms, which the job pays for too."""


LINE_EVERY_S = 5.0
"""The time between two lines where none can be written over: of a log."""

_NOTEBOOK = "ipykernel.iostream"
"""The module of a notebook's stderr, which is no terminal, but heeds a carriage return."""


class Progress:
    """A bar that may never be drawn."""

    def __init__(
        self, *, drawn: bool, first_s: float | None = None, plain: TextIO | None = None
    ) -> None:
        self._next_s = (
            time.monotonic() + (FIRST_S if first_s is None else first_s) if drawn else float("inf")
        )
        self._bar: RichProgress | None = None
        self._stage = ""
        self._plain = plain
        self._width = 0

    def show(self, stage: str, done_bytes: int, bytes_in_all: int) -> None:
        """Say how far `stage` is; with no `bytes_in_all` only that it goes on."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + EVERY_S
        if self._plain is not None:
            self._write(self._plain, stage, done_bytes, bytes_in_all)
            return
        if self._bar is None:
            self._bar = _rich_progress()
            self._bar.start()
        task_id = self._bar.task_ids[0]
        total = bytes_in_all or None
        if stage != self._stage:
            self._stage = stage
            self._bar.reset(task_id, total=total, completed=done_bytes, description=stage)
        self._bar.update(task_id, total=total, completed=done_bytes)
        self._bar.refresh()

    def _write(self, stream: TextIO, stage: str, done_bytes: int, bytes_in_all: int) -> None:
        share = f"{100 * done_bytes // bytes_in_all:3d} %  " if bytes_in_all else ""
        amount = f"of {show_bytes(bytes_in_all)}" if bytes_in_all else show_bytes(done_bytes)
        line = f"{stage:<8} {share}{amount}"
        if _is_notebook(stream):
            stream.write(f"\r{line:<{self._width}}")
            self._width = len(line)
        else:
            self._next_s += LINE_EVERY_S - EVERY_S
            stream.write(f"{line}\n")
        stream.flush()

    def close(self) -> None:
        """Remove the bar."""
        if self._plain is not None and self._width:
            self._plain.write(f"\r{'':<{self._width}}\r")
            self._width = 0
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


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
    stream: TextIO | None = sys.stderr
    terminal = is_terminal(stream)
    drawn = terminal or (stream is not None and (anywhere or _is_notebook(stream)))
    plain = None if terminal else stream
    progress = Progress(drawn=drawn and not quiet, first_s=first_s, plain=plain)
    try:
        yield progress
    finally:
        progress.close()


def _is_notebook(stream: object) -> bool:
    return type(stream).__module__ == _NOTEBOOK


def _rich_progress() -> "RichProgress":
    from rich import progress as rich
    from rich.console import Console

    bar = rich.Progress(
        rich.TextColumn("{task.description:<8}"),
        rich.BarColumn(bar_width=None),
        rich.TaskProgressColumn(),
        rich.DownloadColumn(),
        rich.TransferSpeedColumn(),
        rich.TimeRemainingColumn(),
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
        expand=True,
    )
    bar.add_task("", total=None)
    return bar
