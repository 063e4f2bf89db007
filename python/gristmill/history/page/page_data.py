"""What pages tell of a job: facts as text, attempts and samples as columns of numbers."""

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from gristmill.history.chains import named_places
from gristmill.history.model import Attempt, JobHistory, Sample
from gristmill.history.proof import proved
from gristmill.names import quote
from gristmill.units import show_bytes, show_count, show_cpu, show_rate, show_seconds

__all__ = [
    "attempt_columns",
    "ending_of",
    "facts_of",
    "figures_of",
    "head_and_tail",
    "in_processes",
    "numbered",
    "read_of",
    "sample_rates",
]

_OUTCOMES = {None: 0, "succeeded": 1, "failed": 2, "killed": 3}
_APART_MIN_MS = 50
_COUNTED_MIN_MS = 400
_INPUTS_MAX = 20


def numbered(names: Iterable[str]) -> dict[str, int]:
    """Each name with its place among those that differ."""
    return {name: place for place, name in enumerate(dict.fromkeys(names))}


def attempt_columns(
    attempts: list[Attempt], phases: dict[str, int], heads: dict[str, int]
) -> dict[str, list[Any]]:
    """What there is to say of attempts, a list for each fact; -1 stands for what is not known."""
    return {
        "task": [a.task for a in attempts],
        "attempt": [a.attempt for a in attempts],
        "phase": [phases[a.phase] for a in attempts],
        "start": [a.start_ms for a in attempts],
        "took": [-1 if a.end_ms is None else a.end_ms - a.start_ms for a in attempts],
        "outcome": [_OUTCOMES.get(a.outcome, 2) for a in attempts],
        "bytes": [a.bytes for a in attempts],
        "records": [-1 if a.records is None else a.records for a in attempts],
        "input_head": [heads[head_and_tail(a.input)[0]] for a in attempts],
        "input_tail": [head_and_tail(a.input)[1] for a in attempts],
    }


def head_and_tail(text: str) -> tuple[str, str]:
    """What many attempts have in common, such as a file's name, and the rest."""
    head, comma, tail = text.partition(", ")
    return head + comma, tail


def facts_of(history: JobHistory) -> list[tuple[str, str]]:
    """What the user asked for, and where: what is not known is left out."""
    inputs = named_places(history, history.inputs[:_INPUTS_MAX])
    if len(history.inputs) > _INPUTS_MAX:
        inputs.append(f"and {len(history.inputs) - _INPUTS_MAX:,} more")
    facts = [
        ("Command line", " ".join(map(quote, history.argv))),
        ("Directory", history.cwd),
        ("Host", history.host),
        ("Inputs", ", ".join(inputs)),
        ("Output", "".join(named_places(history, [history.output]))),
    ]
    return [(name, value) for name, value in facts if value]


def ending_of(history: JobHistory) -> str | None:
    """Why the job did not come to its end, if it did not."""
    if history.state != "dead":
        return history.error
    if history.resumable:
        return f"Its process died. What to do: gristmill resume {history.job_id}."
    return "Its process died, and it cannot be resumed. What to do: run it again."


def figures_of(history: JobHistory) -> list[tuple[str, str]]:
    """What it took, read and wrote, for people."""
    report = history.report
    took_s = history.wall_s
    figures = [("Time", show_seconds(took_s) + in_processes(history))]
    if report:
        work, number = history.work_bytes, history.number
        memory = f"{show_bytes(number('peak_anon_bytes'))} of {show_bytes(number('memory_bytes'))}"
        if history.state in ("failed", "cancelled"):
            return [
                *figures,
                ("Read", read_of(history)),
                ("CPU", f"{history.cpu_s:.2f} s"),
                ("Workers", str(number("workers"))),
                ("Memory", memory),
            ]
        figures += [
            ("Records", show_count(number("records"), "record")),
            ("Input", show_bytes(number("input_bytes"))),
            ("Output", show_bytes(number("output_bytes"))),
            ("Rate", show_rate(work, took_s)),
            ("CPU", show_cpu(history.cpu_s, work)),
            ("Workers", str(number("workers"))),
            ("Memory", memory),
        ]
        if history.state == "succeeded":
            figures.append(("Proof", proved(history.command, report)))
    return figures


