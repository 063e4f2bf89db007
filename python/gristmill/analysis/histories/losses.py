"""What a job lost, in seconds of its wall time, told from its history alone.

Each phase has its wall time to give away, once: a cause takes its share of what the causes before
it have left, in the order of `LOSSES`. What no cause takes was work.

    retries      seconds of attempts that failed or were killed, over the slots
    stragglers   slots idle at a phase's end, longer than its median task takes
    serial       slots idle in steps and phases with fewer tasks than slots, and between phases
    segments     reads of segments so small that opening them is the work: as many too many
    memory       bytes written and read again, as memory did not hold them; passes of merges
    device       processors idle while a device worked for the job
    processors   slots that had no processor of their own, while these were busy
    machine      processors that other programs or the host took

They are estimates: wide ones where little was recorded, and 0 where nothing was.
"""

from itertools import pairwise
from statistics import median

from gristmill.history.causes import PhaseUse
from gristmill.history.limits import uses
from gristmill.history.model import OWN_CODE, Attempt, JobHistory, PhaseSpan

__all__ = ["LOSSES", "losses", "retried_s", "straggling_s"]

LOSSES = (
    *("retries", "stragglers", "serial", "segments"),
    *("memory", "device", "processors", "machine"),
)
"""The causes, in the order in which they take their share."""

_SEGMENT_BYTES = 1_000_000
"""Segments of this size cost their bytes, not their opening (DESIGN: `Shuffle is rounds`)."""

_OPEN_S = 0.001
_FILE_S = 0.01
"""A merge needs so long to open a segment, a commit to make a file durable; as measured of 300
reduces of 24 runs on a local disk (benchmarks/causes.py). More is not told of segments."""

_MERGES = frozenset({"merge runs", "merge", "regroup", "reduce"})
_MORE_MERGING = "merge runs"


def losses(history: JobHistory) -> dict[str, float]:
    """Return the seconds lost to each cause of `LOSSES`.

    Example:
        >>> from gristmill.history.model import PhaseSpan
        >>> spans = [PhaseSpan(name="commit", tasks=0, bytes=0, start_ms=0, end_ms=4000)]
        >>> report = {"wall_s": 4.0, "workers": 4}
        >>> history = JobHistory(job_id="job_1", phases=spans, end_ms=4000, report=report)
        >>> {name: seconds for name, seconds in losses(history).items() if seconds}
        {'serial': 3.0}
    """
    slots = max(history.number("workers"), 1)
    lost = dict.fromkeys(LOSSES, 0.0)
    phases = uses(history)
    spans = [span for span in history.phases if span.end_ms is not None]
    for span, use in zip(spans, phases, strict=True):
        _take(lost, history, _attempts_of(history, span), use, slots)
    between = max(history.wall_s - sum(use.seconds for use in phases), 0.0)
    lost["serial"] += between * (1 - 1 / slots)
    return lost


def _attempts_of(history: JobHistory, span: PhaseSpan) -> list[Attempt]:
    """The attempts of a phase, which may have come twice."""
    assert span.end_ms is not None
    return [
        one
        for one in history.attempts
        if one.phase == span.name and span.start_ms <= one.start_ms <= span.end_ms
    ]


def _take(
    lost: dict[str, float],
    history: JobHistory,
    attempts: list[Attempt],
    use: PhaseUse,
    slots: int,
) -> None:
    """Give the phase's time to the causes, each what the ones before it have left."""
    left = use.seconds
    for name, seconds in (
        ("retries", retried_s(attempts, slots)),
        ("stragglers", straggling_s(attempts, slots)),
        ("segments", _too_many(history, use, slots)),
        ("serial", left * _idle(use, attempts, slots)),
        ("memory", left * _again(history, use)),
        ("device", left * _waiting(use)),
        ("processors", left * _crowded(use)),
        ("machine", left * max(use.shares["other_programs"], use.steal)),
    ):
        taken = min(max(seconds, 0.0), left)
        lost[name] += taken
        left -= taken


def retried_s(attempts: list[Attempt], slots: int) -> float:
    """Return the seconds of wall time for attempts that failed or were killed.

    Example:
        >>> lost = Attempt(
        ...     task=0, attempt=0, phase="map", start_ms=0, end_ms=4000, outcome="failed"
        ... )
        >>> retried_s([lost], slots=2)
        2.0
    """
    spans = [_seconds(one) for one in attempts if one.outcome in ("failed", "killed")]
    return sum(spans) / slots


