"""Streams, copied to disk to their ends: to a file without a name, or to one that nodes see.

    standard input, FIFO ──block by block──▶ a file without a name: /proc/PID/fd/N
          └── of a job on a cluster ───────▶ .gristmill-input-XXXX/input beside the output,
                                             which another process removes

Decision: docs/decisions/cluster-streams.md.
"""

import errno
import os
import select
import stat
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from gristmill.errors import ours
from gristmill.job import TICK_S
from gristmill.locations import is_remote
from gristmill.mapreduce.formats.paths import descriptor_of
from gristmill.mapreduce.submit.removing import passing_folder
from gristmill.names import show_path

__all__ = ["check_seen", "copied_for_nodes", "copied_here", "file_of", "shown"]

_BLOCK_BYTES = 1 << 20
_BAR_AFTER_S = 2.0


def check_seen(streams: Iterable[str], output: str | None, *, collect: bool) -> None:
    """Refuse streams of a job on a cluster where their copies would be seen by this machine alone.

    Raises:
        ValueError: The output is not in a directory that all nodes see.
    """
    named = [shown(stream) for stream in streams]
    if named and (output is None or collect or is_remote(output)):
        raise ValueError(
            f"cannot run the job on the cluster: {named[0]} is of this machine alone, and no"
            " directory that all nodes see is named as its output. What to do: save it to a file"
            " in a place that all nodes see, and name that."
        )


@contextmanager
def copied_here(
    stream: str, folder: str, stop: Callable[[], bool], progress: bool | None
) -> Generator[str]:
    """Copy a stream to a file without a name, which goes with this process; see the next one."""
    with _keeper(shown(stream), folder) as copy:
        _copy(stream, copy, folder, stop, progress)
        yield f"/proc/{os.getpid()}/fd/{copy.fileno()}"


@contextmanager
def copied_for_nodes(
    stream: str, folder: str, stop: Callable[[], bool], progress: bool | None
) -> Generator[str]:
    """Copy a stream to a file that has a name, in a folder that the nodes of a cluster see.

    Args:
        stream: Its path.
        folder: Where it goes; if it does not exist, the first one above it that does.
        stop: Whether to end before all is read.
        progress: As for `Job.run`.

    Yields:
        The path of the copy, which lasts as long as the context.

    Raises:
        OSError: The stream cannot be read, or the disk is full.
        KeyboardInterrupt: `stop` said so.
    """
    file = file_of(stream)
    if file is not None:
        yield file
        return
    where = _existing(folder)
    with ExitStack() as held:
        try:
            made = held.enter_context(passing_folder(".gristmill-input-", str(where)))
            copy = held.enter_context(Path(made, "input").open("wb", buffering=0))
        except OSError as error:
            raise _unkept(shown(stream), str(where), 0, error) from None
        _copy(stream, cast("BinaryIO", copy), folder, stop, progress)
        yield copy.name


def shown(path: str) -> str:
    """Return what users call a stream.

    Example:
        >>> shown("-"), shown("/dev/fd/3")
        ('standard input', '/dev/fd/3')
    """
    return "standard input" if path == "-" else path


def file_of(path: str) -> str | None:
    """Return the path of a file that a descriptor stands at the beginning of, if it has one."""
    number = descriptor_of(path)
    if number is None or (number == 0 and sys.__stdin__ is None):
        return None
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode) or os.lseek(number, 0, os.SEEK_CUR) != 0:
            return None
        file = Path(f"/proc/self/fd/{number}").readlink()
        there = file.stat()
    except OSError:
        return None
    same = (there.st_dev, there.st_ino) == (found.st_dev, found.st_ino)
    return str(file) if same else None


def _existing(folder: str) -> Path:
    """A folder, or the first one above it that exists."""
    where = Path(folder)
    while not where.exists():
        where = where.parent
    return where


def _keeper(name: str, folder: str) -> BinaryIO:
    """A file without a name."""
    where = _existing(folder)
    try:
        return tempfile.TemporaryFile(dir=where, buffering=0)
    except OSError as error:
        raise _unkept(name, str(where), 0, error) from None


def _copy(
    path: str, copy: BinaryIO, folder: str, stop: Callable[[], bool], progress: bool | None
) -> None:
    from gristmill.terminal.progress import progress_bar

    name, done_bytes = shown(path), 0
    with _opened(path, name) as number:
        typed = os.isatty(number)  # a bar would be drawn where the user types
        quiet, anywhere = typed or progress is False, progress is True
        with progress_bar(quiet=quiet, first_s=_BAR_AFTER_S, anywhere=anywhere) as bar:
            for block in _blocks(number, name, stop):
                left = memoryview(block)
                while left:
                    try:
                        left = left[copy.write(left) :]
                    except OSError as error:
                        raise _unkept(name, folder, done_bytes, error) from None
                done_bytes += len(block)
                bar.show("read", done_bytes, 0)


def _blocks(number: int, name: str, stop: Callable[[], bool]) -> Iterator[bytes]:
    """What comes from a descriptor, which is never waited for longer than a tick."""
    poller = select.poll()
    poller.register(number, select.POLLIN)
    while True:
        if stop():
            raise KeyboardInterrupt
        try:
            # Before a FIFO has a writer, `read` says that it is at its end; `poll` does not.
            if not poller.poll(TICK_S * 1000):
                continue
            block = os.read(number, _BLOCK_BYTES)
        except BlockingIOError:
            continue
        except OSError as error:
            raise _unreadable(name, error) from None
        if not block:
            return
        yield block


@contextmanager
def _opened(path: str, name: str) -> Generator[int]:
    try:
        number = descriptor_of(path)
        if number == 0 and sys.__stdin__ is None:  # another file may have its number by now
            raise OSError(errno.EBADF, "closed")
        if number is None:
            opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        else:
            opened = os.dup(number)  # whoever opened it closes it
    except OSError as error:
        raise _unreadable(name, error) from None
    try:
        yield opened
    finally:
        os.close(opened)


def _unreadable(name: str, error: OSError) -> OSError:
    why = "it is closed" if error.errno == errno.EBADF else str(error.strerror).lower()
    advice = "give the job a pipe, or a file"
    return ours(OSError(f"cannot read {show_path(name)}: {why}. What to do: {advice}."), "io")


def _unkept(name: str, folder: str, done_bytes: int, error: OSError) -> OSError:
    why = str(error.strerror).lower()
    found = OSError(
        f"cannot keep what comes from {show_path(name)}: {why} (in {show_path(folder)}, after"
        f" {done_bytes:,} bytes)."
        " What to do: name a spill directory with more room, or save it to a"
        " file first."
    )
    return ours(found, "disk_full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "io")
