"""The fit: published figures, the coverage of its intervals, its verdicts, what it refuses."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest
from scipy import stats

import gristmill as gm
from gristmill.analysis.scale.fitting import fit_runs
from gristmill.analysis.scale.intervals import intervals
from gristmill.analysis.scale.law import Law
from gristmill.analysis.scale.sample import sample_of
from gristmill.analysis.scale.scoring import Floats, score

P = (1, 2, 4, 8, 16, 32, 48, 64, 96)
#: N. Gunther, P. Puglia, K. Tomasette, "Hadoop Superlinear Scalability", 2015: TeraSort on EC2.
TERASORT = Law(gamma=1e-3, sigma=-0.0288, kappa=0.000447)
#: The data of CRAN's package usl 3.0.3: raytracer (BRL-CAD on an SGI Origin 2000), specsdm91 (a Sun
#: SPARCcenter 2000 in the benchmark SPEC SDM91); both from N. Gunther, "Guerrilla Capacity
#: Planning", 2007.
RAYTRACER = (
    (1, 4, 8, 12, 16, 20, 24, 28, 32, 48, 64),
    (20, 78, 130, 170, 190, 200, 210, 230, 260, 280, 310),
)
SPECSDM91 = (
    (1, 18, 36, 72, 108, 144, 216),
    (64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2),
)


def times(
    law: Law, noise: float = 0.0, repeats: int = 1, seed: int = 0, p: Sequence[float] = P
) -> tuple[list[float], list[float]]:
    """Runs of a law, round by round, with relative Gaussian noise."""
    generator = np.random.default_rng(seed)
    each = [float(one) for _ in range(repeats) for one in p]
    return each, [law.seconds(one) * (1 + noise * generator.standard_normal()) for one in each]


# --- figures that others published ---


@pytest.mark.parametrize("measured", ["seconds", "throughput"])
def test_the_published_coefficients_give_the_published_points(measured: str) -> None:
    p, seconds = times(TERASORT)
    given = seconds if measured == "seconds" else [1 / one for one in seconds]
    found = gm.scale.fit(p, **{measured: given})
    assert found.sigma.value == pytest.approx(-0.0288)
    assert found.kappa.value == pytest.approx(0.000447)
    assert found.peak_p.value == pytest.approx(48, abs=0.05)
    assert found.crossover_p.value == pytest.approx(64.4, abs=0.05)
    assert found.peak_speedup.value == pytest.approx(73.3, abs=0.05)
    assert found.verdict == "superlinear"
    assert found.law.best_p == pytest.approx(32.7, abs=0.05)
    assert found.law.efficiency(32.7) == pytest.approx(1.817, abs=0.001)


def test_the_data_of_specsdm91_give_the_coefficients_of_usl() -> None:
    """Its documentation (README, tests/summary.Rout.save); its errors are absolute."""
    p, throughput = SPECSDM91
    found = gm.scale.fit(p, throughput=throughput, errors="absolute")
    assert found.sigma.value == pytest.approx(0.0277285, rel=1e-5)
    assert found.kappa.value == pytest.approx(0.0001044, rel=1e-3)
    assert found.gamma.value == pytest.approx(89.9952330, rel=1e-6)
    assert found.sigma.stderr == pytest.approx(0.0091217, rel=1e-4)
    assert found.kappa.stderr == pytest.approx(0.0000199, rel=2e-3)
    assert found.gamma.stderr == pytest.approx(14.2134894, rel=1e-5)
    assert found.peak_p.value == pytest.approx(96.51956, rel=1e-6)
    assert found.predict(found.peak_p.value) == pytest.approx(1884, abs=0.5)
    assert found.verdict == "coherency"


def test_the_data_of_raytracer_give_the_coefficients_of_usl() -> None:
    """Its first six rows (tests/confint.Rout.save); of all rows usl has kappa at its bound, 0."""
    p, throughput = RAYTRACER
    found = gm.scale.fit(p[:6], throughput=throughput[:6], errors="absolute")
    assert found.sigma.value == pytest.approx(0.02444, abs=1e-5)
    assert found.kappa.value == pytest.approx(0.00163, abs=1e-5)
    assert found.gamma.value == pytest.approx(20.85605, abs=1e-5)
    all_of_it = gm.scale.fit(p, throughput=throughput, errors="absolute")
    assert all_of_it.kappa.value == 0
    assert all_of_it.peak_p.value is None
    assert all_of_it.verdict == "contention"


# --- errors ---


@pytest.mark.parametrize("repeats", [3, 5, 12])
@pytest.mark.parametrize("noise", [0.03, 0.06, 0.09])
@pytest.mark.parametrize("law", [TERASORT, Law(1e-3, 0.03, 0.0003)], ids=["below_0", "above_0"])
def test_intervals_hold_what_they_say(law: Law, noise: float, repeats: int) -> None:
    """1,000 data sets; benchmarks/coverage.py does the same by way of `gm.scale.fit`."""
    p = np.array(P, float)
    exact = np.array([law.seconds(one) for one in P])
    generator = np.random.default_rng(repeats)
    values = exact[:, None] * (1 + noise * generator.standard_normal((1000, len(P), repeats)))
    found = score(p, values.mean(axis=-1), np.full(len(P), float(repeats)))
    around = ((values / found.fitted[..., None] - 1) ** 2).sum(axis=(1, 2))
    dof = len(P) * repeats - 3
    covariance = np.linalg.inv(found.information) * (around / dof)[:, None, None]
    ends = intervals(found.coefficients, covariance, np.array(stats.t.ppf(0.975, dof)))
    truth = {"sigma": law.sigma, "kappa": law.kappa, "peak_p": law.peak_p}
    for name, true in truth.items():
        low, high = ends[name]
        held = float(np.mean((low <= true) & (true <= high)))
        assert held == pytest.approx(0.95, abs=0.02 if repeats > 3 else 0.04), name


@pytest.mark.parametrize("measured", ["seconds", "throughput"])
@pytest.mark.parametrize("errors", ["relative", "absolute"])
def test_the_fit_is_the_one_of_many_data_sets_at_once(measured: str, errors: str) -> None:
    """Scipy's least squares and the scoring of scoring.py end at the same curve."""
    p, seconds = times(TERASORT, 0.06, 4, seed=5)
    given = seconds if measured == "seconds" else [1 / one for one in seconds]
    found = gm.scale.fit(p, **{measured: given}, errors=errors, bootstraps=0)
    means: Floats = np.reshape(given, (4, len(P))).mean(axis=0)
    rates, absolute = measured == "throughput", errors == "absolute"
    again = score(
        np.array(P, float), means, np.full(len(P), 4.0), rates=rates, absolute=absolute
    ).coefficients
    assert found.sigma.value == pytest.approx(again[1] / again[0], rel=1e-5)
    assert found.kappa.value == pytest.approx(again[2] / again[0], rel=1e-5)


