"""What a job did on each node of a cluster, from its history: for `jobs show` and `report`."""

from dataclasses import dataclass, replace

from gristmill.history.model import Attempt, JobHistory
from gristmill.history.nodes import NodeSample

__all__ = ["NodeTotal", "lost_of", "node_totals", "reads_between"]

_LOST = (
    ("LOST_AGENTS", "agent"),
    ("LOST_TASK_ATTEMPTS", "attempt"),
    ("LOST_TASK_OUTPUTS", "task output"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTotal:
    """What a job did on a node, and used there, up to the last sample."""

    attempts: int
    """Attempts that began there."""
    wasted: int
    """Those of them that failed or were killed."""
    wasted_bytes: int
    """Bytes that these had worked on."""
    running_s: float
    """Seconds of all attempts together."""
    peak_bytes: int
    """The most memory of a sample."""
    used: NodeSample
    """The last sample; what it sent, by those who received it, who say so later than it did."""


def node_totals(history: JobHistory) -> list[NodeTotal]:
    """Return what a job did on each node, in the order of their numbers; nothing on one machine.

    Example:
        >>> attempts = [Attempt(task=0, attempt=0, phase="map", node="10.0.0.2", start_ms=0)]
        >>> [(total.used.node, total.attempts) for total in node_totals(
        ...     JobHistory(job_id="job_1", attempts=attempts))]
        [('10.0.0.2', 1)]
    """
    of_node: dict[str, list[Attempt]] = {}
    last: dict[str, NodeSample] = {}
    peaks: dict[str, int] = {}
    for sample in history.samples:
        for node in sample.nodes:
            if node.node:  # of an agent that has said nothing yet there is no name
                last[node.node] = node
                peaks[node.node] = max(peaks.get(node.node, 0), node.anon_bytes)
    for attempt in history.attempts:
        if attempt.node:
            last.setdefault(attempt.node, NodeSample(node=attempt.node))
            of_node.setdefault(attempt.node, []).append(attempt)
    for name, used in last.items():
        sent = (read.received_bytes for read in history.reads if read.kept_by == name)
        last[name] = replace(used, sent_bytes=max(used.sent_bytes, sum(sent)))
    return [
        _total(history, of_node.get(name, []), peaks.get(name, 0), used)
        for name, used in last.items()
    ]


def _total(
    history: JobHistory, attempts: list[Attempt], peak_bytes: int, used: NodeSample
) -> NodeTotal:
    wasted = [attempt for attempt in attempts if attempt.outcome in ("failed", "killed")]
    ends = ((a, history.end_ms if a.end_ms is None else a.end_ms) for a in attempts)
    return NodeTotal(
        attempts=len(attempts),
        wasted=len(wasted),
        wasted_bytes=sum(attempt.bytes for attempt in wasted),
        running_s=sum(end_ms - attempt.start_ms for attempt, end_ms in ends) / 1000,
        peak_bytes=peak_bytes,
        used=used,
    )


def reads_between(history: JobHistory, names: list[str]) -> list[list[int]]:
    """Return the bytes of runs that each node read, a row for each, from each node.

    There are none before the job is over, and none of a cluster of very many nodes.
    """
    if not history.reads:
        return []
    table = {name: dict.fromkeys(names, 0) for name in names}
    for read in history.reads:
        if read.by in table and read.kept_by in table:
            table[read.by][read.kept_by] += read.received_bytes + read.file_bytes
    return [list(row.values()) for row in table.values()]


def lost_of(history: JobHistory) -> list[tuple[int, str]]:
    """Return how much was lost of what: agents, attempts, outputs of tasks; only what was."""
    counters: dict[str, int] = history.report.get("counters") or {}
    found = [(counters.get(name, 0), what) for name, what in _LOST]
    return [(number, what) for number, what in found if number]
