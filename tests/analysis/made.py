"""Histories made up line by line, with what the analysis of jobs reads."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.history.harness import Event, submitted, write_history

MACHINE = ("user_s", "sys_s", "iowait_s", "steal_s", "idle_s")


@dataclass(kw_only=True)
class Stage:
    """A phase: attempts as (slot, seconds from its beginning, seconds that it took, outcome)."""

    name: str
    seconds: float
    attempts: list[tuple[float, float, str]] = field(default_factory=list)
    cpu_s: float = 0.0
    iowait_s: float = 0.0
    read_bytes: int = 0
    write_bytes: int = 0
    user_code: bool = False


def even(tasks: int, slots: int, task_s: float) -> list[tuple[float, float, str]]:
    """Attempts of the same length, as many at once as there are slots."""
    return [(task // slots * task_s, task_s, "succeeded") for task in range(tasks)]


def job(
    home: Path,
    job_id: str,
    stages: list[Stage],
    *,
    workers: int,
    command: str = "terasort",
    state: str | None = "succeeded",
    counters: dict[str, int] | None = None,
    processors: int | None = None,
    **report: Any,  # noqa: ANN401
) -> Path:
    """Write the history of a job whose phases follow each other; returns its folder."""
    cores = processors or workers
    events = [submitted(job_id, command=command, spec={command: {"inputs": ["in"]}})]
    began, task, phases = 0.0, 0, []
    for stage in stages:
        tasks = len(stage.attempts)
        events.append(_at(began, "phase_started", name=stage.name, tasks=tasks, bytes=10**6))
        for start, took, outcome in stage.attempts:
            name = {"task": task, "attempt": 0}
            task += 1
            events.append(_at(began + start, "attempt_started", **name, phase=stage.name))
            end = {"outcome": outcome, "bytes": 10**6, "counters": {}}
            events.append(_at(began + start + took, "attempt_finished", **name, **end))
        phase = _used(stage, slots=workers if tasks else 1, processors=cores if tasks else 1)
        phases.append({**phase, "tasks": tasks})
        began += stage.seconds
        events.append(_at(began, "phase_finished", **phase))
    if state is not None:
        made = {"wall_s": began, "workers": workers, "input_bytes": 10**9, "output_bytes": 10**9}
        made |= {"counters": counters or {}, "phases": phases, **report}
        events.append(_at(began, "job_finished", status=state, report=made))
    events.sort(key=lambda event: event["t_ms"])
    return write_history(home, job_id, events)


def _at(t_s: float, event: str, **fields: Any) -> Event:  # noqa: ANN401
    return {"t_ms": round(t_s * 1000), "event": event, **fields}


def _used(stage: Stage, *, slots: int, processors: int) -> dict[str, Any]:
    idle = max(stage.seconds * processors - stage.cpu_s - stage.iowait_s, 0.0)
    machine = dict.fromkeys(MACHINE, 0.0) | {"user_s": stage.cpu_s, "idle_s": idle}
    return {
        "name": stage.name,
        "wall_s": stage.seconds,
        "user_s": stage.cpu_s,
        "sys_s": 0.0,
        "own_s": 0.0 if stage.user_code else stage.cpu_s,
        "machine": machine | {"iowait_s": stage.iowait_s},
        "read_bytes": stage.read_bytes,
        "write_bytes": stage.write_bytes,
        "slots": slots,
        "processors": processors,
        "running_s": sum(took for _, took, _ in stage.attempts),
        "user_code": stage.user_code,
    }
