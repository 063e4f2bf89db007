"""What held a phase of a job back: one decision for the end of a job, `jobs show` and `report`.

    CPU of our process, of workers and scripts ─┐
    seconds of all attempts, against the slots ─┼──▶ a share of the phase for each cause ──▶ cause
    the machine: device waits, host, others    ─┘

A cause is named only if its share can explain the phase. Processors can if they were busy most of
the time: those that were idle most of it held nothing back. Then something kept them idle: what
explains most of that time is the cause. If nothing does, the cause is not clear. Where two are
nearly equal, the one that hides the other wins: a slot without a task cannot compute, and a wait
for a device counts only while a processor is idle.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from gristmill.report import Phase

__all__ = ["Cause", "PhaseUse", "use_of"]

Cause = Literal[
    "idle_slots",
    "device_reads",
    "device_writes",
    "host",
    "other_programs",
    "user_code_computing",
    "processor",
    "user_code_waiting",
    "durability",
    "not_clear",
    "too_short",
]
"""What can hold a phase back; where two are nearly equal, the earlier one wins."""

_WORDS: Mapping[Cause, str] = {
    "idle_slots": "idle slots: fewer tasks than slots",
    "device_reads": "the device: reads",
    "device_writes": "the device: writes",
    "host": "the host, which gave the processors to other machines",
    "other_programs": "other programs on this machine",
    "user_code_computing": "user code, computing",
    "processor": "the processors, with Gristmill's own work",
    "user_code_waiting": "user code, waiting (asleep, or for the network or another process)",
    "durability": "waiting until the output is on the disk (fsync)",
    "not_clear": "not clear",
    "too_short": "too short to tell",
}

_COMPUTING: tuple[Cause, ...] = ("user_code_computing", "processor")
"""What is work; every other cause keeps processors from it."""

_TIME_MIN_S = 0.1
_MOSTLY = 0.5
_SHARE_MIN = 0.25
"""What explains less of a phase is not its cause, whatever the rest was."""
_NEARLY = 0.05
_SATURATED = 0.9
"""Share of the machine's processors from which on processes wait for each other."""
_RUNNABLE = 0.1
"""Who gets less of a saturated machine does not ask for more."""
_DEVICE_RATE_MIN = 100_000.0
"""Bytes for each second of waiting: the random reads of a hard disk are more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseUse:
    """What a phase used, and what held it back.

    Example:
        >>> machine = {"user_s": 0.1, "sys_s": 0.1, "iowait_s": 6.0, "idle_s": 1.8}
        >>> use = PhaseUse(name="merge", seconds=4.0, cpu_s=0.2, own_s=0.2, processors=2,
        ...     slots=2, running_s=8.0, read_bytes=10**9, machine=machine)
        >>> use.cause, use.told
        ('device_reads', 'the device: reads (the job used 2 % of the processors)')
    """

    name: str
    """The phase."""
    seconds: float
    """How long it took."""
    cpu_s: float
    """CPU seconds of the job: of our process, of workers and scripts."""
    own_s: float | None
    """Of these, those of our process; None where those of workers and scripts are not known."""
    processors: int = 1
    """Processors that the phase could use."""
    slots: int = 1
    """Tasks that could run at the same time."""
    running_s: float | None = None
    """Seconds of all attempts together; None of a step that is not a stage of tasks."""
    user_code: bool = False
    """Whether its tasks ran user code."""
    read_bytes: int = 0
    """Bytes from devices."""
    write_bytes: int = 0
    """Bytes to devices."""
    machine: Mapping[str, float] = field(default_factory=dict[str, float])
    """CPU seconds of the machine: user, sys, iowait, steal, idle."""

    @property
    def busy(self) -> float:
        """Share of the phase's processors that was busy with the job."""
        return _share(self.cpu_s, self._processor_s)

    @property
    def steal(self) -> float:
        """Share of the machine's processors that its host took for other machines."""
        return _share(self.machine.get("steal_s", 0.0), sum(self.machine.values()))

    @property
    def read_rate(self) -> float:
        """Bytes per second from devices."""
        return self.read_bytes / max(self.seconds, 0.001)

    @property
    def write_rate(self) -> float:
        """Bytes per second to devices."""
        return self.write_bytes / max(self.seconds, 0.001)

    @property
    def shares(self) -> dict[Cause, float]:
        """How much of the phase each cause explains: 0 to 1, which may overlap."""
        reads = self.read_bytes > self.write_bytes
        user_s = None if self.own_s is None else self.cpu_s - self.own_s
        shares: dict[Cause, float] = {
            "idle_slots": self._idle,
            "device_reads" if reads else "device_writes": self._device,
            "host": self.steal,
            "other_programs": self._others,
        }
        if not self.user_code:
            shares["processor"] = self.busy
        elif self.own_s is not None and user_s is not None:
            shares["user_code_computing"] = _share(user_s, self._processor_s)
            shares["processor"] = _share(self.own_s, self._processor_s)
            shares["user_code_waiting"] = self._waiting
        return shares

    @property
    def cause(self) -> Cause:
        """What held the phase back."""
        if self.seconds < _TIME_MIN_S:
            return "too_short"
        shares = self.shares
        work: dict[Cause, float] = {one: shares.pop(one) for one in _COMPUTING if one in shares}
        worked, kept_idle = sum(work.values()), max(shares.values())
        if worked >= _MOSTLY and worked > kept_idle + _NEARLY:
            return _largest(work)
        if kept_idle < max(_MOSTLY * (1.0 - self.busy), _SHARE_MIN):
            return "durability" if self._syncs else "not_clear"
        return _largest(shares)

    @property
    def limit(self) -> str:
        """What held the phase back, in words."""
        return _WORDS[self.cause]

    @property
    def told(self) -> str:
        """What held it back, with the share of its processors that was busy."""
        return f"{self.limit} (the job used {self.busy:.0%} of the processors)".replace("%", " %")

    def fields(self) -> dict[str, Any]:
        """Return all of it, for JSON."""
        shares = {cause: round(share, 3) for cause, share in self.shares.items()}
        rates = {"read_rate": self.read_rate, "write_rate": self.write_rate}
        said = {"cause": self.cause, "limit": self.limit, "shares": shares}
        return {**asdict(self), "busy": self.busy, "steal": self.steal, **rates, **said}

    @property
    def _processor_s(self) -> float:
        return self.seconds * self.processors

    @property
    def _idle(self) -> float:
        if self.running_s is None:
            return 0.0
        return 1.0 - _share(self.running_s, self.seconds * self.slots)

    @property
    def _device(self) -> float:
        """Of processors that were idle while a device worked, at least for this job."""
        waited_s = min(self.machine.get("iowait_s", 0.0), self._processor_s * (1 - self.busy))
        moved = max(self.read_bytes, self.write_bytes)
        if moved < waited_s * _DEVICE_RATE_MIN:
            return 0.0  # somebody else's device
        return _share(waited_s, self._processor_s)

    @property
    def _syncs(self) -> bool:
        """Whether a commit waited for the disk: what it waits for was written in the phases before.

        It has one thread, so that one processor is what can wait.
        """
        waited = _share(self.machine.get("iowait_s", 0.0), self.seconds)
        return self.name == "commit" and waited >= _SHARE_MIN

    @property
    def _others(self) -> float:
        """Of a machine without idle processors, what other programs kept our tasks from."""
        all_s = sum(self.machine.values())
        used_s = self.machine.get("user_s", 0.0) + self.machine.get("sys_s", 0.0)
        if self.own_s is None or self.busy < _RUNNABLE:
            return 0.0
        if _share(used_s, all_s) + self.steal < _SATURATED:
            return 0.0
        kept_from_s = self._could_s - self.cpu_s - self._device * self._processor_s
        return min(_share(used_s - self.cpu_s, all_s), _share(kept_from_s, self._processor_s))

    @property
    def _waiting(self) -> float:
        """Of user code that neither computed nor waited for a device or for other programs."""
        if self.running_s is None:
            return 0.0
        explained_s = self.cpu_s + self._processor_s * (self._device + self._others + self.steal)
        return (1.0 - self._idle) * (1.0 - _share(explained_s, self._could_s))

    @property
    def _could_s(self) -> float:
        """CPU seconds that the attempts could have used."""
        if self.running_s is None:
            return self._processor_s
        return min(self.running_s, self._processor_s)


def use_of(phase: Phase) -> PhaseUse:
    """Return what a phase of a report used.

    Example:
        >>> phase = Phase(name="map", tasks=9, wall_s=4.0, user_s=7.0, sys_s=0.8, own_s=0.2,
        ...     slots=2, processors=2, running_s=7.9, user_code=True)
        >>> use_of(phase).told
        'user code, computing (the job used 98 % of the processors)'
    """
    return PhaseUse(
        name=phase.name,
        seconds=phase.wall_s,
        cpu_s=phase.user_s + phase.sys_s,
        own_s=phase.own_s,
        processors=phase.processors,
        slots=phase.slots,
        running_s=phase.running_s if phase.tasks else None,
        user_code=phase.user_code,
        read_bytes=phase.read_bytes,
        write_bytes=phase.write_bytes,
        machine=phase.machine,
    )


def _largest(shares: Mapping[Cause, float]) -> Cause:
    """The cause with the largest share; of nearly equal ones, the first of `_WORDS`."""
    least = max(shares.values()) - _NEARLY
    return next(cause for cause in _WORDS if shares.get(cause, -1.0) >= least)


def _share(part: float, whole: float) -> float:
    return min(max(part / whole, 0.0), 1.0) if whole > 0 else 0.0
