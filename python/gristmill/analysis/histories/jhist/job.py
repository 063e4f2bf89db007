"""What became of a Hadoop job, as a run.

    p          the most task attempts, each in a container, that ran at the same time
    seconds    from the launch to the end: the time in a queue is not the job's
    phases     start, map, shuffle, merge, reduce, commit: each ends when its last attempt ends it

        launch      first start     last map   last shuffle  last sort   last reduce     end
          ├── start ────┼──── map ──────┼── shuffle ──┼── merge ──┼── reduce ──┼── commit ──┤

    wastes     attempts that failed or were killed, stragglers, and steps without tasks

Only attempts that succeeded end a phase. What a job without reduces lacks is not among its phases.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gristmill.analysis.histories.find import Found, Read
from gristmill.analysis.histories.jhist.events import HistoryEvent, events_of
from gristmill.analysis.histories.losses import retried_s, straggling_s
from gristmill.analysis.runs import Run
from gristmill.history.model import Attempt
from gristmill.names import show_path

__all__ = ["read_jhist"]

_ENDS = {
    "JOB_FAILED": "it failed",
    "JOB_KILLED": "it was killed",
    "JOB_ERROR": "it failed with an internal error",
}
_WORK = (("BYTES_READ", "BYTES_WRITTEN"), ("HDFS_BYTES_READ", "HDFS_BYTES_WRITTEN"))
"""Counters of input and output: those of file formats; of other formats, those of HDFS."""


@dataclass(slots=True)
class Job:
    """What the events said so far. Times are milliseconds since 1970."""

    name: str = ""
    launch_ms: int = 0
    end_ms: int | None = None
    problem: str = ""
    masters: int = 0
    counters: dict[str, int] = field(default_factory=dict[str, int])
    attempts: dict[str, Attempt] = field(default_factory=dict[str, Attempt])
    shuffled_ms: int = 0
    sorted_ms: int = 0
    hosts: set[str] = field(default_factory=set[str])


def read_jhist(found: Found, *, per_node: bool = False) -> Read:
    """Return the run of a history file, or why it is none.

    Raises:
        ModuleNotFoundError: It is binary, and `gristmill[analysis]` is not installed.
    """
    job, count = Job(), 0
    try:
        for event in events_of(found.path):
            _take(job, event)
            count += 1
    except (ValueError, KeyError, TypeError, OSError) as error:
        what = f"an event has no {error}" if isinstance(error, KeyError) else str(error)
        return Read(found, job.name, None, f"its history cannot be read: {what}")
    problem = _why_not(job, count, found)
    if problem:
        return Read(found, job.name, None, problem)
    run = _run(job, f"{job.name or found.job}, {show_path(found.path)}", per_node=per_node)
    milliseconds = job.counters.get("CPU_MILLISECONDS", 0)
    return Read(found, job.name, run, cpu_s=milliseconds / 1000 or None)


def _why_not(job: Job, count: int, found: Found) -> str:
    if job.problem:
        return job.problem
    if job.end_ms is None:
        size = found.path.stat().st_size
        return (
            f"its history has no end after {count:,} events ({size:,} bytes): the job is still"
            " running, its master was killed, or the file is cut short"
        )
    if job.masters > 1:
        return (
            f"its application master was started {job.masters} times: its time includes a restart"
        )
    if job.end_ms <= job.launch_ms or not job.launch_ms:
        return "its history says no time"
    if not any(one.outcome == "succeeded" for one in job.attempts.values()):
        return "its history has no attempt of a task that succeeded"
    return ""


# --- events ---


def _take(job: Job, event: HistoryEvent) -> None:
    kind, fields = event
    match kind:
        case "JOB_SUBMITTED":
            job.name = str(fields.get("jobName", ""))
            job.launch_ms = job.launch_ms or int(fields["submitTime"])
        case "JOB_INITED" | "JOB_INFO_CHANGED":
            job.launch_ms = int(fields["launchTime"]) or job.launch_ms
        case "JOB_FINISHED":
            job.end_ms = int(fields["finishTime"])
            job.counters = _counters(fields.get("totalCounters") or {})
        case "AM_STARTED":
            job.masters += 1
        case _ if kind in _ENDS:
            job.problem = _ENDS[kind]
        case "MAP_ATTEMPT_STARTED" | "REDUCE_ATTEMPT_STARTED":
            _begin(job, fields)
        case "MAP_ATTEMPT_FINISHED" | "REDUCE_ATTEMPT_FINISHED":
            _end(job, fields, "succeeded")
        case "MAP_ATTEMPT_FAILED" | "REDUCE_ATTEMPT_FAILED":
            _end(job, fields, "failed")
        case "MAP_ATTEMPT_KILLED" | "REDUCE_ATTEMPT_KILLED":
            _end(job, fields, "killed")
        case _:
            pass


def _begin(job: Job, fields: dict[str, Any]) -> None:
    phase = "reduce" if str(fields["taskType"]) == "REDUCE" else "map"
    task = int(str(fields["taskid"]).rpartition("_")[2])
    job.attempts[str(fields["attemptId"])] = Attempt(
        task=task, attempt=0, phase=phase, start_ms=int(fields["startTime"])
    )


def _end(job: Job, fields: dict[str, Any], outcome: str) -> None:
    attempt = job.attempts.get(str(fields["attemptId"]))
    if attempt is None:
        return  # killed before it had a container
    attempt.end_ms = max(int(fields["finishTime"]), attempt.start_ms)
    attempt.outcome = outcome
    if outcome == "succeeded":
        job.hosts.add(str(fields.get("hostname", "")))
        job.shuffled_ms = max(job.shuffled_ms, int(fields.get("shuffleFinishTime") or 0))
        job.sorted_ms = max(job.sorted_ms, int(fields.get("sortFinishTime") or 0))


def _counters(counters: dict[str, Any]) -> dict[str, int]:
    groups: list[dict[str, list[dict[str, Any]]]] = counters.get("groups") or []
    return {str(one["name"]): int(one["value"]) for group in groups for one in group["counts"]}


# --- the run ---


def _run(job: Job, source: str, *, per_node: bool) -> Run:
    assert job.end_ms is not None
    attempts = [one for one in job.attempts.values() if one.end_ms is not None]
    slots = _most_at_once(attempts)
    phases = _phases(job, attempts)
    steps_s = phases.get("start", 0.0) + phases.get("commit", 0.0)
    by_phase = [[one for one in attempts if one.phase == name] for name in ("map", "reduce")]
    return Run(
        p=float(len(job.hosts) if per_node else slots),
        seconds=(job.end_ms - job.launch_ms) / 1000,
        work=float(_work(job.counters) or 1),
        phases=phases,
        wastes={
            "retries": retried_s(attempts, slots),
            "stragglers": sum(straggling_s(some, slots) for some in by_phase),
            "serial": steps_s * (1 - 1 / slots),
        },
        source=source,
    )


def _work(counters: dict[str, int]) -> int:
    return next((most for names in _WORK if (most := max(counters.get(n, 0) for n in names))), 0)


def _most_at_once(attempts: Iterable[Attempt]) -> int:
    """The most that ran at the same time; one that begins as another ends follows it."""
    steps = sorted(
        step
        for one in attempts
        for step in ((one.start_ms, 1), (max(one.end_ms or 0, one.start_ms + 1), -1))
    )
    now = most = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


def _phases(job: Job, attempts: list[Attempt]) -> dict[str, float]:
    assert job.end_ms is not None
    done = [one for one in attempts if one.outcome == "succeeded"]
    last = {
        name: max((one.end_ms or 0 for one in done if one.phase == name), default=0)
        for name in ("map", "reduce")
    }
    ends = [
        ("start", min(one.start_ms for one in attempts)),
        ("map", last["map"]),
        ("shuffle", job.shuffled_ms),
        ("merge", job.sorted_ms),
        ("reduce", last["reduce"]),
        ("commit", job.end_ms),
    ]
    phases: dict[str, float] = {}
    before = job.launch_ms
    for name, end_ms in ends:
        if end_ms == 0:
            continue  # a job without maps, or without reduces
        until = min(max(end_ms, before), job.end_ms)
        phases[name] = (until - before) / 1000
        before = until
    return phases
