"""The one place where the command line writes.

    say, note    lines for people: a control character in one, as in the name of a file, is escaped,
                 so that no name can move the cursor, change colours or pretend to be another line
    put          text for programs, such as JSON: as it is

A reader that goes away (`gristmill … | head -1`) is no failure: what was said is lost, and the exit
code still tells how the job ended. Whatever else goes wrong with stdout is an `OSError`.
"""

import fcntl
import os
import sys
from collections.abc import Iterable
from typing import TextIO, cast

from gristmill.names import escaped, show_text
from gristmill.terminal import signals

_STANDARD = 3
"""How many descriptors are those of stdin, stdout, stderr."""

__all__ = [
    "begin",
    "draw",
    "flush",
    "give_up",
    "has_printed",
    "is_terminal",
    "keep_stdout",
    "note",
    "note_printed",
    "printable",
    "put",
    "say",
    "settle",
    "tell",
]


_printed: list[bool] = []
"""Whether something was written to stdout, once it was."""


_kept: list[TextIO] = []
"""Standard output, once it is kept for this program's own words."""


def begin() -> None:
    """Forget what was written: another command line begins."""
    _printed.clear()
    _kept.clear()


def keep_stdout() -> None:
    """From now on what user code and its children print goes to stderr, or nowhere without one."""
    out, err = cast("TextIO | None", sys.stdout), cast("TextIO | None", sys.stderr)
    if _kept or out is None:  # `>&-`
        return
    flush()
    number = out.fileno()
    kept = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _STANDARD)
    _kept.append(os.fdopen(kept, "w", encoding=out.encoding, errors=out.errors))
    if err is None:
        give_up(out)
    else:
        os.dup2(err.fileno(), number)


def _stdout() -> TextIO | None:
    return _kept[0] if _kept else sys.stdout


def has_printed() -> bool:
    """Whether this command line has written something to stdout."""
    return bool(_printed)


def note_printed() -> None:
    """Note that something was written to stdout: here, or by a child of this process."""
    _printed[:] = [True]


def say(*lines: str) -> None:
    """Write lines for people to stdout, at once."""
    _write(_stdout(), "".join(f"{printable(line)}\n" for line in lines))


def note(*lines: str) -> None:
    """Write lines for people to stderr."""
    _write(sys.stderr, "".join(f"{printable(line)}\n" for line in lines))


def tell(notices: Iterable[str]) -> None:
    """Write what a job has to say before it is over, each as a line to stderr."""
    for notice in notices:
        note(f"gristmill: {notice}")


def put(text: str) -> None:
    """Write text for programs to stdout: it is a line, or lines."""
    _write(_stdout(), show_text(f"{text}\n"))


def printable(line: str) -> str:
    r"""Return a line without anything that a terminal would act on; tabs stay.

    Example:
        >>> printable("a\x1b[31m\n\tb\u202e")
        'a\\x1b[31m\\n\tb\\u202e'
    """
    return "\t".join(escaped(show_text(part)) for part in line.split("\t"))


def flush() -> None:
    """Write what others have left in the buffer of stdout, and see to it that exiting will not."""
    _write(_stdout(), "")


def settle() -> None:
    """See to it that nothing is left to write at exit, whatever became of the streams."""
    streams: tuple[TextIO | None, ...] = (*_kept, sys.stdout, sys.stderr)
    for stream in streams:
        if stream is None:
            continue
        try:
            draw(stream, "")
        except OSError:
            give_up(stream)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether `stream`, which is `None` in a process without it, is a terminal."""
    return stream is not None and stream.isatty()


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:  # `>&-`
        return
    try:
        draw(stream, text)
    except BrokenPipeError:
        give_up(stream)


def draw(stream: TextIO, text: str) -> None:
    """Write text as it is, at once.

    Raises:
        BrokenPipeError: The reader has gone, or takes nothing after a signal.
    """
    with signals.writing(stream):
        stream.write(text)
        stream.flush()
    if text and stream is _stdout():
        note_printed()


def give_up(stream: TextIO) -> None:
    """Lead `stream` nowhere: its buffer keeps its bytes, and Python would try again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