def test_bootstrap_intervals_agree_with_those_of_t() -> None:
    p, seconds = times(TERASORT, 0.06, 6, seed=2)
    found = gm.scale.fit(p, seconds=seconds)
    for one in (found.sigma, found.kappa, found.peak_p, found.crossover_p, found.peak_speedup):
        width = one.high - one.low
        assert one.low < one.value < one.high
        assert one.bootstrap[0] == pytest.approx(one.low, abs=0.35 * width)
        assert one.bootstrap[1] == pytest.approx(one.high, abs=0.35 * width)
        assert 4 * one.stderr == pytest.approx(width, rel=0.1)


def test_a_thousand_bootstraps_take_less_than_two_seconds() -> None:
    p, seconds = times(TERASORT, 0.06, 12)
    gm.scale.fit(p, seconds=seconds, bootstraps=1)  # imports
    began = time.process_time()
    gm.scale.fit(p, seconds=seconds, bootstraps=1000)
    assert time.process_time() - began < 2


def test_a_wrong_time_at_one_processor_is_not_taken_into_all_points() -> None:
    """The error that made speedups superlinear: T(1) measured 20 % too long."""
    p, seconds = times(Law(1e-3, 0.02, 0.0001), 0.01, 5)
    seconds = [s * 1.2 if n == 1 else s for n, s in zip(p, seconds, strict=True)]
    found = gm.scale.fit(p, seconds=seconds)
    assert found.points[0].speedup < 0.95
    assert not next(check for check in found.checks if check.name == "misfit").ok


# --- verdicts ---


@pytest.mark.parametrize(
    ("law", "verdict"),
    [
        (TERASORT, "superlinear"),
        (Law(1e-3, 0.0, 0.0), "linear"),
        (Law(1e-3, 0.05, 0.0), "contention"),
        (Law(1e-3, 0.02, 0.0005), "coherency"),
    ],
)
@pytest.mark.parametrize("measured", ["seconds", "throughput"])
def test_verdicts(law: Law, verdict: str, measured: str) -> None:
    p, seconds = times(law, 0.02, 5, seed=3)
    given = seconds if measured == "seconds" else [1 / one for one in seconds]
    found = gm.scale.fit(p, **{measured: given})
    assert found.verdict == verdict
    assert found.hold_out is not None
    assert all(sentence.endswith(".") for sentence in found.sentences)
    json.loads(json.dumps(found.to_dict(), allow_nan=False))


