"""The statistics of `bench` on fixed numbers, against scipy's own; and in the long run."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from gristmill.analysis.bench.energy import Reading, joules_between, read_energy
from gristmill.analysis.bench.errors import BenchError
from gristmill.analysis.bench.prices import read_prices
from gristmill.analysis.bench.stats import ratio, summary

VALUES = [4.93, 5.12, 4.88, 5.31, 5.02, 4.97, 5.44]
OTHERS = [5.21, 5.40, 5.01, 5.66, 5.33, 5.12, 5.87]


def test_a_summary_is_scipys() -> None:
    found = summary(VALUES)
    assert found.n == 7
    assert found.mean == pytest.approx(np.mean(VALUES))
    assert found.median == 5.02
    assert found.stderr == pytest.approx(stats.sem(VALUES))
    assert found.relative_percent == pytest.approx(100 * stats.sem(VALUES) / np.mean(VALUES))
    expected = stats.ttest_1samp(VALUES, 0).confidence_interval(0.95)
    assert found.interval == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("n", [2, 3, 5, 10])
def test_the_interval_of_a_mean_holds_it(n: int) -> None:
    """Of 1,000 benchmarks of few runs with noise of 5 %, 95 % hold the true mean."""
    random = np.random.default_rng(n)
    intervals = [summary(list(random.normal(10, 0.5, n))).interval for _ in range(1000)]
    held = sum(found is not None and found[0] <= 10 <= found[1] for found in intervals)
    assert 925 <= held <= 975


@pytest.mark.parametrize(
    ("values", "stderr", "interval"),
    [([2.0], None, None), ([3.0, 3.0, 3.0], 0.0, (3.0, 3.0))],
)
def test_few_and_equal_values(
    values: list[float], stderr: float | None, interval: tuple[float, float] | None
) -> None:
    found = summary(values)
    assert (found.stderr, found.interval) == (stderr, interval)


def test_no_interval_is_not_a_number() -> None:
    for values in ([1.0, 1.0, 1.0, 1.0, 2.0], [1.0, 1.0, 1.0 + 1e-15], [1.0, 2.0, 2.0]):
        low, high = summary(values).interval or (np.nan, np.nan)
        assert low <= high


def test_ratios_are_those_of_t_tests() -> None:
    one, other = np.log(VALUES), np.log(OTHERS)
    paired = stats.ttest_rel(other, one).confidence_interval(0.95)
    welch = stats.ttest_ind(other, one, equal_var=False).confidence_interval(0.95)
    for expected, is_paired in ((paired, True), (welch, False)):
        found = ratio(VALUES, OTHERS, paired=is_paired)
        assert found.value == pytest.approx(np.exp(other.mean() - one.mean()))
        assert found.interval == pytest.approx((np.exp(expected.low), np.exp(expected.high)))


def test_single_values_have_no_interval() -> None:
    assert ratio([1.0], [2.0], paired=True).interval is None
    assert ratio([1.0, 1.1], [2.0], paired=False).interval is None


@pytest.mark.parametrize("paired", [True, False])
def test_intervals_hold_the_truth(paired: bool) -> None:
    """Of 400 comparisons of five runs with noise of 5 %, 95 % hold the true ratio."""
    random = np.random.default_rng(5)
    held = 0
    for _ in range(400):
        drift = random.normal(1, 0.2, 5) if paired else np.ones(5)
        one = 10 * abs(drift) * random.normal(1, 0.05, 5)
        other = 11 * abs(drift) * random.normal(1, 0.05, 5)
        low, high = ratio(list(one), list(other), paired=paired).interval or (0, 0)
        held += low <= 1.1 <= high
    assert 365 <= held <= 395


def test_energy_is_read_where_it_is_counted(tmp_path: Path) -> None:
    for folder, name, counted in (
        ("intel-rapl:0", "package-0", "9000000"),
        ("intel-rapl:0:0", "core", "5000000"),
        ("intel-rapl:0:1", "dram", "7000000"),
        ("intel-rapl:1", "psys", "1"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "name").write_text(f"{name}\n")
        (tmp_path / folder / "energy_uj").write_text(f"{counted}\n")
        (tmp_path / folder / "max_energy_range_uj").write_text("10000000\n")
    before = read_energy(tmp_path)
    assert before == {
        "intel-rapl:0": Reading(9_000_000, 10_000_000),
        "intel-rapl:0:1": Reading(7_000_000, 10_000_000),
    }
    (tmp_path / "intel-rapl:0/energy_uj").write_text("1000000\n")  # it began again
    (tmp_path / "intel-rapl:0:1/energy_uj").write_text("7500000\n")
    assert joules_between(before, read_energy(tmp_path)) == pytest.approx(2.5)
    assert joules_between({}, before) is None


def test_prices(tmp_path: Path) -> None:
    toml, as_json = tmp_path / "prices.toml", tmp_path / "prices.json"
    toml.write_text("usd_per_hour = 3.6\nmachines = 2\n")
    as_json.write_text(json.dumps({"usd_per_hour": 3.6, "machines": 2}))
    assert read_prices(toml) == read_prices(as_json)
    assert read_prices(toml).usd_per_tb(10, 1e9) == pytest.approx(20)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hours = 1", "usd_per_hour is missing"),
        ("usd_per_hour = -1", "usd_per_hour is -1, which is not a number above 0"),
        ("usd_per_hour = true", "usd_per_hour is True, which"),
        ("usd_per_hour = 1\ncolour = 2", "'colour' is not known"),
        ("usd_per_hour", "it is neither TOML nor"),
        (b"usd_per_hour = 1 # \xff", "it is neither TOML nor"),
        pytest.param(f"usd_per_hour = {'[' * 20_000}", "it is neither TOML nor", id="nested"),
        pytest.param(f"usd_per_hour = 1{'0' * 400}", "usd_per_hour is too large", id="digits"),
        pytest.param(f"usd_per_hour = 0x1{'0' * 9999}", "usd_per_hour is too large", id="hex"),
        ("usd_per_hour = inf", "usd_per_hour is too large"),
    ],
)
def test_wrong_prices_are_named(text: str | bytes, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(BenchError, match="cannot read the prices") as caught:
        read_prices(file)
    assert expected in str(caught.value)
    with pytest.raises(BenchError, match="no such file"):
        read_prices(tmp_path / "none.toml")
