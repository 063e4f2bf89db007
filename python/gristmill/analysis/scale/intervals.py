"""From coefficients with their covariance to what people ask for, each with its interval.

What is asked for are ratios of linear combinations of a, b, c (scoring.py), or roots of such:

    sigma = b/a   kappa = c/a   ceiling = a/b   crossover_p = -b/c   peak_p = sqrt((a - b)/c)

The interval of a ratio is Fieller's: all values that a t-test does not reject. It is exact where
the seconds are linear, lopsided where it should be, and says so where it has no end (infinity).
The interval of the peak speedup, which is no ratio, is read off draws of the coefficients.

All functions take stacks of data sets: (..., 3) and (..., 3, 3).
"""

from collections.abc import Callable, Mapping

import numpy as np

from gristmill.analysis.scale.scoring import Bools, Floats

__all__ = [
    "NAMES",
    "ends",
    "fieller",
    "intervals",
    "of_draws",
    "standard_errors",
    "values",
]

NAMES = ("gamma", "sigma", "kappa", "peak_p", "peak_speedup", "crossover_p", "ceiling")

_DRAWS = 2000
_SEED = 2015
"""Draws are the same every time, so that a fit of the same data says the same."""


def _peak_speedup(a: Floats, b: Floats, c: Floats) -> Floats:
    return a / (b - c + 2 * np.sqrt(c * (a - b)))


Spread = tuple[Floats, Floats, Floats]

_DERIVED: Mapping[str, Callable[[Floats, Floats, Floats], Floats]] = {
    "gamma": lambda a, b, c: 1 / a + 0 * b * c,
    "sigma": lambda a, b, c: b / a + 0 * c,
    "kappa": lambda a, b, c: c / a + 0 * b,
    "peak_p": lambda a, b, c: np.sqrt((a - b) / c),
    "peak_speedup": _peak_speedup,
    "crossover_p": lambda a, b, c: -b / c + 0 * a,
    "ceiling": lambda a, b, c: a / b + 0 * c,
}
"""Each figure from a, b and c; also of complex numbers, for derivatives."""

_RATIOS: Mapping[str, tuple[tuple[int, int, int], tuple[int, int, int]]] = {
    "sigma": ((0, 1, 0), (1, 0, 0)),
    "kappa": ((0, 0, 1), (1, 0, 0)),
    "peak_p": ((1, -1, 0), (0, 0, 1)),  # its square
    "crossover_p": ((0, -1, 0), (0, 0, 1)),
    "ceiling": ((1, 0, 0), (0, 1, 0)),
}


_POSITIVE = ("peak_p", "crossover_p", "ceiling")
"""Figures that are above 0 or are not there at all: then they count as infinite."""


def values(coefficients: Floats) -> dict[str, Floats]:
    """Return each figure; infinity or NaN where the curve has no such point.

    >>> found = values(np.array([10.0, 1.0, 0.1]))
    >>> {name: round(float(found[name]), 3) for name in ("sigma", "kappa", "peak_p", "ceiling")}
    {'sigma': 0.1, 'kappa': 0.01, 'peak_p': 9.487, 'ceiling': 10.0}
    """
    a, b, c = np.moveaxis(coefficients, -1, 0)
    with np.errstate(all="ignore"):
        found = {name: np.asarray(figure(a, b, c), float) for name, figure in _DERIVED.items()}
    found["peak_p"] = np.where(c > 0, np.fmax(found["peak_p"], 1.0), np.inf)
    flat = np.where(b > 0, found["ceiling"], np.inf)
    broken = found["peak_speedup"] <= 0  # the curve goes through zero before its peak
    found["peak_speedup"] = np.where(c > 0, np.where(broken, np.inf, found["peak_speedup"]), flat)
    # One processor has the speedup 1: where each further one only costs, it is best.
    below = (c > 0) & (found["peak_p"] <= 1)
    found["peak_speedup"] = np.where(below, 1.0, np.fmax(found["peak_speedup"], 1.0))
    found["ceiling"] = flat
    found["crossover_p"] = np.where(c > 0, np.maximum(found["crossover_p"], 1.0), np.inf)
    found["kappa"] = np.maximum(found["kappa"], 0.0)
    return found


def standard_errors(coefficients: Floats, covariance: Floats) -> dict[str, float]:
    """Return the standard error of each figure of one data set (the delta method).

    Derivatives are those of a complex step, which are exact. Without a peak (c is not above 0) the
    greatest speedup is the ceiling.

    >>> found = standard_errors(np.array([10.0, 1.0, 0.1]), np.diag([0.0, 0.01, 0.0]))
    >>> round(found["sigma"], 6)
    0.01
    """
    found: dict[str, float] = {}
    tiny = 1e-30
    for name, figure in _DERIVED.items():
        steps = coefficients[:, None] + 1j * tiny * np.eye(3)
        with np.errstate(all="ignore"):
            gradient = np.imag(figure(*steps)) / tiny
            found[name] = float(np.sqrt(gradient @ covariance @ gradient))
    if not coefficients[2] > 0:
        found["peak_speedup"] = found["ceiling"]
    return found


