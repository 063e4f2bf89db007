"""The law against simpler ones, and against a point that it has not seen.

    linear   one parameter      gamma
    amdahl   two                gamma, sigma
    usl      three              gamma, sigma, kappa
    flat     two                gamma, and c: the rate is gamma min(p, c)

AICc is Akaike's criterion with Hurvich and Tsai's correction for few runs; the error's variance
counts as a parameter.
"""

import math
from itertools import pairwise

import numpy as np
from scipy import optimize, special

from gristmill.analysis.scale.result import HoldOut, Model
from gristmill.analysis.scale.sample import CannotFitError, Sample
from gristmill.analysis.scale.scoring import Floats, basis
from gristmill.analysis.scale.solving import MISFIT, Solved, misfit_of, solve

__all__ = ["held_out", "models_of", "simplest"]

_NAMES = {1: "linear", 2: "amdahl", 3: "usl"}
_AS_GOOD = 2.0
_POINTS_MIN = 5
_SQUARES_MIN = 1e-24
"""For each run: data without any error have residuals of rounding alone."""


def models_of(sample: Sample, spread: Floats, usl: Solved) -> list[Model]:
    """Compare the laws; `usl` is the best curve of the third, whose kappa may be at its bound of 0.

    >>> from gristmill.analysis.runs import Run
    >>> from gristmill.analysis.scale.sample import sample_of
    >>> runs = [Run(p=p, seconds=s / p) for p in (1, 2, 4, 8) for s in (98, 102)]
    >>> sample = sample_of(runs, "seconds", absolute=False)
    >>> simplest(models_of(sample, np.ones(4), solve(sample, np.ones(4)))).name
    'linear'
    """
    criteria: dict[int, float | None] = {}
    for terms in _NAMES:
        try:
            solved = usl if terms == len(_NAMES) else solve(sample, spread, terms)
            criteria[terms] = _aicc(sample, solved, terms + 1)
        except CannotFitError:
            criteria[terms] = None
    flat, flat_from = _flat(sample, spread)
    known = [one for one in (*criteria.values(), flat) if one is not None]

    def above(one: float | None) -> float | None:
        return None if one is None else one - min(known)

    laws = [Model(_NAMES[terms], terms, one, above(one)) for terms, one in criteria.items()]
    return laws if flat is None else [*laws, Model("flat", 2, flat, above(flat), flat_from)]


def simplest(models: list[Model]) -> Model:
    """Return the law with the fewest parameters among those that are as good as the best.

    >>> simplest([Model("amdahl", 2, 6.0, 1.0), Model("usl", 3, 5.0, 0.0)]).name
    'amdahl'
    """
    good = [one for one in models if one.delta is not None and one.delta < _AS_GOOD]
    return good[0] if good else models[0]


def _flat(sample: Sample, spread: Floats) -> tuple[float | None, float | None]:
    """The criterion of a rate that is linear up to some c and flat beyond it, and that c.

    Only where two values of p or more lie in the flat part, and two in the other; and where runs
    with one p differ as much as means miss it.
    """
    if len(sample.p) < _POINTS_MIN:
        return None, None

    def fitted(c: float) -> Floats:
        shape = np.minimum(sample.p, c) if sample.rates else 1 / np.minimum(sample.p, c)
        weights = sample.counts / spread**2 / (1.0 if sample.absolute else shape**2)
        return shape * (np.sum(weights * shape * sample.means) / np.sum(weights * shape**2))

    def squares(c: float) -> float:
        curve = fitted(c)
        sizes = spread * (sample.means.mean() if sample.absolute else curve)
        return float(np.sum(((sample.values - curve[sample.point]) / sizes[sample.point]) ** 2))

    low, high = float(sample.p[1]), float(sample.p[-2])
    edges = sample.p[1:-1]
    found = [
        optimize.minimize_scalar(squares, bounds=(one, other), method="bounded").x
        for one, other in pairwise(edges)
    ]
    c = min([low, high, *map(float, found)], key=squares)
    curve = fitted(c)
    weights = spread**-2 * (curve**2 if sample.absolute else np.ones_like(curve))
    residuals = sample.values / curve[sample.point] - 1
    total = float(np.sum(weights[sample.point] * residuals**2))
    misfit = misfit_of(sample, curve, weights, total, 2)
    if misfit is None or misfit < MISFIT:  # without repeats nothing tells a knee from a peak
        return None, None
    return _criterion(sample, curve, weights, total, 3), c


def _aicc(sample: Sample, solved: Solved, parameters: int) -> float | None:
    return _criterion(sample, solved.fitted, solved.weights, solved.squares, parameters)


def _criterion(
    sample: Sample, fitted: Floats, weights: Floats, squares: float, parameters: int
) -> float | None:
    runs = sample.runs
    if runs - parameters - 1 <= 0:
        return None
    variance = max(squares / runs, _SQUARES_MIN)
    sizes = np.log(fitted**2 / weights)  # what a run's error is in proportion to
    likelihood = -0.5 * (
        runs * (math.log(2 * math.pi * variance) + 1) + float(np.sum(sample.counts * sizes))
    )
    return (
        2 * parameters
        - 2 * likelihood
        + 2 * parameters * (parameters + 1) / (runs - parameters - 1)
    )


def held_out(sample: Sample, spread: Floats, level: float) -> HoldOut | None:
    """Predict the mean at the largest p from all others; `None` where those carry no law.

    >>> from gristmill.analysis.runs import Run
    >>> from gristmill.analysis.scale.sample import sample_of
    >>> runs = [Run(p=p, seconds=s / p) for p in (1, 2, 4, 8) for s in (98, 102)]
    >>> held_out(sample_of(runs, "seconds", absolute=False), np.ones(4), 0.95).held
    True
    """
    rest = sample.without_last()
    if len(rest.p) < 3 or rest.runs <= 3:
        return None
    try:
        solved = solve(rest, spread[:-1])
    except CannotFitError:
        return None
    last = float(sample.p[-1])
    design = basis(np.array([last]))[0]
    seconds = float(design @ solved.coefficients)
    if seconds <= 0:
        return None
    fitted = 1 / seconds if sample.rates else seconds
    weight = spread[-1] ** -2 * (fitted**2 if sample.absolute else 1.0)
    of_curve = float(design @ solved.covariance @ design) / seconds**2
    of_mean = solved.variance / weight / sample.counts[-1]
    t = float(special.stdtrit(solved.dof, (1 + level) / 2))
    half = t * math.sqrt(of_curve + float(of_mean)) * fitted
    measured = float(sample.means[-1])
    rounding = 1e-9 * fitted
    low, high = fitted - half, fitted + half
    held = low - rounding <= measured <= high + rounding
    return HoldOut(last, fitted, low, high, measured, held)
