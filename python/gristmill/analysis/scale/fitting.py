"""From runs to the law: the steps of a fit, in their order.

    runs ──▶ sample ──▶ weights ──▶ curve ──▶ residuals ──▶ other laws ──▶ hold-out ──▶ verdict
                                      │
                                      └─▶ standard errors, t intervals, bootstrap intervals

Nothing is divided by the measured time at p = 1. Its error would go into every point; gamma is
estimated with the rest.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy import special

from gristmill.analysis.runs import Run
from gristmill.analysis.scale import intervals
from gristmill.analysis.scale.bootstrap import bootstrapped
from gristmill.analysis.scale.checks import checks_of, spread_of
from gristmill.analysis.scale.judging import judge
from gristmill.analysis.scale.law import Law
from gristmill.analysis.scale.models import held_out, models_of
from gristmill.analysis.scale.phases import phases_of
from gristmill.analysis.scale.result import Estimate, Fit, Point, finite
from gristmill.analysis.scale.sample import CannotFitError, Sample, sample_of, scaling_of
from gristmill.analysis.scale.scoring import Floats, basis
from gristmill.analysis.scale.solving import Solved, solve

__all__ = ["fit_runs"]

_PLACES = 200


def fit_runs(
    runs: Sequence[Run],
    *,
    measured: Literal["seconds", "throughput"] = "seconds",
    errors: Literal["relative", "absolute"] = "relative",
    level: float = 0.95,
    bootstraps: int = 1000,
    seed: int = 0,
) -> Fit:
    """Fit the law to runs.

    Raises:
        CannotFitError: The runs cannot carry it.

    >>> law = Law(gamma=0.01, sigma=0.05, kappa=0.001)
    >>> runs = [Run(p=p, seconds=law.seconds(p)) for p in (1, 2, 4, 8, 16, 32)]
    >>> round(fit_runs(runs).sigma.value, 6)
    0.05
    """
    if not 0 < level < 1:
        raise ValueError(f"level: {level} is not between 0 and 1")
    if errors not in ("relative", "absolute"):
        raise ValueError(f"errors: {errors!r} is neither 'relative' nor 'absolute'")
    try:
        with np.errstate(all="ignore"):
            return _fitted(runs, measured, errors, level, bootstraps, seed)
    except CannotFitError:
        raise
    except (ArithmeticError, ValueError) as error:  # numpy and scipy: not finite, not to be solved
        raise CannotFitError(
            "cannot fit the law of scaling: the numbers are so far apart that no curve can be"
            f" computed ({str(error).lower()}). What to do: check that all p, and all times, are in"
            " one unit."
        ) from error


def _fitted(
    runs: Sequence[Run],
    measured: Literal["seconds", "throughput"],
    errors: Literal["relative", "absolute"],
    level: float,
    bootstraps: int,
    seed: int,
) -> Fit:
    sample = sample_of(runs, measured, absolute=errors == "absolute")
    spread = spread_of(sample)
    free = solve(sample, spread)
    if not np.all(np.isfinite(free.coefficients)) or free.coefficients[0] <= 0:
        raise CannotFitError(
            "cannot fit the law of scaling: the best curve has no positive time at p = 1. What to"
            " do: measure p = 1, and check the runs with the smallest p."
        )
    held = solve(sample, spread, 2) if free.coefficients[2] < 0 else None  # kappa at its bound
    coefficients = free.coefficients if held is None else np.append(held.coefficients, 0.0)
    best = free if held is None else held
    t = float(special.stdtrit(free.dof, (1 + level) / 2))
    estimates = _estimates(sample, spread, free, coefficients, t, level, bootstraps, seed)
    a, b, c = map(float, coefficients)
    law = Law(1 / a, b / a, c / a)
    points = _points(sample, best, free, coefficients, t)
    models = models_of(sample, spread, best)
    hold_out = held_out(sample, spread, level)
    checks = checks_of(sample, best, free, runs, law, points)
    valid = law.least_divisor(max(float(sample.p[-1]), law.crossover_p or 1.0)) > 0
    scaling = scaling_of(runs)
    amdahl = _of_amdahl(sample, spread, held, level) or {}
    verdict, sentences = judge(
        estimates,
        amdahl,
        law,
        points,
        checks,
        models,
        hold_out,
        scaling=scaling,
        valid=valid,
        level=level,
    )
    return Fit(
        **estimates,
        verdict=verdict,
        sentences=sentences,
        scaling=scaling,
        measured=measured,
        errors=errors,
        level=level,
        unit=sample.unit,
        runs=sample.runs,
        dof=float(free.dof),
        relative_error=float(np.sqrt(np.sum(best.residuals**2) / (sample.runs - 3))),
        r_squared=_r_squared(sample, best),
        valid=valid,
        bootstraps=bootstraps,
        points=points,
        checks=checks,
        models=models,
        amdahl=amdahl,
        hold_out=hold_out,
        phases=phases_of(runs, sample, best, coefficients, t) if measured == "seconds" else (),
        curve=_curve(sample, coefficients, free, t, law),
    )


def _estimates(
    sample: Sample,
    spread: Floats,
    free: Solved,
    coefficients: Floats,
    t: float,
    level: float,
    bootstraps: int,
    seed: int,
) -> dict[str, Estimate]:
    found = {name: float(value) for name, value in intervals.values(coefficients).items()}
    if found["sigma"] >= 0 or found["crossover_p"] <= 1:
        found["crossover_p"] = np.nan
    errors = intervals.standard_errors(free.coefficients, free.covariance)
    ends = {
        name: (float(low), float(high))
        for name, (low, high) in intervals.intervals(
            free.coefficients, free.covariance, np.array(t)
        ).items()
    }
    drawn = intervals.of_draws(free.coefficients, free.covariance, free.dof, level)
    ends["peak_speedup"] = drawn["peak_speedup"]
    again = bootstrapped(sample, spread, free, bootstraps, seed)
    wider = float(2 * special.ndtr(t) - 1)  # percentiles know nothing of degrees of freedom
    estimates: dict[str, Estimate] = {}
    for name in intervals.NAMES:
        value = finite(found[name])
        low, high = ends[name]
        scale = sample.unit if name == "gamma" else 1.0  # seconds are of a unit, gamma of work
        if value is not None:  # at the bound of kappa the curve is another than the intervals' one
            low, high = min(low, value), max(high, value)
        if name == "crossover_p" and value is None:
            estimates[name] = Estimate(None, None, None, None)
            continue
        boot = (np.nan, np.nan) if again is None else intervals.ends(again[name], wider)
        if not np.isnan(found[name]):  # as above: draws have a kappa that is below 0
            boot = min(boot[0], found[name]), max(boot[1], found[name])
        estimates[name] = Estimate(
            None if value is None else scale * value,
            None if value is None else finite(scale * errors[name]),
            finite(scale * low),
            finite(scale * high),
            (finite(scale * boot[0]), finite(scale * boot[1])),
        )
    return estimates


def _of_amdahl(
    sample: Sample, spread: Floats, held: Solved | None, level: float
) -> dict[str, Estimate] | None:
    """Sigma and the ceiling of the law without kappa, which may be the one that is chosen."""
    try:
        solved = solve(sample, spread, 2) if held is None else held
    except CannotFitError:
        return None
    if solved.coefficients[0] <= 0:
        return None
    coefficients = np.append(solved.coefficients, 0.0)
    covariance = np.pad(solved.covariance, (0, 1))
    t = float(special.stdtrit(solved.dof, (1 + level) / 2))
    values = intervals.values(coefficients)
    errors = intervals.standard_errors(coefficients, covariance)
    ends = intervals.intervals(coefficients, covariance, np.array(t))
    return {
        name: Estimate(
            finite(float(values[name])),
            finite(errors[name]),
            finite(float(ends[name][0])),
            finite(float(ends[name][1])),
        )
        for name in ("sigma", "ceiling")
    }


def _points(
    sample: Sample, best: Solved, free: Solved, coefficients: Floats, t: float
) -> list[Point]:
    design = basis(sample.p)
    seconds = design @ coefficients
    variance = np.einsum("pi,ij,pj->p", design, free.covariance, design)
    half = t * np.sqrt(np.maximum(variance, 0.0)) / seconds
    found: list[Point] = []
    for at, p in enumerate(sample.p):
        mean, fitted, count = sample.means[at], float(best.fitted[at]), int(sample.counts[at])
        values = sample.values[sample.point == at]
        deviation = float(np.std(values, ddof=1)) if count > 1 else None
        error = None if deviation is None else deviation / np.sqrt(count)
        took = 1 / mean if sample.rates else mean
        ends = fitted * (1 - half[at]), fitted * (1 + half[at])
        found.append(
            Point(
                p=float(p),
                runs=count,
                mean=float(mean),
                stderr=None if error is None else float(error),
                relative_error=None if error is None else float(error / mean),
                cv=None if deviation is None else float(deviation / mean),
                fitted=fitted,
                band=(float(ends[0]), float(ends[1])),
                speedup=float(coefficients[0] / took),
                efficiency=float(coefficients[0] / took / p),
                residual=float(mean / fitted - 1),
            )
        )
    return found


def _r_squared(sample: Sample, best: Solved) -> float:
    center = np.average(sample.means, weights=sample.counts)
    total = np.sum(sample.counts * (sample.means - center) ** 2)
    left = np.sum(sample.counts * (sample.means - best.fitted) ** 2)
    return float(1 - left / total) if total > 0 else 1.0


def _curve(
    sample: Sample, coefficients: Floats, free: Solved, t: float, law: Law
) -> list[tuple[float, float, float, float]]:
    """The speedup with its band; it goes beyond the largest p where a peak or crossover is near."""
    last = float(sample.p[-1])
    marks = [mark for mark in (law.peak_p, law.crossover_p) if mark is not None]
    end = max([last, *(1.05 * mark for mark in marks if mark < 2 * last)])
    places = np.linspace(1.0, end, _PLACES)
    design = basis(places)
    above = np.zeros((len(places), 3))
    above[:, 0] = 1.0
    covariance = free.covariance
    spread = (
        t**2 * np.full(len(places), covariance[0, 0]),
        t**2 * (design @ covariance[:, 0]),
        t**2 * np.einsum("pi,ij,pj->p", design, covariance, design),
    )
    low, high = intervals.fieller(above @ free.coefficients, design @ free.coefficients, spread)
    speedup = coefficients[0] / (design @ coefficients)
    return [
        (float(p), float(s), float(min(max(one, 0.0), s)), float(max(other, s)))
        for p, s, one, other in zip(places, speedup, low, high, strict=True)
    ]
