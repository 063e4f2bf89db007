"""The one place where the command line writes.

A reader that goes away (`gristmill … | head -1`) is no failure: what was said is lost, and the exit
code still tells how the job ended. Whatever else goes wrong with stdout is an `OSError`.
"""

import os
import sys
from typing import TextIO

__all__ = ["flush", "is_terminal", "note", "say", "settle"]


def say(*lines: str) -> None:
    """Write lines to stdout, at once."""
    _write(sys.stdout, lines)


def note(*lines: str) -> None:
    """Write lines to stderr."""
    _write(sys.stderr, lines)


def flush() -> None:
    """Write what others have left in the buffer of stdout, and see to it that exiting will not."""
    _write(sys.stdout, ())


def settle() -> None:
    """See to it that nothing is left to write at exit, whatever became of the streams."""
    streams: tuple[TextIO | None, ...] = (sys.stdout, sys.stderr)
    for stream in streams:
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            _give_up(stream)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether `stream`, which is `None` in a process without it, is a terminal."""
    return stream is not None and stream.isatty()


def _write(stream: TextIO | None, lines: tuple[str, ...]) -> None:
    if stream is None:  # `>&-`
        return
    text = "".join(f"{line}\n" for line in lines)
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        _give_up(stream)


def _give_up(stream: TextIO) -> None:
    """Lead `stream` nowhere: its buffer keeps its bytes, and Python would try again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