def test_a_curve_that_breaks_off_is_no_law() -> None:
    """Between p = 3 and p = 23 its time is below zero: kappa (p_x - 1)^2 is more than 4."""
    p, seconds = times(Law(1e-3, -0.5, 0.02), p=(1, 2, 24, 32, 48, 64))
    found = gm.scale.fit(p, seconds=seconds)
    assert not found.valid
    assert found.verdict == "no law"
    assert "breaks off" in found.sentences[0]


def test_repeats_that_are_copies_hide_no_misfit() -> None:
    found = gm.scale.fit([1, 2, 4, 8, 16] * 2, seconds=[100, 50, 10, 40, 20] * 2)
    assert found.verdict == "no law"


def test_what_is_far_from_any_law() -> None:
    p = [1, 2, 4, 8, 16, 32] * 3
    jump = [100.0, 50, 25, 60, 30, 15]  # from p = 8 on another machine
    generator = np.random.default_rng(1)
    seconds = [s * (1 + 0.01 * generator.standard_normal()) for s in jump * 3]
    found = gm.scale.fit(p, seconds=seconds)
    assert found.verdict == "no law"
    assert not next(check for check in found.checks if check.name == "misfit").ok


def test_the_simpler_law_is_named_where_it_does_as_well() -> None:
    p, seconds = times(Law(1e-3, 0.05, 0.0), 0.03, 4)
    deltas = {one.name: one.delta for one in gm.scale.fit(p, seconds=seconds).models}
    assert deltas["linear"] > 10
    assert deltas["amdahl"] < 2.5


def test_an_outlier_is_named() -> None:
    p, seconds = times(TERASORT, 0.02, 4)
    seconds[13] *= 1.3
    checks = {check.name: check for check in gm.scale.fit(p, seconds=seconds).checks}
    assert not checks["outliers"].ok
    assert "item 13" in checks["outliers"].says


def test_drift_is_found() -> None:
    p, seconds = times(TERASORT, 0.01, 6)
    seconds = [s * (1 + 0.002 * at) for at, s in enumerate(seconds)]
    checks = {check.name: check for check in gm.scale.fit(p, seconds=seconds).checks}
    assert not checks["drift"].ok


def test_weak_scaling_is_told_apart() -> None:
    law = Law(1e-3, 0.02, 0.0001)
    p = list(P)
    found = gm.scale.fit(p, seconds=[n * law.seconds(n) for n in p], weak=True)
    assert found.scaling == "weak"
    assert found.sigma.value == pytest.approx(0.02)
    assert any("weak scaling" in sentence for sentence in found.sentences)
    work = [3.0 * n for n in p]
    again = gm.scale.fit(
        p, seconds=[w * law.seconds(n) for n, w in zip(p, work, strict=True)], work=work
    )
    assert (again.scaling, again.kappa.value) == ("weak", pytest.approx(0.0001))


# --- phases ---


def test_phases_give_contention_an_address() -> None:
    p = list(P)
    parts = {
        "map": [900 / n for n in p],
        "shuffle": [0.05 * (n - 1) + 50 / n for n in p],
        "commit": [30.0 for _ in p],
    }
    seconds = [sum(each) for each in zip(*parts.values(), strict=True)]
    found = gm.scale.fit(p, seconds=seconds, phases=parts)
    of = {phase.name: phase for phase in found.phases}
    total = 900 + 50 + 30
    assert of["commit"].sigma_part.value == pytest.approx(30 / total)
    assert of["commit"].sigma == pytest.approx(1)
    assert of["shuffle"].kappa_part.value == pytest.approx(0.05 / total)
    assert of["map"].sigma_part.value == pytest.approx(0, abs=1e-9)
    assert sum(one.sigma_part.value for one in of.values()) == pytest.approx(found.sigma.value)
    assert sum(one.kappa_part.value for one in of.values()) == pytest.approx(found.kappa.value)


# --- what is refused ---


