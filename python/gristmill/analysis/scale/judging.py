"""The verdict: what the curve is, and what it means for the next machine, in plain English.

no law        the curve breaks off, or misses the means by more than runs with one p differ
superlinear   the runs alone say so, whatever the curve; or sigma is below 0 with its whole interval
coherency     more processors make it slower beyond a peak: all three parameters are needed
contention    a ceiling, but no peak: Amdahl's law does as well
fixed rate    linear up to some p, flat from there on: no law of the family has this shape
linear        neither is to be seen
"""

from collections.abc import Callable, Mapping, Sequence

from gristmill.analysis.scale.law import Law
from gristmill.analysis.scale.models import simplest
from gristmill.analysis.scale.result import (
    Check,
    Estimate,
    HoldOut,
    Model,
    Point,
    Scaling,
    Verdict,
)

__all__ = ["judge", "show_interval"]

_NEAR = 0.03
"""By how much means may miss a curve that is still the law, however little runs differ.

Beyond it the test of the misfit decides: whether repeats differ as much.
"""

_FAR = 0.25
"""By how much means may miss a curve that still says something where it is superlinear."""

_LAWS = {
    "linear": "a linear speedup",
    "amdahl": "Amdahl's law",
    "usl": "the full law",
    "flat": "a speed that is linear and then flat",
}


_Says = Callable[[Mapping[str, Estimate], Law, Sequence[Point]], list[str]]


def judge(
    estimates: Mapping[str, Estimate],
    of_amdahl: Mapping[str, Estimate],
    law: Law,
    points: Sequence[Point],
    checks: Sequence[Check],
    models: Sequence[Model],
    hold_out: HoldOut | None,
    *,
    scaling: Scaling,
    valid: bool,
    level: float,
) -> tuple[Verdict, list[str]]:
    """Return the verdict, and the sentences that say it.

    Contention alone is Amdahl's law: its sentences quote the sigma of that fit.
    """
    verdict = _verdict(estimates, points, checks, list(models), valid=valid)
    quoted = {**estimates, **of_amdahl} if verdict == "contention" else estimates
    says = {
        "no law": _no_law,
        "superlinear": _superlinear,
        "coherency": _coherency,
        "contention": _contention,
        "linear": _linear,
        "fixed rate": _fixed_rate(models),
    }[verdict](quoted, law, points)
    return verdict, [
        *says,
        *_of_models(models),
        *([] if verdict == "fixed rate" else _of_hold_out(hold_out, level)),
        *_of_scaling(scaling),
    ]


def _verdict(
    estimates: Mapping[str, Estimate],
    points: Sequence[Point],
    checks: Sequence[Check],
    models: list[Model],
    *,
    valid: bool,
) -> Verdict:
    name = simplest(models).name
    if name == "flat":
        return "fixed rate"
    misses = max(abs(point.residual) for point in points) if _failed(checks, "misfit") else 0.0
    if not valid or misses > _FAR:
        return "no law"
    if _failed(checks, "efficiency"):
        return "superlinear"
    if misses > _NEAR:
        return "no law"
    if _is_below_0(estimates["sigma"]):
        return "superlinear"
    if estimates["peak_p"].value is not None and (name == "usl" or _is_above_0(estimates["kappa"])):
        return "coherency"
    if estimates["ceiling"].value is not None and (
        name == "amdahl" or _is_above_0(estimates["sigma"])
    ):
        return "contention"
    return "linear"


def _failed(checks: Sequence[Check], name: str) -> bool:
    return any(check.name == name and not check.ok for check in checks)


def _is_below_0(estimate: Estimate) -> bool:
    return estimate.high is not None and estimate.high < 0


def _is_above_0(estimate: Estimate) -> bool:
    return estimate.low is not None and estimate.low > 0


def show_interval(estimate: Estimate, digits: int = 3) -> str:
    """Return a figure with its interval.

    >>> show_interval(Estimate(48.02, 1.0, 46.1, None))
    '48 (46.1 or more)'
    """
    low, high = estimate.low, estimate.high
    match (low, high):
        case (None, None):
            between = "without bounds"
        case (None, _):
            between = f"{high:.{digits}g} or less"
        case (_, None):
            between = f"{low:.{digits}g} or more"
        case _:
            between = f"{low:.{digits}g} to {high:.{digits}g}"
    return "none" if estimate.value is None else f"{estimate.value:.{digits}g} ({between})"


def _share(sigma: Estimate) -> str:
    """Sigma as a part of the work, with its interval where that is above 0 for certain."""
    value = sigma.value or 0.0
    if not _is_above_0(sigma):
        return f"about {value:.1%}"
    open_ended = sigma.high is None or sigma.high > 1
    return f"{value:.1%} ({sigma.low:.1%} {'or more' if open_ended else f'to {sigma.high:.1%}'})"


def _no_law(_: Mapping[str, Estimate], law: Law, points: Sequence[Point]) -> list[str]:
    if law.least_divisor(max(points[-1].p, law.crossover_p or 1.0)) <= 0:
        return [
            "The fitted curve breaks off: it has no positive time at some p. Its"
            " coefficients mean nothing. Check the runs around it, or measure more p."
        ]
    worst = max(points, key=lambda point: abs(point.residual))
    return [
        f"The law does not describe these runs: at p = {worst.p:g} they are"
        f" {abs(worst.residual):.0%} away from it. Something else changes with p."
    ]


