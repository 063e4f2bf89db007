"""`--runner processes`: the same bytes as in threads, whatever happens to the worker processes."""

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
from .resuming import Tree, events_of, kill_when, spilled, tree
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

SMALL = ("--memory", "48M", "--workers", "2")


@pytest.fixture(scope="session")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines of words, and the job of user code that counts them."""
    return Bench.made(tmp_path_factory.mktemp("words"), 1_500_000).folder


def _bench(name: str) -> Callable[[Path, Path, Path], Arguments]:
    return lambda words, _, out: Bench(words).command(name, out)


KINDS: dict[str, Callable[[Path, Path, Path], Arguments]] = {
    "teragen": lambda _, __, out: ["teragen", "50k", out, "--files", "3"],
    "terasort": lambda _, data, out: ["terasort", data, out, "--partitions", "3"],
    "sort": lambda words, _, out: ["sort", words / "in.txt", "-o", out],
    "sort-unique": lambda words, _, out: ["sort", "-ru", words / "in.txt", "-o", out],
    "sort-records": lambda _, data, out: ["sort", data, "-o", out, "--format", "fixed:100:10"],
    "wordcount": lambda words, _, out: ["wordcount", words / "in.txt", out, "--parts", "3"],
    "aggregate": _bench("aggregate"),
    "function": _bench("function"),
    "map-only": _bench("map_only"),
    "streaming": lambda words, _, out: [
        *("streaming", "-input", words / "few.txt", "-output", out, "-mapper", "cat"),
        *("-combiner", "cat", "-reducer", "cat", "-numReduceTasks", "2"),
    ],
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bytes_and_counters(kind: str, words: Path, data: Path, tmp_path: Path) -> None:
    made: dict[str, tuple[Tree, dict[str, Any]]] = {}
    for runner in ("threads", "processes"):
        arguments = KINDS[kind](words, data, tmp_path / runner)
        found = report(*arguments, *SMALL, "--runner", runner)
        made[runner] = (tree(tmp_path / runner), found)
    (by_threads, of_threads), (by_processes, of_processes) = made.values()
    assert by_processes == by_threads
    unlike = ("CPU", "DEVICE", "SPILLED", "FILE_BYTES", "MERGE")
    for name, count in of_threads["counters"].items():
        if not name.startswith(unlike):
            assert of_processes["counters"][name] == count, name
    assert of_processes.get("checksum") == of_threads.get("checksum")
    assert of_processes["user_s"] + of_processes["sys_s"] > 0
    assert names(tmp_path) == ["processes", "threads"]


def test_teravalidate_finds_the_same(data: Path, tmp_path: Path) -> None:
    run("terasort", data, tmp_path / "sorted", *PROCESSES)
    by_threads = report("teravalidate", tmp_path / "sorted", "--against", data)
    by_processes = report("teravalidate", tmp_path / "sorted", "--against", data, *PROCESSES)
    assert by_processes["checksum"] == by_threads["checksum"]
    found = report("teravalidate", data, *PROCESSES, status=1)
    assert found["error"]["kind"] == "disorder"


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


@pytest.mark.parametrize("kind", ["terasort", "function"])
def test_workers_that_are_killed_change_nothing(
    kind: str, words: Path, records: Path, home: Path, tmp_path: Path
) -> None:
    run(*KINDS[kind](words, records, tmp_path / "wanted"), *SMALL)
    made, killed, round_ = random.Random(kind), 0, 0
    while killed < 10:
        out = tmp_path / f"out{round_}"
        round_ += 1
        job = start(*KINDS[kind](words, records, out), *SMALL, *PROCESSES, "--history")
        while job.poll() is None and killed < 10:
            time.sleep(made.uniform(0.05, 0.25))
            workers = task_workers(job.pid)
            killed += bool(workers) and kill(made.choice(workers))
        done = end(job)
        assert done.status == 0, done.stderr
        assert tree(out) == tree(tmp_path / "wanted")
    history = "".join(path.read_text() for path in home.glob("jobs/*/events.jsonl"))
    assert "it was lost: the worker was killed by SIGKILL" in history


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
    kill_when(arguments, home, spilled)
    job = start("resume", "last", "--json")
    workers = wait_for_workers(job, after_ticks=0)
    done = end(job)
    assert workers
    assert json.loads(done.stdout)["counters"]["KEPT_TASKS"] >= 4
    assert tree(tmp_path / "out") == tree(tmp_path / "wanted")


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
