"""What held a sort back: the share of the device's floor that it reached, and each phase's limit.

    bytes that went to and from the device (the kernel's count) ─┐
    a try of the device, now ────────────────────────────────────┴──▶ seconds that those take alone
    CPU seconds of a phase, against its wall time and the cores ────▶ processor, or device

A phase whose cores were busy was held back by the processor; one whose cores waited, by the device.
"""

import os
from pathlib import Path

from gristmill import _core
from gristmill.report import JobReport, Phase
from gristmill.units import show_rate, show_seconds

__all__ = ["bottleneck_lines", "limit_of"]

_PROBE_BYTES = 128_000_000
_LEAST_JOB_S = 2.0
_LEAST_PHASE_S = 0.1
_BUSY = 0.8


def bottleneck_lines(report: JobReport, folder: Path) -> list[str]:
    """Return what to say of a job that took a while; nothing of a short one."""
    if report.wall_s < _LEAST_JOB_S:
        return []
    cores = min(report.workers, os.cpu_count() or 1)
    phases = [phase for phase in report.phases if phase.wall_s >= _LEAST_PHASE_S]
    limits = "; ".join(
        f"{phase.name} {show_seconds(phase.wall_s)}: {limit_of(phase, cores)}" for phase in phases
    )
    return [*_floor(report, folder), limits]


def limit_of(phase: Phase, cores: int) -> str:
    """Return which resource held a phase back.

    Example:
        >>> limit_of(Phase(name="merge", tasks=9, wall_s=2.0, user_s=1.0, sys_s=0.2), cores=2)
        'held back by the device (cores 30 % busy)'
    """
    busy = (phase.user_s + phase.sys_s) / (phase.wall_s * cores)
    limit = "processor" if busy >= _BUSY else "device"
    return f"held back by the {limit} (cores {min(busy, 1.0):.0%} busy)".replace("%", " %")


def _floor(report: JobReport, folder: Path) -> list[str]:
    """The time that the bytes alone take at the rates of this moment, against the job's."""
    counters = report.counters
    device_read = counters.get("DEVICE_BYTES_READ")
    if device_read is None:
        return []
    try:
        write, read, cached = _core.device_rates(folder, _PROBE_BYTES, report.workers)
    except OSError:
        return []
    cached_bytes = max(counters.get("FILE_BYTES_READ", 0) - device_read, 0)
    written = counters.get("FILE_BYTES_WRITTEN", 0)
    floor_s = device_read / read + cached_bytes / cached + written / write
    return [
        f"{floor_s / report.wall_s:.0%}".replace("%", " %")
        + f" of the floor: its reads and writes alone take {show_seconds(floor_s)} at"
        f" {show_rate(read, 1)} and {show_rate(write, 1)}"
    ]
