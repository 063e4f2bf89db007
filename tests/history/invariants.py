"""What must hold of every history that a job wrote: its figures agree with each other.

`broken(folder)` gives the sentences that do not hold. Each test of the suite ends with it, for the
histories that its jobs wrote (tests/conftest.py): so a figure is wrong in no kind of job for long.
`uneven(folder)` gives those that also depend on how busy the machine was.
"""

from itertools import pairwise
from pathlib import Path

from gristmill.history import load
from gristmill.history.model import JobHistory
from gristmill.history.page.page_data import sample_rates

APART_S = 0.15
"""Seconds of a job that may have no phase: what it does before the first, and at its end."""

TICK_S = 0.02


def broken(folder: Path) -> list[str]:
    """What does not hold of the history in a job's folder."""
    history = load(folder)
    if history.state not in ("succeeded", "failed", "cancelled"):
        return []
    if any(attempt.node for attempt in history.attempts):
        return []  # an agent has some ahead, and what is lost with one is done again
    done = history.state == "succeeded"
    return [
        *_slots(history),
        *(_phases(history) if done else ()),
        *(_sums(history) if done else ()),
    ]


def uneven(folder: Path) -> list[str]:
    """What does not hold of the times and the devices of a job that nothing disturbed."""
    history = load(folder)
    return [*_processors(history), *_times(history), *_bytes(history)]


def _phases(history: JobHistory) -> list[str]:
    """Phases follow each other."""
    spans = [(one.start_ms, one.end_ms or 0) for one in history.phases]
    return [f"a phase begins at {b[0]} ms in another" for a, b in pairwise(spans) if b[0] < a[1]]


def _times(history: JobHistory) -> list[str]:
    """Phases add up to the time of the job."""
    named = sum((one.end_ms or 0) - one.start_ms for one in history.phases) / 1000
    apart = history.wall_s - named
    if apart > max(APART_S, 0.02 * history.wall_s):
        return [f"{apart:.3f} s of {history.wall_s:.3f} s belong to no phase"]
    return []


def _slots(history: JobHistory) -> list[str]:
    """No more attempts run at once than there are workers."""
    steps = [(attempt.start_ms, 1) for attempt in history.attempts]
    steps += [(attempt.end_ms, -1) for attempt in history.attempts if attempt.end_ms is not None]
    now = most = 0
    for _, step in sorted(steps):
        now += step
        most = max(most, now)
    workers = history.number("workers")
    return [f"{most} attempts run at once with {workers} workers"] if most > workers else []


def _processors(history: JobHistory) -> list[str]:
    """What the page shows of processors is at most what the machine has."""
    found: list[str] = []
    rows = sample_rates(history.samples, history.resumed_ms)
    for (before, *_), (at, user, kernel, machine, *_more) in pairwise(rows):
        has = _machine(history)
        if has and machine > has + 0.01:
            found.append(f"{machine:.2f} of {has} processors run at {at} s")
        slack = TICK_S / max(at - before, 0.001) * 4
        if has and user + kernel > has * 1.05 + slack:
            found.append(f"the job has {user + kernel:.2f} of {has} processors at {at} s")
    return found


def _machine(history: JobHistory) -> int:
    """Processors of the machine, by its own counters."""
    if len(history.samples) < 2 or history.resumed_ms:
        return 0
    first, last = history.samples[0], history.samples[-1]
    if not first.machine or last.t_ms - first.t_ms < 500:
        return 0
    ticks = sum(last.machine.values()) - sum(first.machine.values())
    return max(round(ticks / (last.t_ms - first.t_ms) * 1000), 1)


def _bytes(history: JobHistory) -> list[str]:
    """What comes from devices was read from files."""
    counters = history.report.get("counters", {})
    if "FILE_BYTES_READ" not in counters or history.runs_user_code:
        return []  # user code reads what it likes
    device, files = counters.get("DEVICE_BYTES_READ", 0), counters["FILE_BYTES_READ"]
    apart = 32 << 20  # code of the program, samples, read-ahead
    if device > files + files // 10 + apart:
        return [f"{device} bytes were read from devices, {files} from files"]
    return []


def _sums(history: JobHistory) -> list[str]:
    """The attempts that counted add up to the job's counters."""
    names = [phase.name for phase in history.phases]
    if history.resumed_ms or len(set(names)) < len(names) or {"map", "spill"} <= set(names):
        return []  # it began anew, or by another plan
    totals = history.report.get("counters", {})
    sums: dict[str, int] = {}
    for attempt in history.attempts:
        for name, amount in attempt.counters.items():
            sums[name] = sums.get(name, 0) + amount
    same = ["MAP_INPUT_RECORDS", "SPILLED_RECORDS"]
    if not history.options.get("one_schema"):  # else the job itself writes some files anew
        same.append("FILE_BYTES_WRITTEN")
        # A reduce of compressed runs knows its pairs, not the files; one that failed says nothing.
        if not (history.options.get("compress_runs") or totals.get("NUM_FAILED_REDUCES")):
            same.append("FILE_BYTES_READ")
    ended = [attempt.outcome for attempt in history.attempts]
    found = [
        f"{name} is {totals[name]}, and its attempts have {sums[name]}"
        for name in same
        if name in sums and name in totals and sums[name] != totals[name]
    ]
    if not history.resumed_ms:
        for name, outcome in (("FAILED", "failed"), ("KILLED", "killed")):
            told = totals.get(f"{name}_TASK_ATTEMPTS", 0)
            if ended.count(outcome) != told:
                found.append(
                    f"{ended.count(outcome)} attempts {outcome}, and the counter is {told}"
                )
    return found
