"""What held each phase of a job back, from what it and the machine used meanwhile."""

from dataclasses import dataclass

from gristmill.history.reader import JobHistory, PhaseSpan, Sample

__all__ = ["PhaseUse", "uses"]

_BUSY = 0.8
_STOLEN = 0.15
_LEAST_MS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseUse:
    """What a phase used."""

    name: str
    """The phase."""
    seconds: float
    """How long it took."""
    busy: float
    """Share of the workers' processors that was busy with the job."""
    steal: float
    """Share of the machine's processors that its host took for others."""
    read_rate: float
    """Bytes per second from devices."""
    write_rate: float
    """Bytes per second to devices."""

    @property
    def limit(self) -> str:
        """What held the phase back, in words."""
        if self.seconds * 1000 < _LEAST_MS:
            return "too short to tell"
        if self.busy + self.steal >= _BUSY:
            if self.steal >= _STOLEN:
                return f"the host, which took {self.steal:.0%} of the processors".replace("%", " %")
            return "the processors"
        if self.read_rate + self.write_rate > 0:
            return "the device: reads" if self.read_rate > self.write_rate else "the device: writes"
        return "waiting"


def uses(history: JobHistory) -> list[PhaseUse]:
    """Return what each phase that is over used."""
    workers = history.report.get("workers") or history.plan.get("workers") or 1
    return [
        _use(history, phase, phase.end_ms, workers)
        for phase in history.phases
        if phase.end_ms is not None
    ]


def _use(history: JobHistory, phase: PhaseSpan, end_ms: int, workers: int) -> PhaseUse:
    seconds = (end_ms - phase.start_ms) / 1000
    first, last = (_at(history.samples, t_ms) for t_ms in (phase.start_ms, end_ms))
    cpu_s = last.user_s + last.sys_s - first.user_s - first.sys_s
    all_s = sum(last.machine.values()) - sum(first.machine.values())
    stolen_s = last.machine.get("steal_s", 0.0) - first.machine.get("steal_s", 0.0)
    between = max(seconds, 0.001)
    return PhaseUse(
        name=phase.name,
        seconds=seconds,
        busy=min(max(cpu_s, 0.0) / (between * workers), 1.0),
        steal=stolen_s / all_s if all_s > 0 else 0.0,
        read_rate=max(last.disk_read_bytes - first.disk_read_bytes, 0) / between,
        write_rate=max(last.disk_write_bytes - first.disk_write_bytes, 0) / between,
    )


def _at(samples: list[Sample], t_ms: int) -> Sample:
    """What had been used at a time: between two samples, the share of what lies between them."""
    before = next((s for s in reversed(samples) if s.t_ms <= t_ms), None)
    after = next((s for s in samples if s.t_ms >= t_ms), None)
    if before is None or after is None:
        return before or after or Sample(t_ms=t_ms)
    share = (t_ms - before.t_ms) / max(after.t_ms - before.t_ms, 1)

    def mix(a: float, b: float) -> float:
        return a + (b - a) * share

    return Sample(
        t_ms=t_ms,
        user_s=mix(before.user_s, after.user_s),
        sys_s=mix(before.sys_s, after.sys_s),
        machine={name: mix(s, after.machine.get(name, s)) for name, s in before.machine.items()},
        disk_read_bytes=int(mix(before.disk_read_bytes, after.disk_read_bytes)),
        disk_write_bytes=int(mix(before.disk_write_bytes, after.disk_write_bytes)),
    )
