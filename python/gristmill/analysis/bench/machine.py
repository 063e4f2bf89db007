"""What a benchmark ran on: processors, memory, file system, versions; and what else ran meanwhile.

Two results can be compared if `SAME` is the same in both; whatever else differs is said.
"""

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gristmill import _core

__all__ = ["SAME", "Cpu", "cpu_times", "device_of", "machine", "probe_bytes", "versions"]

SAME = ("processor", "processors", "memory_bytes", "file_system")
"""What must be the same of two machines whose figures are compared."""

_PROBE_MIN_BYTES, _PROBE_MAX_BYTES = 4 << 20, 128_000_000
_PAGE_BYTES = 4096
_STREAMS = 2

Cpu = Mapping[str, float]
"""Seconds of all processors since the machine started: busy, steal, idle."""


def machine(folder: str) -> dict[str, Any]:
    """Return what the machine is, and the file system of a folder; no names or paths of it.

    Example:
        >>> sorted(machine("."))
        ['file_system', 'kernel', 'memory_bytes', 'processor', 'processors', 'workers']
    """
    return {
        "processor": _processor(),
        "processors": os.cpu_count() or 1,
        "workers": _core.default_workers(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "kernel": platform.release(),
        "file_system": _file_system(folder),
    }


def versions() -> dict[str, str]:
    """Return the versions of what runs, and of what the figures are computed with.

    Example:
        >>> versions()["gristmill"] == _core.VERSION
        True
    """
    found = {"gristmill": _core.VERSION, "python": platform.python_version()}
    for name in ("numpy", "scipy", "matplotlib", "ray"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def device_of(folder: str, data_bytes: int | None = None) -> dict[str, float] | None:
    """Return what the device below a folder does at this moment, in bytes per second.

    `None` for a store, and where the folder cannot be written past the cache.

    Args:
        folder: Where the bytes are written that it is tried with.
        data_bytes: How large the data are, which the device is tried for.

    Example:
        >>> device_of("s3://bucket/folder")
    """
    if _core.is_remote(folder):
        return None
    try:
        write, read, cached = _core.device_rates(folder, probe_bytes(data_bytes), _STREAMS)
    except OSError:
        return None
    return {"write": write, "read": read, "cached": cached}


def probe_bytes(data_bytes: int | None) -> int:
    """Return with how many bytes to try a device: as many as the data have, within limits.

    Example:
        >>> probe_bytes(1000), probe_bytes(10_000_000), probe_bytes(10**12), probe_bytes(None)
        (4194304, 9998336, 128000000, 128000000)
    """
    if data_bytes is None:
        return _PROBE_MAX_BYTES
    within = min(_PROBE_MAX_BYTES, max(_PROBE_MIN_BYTES, data_bytes))
    return within - within % _PAGE_BYTES


def cpu_times() -> dict[str, float]:
    """Return the seconds that all processors were busy, taken by the host, and idle.

    Example:
        >>> sorted(cpu_times()) in (["busy_s", "idle_s", "steal_s"], [])
        True
    """
    try:
        words = Path("/proc/stat").read_text().split(None, 9)[1:9]
    except OSError:
        return {}
    ticks = [float(word) / os.sysconf("SC_CLK_TCK") for word in words]
    user, nice, system, idle, waiting, irq, soft, steal = ticks
    return {
        "busy_s": user + nice + system + irq + soft,
        "idle_s": idle + waiting,
        "steal_s": steal,
    }


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _file_system(folder: str) -> str:
    """The type of a folder's file system, or the scheme of a store."""
    if _core.is_remote(folder):
        return folder.partition("://")[0]
    device = Path(folder).stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    with suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            words = line.split()
            if words[2] == number:
                return words[words.index("-") + 1]
    return "unknown"
