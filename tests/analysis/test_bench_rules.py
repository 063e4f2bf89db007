"""The sort benchmark's rules, and the page, on results whose truth is known."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.cli.harness import run

from gristmill.analysis.bench.figures import Figures, figures_of
from gristmill.analysis.bench.page import render
from gristmill.analysis.bench.prices import Prices
from gristmill.analysis.bench.results import Measured, Results, read_results
from gristmill.analysis.bench.rules import Verdict, judged

from .bench_results import GB, measured, sorts, times, write

HOSTILE = """</script><img src=x onerror="document.title='owned'"><!--<b>&amp;"""


def rounds(*seconds: float, config: dict[str, str] | None = None, **more: object) -> list[Measured]:
    """Terasort and teravalidate."""
    return [
        measured(step, number, value, config=config or {}, **more)
        for number, value in enumerate(seconds, 1)
        for step in ("terasort", "teravalidate")
    ]


def verdicts(
    tmp_path: Path, runs: list[Measured], prices: Prices | None = None, **asked: object
) -> dict[str, Verdict]:
    found = read_results(write(tmp_path / "r", runs, **asked))
    return {one.category: one for one in judged(found, figures_of(found, prices))}


def broken(verdict: Verdict) -> list[str]:
    return [rule.text for rule in verdict.broken]


def test_a_minute_of_cold_files_counts(tmp_path: Path) -> None:
    found = verdicts(tmp_path, rounds(50.0, 51.0, 52.0), cache="cold")
    assert len(found) == 8
    assert found["MinuteSort, Indy"].would_count
    assert broken(found["MinuteSort, Daytona"]) == [
        "Daytona: skewed keys take no more than twice the time"
    ]
    assert broken(found["GraySort, Indy"]) == ["at least 100 TB are sorted"]
    assert broken(found["CloudSort, Indy"]) == [
        "at least 100 TB are sorted",
        "the cost is that of a public cloud",
    ]
    assert broken(found["JouleSort, Indy"]) == [
        "10^8, 10^9, 10^10 or 10^12 records are sorted",
        "a meter measures the power of the whole machine at the wall",
    ]


def test_what_a_page_cache_holds_does_not_count(tmp_path: Path) -> None:
    found = verdicts(tmp_path, rounds(50.0, 51.0))
    assert broken(found["MinuteSort, Indy"]) == ["the input is not in memory when the run starts"]


def test_more_than_a_minute_is_too_long(tmp_path: Path) -> None:
    found = verdicts(tmp_path, rounds(61.0, 60.5, 59.0), cache="cold")
    assert broken(found["MinuteSort, Indy"]) == ["it takes no more than 60 s"]


def test_100_tb_are_a_gray_sort(tmp_path: Path) -> None:
    report = {"input_bytes": 100_000 * GB, "output_bytes": 100_000 * GB}
    runs = rounds(6000.0, config={"skew": "off"}, report=report)
    runs += rounds(9000.0, config={"skew": "on"}, report=report)
    prices = Prices(usd_per_hour=58.2)
    found = verdicts(tmp_path, runs, prices, cache="cold", vary={"skew": ("off", "on")})
    for category in ("GraySort", "CloudSort"):
        for division in ("Indy", "Daytona"):
            assert found[f"{category}, {division}"].would_count
    (rule,) = [r for r in found["GraySort, Daytona"].rules if r.text.startswith("Daytona")]
    assert rule.found == "1.50 times"


@pytest.mark.parametrize(
    ("report", "config", "expected"),
    [
        ({"durable": False}, {}, "the run makes the output files, and they are durable at its end"),
        ({"misorders": 3}, {}, "order and checksum are validated"),
        ({}, {"layout": "ascii"}, "records are binary"),
        ({}, {"skew": "on"}, "Indy: keys are uniform"),
    ],
)
def test_what_is_against_a_run(
    report: dict[str, Any], config: dict[str, str], expected: str, tmp_path: Path
) -> None:
    runs = rounds(50.0, 51.0, config=config, report=report)
    found = verdicts(tmp_path, runs, cache="cold")
    assert expected in broken(found["MinuteSort, Indy"])


def test_a_round_that_nobody_validated_is_named(tmp_path: Path) -> None:
    found = verdicts(tmp_path, [*rounds(50.0), *sorts([50.0, 51.0])], cache="cold")
    (rule,) = [r for r in found["MinuteSort, Indy"].broken if r.text.startswith("order")]
    assert rule.found == "not of round 2"


def test_other_suites_have_no_category(tmp_path: Path) -> None:
    assert verdicts(tmp_path, [measured("wordcount", 1, 1.0)], suite="wordcount") == {}


def test_the_page_is_whole_and_offline(tmp_path: Path) -> None:
    config = {"workers": "2"}
    seconds = times(5.0, 0.05, 6, seed=1)
    folder = write(tmp_path / "r", rounds(*seconds, config=config, joules=12.5), cache="cold")
    (tmp_path / "prices.toml").write_text("usd_per_hour = 0.36")
    done = run("bench", "report", folder, "--prices", tmp_path / "prices.toml")
    assert done.stdout == f"{folder / 'report.html'}\n"
    page = (folder / "report.html").read_text()
    assert not re.findall(r"https?://(?!www\.w3\.org)", page)
    assert "@@" not in page
    assert "<script" not in page
    assert page.count("<svg ") == 4
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    for used in re.findall(r'(?:href="|url\()#([^")]*)', page):
        assert used in ids
    assert not re.findall(r"#[0-9a-f]{6}", "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL)))
    for expected in (
        "workers=2",
        "$/TB",
        "no power at the wall",
        "MinuteSort, Indy: <span",
        "not kept",
        "to be stated",
        "prefers-color-scheme: dark",
    ):
        assert expected in page, expected
    assert re.search(r">0\.\d+ ± 0\.\d+<", page), "GB/s with its error"
    again = run("bench", "report", folder, "--prices", tmp_path / "prices.toml", "-o", "-").stdout
    assert again == page + "\n"


def test_names_are_text(tmp_path: Path) -> None:
    runs = sorts([1.0, 1.1, 1.2], {"python": HOSTILE})
    page = render(*_loaded(write(tmp_path / "r", runs, options={HOSTILE: HOSTILE})))
    assert "<img" not in page
    assert "&lt;img" in page


def test_a_single_run_has_a_page(tmp_path: Path) -> None:
    page = render(*_loaded(write(tmp_path / "r", [measured("wc", 1, 2.0, report={"phases": []})])))
    assert page.count("<svg ") == 3


def test_figures_as_json(tmp_path: Path) -> None:
    folder = write(tmp_path / "r", rounds(5.0, 5.0, 5.0))
    said = json.loads(run("bench", "report", folder, "--json").stdout)
    sort = said["figures"][0]
    assert (sort["step"], sort["bytes"], sort["seconds"]["n"]) == ("terasort", GB, 3)
    assert sort["gb_per_s"]["mean"] == pytest.approx(0.2)
    assert sort["tb_per_min"]["mean"] == pytest.approx(0.012)
    assert sort["cpu_s_per_gb"]["mean"] == pytest.approx(5.5)
    assert sort["floor_share"]["mean"] == pytest.approx((0.1 + 0.5) / 5)
    phase, outside = sort["phases"]
    assert (phase["name"], outside["name"]) == ("map", "outside of phases")
    assert outside["seconds"]["mean"] == pytest.approx(2.5)
    assert outside["cpu_s_per_gb"]["mean"] == pytest.approx(0.4)
    kinds = {name: one["mean"] for name, one in phase["kinds"].items()}
    assert kinds == pytest.approx(
        {"user mode": 5.0, "kernel": 0.1, "Gristmill": 0.3, "workers and scripts": 4.8}
    )
    assert said["rules"][0]["category"] == "GraySort, Indy"


def test_results_without_runs_that_count_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "r", [measured("terasort", 0, 5.0, warm_up=True)])
    assert "no run of it counts" in run("bench", "report", folder, status=1).stderr


def test_matplotlib_does_not_tell_of_its_caches(tmp_path: Path) -> None:
    folder = write(tmp_path / "results", sorts([5.0, 6.0]))
    no_folder = tmp_path / "a file"
    no_folder.touch()
    done = run("bench", "report", folder, MPLCONFIGDIR=str(no_folder / "within"))
    assert done.stderr == ""


def _loaded(folder: Path) -> tuple[Results, list[Figures]]:
    found = read_results(folder)
    return found, figures_of(found)
