"""The least squares of the law for many data sets at once: bootstraps and simulations need it.

The seconds of one unit of work are linear in three numbers:

    T(p) = (a + b (p - 1) + c p (p - 1)) / p      gamma = 1/a, sigma = b/a, kappa = c/a

so a step of Fisher's scoring is a linear problem with three unknowns, and thousands of data sets
are a stack of 3 x 3 systems. A rate 1/T has the same relative gradient with the other sign, so both
kinds of data share one method. A data set contributes its mean at each p and the number of runs.

At the end the sum of (y - mu)/mu times the relative gradient is 0: a quasi-likelihood whose
variance goes with mu squared. It has no bias, unlike weights taken from the data themselves.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "Floats", "Scored", "basis", "score", "weights_of"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_STEPS = 40
_ENOUGH = 1e-10
_FITTED_SHARE_MIN = 1e-3
"""Of the measured seconds: what a curve on its way may have at least, anywhere."""


class Scored(NamedTuple):
    """The coefficients of each data set, and the information that they rest on."""

    coefficients: Floats
    """(..., terms): a, b, c."""
    information: Floats
    """(..., terms, terms): its inverse, times the variance of one run, is the covariance."""
    fitted: Floats
    """(..., points): the fitted seconds of one unit of work."""


def basis(p: Floats, terms: int = 3) -> Floats:
    """Return the terms of the law at each p: all three, two (Amdahl), or one (linear).

    >>> basis(np.array([1.0, 4.0]))
    array([[1.  , 0.  , 0.  ],
           [0.25, 0.75, 3.  ]])
    """
    return np.stack([1 / p, (p - 1) / p, p - 1], axis=-1)[..., :terms]


def weights_of(fitted: Floats, counts: Floats, *, rates: bool, absolute: bool) -> Floats:
    """Return the weight of a mean's relative error: in proportion to the inverse of its variance.

    Where errors are absolute, their relative size falls as the value grows.

    >>> weights_of(np.array([2.0, 4.0]), np.array([3.0, 3.0]), rates=False, absolute=True)
    array([12., 48.])
    """
    if not absolute:
        return np.broadcast_to(counts, fitted.shape)
    return counts * (fitted**-2 if rates else fitted**2)


def _solved(information: Floats, target: Floats) -> Floats:
    """The steps of all data sets; the shortest where one of them leaves several."""
    try:
        found = np.linalg.solve(information, target[..., None])
    except np.linalg.LinAlgError:
        found = np.linalg.pinv(information, hermitian=True) @ target[..., None]
    return np.asarray(found, np.float64)[..., 0]


def score(
    p: Floats,
    means: Floats,
    counts: Floats,
    *,
    rates: bool = False,
    absolute: bool = False,
    terms: int = 3,
    steps: int = _STEPS,
) -> Scored:
    """Fit the law to each data set: `means` is (..., points), `counts` the runs behind each mean.

    >>> p = np.array([1.0, 2.0, 4.0, 8.0])
    >>> found = score(p, basis(p) @ np.array([10.0, 0.5, 0.1]), np.ones(4))
    >>> found.coefficients.round(6)
    array([10. ,  0.5,  0.1])
    """
    design = basis(p, terms)
    seconds = 1 / means if rates else means
    fitted = seconds
    coefficients = np.zeros((*means.shape[:-1], terms))
    information = np.zeros((*means.shape[:-1], terms, terms))
    for step in range(steps):
        relative = design / fitted[..., None]
        weights = weights_of(fitted, counts, rates=rates, absolute=absolute)
        weighted = relative * weights[..., None]
        information = np.einsum("...pi,...pj->...ij", weighted, relative)
        excess = 1 - means * fitted if rates and step else seconds / fitted - (1 if step else 0)
        target = np.einsum("...pi,...p->...i", weighted, excess)
        change = _solved(information, target)
        coefficients = coefficients + change
        # A curve on its way may cross zero: it is kept above it, so that the next step turns back.
        fitted = np.maximum(coefficients @ design.T, _FITTED_SHARE_MIN * seconds)
        moved = np.abs(change @ design.T) / fitted
        if step and moved.max(initial=0.0) < _ENOUGH:
            break
    return Scored(coefficients, information, fitted)
