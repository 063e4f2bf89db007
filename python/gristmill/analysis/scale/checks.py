"""What the residuals say before anything is read off the curve.

    misfit    the means miss the curve by more than runs with one p differ
    spread    some p are noisier than others
    efficiency  processors do more at some p than at the least one: superlinear as measured
    shape     errors are far from normal
    outliers  single runs far from the rest
    drift     later runs are slower or faster
    design    too few p for what is asked

Each check has its own chance of a false alarm, 1 %: with more, every sixth fit would have one.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy import special, stats

from gristmill.analysis.runs import Run
from gristmill.analysis.scale.law import Law
from gristmill.analysis.scale.result import Check, Point, finite
from gristmill.analysis.scale.sample import Sample
from gristmill.analysis.scale.scoring import Floats, basis
from gristmill.analysis.scale.solving import MISFIT, Solved

__all__ = ["checks_of", "spread_of"]

_ALARM = 0.01
_OWN_WEIGHTS = 8
"""Repeats from which the spread at a p is known well enough (to a quarter) to weigh with it."""
_NOTHING = 1e-9
"""Residuals below it are those of rounding."""
_DESIGN_POINTS_WANTED = 6


def spread_of(sample: Sample) -> Floats:
    """Return the relative size of errors at each p, 1 where all have the pooled one.

    It is the measured one only where every p has many runs and the spreads differ for certain.

    >>> from gristmill.analysis.runs import Run
    >>> from gristmill.analysis.scale.sample import sample_of
    >>> runs = [Run(p=p, seconds=9 / p) for p in (1, 2, 3, 4)]
    >>> spread_of(sample_of(runs, "seconds", absolute=False))
    array([1., 1., 1., 1.])
    """
    same = np.ones_like(sample.p)
    if sample.counts.min() < _OWN_WEIGHTS:
        return same
    p_value = _spreads_differ(sample)
    if p_value is None or p_value > _ALARM:
        return same
    around = _around_means(sample)
    own = np.array([np.var(around[sample.point == at], ddof=1) for at in range(len(sample.p))])
    pooled = float(np.average(own, weights=sample.counts - 1))
    # A spread that chance made small would take all the weight: each is drawn to the pooled one.
    drawn = (own * (sample.counts - 1) + pooled * 4) / (sample.counts + 3)
    return np.sqrt(drawn / pooled)


def _around_means(sample: Sample) -> Floats:
    """Single runs around their mean, in the unit in which all p should be alike."""
    around = sample.values - sample.means[sample.point]
    return around if sample.absolute else around / sample.means[sample.point]


def _spreads_differ(sample: Sample) -> float | None:
    """The chance that spreads differ as much by accident (Brown and Forsythe's test)."""
    around = _around_means(sample)
    groups = [around[sample.point == at] for at in range(len(sample.p)) if sample.counts[at] > 2]
    if len(groups) < 2 or np.abs(around).max() < _NOTHING * sample.means.max():
        return None
    return float(stats.levene(*groups, center="median").pvalue)


def checks_of(
    sample: Sample,
    best: Solved,
    free: Solved,
    runs: Sequence[Run],
    law: Law,
    points: Sequence[Point],
) -> list[Check]:
    """Ask the residuals of the best curve; `free` is the curve without bounds."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of tests whose answer is then not a number
        found = _asked(sample, best, free, runs, law, points)
    return [replace(check, p_value=finite(check.p_value)) for check in found]


def _asked(
    sample: Sample,
    best: Solved,
    free: Solved,
    runs: Sequence[Run],
    law: Law,
    points: Sequence[Point],
) -> list[Check]:
    exact = bool(np.abs(best.residuals).max() < _NOTHING)
    found = [_misfit(best, free, points)]
    if not exact:
        found += [*_spread(sample), *_shape(sample, best), *_outliers(sample, best, runs)]
        found += _drift(sample, best)
    return [*found, *_efficiency(sample), *_bound(free), *_design(sample, law)]


def _misfit(best: Solved, free: Solved, points: Sequence[Point]) -> Check:
    worst = max(points, key=lambda point: abs(point.residual))
    far = f"the mean at p = {worst.p:g} is {worst.residual:+.1%} off the curve, the farthest of all"
    if len(points) == len(best.coefficients):
        says = "the curve goes through all three means, whatever they are: nothing tests the law"
        return Check("misfit", True, says)
    if best.misfit is None:
        says = f"no repeats, so noise and misfit cannot be told apart; {far}"
        return Check("misfit", True, says)
    if best.misfit >= MISFIT:
        says = f"the curve goes through the means; {far}"
        return Check("misfit", True, says, best.misfit)
    says = f"the curve misses the means by more than the noise: {far}"
    if free.misfit is not None and free.misfit < MISFIT:  # intervals come from the curve unbound
        says = f"{says}; intervals count that in"
    return Check("misfit", False, says, best.misfit)


def _spread(sample: Sample) -> Iterator[Check]:
    p_value = _spreads_differ(sample)
    if p_value is None:
        return
    kind = "absolute" if sample.absolute else "relative"
    if p_value >= _ALARM:
        yield Check("spread", True, f"the {kind} spread is the same at every p", p_value)
        return
    around = np.abs(_around_means(sample))
    sizes = sample.means_of(around)
    noisy = sample.p[int(np.argmax(sizes))]
    own = (
        " each p has the weight of its own spread"
        if sample.counts.min() >= _OWN_WEIGHTS
        else (" too few repeats to weigh each p by its own")
    )
    yield Check("spread", False, f"runs with p = {noisy:g} spread most;{own}", p_value)


def _scaled(sample: Sample, best: Solved) -> Floats:
    """Residuals in units of their own standard error, those of the curve taken into account."""
    weights = best.weights[sample.point]
    design = basis(sample.p, len(best.coefficients))
    took = 1 / best.fitted if sample.rates else best.fitted
    relative = design / took[:, None]
    of_curve = np.einsum("pi,ij,pj->p", relative, best.covariance, relative)[sample.point]
    variance = best.squares / (sample.runs - len(best.coefficients)) / weights
    return best.residuals / np.sqrt(np.maximum(variance - of_curve, 0.05 * variance))


def _efficiency(sample: Sample) -> Iterator[Check]:
    """Whether processors do more at some p than at the least one, by the runs alone (t-tests)."""
    left = sample.runs - len(sample.p)
    if left < 1:
        return
    variance = float(np.sum(_around_means(sample) ** 2)) / left
    of_mean = variance / sample.counts / (sample.means**2 if sample.absolute else 1.0)
    each = np.log((sample.means if sample.rates else 1 / sample.means) / sample.p)
    gain = each[1:] - each[0]
    error = np.sqrt(of_mean[1:] + of_mean[0])
    t = np.divide(gain, error, out=np.where(gain > _NOTHING, np.inf, 0.0), where=error > _NOTHING)
    chance = special.stdtr(left, -t) * len(gain)  # one of several: Bonferroni
    best = int(np.argmin(chance))
    p_value = min(float(chance[best]), 1.0)
    p, least = sample.p[best + 1], sample.p[0]
    if p_value < _ALARM:
        says = (
            f"at p = {p:g} each processor does {np.exp(gain[best]):.2f} times what it does at"
            f" p = {least:g}: superlinear as measured"
        )
        yield Check("efficiency", False, says, p_value)
    else:
        yield Check(
            "efficiency", True, f"at no p does a processor do more than at p = {least:g}", p_value
        )


def _shape(sample: Sample, best: Solved) -> Iterator[Check]:
    if sample.runs < 8:
        return
    p_value = float(stats.shapiro(_scaled(sample, best)[:4999]).pvalue)
    if p_value < _ALARM:
        says = "the errors are far from normal: the bootstrap intervals are the ones to trust"
        yield Check("shape", False, says, p_value)
    else:
        yield Check("shape", True, "the errors look normal", p_value)


def _outliers(sample: Sample, best: Solved, runs: Sequence[Run]) -> Iterator[Check]:
    scaled = _scaled(sample, best)
    dof = sample.runs - len(best.coefficients) - 1
    if dof < 2:
        return
    inner = np.clip(1 - scaled**2 / (dof + 1), 1e-12, None)
    studentised = scaled * np.sqrt(dof / (dof + 1) / inner)
    limit = float(special.stdtrit(dof, 1 - _ALARM / 2 / sample.runs))
    far = np.flatnonzero(np.abs(studentised) > limit)
    if not len(far):
        yield Check("outliers", True, "no run is far from the others")
        return
    named = [
        f"p = {sample.p[sample.point[at]]:g} ({best.residuals[at]:+.0%}"
        + (f", {source})" if (source := runs[int(sample.order[at])].source) else ")")
        for at in far[:5]
    ]
    yield Check("outliers", False, f"far from the others: {'; '.join(named)}")


def _drift(sample: Sample, best: Solved) -> Iterator[Check]:
    ordered = bool(np.all(np.diff(sample.order) > 0))
    if sample.runs < 8 or ordered:  # runs ordered by p tell nothing: the curve took the drift
        return
    p_value = float(stats.spearmanr(sample.order, best.residuals).pvalue)
    if p_value < _ALARM:
        says = "residuals go with the order of the runs: the machine changed while it was measured"
        yield Check("drift", False, says, p_value)
    else:
        yield Check("drift", True, "residuals do not go with the order of the runs", p_value)


def _bound(free: Solved) -> Iterator[Check]:
    kappa = free.coefficients[2]
    if kappa >= 0:
        return
    error = float(np.sqrt(free.covariance[2, 2]))
    if error > 0 and kappa < -float(special.stdtrit(free.dof, 0.995)) * error:
        says = (
            "kappa would be below 0 for certain: the speedup grows faster with p than this law can;"
            " it is held at 0"
        )
        yield Check("kappa", False, says)
    else:
        says = "kappa would be a little below 0, by less than its error; it is held at 0"
        yield Check("kappa", True, says)


def _design(sample: Sample, law: Law) -> Iterator[Check]:
    wants: list[str] = []
    if len(sample.p) < _DESIGN_POINTS_WANTED:
        wants.append(
            f"{len(sample.p)} different p, where {_DESIGN_POINTS_WANTED} or more make a good fit"
        )
    if sample.p[0] > 1:
        wants.append(f"the least p is {sample.p[0]:g}: what one alone would do is extrapolated")
    if sample.counts.min() < 2:
        wants.append("some p have one run only")
    last = float(sample.p[-1])
    if law.peak_p is not None and law.peak_p > 2 * last:
        wants.append(f"the peak is far beyond the largest p that was measured ({last:g})")
    yield Check("design", not wants, "; ".join(wants) or "enough p, with repeats, p = 1 among them")
