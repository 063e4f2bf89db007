"""The same fit to runs drawn again, a thousand times at once.

    all p spread alike           the residuals of all p are drawn for each
    each p has its own spread    the runs of a p are drawn among themselves
    the curve misses the means   the residuals of the means are drawn

A sample's own spread is too small by (n - 1)/n, and so is that of residuals by the parameters that
were fitted: drawn values are widened by the root of it.
"""

import numpy as np

from gristmill.analysis.scale import intervals
from gristmill.analysis.scale.sample import Sample
from gristmill.analysis.scale.scoring import Floats, score
from gristmill.analysis.scale.solving import MISFIT, Solved

__all__ = ["bootstrapped"]

_MEAN_SHARE_MIN = 0.05
"""Of the fitted value: what a drawn mean has at least, for a time is never 0."""


def bootstrapped(
    sample: Sample, spread: Floats, solved: Solved, count: int, seed: int
) -> dict[str, Floats] | None:
    """Return each figure of `count` data sets drawn again; `None` without any.

    >>> from gristmill.analysis.runs import Run
    >>> from gristmill.analysis.scale.sample import sample_of
    >>> from gristmill.analysis.scale.solving import solve
    >>> runs = [Run(p=p, seconds=s) for p, s in ((1, 9.0), (2, 5.0), (4, 3.1), (8, 2.4), (8, 2.5))]
    >>> sample = sample_of(runs, "seconds", absolute=False)
    >>> found = bootstrapped(sample, np.ones(4), solve(sample, np.ones(4)), 50, seed=1)
    >>> found["sigma"].shape
    (50,)
    """
    if count <= 0:
        return None
    means = _means(sample, spread, solved, count, np.random.default_rng(seed))
    scored = score(
        sample.p,
        np.maximum(means, _MEAN_SHARE_MIN * solved.fitted),
        sample.counts * spread**-2,
        rates=sample.rates,
        absolute=sample.absolute,
    )
    return intervals.values(scored.coefficients)


def _means(
    sample: Sample, spread: Floats, solved: Solved, count: int, generator: np.random.Generator
) -> Floats:
    if solved.misfit is not None and solved.misfit < MISFIT:
        return _of_means(sample, solved, count, generator)
    if np.ptp(spread) > 0:
        return _within(sample, count, generator)
    scale = 1 / np.sqrt(solved.weights)[sample.point]  # errors of the same size for all p
    pool = solved.residuals / scale
    pool = (pool - pool.mean()) * np.sqrt(sample.runs / (sample.runs - 3))
    drawn = generator.choice(pool, (count, sample.runs)) * scale
    return sample.means_of(solved.fitted[sample.point] * (1 + drawn))


def _of_means(sample: Sample, solved: Solved, count: int, generator: np.random.Generator) -> Floats:
    """Where the curve misses the means, errors are those of means: their residuals are drawn."""
    points = len(sample.p)
    away = (sample.means / solved.fitted - 1) * np.sqrt(solved.weights * sample.counts)
    widened = (away - away.mean()) * np.sqrt(points / (points - 3))
    drawn = generator.choice(widened, (count, points))
    return solved.fitted * (1 + drawn / np.sqrt(solved.weights * sample.counts))


def _within(sample: Sample, count: int, generator: np.random.Generator) -> Floats:
    counts = sample.counts.astype(int)[sample.point]
    starts = np.searchsorted(sample.point, np.arange(len(sample.p)))[sample.point]
    places = starts + (generator.random((count, sample.runs)) * counts).astype(int)
    around = sample.values - sample.means[sample.point]
    widened = around * np.sqrt(counts / (counts - 1))
    return sample.means + sample.means_of(widened[places])