@pytest.mark.parametrize(
    ("p", "seconds", "why"),
    [
        ([], [], "there are no runs"),
        ([4], [10], "there is one run, with p = 4"),
        ([4, 4, 4], [10, 11, 12], "all 3 runs have the same p = 4"),
        ([1, 1, 2, 2], [10, 11, 6, 7], r"there are 2 different p \(1, 2\)"),
        ([1, 2, 4], [10, 6, 4], "nothing is left to judge it by"),
    ],
)
def test_data_that_carry_no_law(p: list[float], seconds: list[float], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        gm.scale.fit(p, seconds=seconds)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"seconds": [1, 2]}, "seconds has 2 items, and p has 4"),
        ({"seconds": [4, 3, -2, 1]}, "seconds, item 2: -2 is not a number above 0"),
        ({"seconds": [4, 3, float("nan"), 1]}, "item 2: nan"),
        ({}, "give either seconds or throughput"),
        ({"seconds": [4, 3, 2, 1], "throughput": [1, 2, 3, 4]}, "give either"),
        ({"seconds": [4, 3, 2, 1], "work": [1, 1, 0, 1]}, "work, item 2"),
        ({"seconds": [4, 3, 2, 1], "phases": {"map": [1, 1, -1, 1]}}, "phase|map, item 2"),
        ({"seconds": [4, 3, 2, 1], "level": 2}, "level: 2 is not between 0 and 1"),
    ],
)
def test_arguments_that_are_wrong(given: dict[str, list[float]], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        gm.scale.fit([1, 2, 4, 8], **given)


def test_a_sample_is_in_the_order_of_p() -> None:
    from gristmill.analysis.runs import Run

    runs = [Run(p=p, seconds=s) for p, s in ((4, 3.0), (1, 10.0), (4, 3.2), (2, 5.5), (1, 9.0))]
    sample = sample_of(runs, "seconds", absolute=False)
    assert sample.means.tolist() == pytest.approx([9.5, 5.5, 3.1])
    assert sample.order.tolist() == [1, 4, 3, 0, 2]
    assert fit_runs(runs, bootstraps=0).runs == 5


# --- data that no run would give ---


@pytest.mark.parametrize("measured", ["seconds", "throughput"])
@pytest.mark.parametrize("errors", ["relative", "absolute"])
@pytest.mark.parametrize("seed", range(12))
def test_wild_data_are_fitted_or_refused(measured: str, errors: str, seed: int) -> None:
    generator = np.random.default_rng(seed)
    p = np.sort(generator.choice([0.5, 1, 2, 3, 8, 64, 1e3, 1e6], 5, replace=False))
    p = np.repeat(p, 1 + seed % 3)
    values = 10 ** generator.uniform(-6, 6, len(p)) if seed % 2 else np.full(len(p), 5.0)
    try:
        found = gm.scale.fit(
            p.tolist(), **{measured: values.tolist()}, errors=errors, bootstraps=20
        )
    except ValueError as error:
        assert "What to do: " in str(error)
    else:
        json.dumps(found.to_dict(), allow_nan=False)


def test_the_package_is_imported_without_its_libraries() -> None:
    code = "import sys, gristmill; gristmill.scale; print({'numpy', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("measured", ["seconds", "throughput"])
def test_gamma_is_work_per_second_whatever_the_unit(measured: str) -> None:
    p = [1, 2, 4, 8, 16, 1, 2, 4, 8, 16]
    law = Law(gamma=5e6, sigma=0.05, kappa=0.001)
    work = [2e9 if measured == "seconds" else 1e9] * len(p)
    noise = np.random.default_rng(5).normal(1, 0.01, len(p))
    seconds = [w * law.seconds(n) * e for w, n, e in zip(work, p, noise, strict=True)]
    given = (
        seconds if measured == "seconds" else [w / s for w, s in zip(work, seconds, strict=True)]
    )
    found = gm.scale.fit(p, work=work, **{measured: given})
    figure = found.gamma
    assert figure.value == pytest.approx(5e6, rel=0.02)
    assert figure.low < figure.value < figure.high
    assert figure.bootstrap[0] < figure.value < figure.bootstrap[1]
    assert 0 < figure.stderr < 0.02 * 5e6
    assert found.predict(4) == pytest.approx(found.points[2].mean, rel=0.03)
    assert found.predict(4) == pytest.approx(found.points[2].fitted)


# --- figures at the bound of kappa, and what the verdict quotes ---


@pytest.mark.parametrize("seconds", [[5, 3, 2, 1.2], [10, 5.5, 3.2, 2.05]])
def test_at_the_bound_the_error_of_the_peak_speedup_is_that_of_the_ceiling(
    seconds: list[float],
) -> None:
    found = gm.scale.fit([1, 2, 4, 8], seconds=seconds, bootstraps=0)
    assert found.kappa.value == 0
    assert found.peak_speedup.value == found.ceiling.value
    assert found.peak_speedup.stderr == found.ceiling.stderr
    assert found.ceiling.stderr is not None
    assert found.ceiling.stderr < 1000


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        ([100, 70, 66, 54, 56], "52.6% (40.3% to 68.8%) of the work"),
        ([62, 62.7, 66.6, 18.2, 53.5, 34.9], "53.4% (10.5% or more) of the work"),
        ([75.5, 74.9, 4.6, 45.7, 14.4, 57.6], "about 43.9% of the work"),
    ],
)
def test_contention_quotes_the_sigma_of_the_law_that_was_chosen(
    seconds: list[float], says: str
) -> None:
    """Beside a kappa, few noisy runs leave sigma open: its interval is that of Amdahl's law."""
    p = [1, 2, 4, 8, 16, 32][: len(seconds)]
    found = gm.scale.fit(p, seconds=seconds, bootstraps=0)
    assert found.verdict == "contention"
    assert found.sentences[0].startswith(f"By Amdahl's law, {says}")


