"""One run of a job, as measured: what fits, comparisons and plots are made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run with `p` workers (or nodes) that took `seconds`.

    >>> run = Run(p=4, seconds=12.5, phases={"map": 8.0, "reduce": 4.5}, source="runs.csv, line 3")
    >>> run.rate
    0.08
    """

    p: float
    """How many processors, workers or nodes; above 0."""
    seconds: float
    """Wall time; above 0. Where throughput was measured: the seconds of one unit of work."""
    work: float = 1.0
    """How much was done, in any unit: bytes, rows; the same in all runs of strong scaling."""
    phases: Mapping[str, float] = field(default_factory=dict[str, float])
    """Seconds of each phase, by name, in the order of the job."""
    wastes: Mapping[str, float] = field(default_factory=dict[str, float])
    """Seconds of the wall time lost to each cause, by name: retries, memory, device, …"""
    source: str = ""
    """Where it was read, for errors: a file with its line, or the name of a job."""

    @property
    def rate(self) -> float:
        """Work per second."""
        return self.work / self.seconds
