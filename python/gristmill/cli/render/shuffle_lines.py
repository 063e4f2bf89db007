"""The plans of a shuffle as a table: before a job in `explain`, afterwards in `jobs show`.

shuffle      cuts into             disks      links      reads  files      time
immediate    16                   800 MB        0 B      1,543     46    1.08 s  this one
measured                          800 MB        0 B
"""

from typing import Any

from gristmill.history.shuffle import ShuffleCost
from gristmill.units import show_bytes, show_seconds

__all__ = ["shuffle_lines"]

_HEAD = ("shuffle", "cuts into", "disks", "links", "reads", "files", "time")
_LINE = "  {:<12} {:<16} {:>10} {:>10} {:>10} {:>6} {:>9}{}"


def shuffle_lines(plans: list[dict[str, Any]], measured: ShuffleCost | None = None) -> list[str]:
    """Return the plans with their cost by a model, which one the job takes, and what it took.

    Example:
        >>> shuffle_lines([])
        []
    """
    if not plans:
        return []
    lines = [_LINE.format(*_HEAD, ""), *map(_planned, plans)]
    if measured is not None:
        moved = (show_bytes(measured.device_bytes), show_bytes(measured.link_bytes))
        lines.append(_LINE.format("measured", "", *moved, "", "", "", "").rstrip())
    return lines


def _planned(plan: dict[str, Any]) -> str:
    return _LINE.format(
        plan["plan"],
        " x ".join(map(str, plan["fan_outs"])),
        show_bytes(plan["device_bytes"]),
        show_bytes(plan["link_bytes"]),
        f"{plan['reads']:,}",
        f"{plan['open_files']:,}",
        show_seconds(plan["seconds"]),
        "  this one" if plan["chosen"] else "",
    )
