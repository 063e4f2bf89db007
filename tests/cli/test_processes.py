"""`--runner processes`: the same bytes as in threads, whatever happens to the worker processes.

That undisturbed jobs make the same is tried in tests/places, of all kinds.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .harness import GRISTMILL, end, names, report, run, start
from .own_code import Bench
from .resuming import events_of, is_killed, spilled, tree
from .worker_processes import (
    descendants,
    gone_within,
    is_alive,
    kill,
    task_workers,
    wait_for_workers,
)

PROCESSES = ("--runner", "processes")
Arguments = list[str | Path]

#: Workers that are killed in each phase: 20 in all.
KILLS = 5

#: How often a job is begun that has to be met at a certain time.
TRIES = 5

SMALL = ("--memory", "48M", "--workers", "2")


@pytest.fixture(scope="session")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines of words, and the job of user code that counts them."""
    return Bench.made(tmp_path_factory.mktemp("words"), 1_500_000).folder


KINDS: dict[str, Callable[[Path, Path, Path], Arguments]] = {
    "terasort": lambda _, data, out: ["terasort", data, out, "--partitions", "3"],
    "function": lambda words, _, out: Bench(words).command("function", out),
}


def test_streams_are_read_and_written_by_the_main_process(words: Path) -> None:
    text = (words / "in.txt").read_bytes()
    done = subprocess.run(
        [GRISTMILL, "sort", *PROCESSES, *SMALL], input=text, capture_output=True, check=True
    )
    assert done.stdout == b"".join(sorted(text.splitlines(keepends=True)))


def test_explain_says_where_tasks_run_and_why_there_are_runs(words: Path, data: Path) -> None:
    by_threads = json.loads(run("explain", "terasort", data, "out", "--json").stdout)
    assert (by_threads["runner"], by_threads["mode"]) == ("threads", "memory")
    for job in (["terasort", data, "out"], ["sort", words / "in.txt", "-o", "out"]):
        plan = json.loads(run("explain", *job, "--json", *PROCESSES).stdout)
        assert (plan["runner"], plan["mode"]) == ("processes", "runs")
        assert "share no memory" in plan["reason"]
    assert "in processes" in run("explain", "terasort", data, "out", *PROCESSES).stdout
    assert "main process" in run("explain", "sort", words / "in.txt", *PROCESSES).stdout


def test_the_memory_of_all_processes_is_the_budget(records: Path, tmp_path: Path) -> None:
    found = report("terasort", records, tmp_path / "out", "--memory", "64M", *PROCESSES)
    assert found["peak_anon_bytes"] < 64_000_000 * 1.05
    assert found["counters"]["SPILLED_RUNS"] > 1
    few = run("terasort", records, tmp_path / "few", "--memory", "12M", *PROCESSES, status=1)
    assert "--memory" in few.stderr


@pytest.mark.parametrize(
    ("kind", "phase"),
    [("terasort", "spill"), ("terasort", "merge"), ("function", "map"), ("function", "reduce")],
)
def test_workers_that_are_killed_change_nothing(
    kind: str, phase: str, words: Path, records: Path, home: Path, tmp_path: Path
) -> None:
    """Some worker, at some time of a phase; a kill that comes too late is tried again."""
    run(*KINDS[kind](words, records, tmp_path / "wanted"), *SMALL)
    made, lost = random.Random(), 0
    while lost < KILLS:
        shutil.rmtree(home, ignore_errors=True)
        out = tmp_path / "out"
        job = start(*KINDS[kind](words, records, out), *SMALL, *PROCESSES, "--history")
        for kills in range(1, KILLS + 1):
            if not wait_until(job, lambda: is_busy(home, phase)):
                break
            time.sleep(made.uniform(0, 0.02))
            if workers := task_workers(job.pid):
                kill(made.choice(workers))
            wait_until(job, lambda count=kills: losses(home) >= count)
        done = end(job)
        assert done.status == 0, done.stderr
        assert tree(out) == tree(tmp_path / "wanted")
        shutil.rmtree(out)
        lost += losses(home)


