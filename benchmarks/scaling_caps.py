"""Control groups of benchmarks/scaling.py: a quarter of a processor for each worker process.

    v1  /sys/fs/cgroup/cpu/gristmill-scaling-PID/   v2  /sys/fs/cgroup/gristmill-scaling-PID/
          worker-PID/ cpu.cfs_quota_us = 2500             worker-PID/ cpu.max = 2500 10000
                      cpu.cfs_period_us = 10000

The period is short: a worker has its first quota at once, so that a run is up to three quarters of
a period shorter than its work says, which would look superlinear at large p. The job's own process
and the device are in no group. All groups are removed at the end, also after Ctrl-C and SIGTERM;
what an earlier run left behind as it was killed is removed at the beginning. It needs root.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Groups", "groups"]

PERIOD_US = 10_000
QUOTA_US = 2_500
NAME = "gristmill-scaling"
V1, V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")


class Groups:
    """The control group in which workers make their own."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder, self.version = folder, version

    @property
    def caps(self) -> str:
        """What a worker writes into its group, in this order: file=text, by comma."""
        if self.version == "v1":
            return f"cpu.cfs_period_us={PERIOD_US},cpu.cfs_quota_us={QUOTA_US}"
        return f"cpu.max={QUOTA_US} {PERIOD_US}"

    def clear(self) -> dict[str, int]:
        """Remove the groups of workers, which have ended; returns how often they were held back."""
        found = {"workers": 0, "nr_periods": 0, "nr_throttled": 0}
        for group in self.folder.glob("worker-*"):
            found["workers"] += 1
            with contextlib.suppress(OSError, ValueError):
                for line in (group / "cpu.stat").read_text().splitlines():
                    name, number = line.split()
                    if name in found:
                        found[name] += int(number)
            remove(group)
        return found


@contextmanager
def groups() -> Iterator[Groups]:
    """Make the control group, and remove it at the end, whatever that is."""
    v2 = (V2 / "cgroup.controllers").exists()
    base = V2 if v2 else V1
    for left in base.glob(f"{NAME}-*"):
        remove_all(left, patience_s=0.1)
    folder = base / f"{NAME}-{os.getpid()}"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        make(folder, (base, folder) if v2 else ())
        yield Groups(folder, "v2" if v2 else "v1")
    finally:
        remove_all(folder)


def make(folder: Path, controlled: Sequence[Path]) -> None:
    try:
        folder.mkdir()
        for of in controlled:
            (of / "cgroup.subtree_control").write_text("+cpu")
    except PermissionError as error:
        sys.exit(f"cannot limit workers: {error}. What to do: run it as root.")
    except OSError as error:
        sys.exit(f"cannot limit workers: {error}. What to do: mount the controller `cpu`.")


def remove_all(folder: Path, patience_s: float = 5.0) -> None:
    for group in folder.glob("worker-*"):
        remove(group, patience_s)
    remove(folder, patience_s)


def remove(group: Path, patience_s: float = 5.0) -> None:
    """Remove a group; its last process may not be gone yet."""
    end = time.monotonic() + patience_s
    while group.exists():
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > end:
                print(f"still there: {group}", file=sys.stderr)
                return
            time.sleep(0.02)
