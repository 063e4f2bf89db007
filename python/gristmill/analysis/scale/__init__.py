"""The Universal Scalability Law fitted to repeated runs: `gm.scale.fit`, `gristmill scale`.

    reading     CSV files and runs.jsonl          ──▶ runs
    sample      runs grouped by p, or refused
    solving     the best curve and its errors          scoring, intervals, bootstrap: the numbers
    checks      what the residuals say
    models      against simpler laws, and a point held out
    phases      the part of each phase
    judging     the verdict in words              ──▶ result: all of it
    reasons     why a curve is superlinear
    plots, page pictures, and one page of HTML
    measuring   runs of a command with each p, interleaved, resumable

Importing this package imports neither numpy nor scipy nor matplotlib: `fit` does.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from gristmill.analysis.scale.result import Fit

__all__ = ["fit"]


def fit(
    p: Sequence[float],
    *,
    seconds: Sequence[float] | None = None,
    throughput: Sequence[float] | None = None,
    work: Sequence[float] | None = None,
    phases: Mapping[str, Sequence[float]] | None = None,
    weak: bool = False,
    errors: Literal["relative", "absolute"] = "relative",
    level: float = 0.95,
    bootstraps: int = 1000,
    seed: int = 0,
) -> "Fit":
    """Fit the Universal Scalability Law to runs: one item a run, in the order in which they ran.

    Args:
        p: How many processors, workers or nodes each run had.
        seconds: How long each took.
        throughput: Or how much it did in a second.
        work: How much each did, where that differs between runs.
        phases: Seconds of each phase, by its name.
        weak: The work grew in proportion to p (without `work`).
        errors: `relative`: the error of a run grows with what is measured; `absolute`: it is the
            same for every `p`.
        level: The confidence level of the intervals, from 0.5 to 0.999.
        bootstraps: How many bootstrap samples are drawn; 0 leaves bootstrap intervals out.
        seed: The random seed of these samples.

    Raises:
        ValueError: The data are wrong, or cannot carry three parameters; the text says why.
        ModuleNotFoundError: The extra `gristmill[analysis]` is not installed.

    Example:
        >>> import gristmill as gm
        >>> p = [1, 2, 4, 8, 16, 32]
        >>> found = gm.scale.fit(p, seconds=[100, 52.1, 28.1, 16.2, 10.3, 7.6])
        >>> found.verdict
        'coherency'
        >>> round(found.sigma.value, 3), round(found.peak_p.value)
        (0.04, 74)
    """
    from gristmill.analysis.scale.needs import require

    require("scipy", "numpy")
    from gristmill.analysis.scale.fitting import fit_runs
    from gristmill.analysis.scale.given import runs_of

    return fit_runs(
        runs_of(p, seconds, throughput, work, phases, weak=weak),
        measured="seconds" if throughput is None else "throughput",
        errors=errors,
        level=level,
        bootstraps=bootstraps,
        seed=seed,
    )
