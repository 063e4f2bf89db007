"""What the shuffle of a job cost, to be held against what its plan said.

device_bytes   what maps wrote as runs, what merges read and wrote, and what the last tasks read
link_bytes     what nodes of a cluster read of the runs of others
"""

from dataclasses import dataclass

from gristmill.history.model import JobHistory

__all__ = ["ShuffleCost", "shuffle_cost"]

_LAST_PHASES = frozenset({"merge", "reduce"})
"""The phases that end a shuffle: they read runs, and write the output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffleCost:
    """What a shuffle moved."""

    device_bytes: int
    """Bytes that disks wrote and read."""
    link_bytes: int
    """Bytes that went from node to node."""


def shuffle_cost(history: JobHistory) -> ShuffleCost | None:
    """Return what the shuffle moved; None where the job planned none, or did not come to its end.

    A job that groups anew what it has grouped shuffles twice, and only the first is planned: None.
    The plan of a job of user code is of as many bytes as its input has; its maps may leave others.

    Example:
        >>> shuffle_cost(JobHistory(job_id="job_1")) is None
        True
    """
    phases = {phase.name for phase in history.phases}
    if history.state != "succeeded" or not history.plan.get("shuffles") or "regroup" in phases:
        return None
    moved = 0
    for attempt in history.attempts:
        read, written = (
            attempt.counters.get(f"FILE_BYTES_{way}", 0) for way in ("READ", "WRITTEN")
        )
        if attempt.phase in _LAST_PHASES:
            moved += read
        else:
            moved += written + (read if attempt.phase == "merge runs" else 0)
    others = history.report.get("counters", {}).get("SHUFFLE_BYTES_OTHER_NODES", 0)
    return ShuffleCost(device_bytes=moved, link_bytes=others)
