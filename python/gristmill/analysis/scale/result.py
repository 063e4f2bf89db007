"""What a fit found: figures with their errors, the checks that it passed, and its verdict.

Everything here is plain Python and becomes JSON by `Fit.to_dict`; nothing computes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from gristmill.analysis.scale.law import Law

__all__ = [
    "Check",
    "Estimate",
    "Fit",
    "HoldOut",
    "Model",
    "PhaseFit",
    "Point",
    "Scaling",
    "Verdict",
    "finite",
]

Scaling = Literal["strong", "weak", "mixed"]
"""Whether the work stayed the same, grew with p, or neither."""

Verdict = Literal["superlinear", "linear", "contention", "coherency", "fixed rate", "no law"]
"""What the curve is: `no law` where it does not describe the runs."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure, its standard error, and two intervals; `None` where there is no such number.

    An interval whose end is `None` has no end there: the data do not bound the figure.
    """

    value: float | None
    stderr: float | None
    low: float | None
    high: float | None
    bootstrap: tuple[float | None, float | None] = (None, None)


@dataclass(frozen=True, slots=True)
class Point:
    """All runs with one p."""

    p: float
    runs: int
    mean: float
    """Of what was measured: seconds, or throughput."""
    stderr: float | None
    relative_error: float | None
    """The standard error as a share of the mean."""
    cv: float | None
    """The spread of single runs as a share of the mean."""
    fitted: float
    band: tuple[float, float]
    """The interval of the curve at this p."""
    speedup: float
    """Against the curve's own time at p = 1."""
    efficiency: float
    residual: float
    """How far the mean lies from the curve, as a share of the curve."""


@dataclass(frozen=True, slots=True)
class Check:
    """One question to the residuals, and its answer in words."""

    name: str
    ok: bool
    says: str
    p_value: float | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """A law that the same runs were given: how well it does for its number of parameters."""

    name: str
    parameters: int
    aicc: float | None
    delta: float | None
    """Its AICc above the least of all; below 2, it is as good."""
    flat_from: float | None = None
    """Of the model `flat`: from where on more processors change nothing."""


@dataclass(frozen=True, slots=True)
class HoldOut:
    """The largest p, predicted from all others."""

    p: float
    predicted: float
    low: float
    high: float
    measured: float
    held: bool
    """Whether the measured mean lies within the prediction."""


@dataclass(frozen=True, slots=True)
class PhaseFit:
    """What one phase adds to the law of the whole.

    The parts of all phases add up to the coefficients of the sum of the phases.
    """

    name: str
    share: tuple[float, float]
    """Of the wall time, at the least and at the largest p."""
    sigma: float | None
    """Its own contention, as if the phase were the job."""
    kappa: float | None
    sigma_part: Estimate
    """What it adds to the job's sigma."""
    kappa_part: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The law of a set of runs; `gm.scale.fit` makes it."""

    gamma: Estimate
    sigma: Estimate
    kappa: Estimate
    peak_p: Estimate
    peak_speedup: Estimate
    crossover_p: Estimate
    ceiling: Estimate
    verdict: Verdict
    sentences: Sequence[str]
    """The verdict and what goes with it, in plain English."""
    scaling: Scaling
    measured: Literal["seconds", "throughput"]
    errors: Literal["relative", "absolute"]
    level: float
    unit: float
    """The work that seconds are of: that of a run, or of one processor's share of it."""
    runs: int
    dof: float
    relative_error: float
    """The spread of single runs around the curve, as a share of it."""
    r_squared: float
    """Of the means, in the measured unit: it flatters every curve that is not a line."""
    valid: bool
    """Whether the curve is positive and finite wherever it is drawn."""
    bootstraps: int
    points: Sequence[Point]
    checks: Sequence[Check]
    models: Sequence[Model]
    amdahl: Mapping[str, Estimate]
    """`sigma` and `ceiling` of Amdahl's law, kappa being 0: a verdict of contention quotes them."""
    hold_out: HoldOut | None
    phases: Sequence[PhaseFit] = ()
    curve: Sequence[tuple[float, float, float, float]] = field(default=(), repr=False)
    """(p, speedup, low, high) from p = 1 on, for plots."""

    @property
    def law(self) -> Law:
        """The curve itself."""
        numbers = (self.gamma.value, self.sigma.value, self.kappa.value)
        return Law(*(math.nan if number is None else number for number in numbers))

    @property
    def superlinear(self) -> bool:
        """Whether sigma is below 0 for certain, or runs are superlinear as measured."""
        measured = any(check.name == "efficiency" and not check.ok for check in self.checks)
        return measured or (self.sigma.high is not None and self.sigma.high < 0)

    def predict(self, p: float) -> float:
        """Return the throughput that the curve has at `p`, or the seconds of `unit` work."""
        return self.unit * self.law.seconds(p) if self.measured == "seconds" else self.law.rate(p)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        found = asdict(self)
        del found["curve"]
        return found


def finite(number: float | None) -> float | None:
    """Return the number, or `None` for what JSON has no word for.

    >>> finite(1.5), finite(math.inf)
    (1.5, None)
    """
    return number if number is not None and math.isfinite(number) else None
