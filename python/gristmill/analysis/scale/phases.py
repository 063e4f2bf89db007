"""The law of each phase: where contention and coherency come from.

The seconds of a job are the sum of those of its phases, and the law is linear in a, b and c. So
each phase is fitted with the weights of the whole, and its b and c, over the a of the whole, are
its parts of sigma and kappa. What the columns leave of the wall time is the phase `rest`.
"""

from collections.abc import Sequence

import numpy as np

from gristmill.analysis.runs import Run
from gristmill.analysis.scale.result import Estimate, PhaseFit
from gristmill.analysis.scale.sample import Sample
from gristmill.analysis.scale.scoring import Floats, basis
from gristmill.analysis.scale.solving import Solved

__all__ = ["phases_of"]

_WORTH = 0.005
"""Of the wall time: the least rest that is worth a row."""
_KNOWN = 1.0
"""Standard errors above 0: the least own time at p = 1 that a phase's own sigma is a share of."""


def phases_of(
    runs: Sequence[Run], sample: Sample, best: Solved, coefficients: Floats, t: float
) -> list[PhaseFit]:
    """Fit each phase that the runs have; the parts add up to the law of their sum.

    >>> from gristmill.analysis.scale.sample import sample_of
    >>> from gristmill.analysis.scale.solving import solve
    >>> phases = {p: {"map": 8 / p, "commit": 2} for p in (1, 2, 4, 8)}
    >>> runs = [Run(p=p, seconds=8 / p + 2, phases=each) for p, each in phases.items()]
    >>> sample = sample_of(runs, "seconds", absolute=False)
    >>> best = solve(sample, np.ones(4))
    >>> parts = phases_of(runs, sample, best, best.coefficients, 2.0)
    >>> [(part.name, abs(round(part.sigma_part.value, 6))) for part in parts]
    [('map', 0.0), ('commit', 0.2)]
    """
    ordered = [runs[int(at)] for at in sample.order]
    names = list(dict.fromkeys(name for run in ordered for name in run.phases))
    if not names:
        return []
    work = np.array([run.work for run in ordered]) / sample.unit
    columns = {
        name: np.array([run.phases.get(name, 0.0) for run in ordered]) / work for name in names
    }
    rest = sample.values - np.sum(list(columns.values()), axis=0)
    if rest.min() >= -1e-9 * sample.values.max() and rest.mean() > _WORTH * sample.values.mean():
        columns["rest"] = np.maximum(rest, 0.0)
    return [_phase(name, of, sample, best, coefficients, t) for name, of in columns.items()]


def _phase(
    name: str, seconds: Floats, sample: Sample, best: Solved, coefficients: Floats, t: float
) -> PhaseFit:
    means = sample.means_of(seconds)
    design = basis(sample.p) / best.fitted[:, None]
    weighted = design * (best.weights * sample.counts)[:, None]
    inverse = np.linalg.inv(design.T @ weighted)
    own = inverse @ (weighted.T @ (means / best.fitted))
    fitted = basis(sample.p) @ own
    away = (seconds - fitted[sample.point]) / best.fitted[sample.point]
    squares = float(np.sum(best.weights[sample.point] * away**2))
    errors = np.sqrt(np.maximum(np.diag(inverse), 0.0) * squares / (sample.runs - 3))
    base = coefficients[0]
    known = own[0] > _KNOWN * errors[0] and own[0] > 1e-9 * base
    share = means / sample.means
    return PhaseFit(
        name,
        (float(share[0]), float(share[-1])),
        float(own[1] / own[0]) if known else None,
        float(own[2] / own[0]) if known else None,
        _part(own[1] / base, errors[1] / base, t),
        _part(own[2] / base, errors[2] / base, t),
    )


def _part(value: float, error: float, t: float) -> Estimate:
    half = t * error
    return Estimate(float(value), float(error), float(value - half), float(value + half))
