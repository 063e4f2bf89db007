"""docs/benchmarks.md: its raw results and programs are there, and other pages quote its figures."""

import csv
import doctest
import importlib
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
COMPARED = re.findall(r"`(compare-\S+\.csv)`", PAGE)[0]


def test_its_raw_results_are_there() -> None:
    named = [name for name in re.findall(r"`([\w*-]+\.csv)`", PAGE) if "*" not in name]
    assert len(named) > 20
    assert [name for name in named if not (RESULTS / name).is_file()] == []


def test_no_raw_result_is_there_that_no_page_names() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))
    tables = {path.name for path in RESULTS.iterdir()} - {"measured.csv"}
    assert [name for name in sorted(tables) if name not in pages] == []
    with (RESULTS / "measured.csv").open(newline="") as file:
        assert {row["file"] for row in csv.DictReader(file)} == tables


def test_a_table_is_read_as_it_was_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    tables = importlib.import_module("tables")
    assert doctest.testmod(tables).failed == 0
    rows = [
        {"what": "a, b", "round": 0, "wall_s": 0.1234567, "phases": {"map": 2}},
        {"what": "c", "round": 1, "cpu_s": None, "kept": True},
    ]
    path = tables.keep("some", rows, tmp_path, ["of a test"])
    assert [tables.nested(row) for row in tables.read(path)] == [
        {"what": "a, b", "round": 0, "wall_s": 0.123457, "phases": {"map": 2}},
        {"what": "c", "round": 1, "kept": True},
    ]
    assert tables.notes_of(path) == ["of a test"]
    tables.keep("other", rows, tmp_path)
    first, second = tables.read_measured(tmp_path)
    assert first["file"] == path.name
    assert second["cpu"] == first["cpu"]


def test_it_is_what_the_raw_results_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    whole = importlib.import_module("whole")
    assert whole.page() == PAGE, "make it anew: python benchmarks/whole.py --page"


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
    with (RESULTS / COMPARED).open(newline="") as file:
        runs = list(csv.DictReader(file))
    programs = {"the floor": "floor", "gnu sort": "gnu", "clickhouse": "clickhouse"}
    assert len(rows) >= 3
    for row in rows:
        name, time, span, _, *_ = (cell.strip() for cell in row.strip("|").split("|"))
        short = re.split("[:,]", name.lower())[0]
        program = programs.get(short, short)
        times = [float(r["wall_s"]) for r in runs if (r["what"], r["program"]) == (kind, program)]
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
    assert len({row["what"] for row in rows}) == 11
    assert {row["program"] for row in rows} == {"gristmill", "plain"}


def test_the_readme_quotes_its_figures() -> None:
    part = README.partition("## How fast it is")[2].partition("\n## ")[0]
    times = set(re.findall(r"\d+\.\d s", part))
    assert len(times) > 8
    # Of PySpark the page has the ratio, and the raw result has the time.
    assert {time for time in times if time not in PAGE} <= {"59.7 s"}
