"""The reference that is committed is what the program's tables say, and all of it is there."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import gristmill

TOP = Path(__file__).parents[1]

sys.path.insert(0, str(TOP / "tools"))
from reference import FOLDER, json_measured, made  # noqa: E402 - a tool
from reference.counters import COUNTERS, in_source  # noqa: E402
from reference.errors import kinds  # noqa: E402
from reference.json_output import (  # noqa: E402
    BUILD,
    CHECK,
    DEMO,
    EXPLAIN,
    JOBS,
    PRUNE,
    SHOWN,
)
from reference.python_api import GROUPS  # noqa: E402
from reference.sources import python_fields, rust_fields  # noqa: E402
from tests.cli.harness import run  # noqa: E402

from gristmill.options import commands  # noqa: E402

INTERNAL = {
    "GRISTMILL_AGENTS",  # what a program of ours tells one that it starts; and faults, for tests
    "GRISTMILL_MOVED",
    "GRISTMILL_OBJECTS_FAULTS",
    "GRISTMILL_ON_HEAD",
    "GRISTMILL_SEGMENTS",
    "GRISTMILL_SHARED_OUTPUTS",
    "GRISTMILL_STORE_OPTIONS",
    "GRISTMILL_COMMIT",  # of the build
    "RAY_JOB_CONFIG_JSON_ENV_VAR",  # what Ray gives a job on the head of its cluster, and we to it
    "RAY_JOB_STOP_WAIT_TIME_S",
    "GRISTMILL_PROFILE",
    "GRISTMILL_TARGET",
    "GRISTMILL_COMPLETE",  # set by the shell's script
}


PAGES = made()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_current(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name], "run `make reference`"


def test_no_page_is_left_over() -> None:
    there = {path.name for path in FOLDER.glob("*.md")}
    assert there == {*PAGES, "glossary.md"}


def test_every_counter_of_the_engine_is_explained() -> None:
    explained = [name for counters in COUNTERS.values() for name in counters]
    assert len(explained) == len(set(explained))
    assert set(explained) == in_source()


def test_every_variable_is_explained() -> None:
    sources = [*TOP.glob("python/gristmill/**/*.py"), *TOP.glob("crates/*/src/**/*.rs")]
    pattern = re.compile(r"\b_?((?:GRISTMILL|AWS|AZURE|GOOGLE|HADOOP|RAY)_[A-Z0-9_]*[A-Z0-9])\b")
    named = {name for path in sources for name in pattern.findall(path.read_text("utf-8"))}
    text = (FOLDER / "environment.md").read_text(encoding="utf-8")
    assert {name for name in named - INTERNAL if f"`{name}`" not in text} == set()


def test_every_kind_of_error_has_a_meaning() -> None:
    text = (FOLDER / "errors.md").read_text(encoding="utf-8")
    assert len(kinds()) > 10
    for _, name, meaning in kinds():
        assert meaning.endswith(".")
        assert re.search(rf"(?m)^\| `{name}` \| .+ \| `\w+` \|$", text), name


def test_all_that_is_public_is_in_the_page_of_python() -> None:
    text = (FOLDER / "python.md").read_text(encoding="utf-8")
    elsewhere = {"Aggregate", "Failure", "JobReport", "Phase", "__version__"}
    for name in set(gristmill.__all__) - elsewhere:
        assert f"\n### gm.{name}\n" in text, name
    assert {name for names in GROUPS.values() for name in names}.isdisjoint(
        command.function for command in commands().values()
    )


# --- JSON: what is printed has the fields that the page names ---


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "in.txt").write_text("to be or not to be\n")
    return tmp_path


def printed(home: Path, *words: str) -> Any:  # noqa: ANN401 - JSON
    return json.loads(run(*words, "--json", cwd=home, GRISTMILL_HOME=str(home / "home")).stdout)


def names(fields: list[tuple[str, str]]) -> list[str]:
    return [name for name, _ in fields]


def test_a_report_and_its_history(home: Path) -> None:
    report = printed(home, "sort", "in.txt", "-o", "out.txt", "--history")
    assert list(report) == names(python_fields("report.py", "JobReport"))
    phase = names(python_fields("report.py", "Phase"))
    assert all(list(one) == [*phase, "busy", "cause"] for one in report["phases"])
    (job,) = printed(home, "jobs")
    assert list(job) == list(JOBS)
    shown = printed(home, "jobs", "show", "last")
    history = names(python_fields("history/model.py", "JobHistory"))
    more = {*SHOWN, "uses", "counters", "name", "inputs", "output"}
    assert set(history) <= set(shown) <= {*history, *more}
    attempt = names(python_fields("history/model.py", "Attempt"))
    assert all(list(one) == attempt for one in shown["attempts"])
    sample = names(python_fields("history/model.py", "Sample"))
    assert all(list(one) == sample for one in shown["samples"])
    assert list(printed(home, "jobs", "prune", "--dry-run")) == list(PRUNE)


def test_a_plan(home: Path) -> None:
    plan = printed(home, "explain", "sort", "in.txt", "-o", "out.txt")
    assert list(plan) == [*names(rust_fields("plan/explain.rs", "Explanation")), *EXPLAIN]
    parts = {"reservations": "PlannedMemory", "stages": "PlannedStage", "disks": "PlannedDisk"}
    for name, struct in parts.items():
        assert set(plan[name][0]) == set(names(rust_fields("plan/explain.rs", struct)))


def test_a_demo(home: Path) -> None:
    assert set(printed(home, "demo", "--rows", "1k")["demo"]) == set(DEMO)


def test_a_check(home: Path) -> None:
    (home / "job.py").write_text(
        "import gristmill as gm\n"
        "job = gm.Job(gm.text('in.txt'), map=lambda line: [(line, 1)], output=gm.tsv('out/'))\n"
    )
    found = printed(home, "check", "job.py", "--no-workers", "--rounds", "1")
    assert list(found) == list(CHECK)


def test_a_build(home: Path) -> None:
    assert list(printed(home, "--version")) == list(BUILD)


def test_a_summary_of_grep(home: Path) -> None:
    done = run("grep", "be", "in.txt", "--json", cwd=home)
    assert list(json.loads(done.stderr)) == list(json_measured.GREP)


def test_figures_of_a_benchmark(home: Path) -> None:
    often = ["--rows", "1k", "--repeat", "2", "--warm-up", "0", "-o", "results"]
    often += ["--vary", "workers=1,2"]
    found = printed(home, "bench", "run", "sort", *often)
    assert list(found) == list(json_measured.BENCH)
    for figures in found["figures"]:
        assert set(json_measured.FIGURES) <= set(figures)
        others = set(figures) - set(json_measured.FIGURES)
        text = PAGES["json.md"]
        assert all(f"`{name}`" in text for name in others)
        for name in ("seconds", *others):
            assert list(figures[name]) == list(json_measured.SUMMARY)
    reported = printed(home, "bench", "report", "results")
    assert list(reported) == [*json_measured.BENCH, "rules"]
    assert all(list(rule) == list(json_measured.RULE) for rule in reported["rules"])
    sides = ["results:workers=1", "results:workers=2"]
    compared = printed(home, "bench", "compare", *sides, "--tolerance", "100000")
    assert list(compared) == list(json_measured.COMPARE)
    assert all(list(one) == list(json_measured.COMPARISON) for one in compared["comparisons"])


def test_a_fit(home: Path) -> None:
    rows = [(p, 10 / p + p / 100 + 0.3 * (p == 1), 0.3 * (p == 1)) for p in (1, 2, 4, 8, 16)] * 2
    lines = [f"{p},{seconds + n / 1000},{waste}" for n, (p, seconds, waste) in enumerate(rows)]
    text = "\n".join(["p,seconds,waste:retries", *lines])
    (home / "runs.csv").write_text(text + "\n")
    found = printed(home, "scale", "fit", "runs.csv", "--bootstraps", "50")
    assert list(found) == [*json_measured.FIT, "cause", "loss"]
    assert list(found["sigma"]) == list(json_measured.ESTIMATE)
    assert list(found["cause"]) == list(json_measured.CAUSE)
