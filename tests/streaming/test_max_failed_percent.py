"""Jobs that are done although some of their tasks failed: failures.maxpercent."""

import json
import re
import sys
from pathlib import Path

import pytest

from .conftest import Run

MAPPER = """
import sys
for line in sys.stdin:
    if line.startswith("bad"):
        sys.exit("a bad line")
    print(int(line) % 8, 1, sep="\\t")
"""

REDUCER = """
import sys
for line in sys.stdin:
    if line.startswith("3"):
        sys.exit("a bad group")
    print(line, end="")
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Ten files of a hundred lines each; the first line of two of them is bad."""
    (tmp_path / "in").mkdir()
    for file in range(10):
        lines = [f"{100 * file + number}\n" for number in range(100)]
        if file in (3, 7):
            lines[0] = f"bad {'x' * file}\n"
        (tmp_path / "in" / f"{file}.txt").write_text("".join(lines))
    for name, text in (("map.py", MAPPER), ("reduce.py", REDUCER)):
        (tmp_path / name).write_text(f"#!{sys.executable} -ES\n{text}")
    return tmp_path


def words(home: Path, *more: str) -> list[str]:
    words = ["-D", "mapreduce.map.maxattempts=2", "-D", "mapreduce.reduce.maxattempts=2", *more]
    words += ["-D", "mapreduce.job.maps=10", "-files", f"{home}/map.py,{home}/reduce.py"]
    return [*words, "-input", f"{home}/in", "-output", f"{home}/out"]


def numbers(home: Path) -> list[str]:
    parts = sorted((home / "out").glob("part-*"))
    return sorted(line for part in parts for line in part.read_text().splitlines())


def test_so_many_maps_may_fail(home: Path, streaming: Run) -> None:
    allowed = words(home, "-D", "mapreduce.map.failures.maxpercent=20", "-mapper", "map.py")
    done = streaming(*allowed, "-numReduceTasks", "2", "-reducer", "cat", "--json")
    assert done.returncode == 0, done.stderr
    good = [100 * file + line for file in range(10) if file not in (3, 7) for line in range(100)]
    assert numbers(home) == sorted(f"{number % 8}\t1" for number in good)
    report = json.loads(done.stdout)
    assert (report["counters"]["NUM_FAILED_MAPS"], report["status"]) == (2, "succeeded")
    assert report["counters"]["MAP_INPUT_RECORDS"] == 800
    (warning,) = report["warnings"]
    assert "2 of 10 map tasks failed, and their results are missing" in warning
    assert re.search(r"split \d, \d\.", warning)
    assert "a bad line" in warning
    assert warning in done.stderr
    proof = json.loads((home / "out/_SUCCESS").read_text())
    assert (proof["failed_maps"], "failed_reduces" in proof) == (2, False)


def test_one_more_fails_the_job(home: Path, streaming: Run) -> None:
    for percent, code in ((19, 1), (20, 0)):
        name = f"mapred.max.map.failures.percent={percent}"
        allowed = words(home, "-D", name, "-mapper", "map.py", "-numReduceTasks", "0")
        done = streaming(*allowed)
        assert done.returncode == code, done.stderr
        assert (home / "out").exists() == (code == 0)
    assert "NUM_FAILED_MAPS=2" in done.stderr
    assert len(list((home / "out").glob("part-*"))) == 8


def test_so_many_reduces_may_fail(home: Path, streaming: Run) -> None:
    for file in (3, 7):
        (home / "in" / f"{file}.txt").unlink()
    allowed = words(home, "-D", "mapreduce.reduce.failures.maxpercent=25", "-mapper", "map.py")
    done = streaming(*allowed, "-reducer", "reduce.py", "-numReduceTasks", "4", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    counters = report["counters"]
    assert (counters["NUM_FAILED_MAPS"], counters["NUM_FAILED_REDUCES"]) == (0, 1)
    assert "1 of 4 reduce tasks failed" in report["warnings"][0]
    assert len(list((home / "out").glob("part-*"))) == 3
    # Two of the eight keys are in each part.
    left = {line[0] for line in numbers(home)}
    assert (len(left), "3" in left) == (6, False)
    assert len(numbers(home)) == counters["REDUCE_OUTPUT_RECORDS"] == 600


def test_a_job_of_nothing_but_failures(home: Path, streaming: Run) -> None:
    allowed = words(home, "-D", "mapreduce.map.failures.maxpercent=100", "-mapper", "false")
    done = streaming(*allowed, "-reducer", "cat", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counters"]["NUM_FAILED_MAPS"] == 10
    assert numbers(home) == []
