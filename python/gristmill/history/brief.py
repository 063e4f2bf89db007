"""What a list says of a job, from the first and the last lines of its history alone.

    job_submitted   ◀── read: command, name, inputs, output, when
    ...             (megabytes of a large job, which nobody reads here)
    job_finished    ◀── read, from the file's end: state, time, report

So a list takes as long for a gigabyte of histories as for a few kilobytes.
"""

import os
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from gristmill.history.home import EVENTS
from gristmill.history.model import OWN_CODE, JobHistory
from gristmill.history.reader import is_code_gone, is_live, take_line

__all__ = ["load_brief"]

_TAIL_BYTES = 1 << 14
"""How much is read at first to find the last line; most reports are shorter."""

_HEAD_LINES = 16
"""Within how many lines a job says what it began with."""


def load_brief(folder: Path, *, live: bool | None = None) -> JobHistory:
    """Return the history in a job's folder without its phases, attempts and samples.

    Args:
        folder: The folder.
        live: Whether the job is alive, where the caller knows.

    Raises:
        ValueError: A line that is read is damaged, or a later version wrote it.
        OSError: It cannot be read.

    Example:
        >>> import gristmill, os, tempfile
        >>> from gristmill.history import find_job
        >>> with tempfile.TemporaryDirectory() as home:
        ...     os.environ["GRISTMILL_HOME"] = home
        ...     made = gristmill.teragen("1k", f"{home}/data", history=True)
        ...     found = load_brief(find_job(made.job_id))
        >>> found.command, found.state, found.number("records"), found.attempts
        ('teragen', 'succeeded', 1000, [])
    """
    live = is_live(folder) if live is None else live  # before the events: the job may end meanwhile
    history = JobHistory(job_id=folder.name)
    with (folder / EVENTS).open("rb") as file:
        first = file.readline()
        if first.endswith(b"\n"):
            take_line(history, first, "line 1", folder)
        last = _last_line(file, len(first))
        if last:
            take_line(history, last, "the last line", folder)
        if history.state == "running" and not live:
            history.state = "dead"
            if history.command in OWN_CODE:
                history.keeps_code = _keeps_code(file, len(first), folder)
                history.code_gone = is_code_gone(history, folder)
    return history


def _last_line(file: BinaryIO, begin: int) -> bytes:
    """The last line that is whole, of those that begin at `begin` or later."""
    end = file.seek(0, os.SEEK_END)
    size = _TAIL_BYTES
    while end > begin:
        start = max(begin, end - size)
        file.seek(start)
        tail = file.read(end - start)
        whole = tail[: tail.rfind(b"\n") + 1]
        before = whole.rfind(b"\n", 0, -1)
        if before >= 0 or start == begin:
            return whole[before + 1 :]
        size *= 4
    return b""


def _keeps_code(file: BinaryIO, begin: int, folder: Path) -> bool:
    """Whether the beginning of a history says that what the job's user code is was kept."""
    head = JobHistory(job_id=folder.name)
    file.seek(begin)
    for line in islice(file, _HEAD_LINES):
        if line.endswith(b"\n"):
            take_line(head, line, "a line at its beginning", folder)
    return head.keeps_code
