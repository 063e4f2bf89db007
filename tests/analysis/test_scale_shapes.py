"""Curves of other shapes: slower from the first, flat from some p on, none that the law has."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from tests.cli.harness import run

from gristmill.analysis.runs import Run
from gristmill.analysis.scale.fitting import fit_runs
from gristmill.analysis.scale.result import Fit
from gristmill.cli.scale.text import fit_lines

P = (1, 2, 4, 8, 12, 16, 24, 32)


def _fitted(
    seconds: Callable[[float], float], noise: float, p: Sequence[float] = P, seed: int = 1
) -> Fit:
    draws = np.random.default_rng(seed)
    runs = [
        Run(p=one, seconds=seconds(one) * float(draws.normal(1, noise)))
        for one in p
        for _ in range(5)
    ]
    return fit_runs(runs)


def test_where_each_processor_only_costs_one_is_best() -> None:
    times = {1: 110, 2: 120, 4: 140, 8: 180, 16: 260}
    found = _fitted(lambda p: times[int(p)], 0.005, tuple(times))
    assert found.peak_p.value == 1
    assert (found.peak_speedup.value, found.law.peak_speedup) == (1, 1)
    for one in (found.peak_speedup.low, found.peak_speedup.high, *found.peak_speedup.bootstrap):
        assert one is None or one >= 1


def test_no_interval_of_a_speedup_is_below_that_of_one_processor() -> None:
    for seed in range(20):
        found = _fitted(lambda p: 100 / p + 30, 0.2, (1, 2, 4, 8), seed)
        assert found.peak_speedup.low is None or found.peak_speedup.low >= 1


def test_a_knee_is_a_fixed_rate_and_no_law() -> None:
    found = _fitted(lambda p: 80 / min(p, 8), 0.01)
    assert found.verdict == "fixed rate"
    says = " ".join(found.sentences)
    assert "linear up to p = 8" in says.replace("7.9", "8").replace("8.0", "8")
    assert "something with a fixed rate is full (a disk, the network, the number of cores)" in says
    assert "make it slower" not in says.replace("do not make it slower", "")
    flat = next(one for one in found.models if one.name == "flat")
    assert flat.delta == 0
    assert flat.flat_from is not None
    assert abs(flat.flat_from - 8) < 0.3


def test_laws_are_not_taken_for_knees() -> None:
    for seed in range(10):
        amdahl = _fitted(lambda p: 80 * (0.06 + 0.94 / p), 0.02, seed=seed)
        assert amdahl.verdict in ("contention", "coherency")
        peaked = _fitted(
            lambda p: 80 * (1 + 0.02 * (p - 1) + 0.002 * p * (p - 1)) / p, 0.02, seed=seed
        )
        assert peaked.verdict == "coherency"
        assert _fitted(lambda p: 80 / p, 0.02, seed=seed).verdict in ("linear", "contention")


def test_a_curve_that_misses_the_means_by_more_than_the_noise_is_no_law() -> None:
    """Twelve standard errors are no law, though they are but a tenth of the time."""
    steps = {1: 1.0, 2: 1.0, 4: 1.1, 8: 0.9, 12: 1.1, 16: 0.9, 24: 1.1, 32: 1.0}
    found = _fitted(lambda p: 80 * (0.05 + 0.95 / p) * steps[int(p)], 0.005)
    assert found.verdict == "no law"


def test_the_table_has_the_fit_that_the_verdict_quotes() -> None:
    found = _fitted(lambda p: 80 * (0.06 + 0.94 / p), 0.03)
    assert found.verdict == "contention"
    lines = list(fit_lines(found))
    sigma, ceiling = (next(line for line in lines if line.startswith(f"{name} (Amdahl)"))
                      for name in ("sigma", "ceiling"))  # fmt: skip
    said = " ".join(found.sentences)
    quoted = found.amdahl["ceiling"].value
    assert quoted is not None
    assert f"stays below {quoted:.3g} " in said
    assert f"{quoted:.4g}" in ceiling
    assert f"{found.amdahl['sigma'].value:.3g}" in sigma


def test_workers_beyond_the_processors_are_said_and_not_fitted(tmp_path: Path) -> None:
    header: dict[str, object] = {"format": 1, "by": "workers", "machine": {"processors": 8}}
    lines: list[dict[str, object]] = [header]
    for p in (1, 2, 4, 8, 16):
        for at in range(3):
            lines.append({"p": p, "seconds": 80 / min(p, 8) * (1 + at / 100)})
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = run("scale", "fit", tmp_path / "runs.jsonl", "--json")
    said = "p = 16 is more workers than the machine's 8 processors: they are left out of the fit"
    assert said in done.stderr
    found = json.loads(done.stdout)
    assert [point["p"] for point in found["points"]] == [1, 2, 4, 8]
    assert found["verdict"] == "linear"
