"""What differs between two jobs, in sentences and rows of tables: A first, B against it.

time ──▶ how many times as fast, or that single runs differ by as much
phases ─▶ where the difference lies, and what only one of them has
options, plan, host, version, workers, failed attempts, CPU: only where they differ
"""

import json
from dataclasses import dataclass, field
from typing import Any

from gristmill.history.limits import uses
from gristmill.history.model import JobHistory, JobState
from gristmill.history.page.page_data import figures_of
from gristmill.names import show_texts
from gristmill.units import show_bytes, show_count, show_rate, show_seconds

__all__ = ["Differences", "differences"]

_ALIKE = 0.05
"""Times of single runs that are nearer than this are told as alike."""

_PHASES_MAX = 3
_PART_MIN = 0.1
"""Of the difference: a phase with less is not told in words."""

_UNKNOWN = frozenset({"", "not clear", "too short to tell"})
"""Limits of phases (causes.py) that tell nothing."""

_STATES: dict[JobState, str] = {
    "running": "is still running",
    "ended early": "ended early, as its reader went away",
    "failed": "failed",
    "cancelled": "was cancelled",
    "dead": "was killed",
}


@dataclass(slots=True)
class Differences:
    """What the page says of two jobs."""

    sentences: list[str] = field(default_factory=list[str])
    """In words, the most important first."""
    figures: list[list[str]] = field(default_factory=list[list[str]])
    """Name, A, B."""
    phases: list[list[Any]] = field(default_factory=list[list[Any]])
    """Name, seconds of A and of B (None where it has none), what held back A and B."""
    options: list[list[str]] = field(default_factory=list[list[str]])
    """Name, A, B: those that differ."""
    counters: list[list[Any]] = field(default_factory=list[list[Any]])
    """Name, A, B: None where a job does not count it."""


def differences(a: JobHistory, b: JobHistory) -> Differences:
    """Return what differs between job A and job B.

    Example:
        >>> def job(**report):
        ...     return JobHistory(job_id="job_1", command="sort", state="succeeded", report=report)
        >>> differences(job(wall_s=4.0, workers=1), job(wall_s=2.0, workers=2)).sentences
        ['B took 2.00 s, A 4.00 s: B was 2.00 times as fast.', 'Workers: 1 in A, 2 in B.']
    """
    found = Differences(
        figures=_side_by_side(dict(figures_of(a)), dict(figures_of(b))),
        phases=_phases(a, b),
        options=_options(a, b),
        counters=_counters(a, b),
    )
    found.sentences = [
        *_time(a, b),
        *_where(found.phases, b.wall_s - a.wall_s),
        *_plan(a, b),
        *(
            f"Option {name}: {of_a or 'not given'} in A, {of_b or 'not given'} in B."
            for name, of_a, of_b in found.options
        ),
        *_surroundings(a, b, {name for name, *_ in found.options}),
        *_waste(a, b),
        *_cpu(a, b),
    ]
    return found


# --- sentences ---


def _time(a: JobHistory, b: JobHistory) -> list[str]:
    """How long they took, or why that does not compare."""
    said: list[str] = []
    if a.command != b.command:
        said.append(f"A is a job of {a.command}, B of {b.command}: they do different things.")
    for name, one in (("A", a), ("B", b)):
        if one.state != "succeeded":
            took = show_seconds(one.wall_s)
            said.append(f"{name} {_STATES[one.state]}: its {took} are not those of a whole job.")
        if one.resumed_ms:
            said.append(f"{name} was resumed: its time includes a part that another process did.")
    took = f"B took {show_seconds(b.wall_s)}, A {show_seconds(a.wall_s)}"
    if not (a.wall_s > 0 and b.wall_s > 0):
        return [*said, f"{took}."]
    apart = abs(a.wall_s - b.wall_s) / max(a.wall_s, b.wall_s)
    if apart < _ALIKE:
        told = f"{took}: {apart:.0%} apart, as single runs may be by chance.".replace("%", " %")
        return [*said, told, *_work(a, b)]
    faster = "B" if b.wall_s < a.wall_s else "A"
    times = max(a.wall_s, b.wall_s) / min(a.wall_s, b.wall_s)
    return [*said, f"{took}: {faster} was {times:.2f} times as fast.", *_work(a, b)]


def _work(a: JobHistory, b: JobHistory) -> list[str]:
    if a.work_bytes == b.work_bytes:
        return []
    rates = f"{show_rate(a.work_bytes, a.wall_s)} and {show_rate(b.work_bytes, b.wall_s)}"
    work = f"{show_bytes(a.work_bytes)} in A, {show_bytes(b.work_bytes)} in B"
    return [f"They did not do the same work: {work}; their rates were {rates}."]


