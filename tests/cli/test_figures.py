"""Figures of plans and reports: what is not known is null, what is promised is kept."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from .harness import run

WORDS = "".join(f"{(7919 * number) % 59999:06}\n" for number in range(700_000))


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words")
    (folder / "words.txt").write_text(WORDS)
    with gzip.open(folder / "words.txt.gz", "wt", compresslevel=1) as file:
        file.write(WORDS)
    return folder


def _plan(*arguments: str | Path) -> dict[str, Any]:
    plan: dict[str, Any] = json.loads(run("explain", *arguments, "--json").stdout)
    return plan


def _report(*arguments: str | Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(run(*arguments, "--json").stdout)
    return report


@pytest.mark.parametrize("command", ["wordcount", "sort"])
def test_what_is_not_known_is_null_and_at_most_is_kept(
    words: Path, tmp_path: Path, command: str
) -> None:
    to = ["-o", tmp_path / "out"] if command == "sort" else [tmp_path / "out"]
    source = words / ("words.txt.gz" if command == "sort" else "words.txt")
    asked = (command, source, *to, "--memory", "22M", "--workers", "1")
    plan = _plan(*asked)
    assert (plan["runs"], plan["passes"]) == (None, None)
    reserved = _report(*asked)["budget_peak_bytes"]
    assert reserved <= sum(part["bytes"] for part in plan["reservations"])


def test_a_plan_of_known_runs_has_their_number(words: Path, tmp_path: Path) -> None:
    asked = ("sort", words / "words.txt", "-o", tmp_path / "out", "--memory", "20M")
    plan = _plan(*asked, "--parts", "2")
    assert plan["runs"] > 1
    assert plan["passes"] is not None
    assert [stage["name"] for stage in plan["stages"]][:2] == ["sample", "spill"]
    assert plan["reason"] == (
        "sorted runs of 4.90 MB and the memory to sort them are more than the budget has"
    )
    report = _report(*asked, "--parts", "2")
    assert [phase["name"] for phase in report["phases"]][-2:] == ["merge", "commit"]
    maps = _plan("wordcount", words / "words.txt", tmp_path / "maps")
    assert maps["runs"] is None


FAILS = """
import pathlib, time
import gristmill as gm

def fails(line):
    if line == "bad":
        time.sleep(1)
        raise ValueError("it is bad")
    time.sleep(0.01)
    return []

job = gm.Job(input=[gm.text("in/a"), gm.text("in/b")], map=fails, output=gm.text("out"))
"""


def test_failed_and_killed_attempts_are_counted_apart(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a").write_text("bad\n")
    (tmp_path / "in/b").write_text("good\n" * 2000)
    (tmp_path / "job.py").write_text(FAILS)
    done = run(
        "run",
        tmp_path / "job.py",
        "--workers",
        "2",
        "--attempts",
        "2",
        "--json",
        status=1,
        cwd=tmp_path,
    )
    counters = json.loads(done.stdout)["counters"]
    assert counters["FAILED_TASK_ATTEMPTS"] == 2
    assert counters["KILLED_TASK_ATTEMPTS"] == 1
    assert (counters["NUM_FAILED_MAPS"], counters["NUM_FAILED_REDUCES"]) == (1, 0)
