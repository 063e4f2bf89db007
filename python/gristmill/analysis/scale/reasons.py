"""Why a speedup is superlinear: what small configurations lose that large ones do not.

    seconds of each run ──┬──────────────▶ sigma
                          ├─ without retries ▶ sigma    each waste alone, and all together:
                          └─ without all ────▶ sigma    is it superlinear still?
    at one p: waste of each run against its seconds ──▶ correlation, with its interval

A waste is a cause if its share of the wall time falls from the smallest p to the largest, and if
either times without it are no longer superlinear, or it does at least half of what all wastes
together do to sigma. The cause that raises sigma most is named. The correlation does not decide: it
is told to confirm the cause, or to cast doubt on it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from gristmill.analysis.runs import Run
from gristmill.analysis.scale.fitting import fit_runs
from gristmill.analysis.scale.result import Estimate, Fit
from gristmill.analysis.scale.sample import CannotFitError
from gristmill.errors import ours

__all__ = ["Causes", "Correlation", "Waste", "explain"]

Outcome = Literal["not superlinear", "explained", "partly explained", "not explained", "unknown"]

_ENOUGH_RUNS = 5
"""Runs of one p that a correlation needs for an interval of any use."""
_WORTH = 0.01
"""Share of the wall time at the smallest p: a lesser waste does not bend a curve."""
_SHARE_MIN = 0.5
"""A cause alone moves sigma by this share of what all wastes together move it by."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """How a waste correlates with the wall time, among runs of one p (Pearson's r)."""

    p: float
    runs: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Waste:
    """One waste, and the law that fits the runs without it."""

    name: str
    shares: Sequence[tuple[float, float]]
    """(p, its mean share of the wall time)."""
    correlation: Correlation | None
    """At the p where runs differ most in it; `None` if they do not differ, or are too few."""
    sigma_without: Estimate | None
    is_cause: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Causes:
    """Whether wastes explain that runs are superlinear, and which."""

    outcome: Outcome
    cause: str | None
    """The waste that explains most, if any does."""
    sentences: Sequence[str]
    sigma: Estimate | None
    sigma_without_wastes: Estimate | None
    wastes: Sequence[Waste]
    times: Sequence[tuple[float, float, float]]
    """(p, mean seconds, mean seconds without all wastes)."""

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return asdict(self)


def explain(runs: Sequence[Run], level: float = 0.95) -> Causes:
    """Return whether wastes are why the runs are superlinear.

    Raises:
        ValueError: The wastes of a run take all of its time, or more.

    >>> p = (1, 1, 2, 2, 4, 4, 8, 8)
    >>> lost = (30, 34, 6, 7, 0, 0, 0, 0)
    >>> runs = [
    ...     Run(p=p, seconds=100 / p + lost, wastes={"retries": lost})
    ...     for p, lost in zip(p, lost)
    ... ]
    >>> found = explain(runs)
    >>> found.outcome, found.cause
    ('explained', 'retries')
    """
    names = list(dict.fromkeys(name for run in runs for name in run.wastes))
    _check(runs)
    whole = _fit(runs, level)
    alone = {name: _fit(_without(runs, [name]), level) for name in names}
    without_all = _fit(_without(runs, names), level) if names else whole
    shares = {name: _shares(runs, name) for name in names}
    causes = _causes(whole, without_all, alone, shares)
    wastes = [
        Waste(
            name,
            shares[name],
            _correlation(runs, name, level),
            _sigma(alone[name]),
            name in causes,
        )
        for name in names
    ]
    outcome = _outcome(whole, without_all, names, causes)
    cause = causes[0] if causes and outcome in ("explained", "partly explained") else None
    return Causes(
        outcome=outcome,
        cause=cause,
        sentences=_sentences(outcome, cause, whole, without_all, wastes),
        sigma=_sigma(whole),
        sigma_without_wastes=_sigma(without_all),
        wastes=wastes,
        times=_times(runs, names),
    )


def _check(runs: Sequence[Run]) -> None:
    for run in runs:
        lost = sum(run.wastes.values())
        if lost >= run.seconds:
            text = (
                f"cannot tell causes: a run lost {lost:g} s to wastes and took {run.seconds:g} s in"
                f" all ({run.source or f'p = {run.p:g}'}). What to do: count a second once, in one"
                " waste, and only seconds of the wall time."
            )
            raise ours(ValueError(text), "bad_input")


def _without(runs: Sequence[Run], names: Sequence[str]) -> list[Run]:
    return [
        replace(run, seconds=run.seconds - sum(run.wastes.get(name, 0.0) for name in names))
        for run in runs
    ]


def _fit(runs: Sequence[Run], level: float) -> Fit | None:
    try:
        return fit_runs(runs, level=level, bootstraps=0)
    except CannotFitError:
        return None


def _each_p(runs: Sequence[Run]) -> list[tuple[float, list[Run]]]:
    return [(p, [run for run in runs if run.p == p]) for p in sorted({run.p for run in runs})]


def _shares(runs: Sequence[Run], name: str) -> list[tuple[float, float]]:
    return [
        (p, float(np.mean([run.wastes.get(name, 0.0) / run.seconds for run in of_p])))
        for p, of_p in _each_p(runs)
    ]


def _times(runs: Sequence[Run], names: Sequence[str]) -> list[tuple[float, float, float]]:
    free = dict(_each_p(_without(runs, names)))
    return [
        (p, float(np.mean([r.seconds for r in of_p])), float(np.mean([r.seconds for r in free[p]])))
        for p, of_p in _each_p(runs)
    ]


def _correlation(runs: Sequence[Run], name: str, level: float) -> Correlation | None:
    """At the p where the waste differs most between runs, in seconds."""
    from scipy import stats

    spread = [
        (float(np.ptp([run.wastes.get(name, 0.0) for run in of_p])), p, of_p)
        for p, of_p in _each_p(runs)
        if len(of_p) >= _ENOUGH_RUNS
    ]
    most, p, of_p = max(spread, key=lambda one: one[0], default=(0.0, 0.0, list[Run]()))
    seconds = [run.seconds for run in of_p]
    if most <= 0 or np.ptp(seconds) <= 0:
        return None
    found = stats.pearsonr([run.wastes.get(name, 0.0) for run in of_p], seconds)
    ends = found.confidence_interval(level)
    return Correlation(p, len(of_p), float(found.statistic), float(ends.low), float(ends.high))


def _sigma(fit: Fit | None) -> Estimate | None:
    return None if fit is None else fit.sigma


def _is_superlinear(fit: Fit | None) -> bool:
    return fit is not None and fit.superlinear


def _moved(before: Fit | None, after: Fit | None) -> float:
    """By how much sigma is higher in the second fit; 0 if either has none."""
    one, other = _sigma(before), _sigma(after)
    if one is None or other is None or one.value is None or other.value is None:
        return 0.0
    return other.value - one.value


def _causes(
    whole: Fit | None,
    without_all: Fit | None,
    alone: dict[str, Fit | None],
    shares: dict[str, list[tuple[float, float]]],
) -> list[str]:
    """The names of the wastes that are causes; the one that raises sigma most first."""
    all_of_it = _moved(whole, without_all)
    moved = {name: _moved(whole, without) for name, without in alone.items()}
    ordered = sorted(moved, key=lambda name: moved[name], reverse=True)
    return [
        name
        for name in ordered
        if all_of_it > 0
        and moved[name] > 0
        and (moved[name] >= _SHARE_MIN * all_of_it or not _is_superlinear(alone[name]))
        and shares[name][0][1] > max(shares[name][-1][1], _WORTH)
    ]


def _outcome(
    whole: Fit | None, without_all: Fit | None, names: Sequence[str], causes: Sequence[str]
) -> Outcome:
    if whole is None:
        return "unknown"
    if not _is_superlinear(whole):
        return "not superlinear"
    if not names or without_all is None:
        return "unknown"
    if not causes:
        return "not explained"
    return "partly explained" if _is_superlinear(without_all) else "explained"


def _sentences(
    outcome: Outcome,
    cause: str | None,
    whole: Fit | None,
    without_all: Fit | None,
    wastes: Sequence[Waste],
) -> list[str]:
    if outcome == "unknown":
        return ["The cause is not known: the runs have no columns of wastes, or carry no law."]
    assert whole is not None
    before = f"sigma {_shown(whole.sigma)}"
    if outcome == "not superlinear":
        says = [f"The runs are not superlinear: {before}."]
        if without_all is not None and _moved(whole, without_all) != 0:
            says.append(f"Without the wastes sigma is {_shown(without_all.sigma)}.")
        return says
    says = [f"The runs are superlinear with their wastes: {before}."]
    if outcome == "not explained":
        names = ", ".join(waste.name for waste in wastes)
        return [*says, f"The wastes that were measured ({names}) are not the cause."]
    waste = next(one for one in wastes if one.name == cause)
    (least, first), (most, last) = waste.shares[0], waste.shares[-1]
    says.append(
        f"The cause is {cause}: it takes {first:.0%} of the time at p = {least:g}, and"
        f" {last:.0%} at p = {most:g}. Small configurations are slow because of it, so large"
        " ones look too fast."
    )
    says += _of_correlation(waste)
    assert without_all is not None
    if outcome == "explained":
        return [*says, f"Without the wastes they are not: sigma is {_shown(without_all.sigma)}."]
    certain = without_all.sigma.high is not None and without_all.sigma.high < 0
    by = "" if certain else ", as measured"
    return [
        *says,
        f"Without the wastes they still are{by}: sigma is {_shown(without_all.sigma)}."
        " Something else makes large configurations faster, too.",
    ]


def _of_correlation(waste: Waste) -> list[str]:
    found = waste.correlation
    if found is None:
        return [
            f"Runs of one p do not differ in {waste.name}, or are too few: their times cannot"
            " confirm it."
        ]
    shown = f"r = {found.value:.2f} ({found.low:.2f} to {found.high:.2f})"
    where = f"Among the {found.runs} runs with p = {found.p:g}"
    if found.low > 0:
        return [f"{where}, those with more of it take longer: {shown}."]
    return [f"{where}, those with more of it do not take longer for certain: {shown}."]


def _shown(sigma: Estimate) -> str:
    assert sigma.value is not None
    low = "-" if sigma.low is None else f"{sigma.low:.3g}"
    high = "-" if sigma.high is None else f"{sigma.high:.3g}"
    return f"{sigma.value:.3g} ({low} to {high})"