def _seconds(attempt: Attempt) -> float:
    end_ms = attempt.start_ms if attempt.end_ms is None else attempt.end_ms
    return (end_ms - attempt.start_ms) / 1000


def straggling_s(attempts: list[Attempt], slots: int) -> float:
    """Return the seconds of idle slots at the end of a phase.

    They count from a median task after all slots were last at work:

        slot 1 ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
        slot 2 ▇▇▇▇▇▇▇▇▇[median]░░░░░░   ░ counts

    Example:
        >>> spans = [(0, 1000), (0, 1000), (1000, 2000), (1000, 9000)]
        >>> attempts = [
        ...     Attempt(task=0, attempt=0, phase="map", start_ms=start, end_ms=end)
        ...     for start, end in spans
        ... ]
        >>> straggling_s(attempts, slots=2)
        3.0
    """
    if len(attempts) < 2 or slots < 2:
        return 0.0
    least = median(_seconds(one) for one in attempts)
    full = min(slots, len(attempts))
    steps = sorted(
        [(one.start_ms, 1) for one in attempts] + [(_end_ms(one), -1) for one in attempts]
    )
    running, last_full_ms = 0, steps[0][0]
    spans: list[tuple[int, int, int]] = []
    for (t_ms, step), (next_ms, _) in pairwise(steps):
        running += step
        spans.append((t_ms, next_ms, running))
        if running >= full:
            last_full_ms = next_ms
    tail_ms = last_full_ms + least * 1000
    idle = ((end - max(start, tail_ms)) * (full - n) for start, end, n in spans if end > tail_ms)
    return sum(idle) / slots / 1000


def _end_ms(attempt: Attempt) -> int:
    return attempt.start_ms if attempt.end_ms is None else attempt.end_ms


def _idle(use: PhaseUse, attempts: list[Attempt], slots: int) -> float:
    """The share of the slots that a step, or a phase of few tasks, leaves without work."""
    tasks = len({one.task for one in attempts}) if use.running_s is not None else 1
    return 1 - min(max(tasks, 1), slots) / slots


def _too_many(history: JobHistory, use: PhaseUse, slots: int) -> float:
    """Seconds for segments that there would not be, were each of `_SEGMENT_BYTES`.

    Merges open each of them; a step after the merges (the commit) has a file for each reduce.
    """
    counters: dict[str, int] = history.report.get("counters", {})
    reduces = counters.get("LAUNCHED_REDUCES", counters.get("TOTAL_LAUNCHED_REDUCES", 0))
    segments = reduces * max(counters.get("SPILLED_RUNS", 0), 1)
    if segments == 0 or not (use.name in _MERGES or use.running_s is None):
        return 0.0
    moved = counters.get("MAP_OUTPUT_MATERIALIZED_BYTES", history.work_bytes)
    too_many = max(1 - max(slots, moved / _SEGMENT_BYTES) / segments, 0.0)
    opened = reduces * _FILE_S if use.running_s is None else segments * _OPEN_S / slots
    return too_many * min(opened, use.seconds)


def _again(history: JobHistory, use: PhaseUse) -> float:
    """The share of the bytes moved that were moved as memory did not hold them."""
    if history.command in OWN_CODE:  # its runs are always written; a pass more is a phase more
        return 1.0 if use.name == _MORE_MERGING else 0.0
    counters: dict[str, int] = history.report.get("counters", {})
    moved = counters.get("FILE_BYTES_READ", 0) + counters.get("FILE_BYTES_WRITTEN", 0)
    needed = history.number("input_bytes") + history.number("output_bytes")
    if use.running_s is None or moved <= needed or not counters.get("SPILLED_RECORDS"):
        return 0.0
    return 1 - needed / moved


def _waiting(use: PhaseUse) -> float:
    shares = use.shares
    return max(shares.get("device_reads", 0.0), shares.get("device_writes", 0.0))


def _crowded(use: PhaseUse) -> float:
    """The share of busy slots that had to share a processor."""
    if use.running_s is None or use.slots <= use.processors:
        return 0.0
    return use.busy * (1 - use.processors / use.slots)
