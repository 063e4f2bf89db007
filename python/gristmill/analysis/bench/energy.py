"""Joules that the processors say they took: RAPL, below /sys/class/powercap.

It counts packages and, where it has a domain of its own, memory: no disks, fans or power supply. So
it is no wall power, which the sort benchmark's JouleSort asks for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Reading", "joules_between", "read_energy"]

_POWERCAP = Path("/sys/class/powercap")
_MICRO = 1e-6


@dataclass(frozen=True, slots=True)
class Reading:
    """What a domain has counted."""

    micro_joules: int
    most: int
    """Where the counter begins again at 0."""


def read_energy(root: Path = _POWERCAP) -> dict[str, Reading]:
    """Return the counter of each package, by its folder; nothing where there is none to read.

    Example:
        >>> read_energy(Path("/no/such/folder"))
        {}
    """
    found: dict[str, Reading] = {}
    for folder in sorted(root.glob("intel-rapl:*")):
        name = _text(folder / "name")
        counted, most = _text(folder / "energy_uj"), _text(folder / "max_energy_range_uj")
        # Cores and the graphics unit are within their package; memory is not.
        if counted.isdigit() and (name.startswith("package") or name == "dram"):
            found[folder.name] = Reading(int(counted), int(most) if most.isdigit() else 0)
    return found


def joules_between(before: Mapping[str, Reading], after: Mapping[str, Reading]) -> float | None:
    """Return the joules of all domains between two readings; `None` where there is none.

    Example:
        >>> joules_between({"a": Reading(9_000_000, 10_000_000)}, {"a": Reading(0, 10_000_000)})
        1.0
    """
    shared = before.keys() & after.keys()
    if not shared:
        return None
    total = 0
    for name in shared:
        taken = after[name].micro_joules - before[name].micro_joules
        total += taken if taken >= 0 else taken + after[name].most
    return total * _MICRO


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
