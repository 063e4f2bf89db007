"""Whether the intervals of `gm.scale.fit` hold what they say: simulated runs of known laws.

    law, noise, repeats, what is measured ──▶ data sets ──▶ the fit of all of them at once
    ──▶ how many intervals hold the true sigma, kappa, p*
    a few of the data sets ──▶ gm.scale.fit, one by one: the same intervals, or it stops

    python benchmarks/coverage.py                                   1,000 data sets of each kind
    python benchmarks/coverage.py --bootstraps 1000 --singly 200    also the bootstrap's, of 200

The noise is Gaussian, and relative: of a time or of a throughput. An interval of 95 % must hold the
true value in 95 ± 2 % of 1,000 data sets with 5 and with 12 repeats of each p, in 95 ± 4 % with 3.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special
from tables import RESULTS, keep

import gristmill as gm
from gristmill.analysis.scale.intervals import intervals
from gristmill.analysis.scale.law import Law
from gristmill.analysis.scale.scoring import Floats, score
from gristmill.analysis.scale.solving import MISFIT

P = (1, 2, 4, 8, 16, 32, 48, 64, 96)
LAWS = {
    "below 0": Law(gamma=1e-3, sigma=-0.0288, kappa=0.000447),  # TeraSort of 2015
    "above 0": Law(gamma=1e-3, sigma=0.03, kappa=0.0003),
}
MUST_HOLD = ("sigma", "kappa", "peak_p")


def variances(values: Floats, fitted: Floats, means: Floats) -> tuple[Floats, Floats]:
    """The variance of a run in each data set, and its degrees of freedom, as the fit takes them.

    That is the spread of runs around the curve, or where the curve misses the means, theirs.
    """
    points, repeats = values.shape[-2:]
    squares = ((values / fitted[..., None] - 1) ** 2).sum(axis=(-1, -2))
    within = (((values - means[..., None]) / fitted[..., None]) ** 2).sum(axis=(-1, -2))
    lost, left = points - 3, points * (repeats - 1)
    missed = (squares - within) / lost
    misfit = special.fdtrc(lost, left, missed / (within / left)) < MISFIT
    dof = points * repeats - 3
    return np.where(misfit, missed, squares / dof), np.where(misfit, lost, dof)


def all_at_once(values: Floats, *, rates: bool) -> dict[str, tuple[Floats, Floats]]:
    """The intervals of each data set: `values` is (data sets, p, repeats)."""
    means = values.mean(axis=-1)
    found = score(np.array(P, float), means, np.full(len(P), float(values.shape[-1])), rates=rates)
    fitted = 1 / found.fitted if rates else found.fitted
    variance, dof = variances(values, fitted, means)
    covariance = np.linalg.inv(found.information) * variance[:, None, None]
    return intervals(found.coefficients, covariance, special.stdtrit(dof, 0.975))


def compare(
    values: Floats, ends: dict[str, tuple[Floats, Floats]], measured: str, bootstraps: int
) -> dict[str, tuple[Floats, Floats]]:
    """Fit data sets one by one; stop where intervals differ, and return those of the bootstrap."""
    p = [one for one in P for _ in range(values.shape[-1])]
    again: dict[str, list[tuple[float, float]]] = {name: [] for name in MUST_HOLD}
    for at, each in enumerate(values):
        fit = gm.scale.fit(p, **{measured: each.ravel().tolist()}, bootstraps=bootstraps)
        own = any(check.name == "spread" and not check.ok for check in fit.checks)  # own weights
        for name in MUST_HOLD:
            one = getattr(fit, name)
            low, high = ends[name][0][at], ends[name][1][at]
            ours = (one.low, np.inf if one.high is None else one.high)
            if not (own or np.allclose(ours, (low, high), rtol=1e-4, atol=1e-9)):
                raise SystemExit(f"{name} of data set {at}: {ours}, and at once {(low, high)}")
            known = [np.inf if end is None else end for end in one.bootstrap]
            again[name].append((known[0], known[1]))
    return {name: (np.array(each)[:, 0], np.array(each)[:, 1]) for name, each in again.items()}


def share(ends: tuple[Floats, Floats], true: float) -> float:
    return float(np.mean((ends[0] <= true) & (true <= ends[1])))


def measure(
    law: Law, noise: float, repeats: int, measured: str, given: argparse.Namespace
) -> dict[str, Any]:
    """The share of intervals that hold the true values."""
    generator = np.random.default_rng([repeats, round(100 * noise), len(measured)])
    true = np.array([law.seconds(one) for one in P])
    true = 1 / true if measured == "throughput" else true
    shape = (given.trials, len(P), repeats)
    values = true[:, None] * (1 + noise * generator.standard_normal(shape))
    ends = all_at_once(values, rates=measured == "throughput")
    truth = {name: getattr(law, name) for name in MUST_HOLD}
    singly = compare(values[: given.singly], ends, measured, given.bootstraps)
    found: dict[str, Any] = {"t": {name: share(ends[name], truth[name]) for name in truth}}
    if given.bootstraps:
        found["bootstrap"] = {name: share(singly[name], truth[name]) for name in truth}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=1000, help="data sets of each kind (1000)")
    parser.add_argument("--bootstraps", type=int, default=0, help="draws for each single fit (0)")
    parser.add_argument("--singly", type=int, default=10, help="of them fitted one by one (10)")
    parser.add_argument("--measured", default="seconds,throughput", help="kinds, with a comma")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the table goes")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    print("sigma    noise  repeats  measured    sigma   kappa   p*      all within")
    for name, law in LAWS.items():
        for noise in (0.03, 0.06, 0.09):
            for repeats in (3, 5, 12):
                for measured in given.measured.split(","):
                    found = measure(law, noise, repeats, measured, given)
                    allowed = 0.04 if repeats == 3 else 0.02
                    within = all(abs(found["t"][one] - 0.95) <= allowed for one in MUST_HOLD)
                    rows.append(
                        {
                            "law": name,
                            "noise": noise,
                            "repeats": repeats,
                            "measured": measured,
                            "within": within,
                            "trials": given.trials,
                            "singly": given.singly,
                            "bootstraps": given.bootstraps,
                            **found,
                        }
                    )
                    shares = "  ".join(f"{found['t'][one]:6.1%}" for one in MUST_HOLD)
                    print(
                        f"{name}  {noise:5.0%}  {repeats:7}  {measured:<10}  {shares}  {within}",
                        flush=True,
                    )
    keep("coverage", rows, given.results)
    print(f"{sum(row['within'] for row in rows)} of {len(rows)} within")


if __name__ == "__main__":
    main()
