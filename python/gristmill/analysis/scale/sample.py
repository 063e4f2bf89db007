"""Runs as the fit takes them: grouped by p, in one unit, or refused with the reason.

    runs ──▶ seconds for one unit of work, or work per second ──▶ means, counts, single values by p

The values of one p stand together, in the order in which they came.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gristmill.analysis.runs import Run
from gristmill.analysis.scale.result import Scaling
from gristmill.analysis.scale.scoring import Floats
from gristmill.units import show_count

__all__ = ["CannotFitError", "Sample", "sample_of", "scaling_of"]

PARAMETERS = 3
_SAME = 0.01
"""By how much work may differ and still be called the same."""


class CannotFitError(ValueError):
    """The runs cannot carry a law of three parameters; the text says why."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What was measured at each p; arrays over points are in the order of p."""

    p: Floats
    counts: Floats
    means: Floats
    values: Floats
    """Of single runs, ordered by p."""
    point: NDArray[np.intp]
    """Of each value: the place of its p in `p`."""
    order: NDArray[np.intp]
    """Of each value: its place among the runs as given."""
    rates: bool
    """Whether values are work per second, or seconds for one unit of work."""
    absolute: bool
    """Whether the spread is the same at every p, or a share of what is measured."""
    unit: float = 1.0
    """The work that seconds are of: that of a run, or of one processor's share of it."""

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return len(self.values)

    def without_last(self) -> "Sample":
        """Return all but the runs with the largest p."""
        kept = self.point < len(self.p) - 1
        return Sample(
            self.p[:-1],
            self.counts[:-1],
            self.means[:-1],
            self.values[kept],
            self.point[kept],
            self.order[kept],
            self.rates,
            self.absolute,
            self.unit,
        )

    def means_of(self, values: Floats) -> Floats:
        """Return the mean at each p of values that are ordered as `values`; also of a stack."""
        starts = np.searchsorted(self.point, np.arange(len(self.p)))
        return np.add.reduceat(values, starts, axis=-1) / self.counts


def scaling_of(runs: Sequence[Run]) -> Scaling:
    """Say how the work went with p.

    >>> scaling_of([Run(p=1, seconds=1, work=5), Run(p=2, seconds=1, work=10)])
    'weak'
    """
    work = np.array([run.work for run in runs])
    share = work / np.array([run.p for run in runs])
    if np.ptp(work) <= _SAME * work.max():
        return "strong"
    return "weak" if np.ptp(share) <= _SAME * share.max() else "mixed"


def _unit_of(runs: Sequence[Run]) -> float:
    """The work of a run, or where it grows with p, of one processor in it."""
    weak = scaling_of(runs) == "weak"
    return float(np.mean([run.work / run.p if weak else run.work for run in runs]))


def sample_of(
    runs: Sequence[Run], measured: Literal["seconds", "throughput"], *, absolute: bool
) -> Sample:
    """Group runs by p.

    Raises:
        CannotFitError: There are too few of them, or too few different p.

    >>> runs = [Run(p=p, seconds=10 / p) for p in (4, 1, 2, 1)]
    >>> sample_of(runs, "seconds", absolute=False).counts
    array([2., 1., 1.])
    """
    _refuse(runs)
    all_p = np.array([float(run.p) for run in runs])
    order = np.argsort(all_p, kind="stable")
    p, point, counts = np.unique(all_p[order], return_inverse=True, return_counts=True)
    rates = measured == "throughput"
    unit = 1.0 if rates else _unit_of(runs)
    taken = np.array([run.rate if rates else run.seconds / run.work * unit for run in runs])[order]
    sums = np.bincount(point, weights=taken)
    means = sums / counts
    return Sample(p, counts.astype(float), means, taken, point, order, rates, absolute, unit)


def _refuse(runs: Sequence[Run]) -> None:
    """Refuse runs that cannot carry three parameters."""
    different = sorted({float(run.p) for run in runs})
    shown = ", ".join(f"{p:g}" for p in different)
    why = ""
    if not runs:
        why = "there are no runs"
    elif len(runs) == 1:
        why = f"there is one run, with p = {shown}"
    elif len(different) == 1:
        why = f"all {len(runs)} runs have the same p = {shown}, so they say nothing about other p"
    elif len(different) < PARAMETERS:
        why = (
            f"there are {len(different)} different p ({shown}), and the law has {PARAMETERS}"
            " parameters: every p that is not measured could have any time"
        )
    elif len(runs) == PARAMETERS:
        why = (
            f"there are {show_count(len(runs), 'run')}, and the law has {PARAMETERS} parameters:"
            " it goes through all of them, and nothing is left to judge it by"
        )
    if why:
        raise CannotFitError(
            f"cannot fit the law of scaling: {why}. What to do: measure at least 3 different p,"
            " better 6 or more with p = 1 among them, and each of them several times."
        )