def so_far(home: Path) -> list[dict[str, Any]]:
    """The history of the only job; nothing before it begins."""
    return events_of(home) if list(home.glob("jobs/*/events.jsonl")) else []


def is_busy(home: Path, phase: str) -> bool:
    """Whether a phase goes on, and attempts in it."""
    events = so_far(home)
    found = [event["event"] for event in events]
    phases = [event["name"] for event in events if event["event"] == "phase_started"]
    running = found.count("attempt_started") - found.count("attempt_finished")
    return phases[-1:] == [phase] and running > 0


def losses(home: Path) -> int:
    """How many attempts were lost with a worker that was killed."""
    said = "it was lost: the worker was killed by SIGKILL"
    return sum(said in (event.get("error") or "") for event in so_far(home))


def wait_until(job: subprocess.Popen[str], is_so: Callable[[], bool]) -> bool:
    """Wait for something; false if the job is over before."""
    while not is_so():
        if job.poll() is not None:
            return False
        time.sleep(0.002)
    return True


def test_a_worker_that_stands_still_is_replaced(records: Path, home: Path, tmp_path: Path) -> None:
    run("terasort", records, tmp_path / "wanted", *SMALL)
    for attempt in range(5):  # one that is stopped between two tasks is not missed
        shutil.rmtree(home, ignore_errors=True)
        out = tmp_path / f"out-{attempt}"
        job = start("terasort", records, out, *SMALL, *PROCESSES, "--history")
        stopped = wait_for_workers(job)[0]
        os.kill(stopped, signal.SIGSTOP)
        done = end(job)
        assert done.status == 0, done.stderr
        assert not is_alive(stopped)
        assert tree(out) == tree(tmp_path / "wanted")
        if lost := [event for event in events_of(home) if "was lost" in (event.get("error") or "")]:
            break
    assert "no progress" in lost[0]["error"]


def test_ctrl_c_reaches_the_workers(records: Path, tmp_path: Path) -> None:
    job = start("terasort", records, tmp_path / "out", *SMALL, *PROCESSES)
    workers = wait_for_workers(job)
    job.send_signal(signal.SIGINT)
    done = end(job)
    assert (done.status, names(tmp_path)) == (130, [])
    assert gone_within(0.5, workers)


@pytest.mark.parametrize("kind", ["terasort", "function"])
def test_no_process_outlives_a_job_that_is_killed(
    kind: str, words: Path, records: Path, tmp_path: Path
) -> None:
    job = start(*KINDS[kind](words, records, tmp_path / "out"), *SMALL, *PROCESSES)
    wait_for_workers(job)
    below = descendants(job.pid)
    job.kill()
    end(job)
    assert below
    assert gone_within(5, below)


def test_a_resumed_job_keeps_its_runner(records: Path, home: Path, tmp_path: Path) -> None:
    arguments: Arguments = ["terasort", records, tmp_path / "out", *SMALL, *PROCESSES]
    run(*arguments[:2], tmp_path / "wanted", *SMALL)
    workers = list[int]()
    for _ in range(TRIES):  # the first job, or its resumption, may be over before it is met
        if is_killed(arguments, home, spilled):
            job = start("resume", "last", "--json")
            workers = wait_for_workers(job, after_ticks=0)
            done = end(job)
            if workers:
                assert json.loads(done.stdout)["counters"]["KEPT_TASKS"] >= 4
        assert tree(tmp_path / "out") == tree(tmp_path / "wanted")
        if workers:
            break
        shutil.rmtree(home)
        shutil.rmtree(tmp_path / "out")
    assert workers


def test_workers_that_cannot_start_end_the_job(data: Path, tmp_path: Path) -> None:
    code = (
        "import sys, gristmill; sys.executable = '/bin/false';"
        f"gristmill.terasort({str(data)!r}, {str(tmp_path / 'out')!r}, runner='processes')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=False
    )
    assert "the worker /bin/false did not start: it exited with code 1" in done.stderr
    assert names(tmp_path) == []


def test_a_runner_that_there_is_not_is_refused(data: Path, tmp_path: Path) -> None:
    assert "'boats'" in run("terasort", data, tmp_path, "--runner", "boats", status=2).stderr
