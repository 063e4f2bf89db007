"""One data set: its best curve, the spread of runs around it, and whether it misses them.

Least squares with the weights of the last curve, by scipy, again and again until the curve stays.
Errors come from the spread of runs around it, or from that of the means where it misses them.
"""

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from gristmill.analysis.scale.sample import CannotFitError, Sample
from gristmill.analysis.scale.scoring import Floats, basis, score, weights_of

__all__ = ["MISFIT", "Solved", "misfit_of", "solve"]

_ROUNDS = 25
_FIRST_STEPS = 8
_ENOUGH = 1e-8
_ROUNDING = 1e-20
MISFIT = 0.01
"""The chance of a misfit as large as this one, below which it is one."""


@dataclass(frozen=True, slots=True)
class Solved:
    """The best curve, and the errors that it is known with."""

    coefficients: Floats
    """a, b, c of scoring.py."""
    covariance: Floats
    fitted: Floats
    """The value at each p, as it was measured: seconds, or rate."""
    residuals: Floats
    """Of single runs, as a share of the curve."""
    weights: Floats
    """Of each p: the inverse of the relative variance of a run there, but for a factor."""
    squares: float
    """The weighted sum of the squares of `residuals`."""
    variance: float
    """That the covariance is made with."""
    dof: float
    misfit: float | None
    """How likely means lie as far from a true curve; `None` without repeats."""


def _curve(p: Floats, coefficients: Floats, *, rates: bool) -> Floats:
    seconds = basis(p, len(coefficients)) @ coefficients
    return 1 / seconds if rates else seconds


def solve(sample: Sample, spread: Floats, terms: int = 3) -> Solved:
    """Fit the law with all its terms, without coherency (2), or without contention (1).

    `spread` is the relative size of errors at each p, or 1 everywhere.
    """
    coefficients = _least_squares(sample, spread, terms)
    fitted = _curve(sample.p, coefficients, rates=sample.rates)
    seconds = 1 / fitted if sample.rates else fitted
    weights = spread**-2 * weights_of(
        seconds, np.ones_like(seconds), rates=sample.rates, absolute=sample.absolute
    )
    residuals = sample.values / fitted[sample.point] - 1
    squares = float(np.sum(weights[sample.point] * residuals**2))
    variance, dof, misfit = _variance(sample, fitted, weights, squares, terms)
    relative = basis(sample.p, terms) / seconds[:, None]
    information = relative.T @ (relative * (weights * sample.counts)[:, None])
    covariance = variance * _inverse(information)
    return Solved(
        coefficients, covariance, fitted, residuals, weights, squares, variance, dof, misfit
    )


def _inverse(information: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.inv(information), np.float64)
    except np.linalg.LinAlgError:
        raise CannotFitError(
            "cannot fit the law of scaling: the times are so far apart that nothing is known of its"
            " parameters. What to do: check that all p, and all times, are in one unit."
        ) from None


def _least_squares(sample: Sample, spread: Floats, terms: int) -> Floats:
    """Return the coefficients whose own curve gives the weights that they are best for."""
    design = basis(sample.p, terms)
    root = np.sqrt(sample.counts) / spread
    coefficients = _start(sample, root, terms)
    for _ in range(_ROUNDS):
        fitted = _curve(sample.p, coefficients, rates=sample.rates)
        scale = root / (np.full_like(fitted, sample.means.mean()) if sample.absolute else fitted)

        def misses(at: Floats, scale: Floats = scale) -> Floats:
            return scale * (_curve(sample.p, at, rates=sample.rates) - sample.means)

        def slopes(at: Floats, scale: Floats = scale) -> Floats:
            if not sample.rates:
                return scale[:, None] * design
            return -(scale * _curve(sample.p, at, rates=True) ** 2)[:, None] * design

        best = optimize.least_squares(
            misses, coefficients, jac=slopes, x_scale="jac", method="lm", xtol=1e-14, ftol=1e-14
        )
        moved = np.abs(design @ (best.x - coefficients)) / np.abs(design @ best.x)
        coefficients = np.asarray(best.x, np.float64)
        if sample.absolute or moved.max() < _ENOUGH:
            break
    return coefficients


def _start(sample: Sample, root: Floats, terms: int) -> Floats:
    """Where to begin: a few steps of scoring; a flat curve where those end at one through zero."""
    found = score(
        sample.p,
        sample.means,
        root**2,
        rates=sample.rates,
        absolute=sample.absolute,
        terms=terms,
        steps=_FIRST_STEPS,
    ).coefficients
    if np.all(np.isfinite(found)) and np.all(basis(sample.p, terms) @ found > 0):
        return found
    flat = np.zeros(terms)
    flat[0] = float(np.max(sample.p / sample.means if sample.rates else sample.p * sample.means))
    return flat


def misfit_of(
    sample: Sample, fitted: Floats, weights: Floats, squares: float, terms: int
) -> float | None:
    """Return how likely means lie as far from a true curve; `None` without repeats (an F test)."""
    return _variance(sample, fitted, weights, squares, terms)[2]


def _variance(
    sample: Sample, fitted: Floats, weights: Floats, squares: float, terms: int
) -> tuple[float, float, float | None]:
    """Return the variance of a run, its degrees of freedom, and how likely the misfit is."""
    runs, points = sample.runs, len(sample.p)
    dof = runs - terms
    variance = squares / dof if dof > 0 else np.nan
    if runs == points or points <= terms:
        return variance, dof, None
    within = sample.values - sample.means[sample.point]
    pure = float(np.sum((weights / fitted**2)[sample.point] * within**2))
    missed = max(squares - pure, 0.0)
    lost, left = points - terms, runs - points
    if squares < _ROUNDING * runs:
        return variance, dof, None
    if pure <= _ROUNDING * squares:  # repeats that are copies: what is missed is missed for certain
        return missed / lost, lost, 0.0
    ratio = (missed / lost) / (pure / left)
    misfit = float(special.fdtrc(lost, left, ratio))
    if misfit < MISFIT:  # the means stray more than runs do: they are what the errors come from
        return missed / lost, lost, misfit
    return variance, dof, misfit