@pytest.mark.parametrize("seconds", [[5, 3, 2, 1.2], [10, 5.5, 3.2, 2.05], [5, 6, 8, 13]])
def test_bootstrap_intervals_hold_their_value(seconds: list[float]) -> None:
    found = gm.scale.fit([1, 2, 4, 8, 1], seconds=[*seconds, seconds[0] * 1.1])
    for name in ("sigma", "kappa", "gamma", "peak_p", "peak_speedup", "ceiling"):
        figure = getattr(found, name)
        low, high = figure.bootstrap
        if figure.value is None:
            assert high is None  # the value is at infinity
        else:
            assert low is None or low <= figure.value
            assert high is None or high >= figure.value
    assert found.peak_p.bootstrap[0] is None or found.peak_p.bootstrap[0] >= 1


def test_the_misfit_is_that_of_the_curve_that_is_shown() -> None:
    """With kappa free the curve goes through the means; kappa is held at 0, and it does not."""
    free = Law(gamma=1.0, sigma=0.2, kappa=-0.004)
    p = [1, 2, 4, 8, 16] * 3
    seconds = [free.seconds(n) * (1 + 0.002 * (at // 5 - 1)) for at, n in enumerate(p)]
    found = gm.scale.fit(p, seconds=seconds, bootstraps=0)
    assert found.kappa.value == 0
    assert max(abs(point.residual) for point in found.points) > 0.02
    misfit = next(check for check in found.checks if check.name == "misfit")
    assert not misfit.ok
    assert "intervals" not in misfit.says


# --- numbers that are no times ---


@pytest.mark.parametrize(
    ("p", "seconds"),
    [
        ([1, 2, 4, 8], [1e-50, 1e50, 1e-50, 1e50]),
        ([1, 1e6, 1e9, 1e12], [1e-50, 1e50, 3, 1]),
        ([1, 2, 3, 1e12], [1, 1, 1, 1]),
        ([1e-50, 2e-50, 3e-50, 1], [1, 1, 1, 1]),
        ([1, 1 + 1e-15, 1 + 1e-14, 1 + 1e-13], [1, 2, 3, 4]),
    ],
)
@pytest.mark.parametrize("measured", ["seconds", "throughput"])
@pytest.mark.parametrize("errors", ["relative", "absolute"])
@pytest.mark.filterwarnings("error")
def test_numbers_far_apart_are_fitted_or_refused(
    p: list[float], seconds: list[float], measured: str, errors: Literal["relative", "absolute"]
) -> None:
    try:
        found = gm.scale.fit(p, errors=errors, **{measured: seconds})
    except ValueError as error:
        assert "What to do: " in str(error)
    else:
        json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("p", "more", "says"),
    [
        ([1, 2, 4, 10**400], {}, "p, item 3: 1000000.* is not a number above 0"),
        ([1, 2, 4, 1e300], {}, r"item 3: p is 1e\+300, and cannot be above"),
        ([1, 2, 4, 8], {"phases": {"map": [1, 2, 1, 5]}}, "map, item 3: 5 s, and the run took 1 s"),
        ([1, 2, 4, 8], {"errors": "wrong"}, "errors: 'wrong' is neither 'relative' nor 'absolute'"),
    ],
)
def test_arguments_that_cannot_be(p: list[float], more: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        gm.scale.fit(p, seconds=[4, 3, 2, 1], **more)
