"""A command in a child process, as the user code that it calls may end its process, or crash it.

fork ─▶ the command, to its end ─▶ exit code, what it failed at ─▶ the parent ends so too
     └▶ no answer: the parent says how the child ended

If the parent is killed, the kernel sends SIGTERM to the child, which cleans up and ends.
"""

import ctypes
import json
import os
import signal
import warnings
from collections.abc import Callable
from contextlib import suppress

from gristmill.cli.failures import FAILED, conclude, fail, said_so_far, say_no_more
from gristmill.mapreduce.check.last_call import told
from gristmill.terminal import console, signals
from gristmill.terminal.signals import Interrupted

__all__ = ["apart"]


def apart(command: str, run: Callable[[], int]) -> int:
    """Run a command in a child process, and return its exit code."""
    reader, writer = os.pipe()
    console.settle()  # or both would write what is in the buffers
    parent, child = os.getpid(), _fork()
    if not child:
        _end_with(parent)
        _run_here(run, writer)
    os.close(writer)
    try:
        answer = _read(reader)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except Interrupted as error:
        with suppress(ProcessLookupError, ChildProcessError):  # it has ended
            os.kill(child, error.signum)
            os.waitpid(child, 0)
        raise
    finally:
        os.close(reader)
    if answer:
        found = json.loads(answer)
        say_no_more(found["said"], printed=found["printed"])
        return found["code"]
    fail(command, f"cannot {command} the job: {_ended(status)}. {_ADVICE}.")
    return FAILED


def _fork() -> int:
    """Fork; Python warns of threads, of which ours only waits for files that never answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _end_with(parent: int) -> None:
    """Let a signal come to this process when its parent ends, as a SIGKILL would not reach it."""
    with suppress(OSError, AttributeError):  # only Linux has it
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it has ended before the kernel knew
        os._exit(FAILED)


_PR_SET_PDEATHSIG = 1
"""Of Linux's prctl(2)."""

_ADVICE = (
    "What to do: look for os._exit() and crashes in your code and its libraries; to report an"
    " error, raise an exception"
)


def _ended(status: int) -> str:
    """How a child ended that has not answered."""
    how = f"with exit code {status}" if status >= 0 else f"by signal {_name_of(-status)}"
    place = told()
    return f"its code ended the process {how}" + (f" ({place})" if place else "")


def _name_of(number: int) -> str:
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:
        return str(number)


def _run_here(run: Callable[[], int], writer: int) -> None:
    """Run the command in the child, which ends."""
    mine, code = os.getpid(), FAILED
    try:
        signals.install()  # with a thread of its own
        code = run()
    except BaseException as error:  # noqa: BLE001 - the edge of this process
        code = conclude(error)
    finally:
        signals.ignore()
        if os.getpid() == mine:  # else user code has forked, and came back from there
            answer = {"code": code, "said": said_so_far(), "printed": console.has_printed()}
            _write(writer, json.dumps(answer).encode())
        console.settle()
        os._exit(code)


def _write(writer: int, answer: bytes) -> None:
    left = memoryview(answer)
    while left:
        try:
            left = left[os.write(writer, left) :]
        except OSError:  # user code has closed it
            return


def _read(reader: int) -> bytes:
    return b"".join(iter(lambda: os.read(reader, 1 << 16), b""))