def fieller(above: Floats, below: Floats, spread: Spread) -> tuple[Floats, Floats]:
    """Return all ratios of two uncertain numbers that agree with them.

    `spread` is t squared times the variance of the upper, their covariance, and the variance of the
    lower. An interval without an end has infinity there.

    >>> nothing = np.array(0.0)
    >>> low, high = fieller(np.array(2.0), np.array(1.0), (np.array(0.04), nothing, nothing))
    >>> float(low.round(3)), float(high.round(3))
    (1.8, 2.2)
    """
    certain, _, first, second = _ends(above, below, spread)
    with np.errstate(all="ignore"):
        ratio = above / below
    # If the lower number may be 0, all ratios agree but those in a gap.
    upward = ~certain & (ratio >= second)
    downward = ~certain & (ratio <= first)
    low = np.where(certain, first, np.where(upward, second, -np.inf))
    high = np.where(certain, second, np.where(downward, first, np.inf))
    return low, high


def _positive(above: Floats, below: Floats, spread: Spread) -> tuple[Floats, Floats]:
    """Return Fieller's interval of a point that is above 0, or not there: at infinity."""
    certain, sure_above, first, second = _ends(above, below, spread)
    beyond = np.where(sure_above & ~np.isnan(second), np.maximum(second, 0.0), 0.0)
    low = np.where(certain, np.where(below > 0, first, np.inf), beyond)
    high = np.where(certain & (below > 0), second, np.inf)
    return low, high


def _ends(above: Floats, below: Floats, spread: Spread) -> tuple[Bools, Bools, Floats, Floats]:
    """Whether the lower and the upper number are not 0 for certain; the roots, in their order."""
    of_above, of_both, of_below = spread
    square, half, rest = below**2 - of_below, above * below - of_both, above**2 - of_above
    certain = square > 0
    with np.errstate(all="ignore"):
        under = half**2 - square * rest
        root = np.sqrt(np.where(certain, np.maximum(under, 0.0), under))
        one, other = (half - root) / square, (half + root) / square
        return certain, rest > 0, np.minimum(one, other), np.maximum(one, other)


def intervals(
    coefficients: Floats, covariance: Floats, t: Floats
) -> dict[str, tuple[Floats, Floats]]:
    """Return the interval of each figure, for the quantile `t` of Student's distribution.

    >>> found = intervals(np.array([10.0, 1.0, 0.1]), np.diag([0.0, 0.01, 0.0]), np.array(2.0))
    >>> [float(end.round(3)) for end in found["sigma"]]
    [0.08, 0.12]
    """
    found: dict[str, tuple[Floats, Floats]] = {}
    for name, (above, below) in _RATIOS.items():
        u, v = np.array(above, float), np.array(below, float)
        spread = (
            t**2 * np.einsum("i,...ij,j->...", u, covariance, u),
            t**2 * np.einsum("i,...ij,j->...", u, covariance, v),
            t**2 * np.einsum("i,...ij,j->...", v, covariance, v),
        )
        ends_of = _positive if name in _POSITIVE else fieller
        found[name] = ends_of(coefficients @ u, coefficients @ v, spread)
    a, of_a = coefficients[..., 0], t * np.sqrt(np.maximum(covariance[..., 0, 0], 0.0))
    with np.errstate(all="ignore"):
        found["gamma"] = (1 / (a + of_a), np.where(a > of_a, 1 / (a - of_a), np.inf))
    low, high = found["peak_p"]
    found["peak_p"] = (np.sqrt(np.maximum(low, 1.0)), np.sqrt(np.maximum(high, 1.0)))
    low, high = found["crossover_p"]
    found["crossover_p"] = (np.maximum(low, 1.0), np.maximum(high, 1.0))
    low, high = found["kappa"]
    found["kappa"] = (np.maximum(low, 0.0), np.maximum(high, 0.0))
    return found


def of_draws(
    coefficients: Floats, covariance: Floats, dof: float, level: float
) -> dict[str, tuple[float, float]]:
    """Return intervals of one data set by draws of its coefficients, from a t-distribution."""
    generator = np.random.default_rng(_SEED)
    normal = generator.multivariate_normal(  # of data without errors the covariance is rounding
        np.zeros(3), covariance, _DRAWS, method="eigh", check_valid="ignore"
    )
    stretch = np.sqrt(dof / generator.chisquare(dof, _DRAWS))
    drawn = values(coefficients + normal * stretch[:, None])
    return {name: ends(found, level) for name, found in drawn.items()}


def ends(found: Floats, level: float) -> tuple[float, float]:
    """Return what the middle `level` of draws lies between; undefined ones count as infinite.

    Of n draws the k-th stands for the share k / (n + 1).

    >>> ends(np.arange(1.0, 100.0), 0.9)
    (5.0, 95.0)
    """
    ordered = np.sort(np.where(np.isnan(found), np.inf, found))
    outside = (len(ordered) + 1) * (1 - level) / 2
    beyond = max(int(outside + 1e-9), 1) - 1
    return float(ordered[beyond]), float(ordered[len(ordered) - 1 - beyond])
