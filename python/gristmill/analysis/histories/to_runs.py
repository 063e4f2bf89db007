"""Makes the history of a job a `Run`, for fits and comparisons.

    workers, or nodes ──▶ p            report.wall_s ──▶ seconds
    phases, by name ────▶ phases       input or output bytes ──▶ work
    losses.py ──────────▶ wastes       where the history was read ──▶ source

Only a job that succeeded, in one process from start to end, has a time that can be compared.
"""

from gristmill.analysis.histories.losses import losses
from gristmill.analysis.runs import Run
from gristmill.history.model import JobHistory, PhaseSpan

__all__ = ["run_of", "why_not"]


def why_not(history: JobHistory) -> str | None:
    """Return why the time of a job cannot be used, to follow the job's name; None if it can.

    Example:
        >>> why_not(JobHistory(job_id="job_1", state="failed"))
        'it failed'
        >>> report = {"wall_s": 2.0, "workers": 2}
        >>> why_not(JobHistory(job_id="job_1", state="succeeded", report=report))
    """
    match history.state:
        case "running":
            return "it is still running"
        case "dead":
            return "its history has no end: it was killed, or the file is cut short"
        case "ended early":
            return "it ended early: the reader of its output went away"
        case "failed":
            return "it failed"
        case "cancelled":
            return "it was cancelled"
        case "succeeded":
            pass
    if history.resumed_ms:
        return "it was resumed: its time includes a part that another process did"
    if not history.wall_s > 0:
        return "its history says no time"
    if history.number("workers") < 1:
        return "its history says no number of workers"
    return None


def run_of(history: JobHistory, source: str = "", *, per_node: bool = False) -> Run:
    """Return the run of a job whose time can be used (`why_not` returns None).

    Args:
        history: The job.
        source: Where the history was read; if empty, the id of the job.
        per_node: Whether p is nodes, not workers.

    Example:
        >>> span = PhaseSpan(name="map", tasks=4, bytes=9, start_ms=0, end_ms=1500)
        >>> report = {"wall_s": 2.0, "workers": 4, "input_bytes": 9}
        >>> run = run_of(JobHistory(job_id="job_1", phases=[span], report=report))
        >>> run.p, run.seconds, run.work, run.phases, run.wastes["serial"], run.source
        (4.0, 2.0, 9.0, {'map': 1.5}, 1.5, 'job_1')
    """
    return Run(
        p=float(_nodes(history) if per_node else history.number("workers")),
        seconds=history.wall_s,
        work=float(history.work_bytes or 1),
        phases=phases_of(history),
        wastes=losses(history),
        source=source or history.job_id,
    )


def phases_of(history: JobHistory) -> dict[str, float]:
    """Return the seconds of each phase, in the order of the job; of one that ran twice, the sum."""
    seconds: dict[str, float] = {}
    for phase in history.phases:
        seconds[phase.name] = seconds.get(phase.name, 0.0) + _seconds(phase, history)
    return seconds


def _seconds(phase: PhaseSpan, history: JobHistory) -> float:
    if phase.used is not None:
        return phase.used.wall_s
    end_ms = history.end_ms if phase.end_ms is None else phase.end_ms
    return (end_ms - phase.start_ms) / 1000


def _nodes(history: JobHistory) -> int:
    """How many nodes ran attempts; 1 for a job on one machine."""
    return len({attempt.node for attempt in history.attempts}) or 1
