"""What held a job back, at its end: each phase's limit; of a sort, the device's floor as well.

bytes that went to and from the device (the kernel's count) ─┐
a try of the device, now ────────────────────────────────────┴──▶ seconds that those take alone
what each phase used (the report) ──▶ history/causes.py ─────────▶ what held it back
"""

from pathlib import Path

from gristmill import _core
from gristmill.history.causes import use_of
from gristmill.report import JobReport
from gristmill.units import show_rate, show_seconds

__all__ = ["bottleneck_lines", "limit_lines"]

_PROBE_BYTES = 128_000_000
#: Of the budget, for each stream of the try: its buffer, beside the process and what it imports.
_STREAM_NEEDS_BYTES = 24_000_000
_JOB_MIN_S = 2.0
_PHASE_MIN_S = 0.1


def bottleneck_lines(report: JobReport, folder: Path) -> list[str]:
    """Return what to say of a sort that took a while; nothing of a short one."""
    if report.wall_s < _JOB_MIN_S:
        return []
    return [*_floor(report, folder), *limit_lines(report)]


def limit_lines(report: JobReport) -> list[str]:
    """Return what held each phase of a job back that took a while; nothing of a short job."""
    if report.wall_s < _JOB_MIN_S:
        return []
    return [
        f"{use.name} {show_seconds(use.seconds)}: held back by {use.told}"
        if use.cause != "not_clear"
        else f"{use.name} {show_seconds(use.seconds)}: what held it back is {use.told}"
        for use in map(use_of, report.phases)
        if use.seconds >= _PHASE_MIN_S
    ]


def _floor(report: JobReport, folder: Path) -> list[str]:
    """The time that the bytes alone take at the rates of this moment, against the job's."""
    counters = report.counters
    device_read = counters.get("DEVICE_BYTES_READ")
    if device_read is None:
        return []
    streams = min(report.workers, report.memory_bytes // _STREAM_NEEDS_BYTES)
    if streams == 0:
        return []
    try:
        write, read, cached = _core.device_rates(folder, _PROBE_BYTES, streams)
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
