"""Whether the intervals of `gm.scale.fit` hold what they say: simulated runs of known laws.

    law, noise, repeats, what is measured ──▶ 1,000 data sets ──▶ gm.scale.fit of each
                                          ──▶ how many intervals hold the true sigma, kappa, p*, ...

    python benchmarks/coverage.py                     all of it: some minutes, one process
    python benchmarks/coverage.py --trials 100 --bootstraps 200    also the bootstrap intervals

The noise is Gaussian, and relative: of a time or of a throughput. An interval of 95 % must hold the
true value in 95 ± 2 % of 1,000 data sets with 5 and with 12 repeats of each p, in 95 ± 4 % with 3.
"""

import argparse
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from run import HERE, machine

import gristmill as gm
from gristmill.analysis.scale.law import Law

P = (1, 2, 4, 8, 16, 32, 48, 64, 96)
LAWS = {
    "below 0": Law(gamma=1e-3, sigma=-0.0288, kappa=0.000447),  # TeraSort of 2015
    "above 0": Law(gamma=1e-3, sigma=0.03, kappa=0.0003),
}
FIGURES = ("sigma", "kappa", "peak_p", "gamma", "peak_speedup", "crossover_p")
MUST_HOLD = ("sigma", "kappa", "peak_p")


def true_values(law: Law) -> dict[str, float]:
    """What the intervals should hold."""
    found = {name: getattr(law, name) for name in FIGURES}
    return {name: value for name, value in found.items() if value is not None}


def held(low: float | None, high: float | None, true: float) -> bool:
    return (low is None or low <= true) and (high is None or true <= high)


def measure(
    law: Law, noise: float, repeats: int, measured: str, trials: int, bootstraps: int
) -> dict[str, Any]:
    """Fit as many data sets; returns the share of intervals that hold the true value."""
    generator = np.random.default_rng([repeats, round(100 * noise), len(measured)])
    p = [one for one in P for _ in range(repeats)]
    true_seconds = np.array([law.seconds(one) for one in p])
    true = 1 / true_seconds if measured == "throughput" else true_seconds
    truth = true_values(law)
    by_t = dict.fromkeys(truth, 0)
    by_bootstrap = dict.fromkeys(truth, 0)
    verdicts: dict[str, int] = {}
    for _ in range(trials):
        values = true * (1 + noise * generator.standard_normal(len(p)))
        found = gm.scale.fit(p, **{measured: values.tolist()}, bootstraps=bootstraps)
        verdicts[found.verdict] = verdicts.get(found.verdict, 0) + 1
        for name, value in truth.items():
            one = getattr(found, name)
            by_t[name] += held(one.low, one.high, value)
            by_bootstrap[name] += bootstraps > 0 and held(*one.bootstrap, value)
    shares = {name: count / trials for name, count in by_t.items()}
    again = {name: count / trials for name, count in by_bootstrap.items()} if bootstraps else {}
    return {"t": shares, "bootstrap": again, "verdicts": verdicts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=1000, help="data sets of each kind (1000)")
    parser.add_argument("--bootstraps", type=int, default=0, help="draws for each of them (0)")
    parser.add_argument("--measured", default="seconds,throughput", help="kinds, with a comma")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="raw results")
    given = parser.parse_args()
    at = datetime.now(UTC)
    rows: list[dict[str, Any]] = []
    began_s = time.perf_counter()
    print("sigma    noise  repeats  measured    sigma   kappa   p*      all within")
    for name, law in LAWS.items():
        for noise in (0.03, 0.06, 0.09):
            for repeats in (3, 5, 12):
                for measured in given.measured.split(","):
                    found = measure(law, noise, repeats, measured, given.trials, given.bootstraps)
                    allowed = 0.04 if repeats == 3 else 0.02
                    within = all(abs(found["t"][one] - 0.95) <= allowed for one in MUST_HOLD)
                    rows.append(
                        {
                            "law": name,
                            "noise": noise,
                            "repeats": repeats,
                            "measured": measured,
                            "within": within,
                            **found,
                        }
                    )
                    shares = "  ".join(f"{found['t'][one]:6.1%}" for one in MUST_HOLD)
                    print(
                        f"{name}  {noise:5.0%}  {repeats:7}  {measured:<10}  {shares}  {within}",
                        flush=True,
                    )
    results = {
        "at": at.isoformat(timespec="seconds"),
        "machine": machine(),
        "trials": given.trials,
        "bootstraps": given.bootstraps,
        "p": P,
        "laws": {name: [law.gamma, law.sigma, law.kappa] for name, law in LAWS.items()},
        "took_s": round(time.perf_counter() - began_s, 1),
        "rows": rows,
    }
    given.results.mkdir(parents=True, exist_ok=True)
    path = given.results / f"coverage-{at:%Y-%m-%dT%H%M%S}.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    print(f"{sum(row['within'] for row in rows)} of {len(rows)} within; raw results: {path}")


if __name__ == "__main__":
    main()
