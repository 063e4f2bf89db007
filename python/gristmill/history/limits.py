"""What each phase of a history used; `causes.py` decides from it what held the phase back.

The engine counts it at the end of a phase. Where a history lacks that (an earlier version wrote it,
or the process died meanwhile), it is what samples and attempts tell.
"""

from gristmill.history.causes import PhaseUse, use_of
from gristmill.history.model import JobHistory, PhaseSpan, Sample

__all__ = ["PhaseUse", "named_uses", "uses"]


def named_uses(history: JobHistory) -> list[tuple[str, PhaseUse]]:
    """Return the same with names for people: of a resumed job they say which process it was.

    Example:
        >>> once = PhaseSpan(name="map", tasks=1, bytes=9, start_ms=0, end_ms=9)
        >>> again = PhaseSpan(name="map", tasks=1, bytes=9, start_ms=9, end_ms=18)
        >>> history = JobHistory(job_id="job_1", phases=[once, again], resumed_ms=[9])
        >>> [name for name, _ in named_uses(history)]
        ['map', 'map (process 2)']
    """
    over = [phase for phase in history.phases if phase.end_ms is not None]
    names: list[str] = []
    for phase in over:
        process = 1 + sum(phase.start_ms >= at for at in history.resumed_ms)
        names.append(f"{phase.name} (process {process})" if process > 1 else phase.name)
    return list(zip(names, uses(history), strict=True))


def uses(history: JobHistory) -> list[PhaseUse]:
    """Return what each phase that is over used.

    Example:
        >>> phases = [PhaseSpan(name="map", tasks=1, bytes=9, start_ms=0, end_ms=2000)]
        >>> [use.limit for use in uses(JobHistory(job_id="job_1", phases=phases))]
        ['idle slots: fewer tasks than slots']
    """
    workers = history.report.get("workers") or history.plan.get("workers") or 1
    return [
        use_of(phase.used) if phase.used else _sampled(history, phase, phase.end_ms, workers)
        for phase in history.phases
        if phase.end_ms is not None
    ]


def _sampled(history: JobHistory, phase: PhaseSpan, end_ms: int, workers: int) -> PhaseUse:
    """Of a phase of an earlier version, whose samples do not know workers and scripts."""
    first, last = (_at(history.samples, t_ms) for t_ms in (phase.start_ms, end_ms))
    cpu_s = last.user_s + last.sys_s - first.user_s - first.sys_s
    user_code = history.runs_user_code and phase.name in ("map", "reduce")
    return PhaseUse(
        name=phase.name,
        seconds=(end_ms - phase.start_ms) / 1000,
        cpu_s=max(cpu_s, 0.0),
        own_s=_own_s(history, first, last, cpu_s),
        processors=workers if phase.tasks else 1,
        slots=workers if phase.tasks else 1,
        running_s=_running_s(history, phase, end_ms) if phase.tasks else None,
        user_code=user_code,
        read_bytes=max(last.disk_read_bytes - first.disk_read_bytes, 0),
        write_bytes=max(last.disk_write_bytes - first.disk_write_bytes, 0),
        machine={
            name: max(value - first.machine.get(name, value), 0.0)
            for name, value in last.machine.items()
        },
    )


def _own_s(history: JobHistory, first: Sample, last: Sample, cpu_s: float) -> float | None:
    if first.own_s is not None and last.own_s is not None:
        return last.own_s - first.own_s
    return None if history.runs_user_code else cpu_s


def _running_s(history: JobHistory, phase: PhaseSpan, end_ms: int) -> float:
    """Seconds of all attempts of a phase."""
    spans = (
        min(end_ms if attempt.end_ms is None else attempt.end_ms, end_ms) - attempt.start_ms
        for attempt in history.attempts
        if attempt.phase == phase.name and phase.start_ms <= attempt.start_ms <= end_ms
    )
    return sum(spans) / 1000


def _at(samples: list[Sample], t_ms: int) -> Sample:
    """What had been used at a time: between two samples, the share of what lies between them."""
    before = next((s for s in reversed(samples) if s.t_ms <= t_ms), None)
    after = next((s for s in samples if s.t_ms >= t_ms), None)
    if before is None or after is None:
        return before or after or Sample(t_ms=t_ms)
    share = (t_ms - before.t_ms) / max(after.t_ms - before.t_ms, 1)

    def mix(a: float, b: float) -> float:
        return a + (b - a) * share

    own = before.own_s, after.own_s

    return Sample(
        t_ms=t_ms,
        user_s=mix(before.user_s, after.user_s),
        sys_s=mix(before.sys_s, after.sys_s),
        own_s=None if own[0] is None or own[1] is None else mix(own[0], own[1]),
        machine={name: mix(s, after.machine.get(name, s)) for name, s in before.machine.items()},
        disk_read_bytes=int(mix(before.disk_read_bytes, after.disk_read_bytes)),
        disk_write_bytes=int(mix(before.disk_write_bytes, after.disk_write_bytes)),
    )