def _superlinear(estimates: Mapping[str, Estimate], law: Law, points: Sequence[Point]) -> list[str]:
    best = max(points, key=lambda point: point.efficiency)
    lacks = (
        " So the small configurations lack something that the large ones have: find it before"
        " you trust the speedup."
    )
    if not _is_below_0(estimates["sigma"]):
        gain = best.efficiency / points[0].efficiency
        return [
            f"Superlinear as measured: at p = {best.p:g} each processor does {gain:.2f} times what"
            f" it does at p = {points[0].p:g}.{lacks}",
            f"The law does not have this shape: its sigma is {show_interval(estimates['sigma'])}.",
        ]
    says = [
        f"Superlinear: sigma is below 0. At p = {best.p:g} each processor does"
        f" {best.efficiency:.2f} times the work of one alone.{lacks}"
    ]
    crossover = law.crossover_p
    if crossover is None:
        return [*says, "No crossover is in sight: nothing is paid back yet."]
    says.append(
        f"The gain ends at p = {show_interval(estimates['crossover_p'])}; beyond it the speedup is"
        " below linear, and the gain is paid back."
    )
    return [*says, *_of_peak(estimates, points)]


def _coherency(estimates: Mapping[str, Estimate], law: Law, points: Sequence[Point]) -> list[str]:
    contention = (
        f"{_share(estimates['sigma'])} of the work is done one after the other"
        if _is_above_0(estimates["sigma"])
        else "contention cannot be told from 0"
    )
    return [
        f"Each processor waits for the others: kappa = {law.kappa:.3g}, and its cost grows with p."
        f" As for sigma, {contention}.",
        *_of_peak(estimates, points),
    ]


def _contention(estimates: Mapping[str, Estimate], _: Law, points: Sequence[Point]) -> list[str]:
    ceiling = estimates["ceiling"]
    says = [
        f"By Amdahl's law, {_share(estimates['sigma'])} of the work is done one after the other; no"
        " loss from coherency is to be seen."
    ]
    if ceiling.value is not None:
        says.append(
            f"More processors help less and less: the speedup stays below {show_interval(ceiling)}."
        )
    peak = estimates["peak_p"]
    if peak.low is not None and peak.low > points[-1].p:
        says.append(f"A peak below p = {peak.low:.3g} is ruled out.")
    return says


def _fixed_rate(models: Sequence[Model]) -> _Says:
    """What there is to say of a speed that does not grow from some p on."""
    flat_from = next((one.flat_from for one in models if one.flat_from is not None), None)

    def says(_: Mapping[str, Estimate], __: Law, ___: Sequence[Point]) -> list[str]:
        return [
            f"The speed is linear up to p = {flat_from:.3g}, and flat from there on: something with"
            " a fixed rate is full (a disk, the network, the number of cores). More processors do"
            " not help, and do not make it slower.",
            "The figures above are of the Universal Scalability Law, which does not have this"
            " shape: do not read them off.",
        ]

    return says


def _linear(_: Mapping[str, Estimate], __: Law, points: Sequence[Point]) -> list[str]:
    last = points[-1]
    return [
        f"Linear within the errors: at p = {last.p:g} the speedup is {last.speedup:.3g}. Contention"
        " and coherency are too small to be seen here."
    ]


def _of_peak(estimates: Mapping[str, Estimate], points: Sequence[Point]) -> list[str]:
    peak, most = estimates["peak_p"], estimates["peak_speedup"]
    if peak.value is None:
        return ["No peak is in sight."]
    where = (
        "The peak is at"
        if peak.value <= points[-1].p
        else "The peak is beyond what was measured, at"
    )
    return [
        f"{where} p = {show_interval(peak)} with a speedup of {show_interval(most)};"
        " more processors make it slower."
    ]


def _of_models(models: Sequence[Model]) -> list[str]:
    good = [one for one in models if one.delta is not None and one.delta < 2]
    if len(good) < 2:
        return []
    others = [_LAWS[one.name] for one in good[1:]]
    return [
        f"{_LAWS[good[0].name][0].upper()}{_LAWS[good[0].name][1:]} describes the runs as well as"
        f" {' and '.join(others)} (AICc): the runs cannot tell them apart."
    ]


def _of_hold_out(hold_out: HoldOut | None, level: float) -> list[str]:
    if hold_out is None:
        return []
    off = hold_out.measured / hold_out.predicted - 1
    if hold_out.held:
        return [
            f"Without the runs at p = {hold_out.p:g}, the law predicts them ({off:+.1%} off, within"
            f" its {level:.0%} interval)."
        ]
    return [
        f"Without the runs at p = {hold_out.p:g}, the law does not predict them ({off:+.1%} off,"
        f" outside its {level:.0%} interval): do not trust it beyond what was measured."
    ]


def _of_scaling(scaling: Scaling) -> list[str]:
    if scaling == "weak":
        return [
            "The work grew with p (weak scaling): a speedup of s means s times the work of one"
            " processor in the same time."
        ]
    if scaling == "mixed":
        return [
            "The work differs between p, and not in proportion to it: speedups are of its rate."
        ]
    return []