def read_of(history: JobHistory) -> str:
    """Say how much of the input a job has read that did not come to its end.

    Example:
        >>> at = Attempt(task=0, attempt=0, phase="map", start_ms=0, bytes=21_700_000)
        >>> at.counters["MAP_INPUT_RECORDS"] = 356_342
        >>> read_of(JobHistory(job_id="j", attempts=[at], plan={"input_bytes": 36_600_000}))
        '356,342 records, 21.7 MB of 36.6 MB'
    """
    records, read_bytes = history.read_so_far()
    of_all = history.plan.get("input_bytes")
    whole = f" of {show_bytes(of_all)}" if of_all else ""
    return f"{show_count(records, 'record')}, {show_bytes(read_bytes)}{whole}"


def in_processes(history: JobHistory) -> str:
    """Say how long each process of a resumed job took; nothing of a job that one process did.

    Example:
        >>> in_processes(JobHistory(job_id="job_1", resumed_ms=[1510], end_ms=4570))
        ' in 2 processes (1.51 s, 3.06 s)'
        >>> in_processes(JobHistory(job_id="job_1", end_ms=4570))
        ''
    """
    if not history.resumed_ms:
        return ""
    each = ", ".join(map(show_seconds, history.processes_s))
    return f" in {len(history.processes_s)} processes ({each})"


def sample_rates(samples: list[Sample], resumed_ms: Iterable[int] = ()) -> list[list[float]]:
    """For each sample its time; CPU in processors, memory in bytes, transfers in bytes per second.

    The order is that of the script: user, kernel, machine, iowait, steal; anonymous, mapped,
    reserved; reads, writes, received, sent. Between two processes of a job there is no rate: the
    clock of the job stood, and the counters of the second began anew.
    """
    rows: list[list[float]] = []
    apart = samples[:1]
    apart += [now for before, now in pairwise(samples) if now.t_ms - before.t_ms >= _APART_MIN_MS]
    resumed = list(resumed_ms)
    processors = _processors(apart, resumed)
    for before, now in pairwise(apart):
        if _resumes(before, now, resumed):
            continue
        between = max(now.t_ms - before.t_ms, 1) / 1000

        def rate(
            name: str, before: Sample = before, now: Sample = now, between: float = between
        ) -> float:
            return round(max(getattr(now, name) - getattr(before, name), 0) / between, 3)

        machine = {
            name: max(value - before.machine.get(name, value), 0) / between
            for name, value in now.machine.items()
        }
        rows.append(
            [
                now.t_ms / 1000,
                rate("user_s"),
                rate("sys_s"),
                round(min(machine.get("user_s", 0) + machine.get("sys_s", 0), processors), 3),
                round(machine.get("iowait_s", 0), 3),
                round(machine.get("steal_s", 0), 3),
                now.anon_bytes,
                now.mapped_bytes,
                now.budget_bytes,
                rate("disk_read_bytes"),
                rate("disk_write_bytes"),
                rate("net_rx_bytes"),
                rate("net_tx_bytes"),
            ]
        )
    return [[0.0, *rows[0][1:]], *rows] if rows else rows


def _resumes(before: Sample, now: Sample, resumed_ms: list[int]) -> bool:
    """Whether another process took the second sample."""
    return any(before.t_ms <= at <= now.t_ms for at in resumed_ms)


def _processors(samples: list[Sample], resumed_ms: list[int]) -> float:
    """Processors of the machine, from its own counters, which are of ticks; else no limit."""
    ticks, took = 0.0, 0
    for before, now in pairwise(samples):
        if now.machine and before.machine and not _resumes(before, now, resumed_ms):
            ticks += sum(now.machine.values()) - sum(before.machine.values())
            took += now.t_ms - before.t_ms
    return max(round(ticks / took * 1000), 1) if took >= _COUNTED_MIN_MS else math.inf