def _where(phases: list[list[Any]], apart_s: float) -> list[str]:
    """Which phases make the difference, the largest first; and those that only one job has."""
    both = [(row[0], row[2] - row[1]) for row in phases if None not in row[1:3]]
    changes = [one for one in both if abs(one[1]) >= max(_PART_MIN * abs(apart_s), 0.01)]
    changes.sort(key=lambda one: -abs(one[1]))
    said: list[str] = []
    if changes:
        told = ", ".join(
            f"{name} {show_seconds(abs(change))} {'longer' if change > 0 else 'shorter'}"
            for name, change in changes[:_PHASES_MAX]
        )
        said.append(f"Phases of B against those of A: {told}.")
    for name, of, other in (("A", 1, 2), ("B", 2, 1)):
        own = [f"{row[0]} ({show_seconds(row[of])})" for row in phases if row[other] is None]
        if own:
            said.append(f"Only {name} has {', '.join(own)}.")
    return [*said, *_held(phases)]


def _held(phases: list[list[Any]]) -> list[str]:
    """Phases that other things held back, where both are known."""
    return [
        f"What held {name} back: {of_a} in A, {of_b} in B."
        for name, _, _, of_a, of_b in phases
        if of_a != of_b and not {of_a, of_b} & _UNKNOWN
    ]


def _plan(a: JobHistory, b: JobHistory) -> list[str]:
    of_a, of_b = a.plan.get("mode"), b.plan.get("mode")
    if of_a == of_b or not (of_a and of_b):
        return []
    told = [f"{mode} in {name}" for name, mode in (("A", of_a), ("B", of_b))]
    why = [
        f"{name}: {one.plan['reason']}"
        for name, one in (("A", a), ("B", b))
        if one.plan.get("reason")
    ]
    return [f"Plan: {', '.join(told)}.", *(f"The reason for the plan of {one}." for one in why)]


def _surroundings(a: JobHistory, b: JobHistory, told: set[str]) -> list[str]:
    """What they ran with, but for options that were told."""
    pairs = [
        ("Workers", a.number("workers"), b.number("workers")),
        ("Host", a.host, b.host),
        ("Gristmill", a.program, b.program),
        ("Inputs", ", ".join(a.inputs), ", ".join(b.inputs)),
    ]
    return [
        f"{name}: {of_a} in A, {of_b} in B."
        for name, of_a, of_b in pairs
        if of_a != of_b and of_a and of_b and name.lower() not in told
    ]


def _waste(a: JobHistory, b: JobHistory) -> list[str]:
    wasted: list[tuple[int, float]] = []
    for one in (a, b):
        failed = [at for at in one.attempts if at.outcome in ("failed", "killed")]
        spans = [(one.end_ms if at.end_ms is None else at.end_ms) - at.start_ms for at in failed]
        wasted.append((len(failed), sum(spans) / 1000))
    if wasted[0][0] == wasted[1][0]:
        return []
    told = " in A, ".join(
        f"{show_count(n, 'attempt')} of {show_seconds(took)} together" if n else "none"
        for n, took in wasted
    )
    return [f"Failed or killed: {told} in B."]


def _cpu(a: JobHistory, b: JobHistory) -> list[str]:
    of_a, of_b = (
        float(one.report.get("user_s", 0)) + float(one.report.get("sys_s", 0)) for one in (a, b)
    )
    if abs(of_a - of_b) <= _PART_MIN * max(of_a, of_b):
        return []
    return [f"CPU seconds: {show_seconds(of_a)} in A, {show_seconds(of_b)} in B."]


# --- tables ---


def _side_by_side(a: dict[str, str], b: dict[str, str]) -> list[list[str]]:
    return [[name, a.get(name, ""), b.get(name, "")] for name in dict.fromkeys([*a, *b])]


def _phases(a: JobHistory, b: JobHistory) -> list[list[Any]]:
    """In the order of A; those of B alone come before what follows them in B."""
    of_a, of_b = ({use.name: use for use in uses(one)} for one in (a, b))
    names = list(of_a)
    after = len(names)
    for name in reversed(of_b):
        if name in of_a:
            after = names.index(name)
        else:
            names.insert(after, name)
    return [
        [
            name,
            *(of[name].seconds if name in of else None for of in (of_a, of_b)),
            *(of[name].limit if name in of else "" for of in (of_a, of_b)),
        ]
        for name in names
    ]


def _options(a: JobHistory, b: JobHistory) -> list[list[str]]:
    of_a, of_b = (
        {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in show_texts(one.other_options()).items()
        }
        for one in (a, b)
    )
    return [row for row in _side_by_side(of_a, of_b) if row[1] != row[2]]


def _counters(a: JobHistory, b: JobHistory) -> list[list[Any]]:
    of_a, of_b = ({name: all_ for name, (_, _, all_) in one.counters().items()} for one in (a, b))
    own_a, own_b = map(_own_counters, (a, b))
    return [
        [name, first.get(name), second.get(name)]
        for first, second in ((of_a, of_b), (own_a, own_b))
        for name in sorted({**first, **second})
    ]


def _own_counters(history: JobHistory) -> dict[str, int]:
    groups = history.user_counters()
    return {f"{group}: {name}": groups[group][name] for group in groups for name in groups[group]}
