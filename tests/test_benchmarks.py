"""docs/benchmarks.md: its raw results and programs are there, and other pages quote its figures."""

import csv
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = ROOT / "benchmarks/results"
COMPARED = re.findall(r"`(compare-\S+\.json)`", PAGE)[0]


def test_its_raw_results_are_there() -> None:
    named = re.findall(r"`([\w*-]+\.(?:json|csv))`", PAGE)
    named = [name for name in named if "*" not in name]
    assert len(named) > 20
    assert [name for name in named if not (RESULTS / name).is_file()] == []


def test_it_is_what_the_raw_results_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    whole = importlib.import_module("whole")
    assert whole.page(json.loads(whole.STATE.read_text())) == PAGE, (
        "make it anew: python benchmarks/whole.py --page"
    )


def test_its_programs_are_there() -> None:
    named = set(re.findall(r"benchmarks/\w+\.py", PAGE))
    assert len(named) > 5
    assert [name for name in named if not (ROOT / name).is_file()] == []
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make ([a-z-]+)`", PAGE)):
        assert f"\n{target}:" in makefile, target


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ("TeraSort, input in the page cache, 5 GB", "warm"),
        ("TeraSort, cold, 5 GB", "cold"),
        ("TeraSort with 1 GB of memory, 5 GB", "little"),
        ("Lines of natural text, 2.02 GB", "lines"),
    ],
)
def test_a_table_says_what_was_measured(table: str, kind: str) -> None:
    rows = PAGE.partition(f"| {table} |")[2].partition("\n\n")[0].splitlines()[2:]
    runs = json.loads((RESULTS / COMPARED).read_text())["runs"]
    programs = {"the floor": "floor", "gnu sort": "gnu", "clickhouse": "clickhouse"}
    assert len(rows) >= 3
    for row in rows:
        name, time, span, _, *_ = (cell.strip() for cell in row.strip("|").split("|"))
        short = re.split("[:,]", name.lower())[0]
        program = programs.get(short, short)
        times = [run["wall_s"] for of, run in runs.items() if of.split("/")[1:] == [kind, program]]
        assert time == f"{median(times):.1f} s", row
        assert span == f"{min(times):.1f} to {max(times):.1f}", row


def test_the_ten_jobs_give_what_plain_loops_give(tmp_path: Path) -> None:
    """On tiny inputs, so that the benchmark cannot rot; it compares the records itself."""
    program = [sys.executable, ROOT / "benchmarks/ten_jobs.py", "--rounds", "1", "--scale", "0.002"]
    done = subprocess.run(
        [*program, "--dir", tmp_path, "--results", tmp_path],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (result,) = tmp_path.glob("ten-jobs-*.csv")
    with result.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({row["case"] for row in rows}) == 11
    assert {row["program"] for row in rows} == {"gristmill", "plain"}


def test_the_readme_quotes_its_figures() -> None:
    part = README.partition("## How fast it is")[2].partition("\n## ")[0]
    times = set(re.findall(r"\d+\.\d s", part))
    assert len(times) > 8
    # Of PySpark the page has the ratio, and the raw result has the time.
    assert {time for time in times if time not in PAGE} <= {"59.7 s"}
