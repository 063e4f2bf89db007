"""The benchmark of the intervals runs, keeps its raw results, and compares with single fits."""

import csv
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks/coverage.py"


def test_the_benchmark_of_coverage(tmp_path: Path) -> None:
    more = ("--trials", "40", "--singly", "1", "--bootstraps", "20", "--measured", "seconds")
    command = [sys.executable, BENCHMARK, *more, "--results", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("coverage-*.csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["trials"] for row in rows] == ["40"] * 18
    assert all(float(row["t.sigma"]) > 0.7 for row in rows)
