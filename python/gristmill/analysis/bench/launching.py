"""One run: a process of Gristmill, with the clock outside of it.

    clock ──▶ start ──▶ wait4, asleep ──▶ clock;  CPU and memory: the kernel's, of the whole tree

Time is that of a user: it includes the start of the program. `own_cpu_s` is the CPU time that this
process used meanwhile, so that each run says itself what the measuring cost.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

from gristmill.terminal import signals

__all__ = ["Ended", "launch"]

_KIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A process that is over."""

    status: int
    """Its exit code; negative: the signal that ended it."""
    wall_s: float
    user_s: float
    sys_s: float
    peak_bytes: int
    """The most resident memory of the largest of its processes."""
    own_cpu_s: float
    """CPU time of this process meanwhile."""
    stdout: str
    stderr: str


def launch(command: Sequence[str]) -> Ended:
    r"""Run a command to its end.

    Example:
        >>> ended = launch(["sh", "-c", "echo done; exit 3"])
        >>> ended.status, ended.stdout, ended.wall_s > 0
        (3, 'done\n', True)
    """
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        with signals.deferred() as pending:  # a process that was begun is always waited for
            own, began = time.thread_time(), time.perf_counter()
            process = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
            )
            try:
                pending.raising = True
                pending.check()
                _, status, used = os.wait4(process.pid, 0)
            except BaseException:
                process.terminate()
                process.wait()
                raise
            wall_s, own_cpu_s = time.perf_counter() - began, time.thread_time() - own
        process.returncode = os.waitstatus_to_exitcode(status)
        texts: list[str] = []
        for file in (stdout, stderr):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    return Ended(
        status=process.returncode,
        wall_s=wall_s,
        user_s=used.ru_utime,
        sys_s=used.ru_stime,
        peak_bytes=used.ru_maxrss * _KIB,
        own_cpu_s=own_cpu_s,
        stdout=texts[0],
        stderr=texts[1],
    )
