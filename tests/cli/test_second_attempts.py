"""Second attempts on a cluster: a task that is slow on one node is overtaken on another one."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from .agents import agents_of, wait_until_gone
from .harness import report, run
from .resuming import events_of, tree
from .test_cluster import begun

JOB = """
import time
from pathlib import Path
import gristmill as gm

HERE = Path(__file__).parent


def is_first(what):
    try:
        (HERE / what).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def pairs(line):
    if line == "slow" and is_first("map"):
        time.sleep({slow_s})
    time.sleep(0.004)
    yield line, 1


def total(word, counts):
    if word == "also slow" and is_first("reduce"):
        time.sleep({slow_s})
    time.sleep(0.02)
    yield word, sum(counts)


def job():
    return gm.Job(
        gm.text(str(HERE / "lines.txt")), map=pairs, reduce=total, output=gm.tsv(str(HERE / "out")),
        split_max="2k", parts=4,
    )
"""

SLOW_S = 100
"""Longer than a test may take: the first attempt never ends by itself."""


def lines() -> list[str]:
    every = [f"line {number % 200:03}" for number in range(1600)]
    return [*every[:500], "slow", "also slow", *every[500:]]


@pytest.fixture
def slow_job(tmp_path: Path) -> Path:
    """A job one map and one reduce of which stand still the first time."""
    (tmp_path / "lines.txt").write_text("".join(f"{line}\n" for line in lines()))
    program = tmp_path / "program.py"
    program.write_text(JOB.replace("{slow_s}", str(SLOW_S)))
    return program


def counted(found: dict[str, Any]) -> dict[str, int]:
    names = ("SPECULATIVE_TASK_ATTEMPTS", "KILLED_TASK_ATTEMPTS", "FAILED_TASK_ATTEMPTS")
    return {name.split("_")[0]: found["counters"].get(name, 0) for name in names}


def test_a_map_and_a_reduce_that_stand_still_are_overtaken(
    on_ray: tuple[str, ...], slow_job: Path, spill: Path
) -> None:
    began_s = time.monotonic()
    words = ["run", slow_job, *on_ray, "--spill-dir", spill, "--workers", "4"]
    found = report(*words)
    assert time.monotonic() - began_s < SLOW_S / 2
    wanted = {line: lines().count(line) for line in lines()}
    rows = "".join(path.read_text() for path in (slow_job.parent / "out").glob("part-*"))
    assert dict(line.split("\t") for line in rows.splitlines()) == {
        word: str(count) for word, count in wanted.items()
    }
    counts = counted(found)
    assert counts["SPECULATIVE"] >= 2
    assert counts["KILLED"] >= counts["SPECULATIVE"] - 1
    assert counts["FAILED"] == 0
    assert found["user_counters"] == {}
    wait_until_gone(spill)


def test_code_with_effects_is_never_attempted_twice(
    on_ray: tuple[str, ...], slow_job: Path, spill: Path
) -> None:
    slow_job.write_text(JOB.replace("{slow_s}", "8"))
    words = ["run", slow_job, *on_ray, "--spill-dir", spill, "--workers", "4"]
    found = report(*words, "--no-speculative")
    assert counted(found) == {"SPECULATIVE": 0, "KILLED": 0, "FAILED": 0}
    assert found["wall_s"] > 16
    assert (slow_job.parent / "map").exists()


SCRIPT = """#!/bin/sh
echo "$mapreduce_task_attempt_id" >> {log}
while read -r line; do
  if [ "$line" = slow ] && mkdir {here}/first 2> /dev/null; then sleep {slow_s}; fi
  echo "$line"
done
"""


@pytest.mark.usefixtures("on_ray", "slow_job")
@pytest.mark.parametrize("speculative", ["true", "false"])
def test_scripts_have_second_attempts_unless_their_property_says_no(
    speculative: str, spill: Path, tmp_path: Path
) -> None:
    log, slow_s = tmp_path / "log", 8 if speculative == "false" else SLOW_S
    script = tmp_path / "mapper.sh"
    text = SCRIPT.replace("{log}", str(log)).replace("{here}", str(tmp_path))
    script.write_text(text.replace("{slow_s}", str(slow_s)))
    script.chmod(0o755)
    words = [
        "streaming", "-D", f"mapreduce.map.speculative={speculative}",
        "-D", "mapreduce.input.fileinputformat.split.maxsize=2000",
        "-input", tmp_path / "lines.txt", "-output", tmp_path / "out",
        "-mapper", script, "-reducer", "cat",
        "-on", "ray", "-spill-dir", spill, "-workers", "4",
    ]  # fmt: skip
    run(*words)
    rows = "".join(path.read_text() for path in (tmp_path / "out").glob("part-*"))
    assert sorted(line.rstrip("\t") for line in rows.splitlines()) == sorted(lines())
    attempts = log.read_text().split()
    seconds = [attempt for attempt in attempts if not attempt.endswith("_0")]
    assert (len(seconds) >= 1) == (speculative == "true"), attempts
    assert len(attempts) == len(set(attempts))


@contextmanager
def slowed(spill: Path, home: Path, *, share: float) -> Generator[None]:
    """Let one agent run for a share of the time alone, as on a node that is overloaded.

    That is so from the spill of its job on.
    """
    over = threading.Event()

    def pace() -> None:
        while not over.wait(0.01):
            if any(home.glob("jobs/*/events.jsonl")) and begun("spill")(events_of(home)):
                break
        chosen = min(agents_of(spill), default=None)
        with suppress(ProcessLookupError):
            while chosen is not None and not over.wait(0.2 * share):
                os.kill(chosen, signal.SIGSTOP)
                time.sleep(0.2 * (1 - share))
                os.kill(chosen, signal.SIGCONT)

    pacing = threading.Thread(target=pace)
    pacing.start()
    try:
        yield
    finally:
        over.set()
        pacing.join()


def test_a_node_that_is_slow_as_such_does_not_keep_a_job_waiting(
    on_ray: tuple[str, ...], records: Path, home: Path, spill: Path, tmp_path: Path
) -> None:
    of_job = ["--memory", "44M", "--workers", "4", "--partitions", "12"]
    run("terasort", records, tmp_path / "wanted", *of_job)
    shutil.rmtree(home / "jobs", ignore_errors=True)
    words = ["terasort", records, tmp_path / "out", *of_job, *on_ray, "--spill-dir", spill]
    with slowed(spill, home, share=0.005):
        found = report(*words, "--history")
    assert tree(tmp_path / "out") == tree(tmp_path / "wanted")
    assert counted(found)["SPECULATIVE"] >= 1
    assert counted(found)["FAILED"] == 0
    wait_until_gone(spill)
