"""The worker processes of a job with `--runner processes`, as tests find and disturb them."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path


def children(pid: int) -> list[int]:
    """The processes that any thread of a process began."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, thread.read_text().split())
    return found


def descendants(pid: int) -> list[int]:
    """All processes below a process."""
    below = children(pid)
    return [*below, *(one for child in below for one in descendants(child))]


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def task_workers(pid: int) -> list[int]:
    """The processes that run tasks for a job's process."""
    found: list[int] = []
    for child in children(pid):
        with suppress(OSError):
            if b"run_tasks" in Path(f"/proc/{child}/cmdline").read_bytes() and is_alive(child):
                found.append(child)
    return found


def wait_for_workers(
    job: subprocess.Popen[str], count: int = 1, *, after_ticks: int = 5
) -> list[int]:
    """Wait until so many workers have worked for some ticks; nothing if the job is over before."""
    deadline_s = time.monotonic() + 20
    while job.poll() is None:
        workers = [
            pid
            for pid in task_workers(job.pid)
            if sum(map(_cpu_ticks, [pid, *descendants(pid)])) >= after_ticks
        ]
        if len(workers) >= count:
            return workers
        assert time.monotonic() < deadline_s, "no worker began to work"
        time.sleep(0.005)
    return []


def _cpu_ticks(pid: int) -> int:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    return 0


def kill(pid: int) -> bool:
    """Kill a process that may be gone; whether it was there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def gone_within(seconds: float, pids: list[int]) -> bool:
    """Whether none of these processes runs after so long at the latest."""
    deadline_s = time.monotonic() + seconds
    while any(map(is_alive, pids)):
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.01)
    return True
