"""`--memory` is kept by the process, whatever it draws; the smallest budget stays small.

A few of the jobs that `benchmarks/memory.py` draws; that runs a hundred.
"""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .harness import clean_environment, failure, run

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_jobs_drawn_by_chance_stay_within_their_budgets(tmp_path: Path) -> None:
    script = BENCHMARKS / "memory.py"
    few = ["--jobs", "5", "--most", "15", "--seed", "5"]
    done = subprocess.run(
        [sys.executable, script, *few, "--dir", tmp_path, "--results", tmp_path / "results"],
        capture_output=True,
        text=True,
        env=clean_environment(),
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("5 of 5 jobs stayed within their budget\n")
    [results] = (tmp_path / "results").glob("memory-*.csv")
    with results.open(newline="") as file:
        assert [job["kept"] for job in csv.DictReader(file)] == ["True"] * 5


@pytest.mark.parametrize("terminal", ["False", "True"])
@pytest.mark.parametrize(
    ("kind", "budget", "killed_after_s"),
    [
        ("sort", 16, 0),
        ("terasort", 15, 0),
        ("sort", 64, 0),
        ("wordcount", 24, 0),
        ("terasort", 42, 0.3),
    ],
)
def test_small_budgets(
    kind: str, budget: int, killed_after_s: float, terminal: str, tmp_path: Path
) -> None:
    """The driver's own process would be in the way: its memory module runs in another."""
    program = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(BENCHMARKS)!r})
import memory
from external import natural_text
folder = Path({str(tmp_path)!r})
natural_text(folder / "text", 30_000_000)
(folder / "records").write_bytes(bytes(range(100)) * 300_000)
(folder / "job").mkdir()
drawn = memory.Drawn(
    kind={kind!r}, budget={budget * 1_000_000}, input_bytes=30_000_000, terminal={terminal},
    killed_after_s={killed_after_s}
)
seen = memory.run(drawn, folder / "job")
sys.exit(0 if seen.kept else f"{{seen}}")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=clean_environment(),
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_the_least_budget_is_named_and_works(tmp_path: Path) -> None:
    text, out = tmp_path / "text", tmp_path / "out"
    text.write_text("b\na\n" * 100_000)
    says = failure("sort", text, "-o", out, "--memory", "2M", "--workers", "2")
    assert "of which the process itself holds" in says
    least = re.search(r"--memory (\S+) or more", says)
    assert least, says
    run("sort", text, "-o", out, "--memory", least[1], "--workers", "2")


def test_the_names_of_many_files_are_part_of_the_budget(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(40_000):
        (tmp_path / f"in/{number:06}.txt").write_bytes(b"%d\n" % (number * 7919 % 100_003))
    done = run("sort", tmp_path / "in", "-o", tmp_path / "out", "--memory", "60M", "--json")
    report = json.loads(done.stdout)
    assert report["peak_anon_bytes"] <= report["memory_bytes"] == 60_000_000
    assert len((tmp_path / "out").read_bytes().splitlines()) == 40_000
