"""`gristmill resume` of a job that ran on a cluster, whose driver was killed: the same bytes.

What was finished is kept: parts in the output's place, and runs that agents find on their nodes.
"""

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .agents import wait_until_ended, wait_until_gone
from .harness import end, failure, report, run, start
from .own_code import Bench
from .ray_cluster import RayCluster, joined
from .resuming import (
    RUNS,
    Tree,
    events_of,
    kept,
    kill_when,
    killed_again_and_again,
    spilled,
    tree,
    undisturbed,
    wait_for_history,
)
from .s3_server import Server

Event = dict[str, Any]
IsTime = Callable[[list[Event]], bool]

#: With so many parts, a job can be met between two of them.
PARTS = ("--partitions", "8")
MANY = (*RUNS, *PARTS)

TRIES = 20


def merged(events: list[Event]) -> bool:
    return kept(events, "uploaded") >= 2


def mapped(events: list[Event]) -> bool:
    return kept(events, "work") >= 2


def runs_in(spill: Path) -> list[Path]:
    """The runs that agents left."""
    return sorted(spill.glob(".gristmill-spill-*/run-*"))


def assert_clean(spill: Path, folder: Path) -> None:
    """Nothing of agents is left, and nothing of the job beside its output or in it."""
    wait_until_gone(spill)
    found = [*folder.glob(".*gristmill*"), *folder.glob("out/.*")]
    assert not found, found


@pytest.fixture
def wanted(records: Path, tmp_path: Path) -> Tree:
    """What a terasort to many parts makes that nobody disturbs."""
    return undisturbed(records, tmp_path, *MANY)


def killed(job: list[str | Path], home: Path, spill: Path, is_time: IsTime) -> dict[str, int]:
    """Kill a job; how many tasks of each kind are over by then."""
    kill_when([*job, "--spill-dir", spill], home, is_time)
    events = events_of(home)
    return {what: kept(events, what) for what in ("spill", "uploaded", "work")}


def killed_in_commit(job: list[str | Path], home: Path, spill: Path) -> dict[str, int]:
    """Kill a job while its output gets its name: that is a short time, and may take some tries."""
    for _ in range(TRIES):
        process = start(*job, "--spill-dir", spill, "--history")
        wait_for_history(home, process)
        (history,) = home.glob("jobs/*/events.jsonl")
        while b'"name":"commit"' not in history.read_bytes() and process.poll() is None:
            pass
        process.kill()
        if end(process).status == -signal.SIGKILL:
            break
        shutil.rmtree(home / "jobs")
        shutil.rmtree(job[2])
    events = events_of(home)
    assert events[-1]["event"] != "job_finished"
    return {what: kept(events, what) for what in ("spill", "uploaded", "work")}


@pytest.mark.parametrize("is_time", [spilled, merged, None])
def test_a_job_whose_driver_was_killed_is_resumed(
    is_time: IsTime | None,
    on_ray: tuple[str, ...],
    records: Path,
    wanted: Tree,
    home: Path,
    spill: Path,
    tmp_path: Path,
) -> None:
    job = ["terasort", records, tmp_path / "out", *MANY, *on_ray]
    if is_time is None:
        done = killed_in_commit(job, home, spill)
    else:
        done = killed(job, home, spill, is_time)
    again = report("resume", "last")
    assert again["counters"]["KEPT_TASKS"] >= done["spill"] + done["uploaded"] >= 4
    assert tree(tmp_path / "out") == wanted
    assert_clean(spill, tmp_path)
    assert "it is over" in failure("resume", "last")


def test_where_the_nodes_have_nothing_more_parts_are_kept(
    on_ray: tuple[str, ...],
    records: Path,
    wanted: Tree,
    home: Path,
    spill: Path,
    tmp_path: Path,
) -> None:
    """As on another cluster that sees the same places."""
    job = ["terasort", records, tmp_path / "out", *MANY, *on_ray]
    done = killed(job, home, spill, merged)
    wait_until_ended(spill)
    for folder in spill.iterdir():
        shutil.rmtree(folder)
    again = report("resume", "last")
    assert again["counters"]["KEPT_TASKS"] == done["uploaded"]
    assert tree(tmp_path / "out") == wanted
    assert_clean(spill, tmp_path)


def test_a_run_that_is_damaged_or_gone_is_made_again(
    on_ray: tuple[str, ...],
    records: Path,
    wanted: Tree,
    home: Path,
    spill: Path,
    tmp_path: Path,
) -> None:
    job = ["terasort", records, tmp_path / "out", *MANY, *on_ray]
    done = killed(job, home, spill, spilled)
    wait_until_ended(spill)
    first, second, third, *_ = runs_in(spill)
    first.unlink()
    second.write_bytes(second.read_bytes()[:-5000])  # without its index
    content = bytearray(third.read_bytes())
    content[8192:8292] = bytes(100)  # its records, which a merge finds out
    third.write_bytes(content)
    again = report("resume", "last")
    assert 0 < again["counters"]["KEPT_TASKS"] < done["spill"]
    assert tree(tmp_path / "out") == wanted
    assert_clean(spill, tmp_path)


def test_a_job_is_resumed_again_and_again(
    on_ray: tuple[str, ...],
    records: Path,
    wanted: Tree,
    home: Path,
    spill: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.cli.resuming.KILLS", 3)
    job = ["terasort", records, tmp_path / "out", *MANY, *on_ray, "--spill-dir", spill]
    killed_again_and_again(job, home, took_s=20, begun="job_began")
    assert tree(tmp_path / "out") == wanted
    assert_clean(spill, tmp_path)


@pytest.mark.parametrize("what", ["function", "scripts", "chain"])
def test_user_code_is_resumed(
    what: str, on_ray: tuple[str, ...], words: Path, home: Path, spill: Path, tmp_path: Path
) -> None:
    bench, usual = Bench(words), ("--memory", "100M", "--workers", "2")
    run(*bench.command(what, tmp_path / "wanted"), *usual)
    shutil.rmtree(home, ignore_errors=True)  # a short job has no history
    done = killed([*bench.command(what, tmp_path / "out"), *usual, *on_ray], home, spill, mapped)
    again = report("resume", "last")
    first = again["chain"][0] if what == "chain" else again  # which was killed
    assert first["counters"]["KEPT_TASKS"] >= done["work"] >= 2
    assert tree(tmp_path / "out") == tree(tmp_path / "wanted")
    assert_clean(spill, tmp_path)


def test_what_is_refused_keeps_all_that_there_is(
    on_ray: tuple[str, ...],
    records: Path,
    wanted: Tree,
    home: Path,
    spill: Path,
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    shutil.copytree(records, data)
    done = killed(["terasort", data, tmp_path / "out", *MANY, *on_ray], home, spill, spilled)
    part = next(data.glob("part-*"))
    part.rename(tmp_path / "part")
    assert "input files" in run("resume", "last", status=1).stderr
    wait_until_ended(spill)
    (tmp_path / "part").rename(part)
    again = report("resume", "last")
    assert again["counters"]["KEPT_TASKS"] >= done["spill"]
    assert tree(tmp_path / "out") == wanted
    assert_clean(spill, tmp_path)


def test_data_in_s3_and_runs_over_the_network_are_resumed(
    on_ray: tuple[str, ...],
    server: Server,
    records: Path,
    wanted: Tree,
    home: Path,
    spill: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GRISTMILL_SEGMENTS", "http")
    (server.folder / "resumed").mkdir()
    usual = ("--memory", "64M", "--workers", "2", *PARTS)
    job = ["terasort", records, "s3://resumed/out", *usual, *on_ray]
    done = killed(job, home, spill, merged)
    again = report("resume", "last")
    assert again["counters"]["KEPT_TASKS"] >= done["uploaded"]
    assert tree(server.folder / "resumed/out") == wanted
    wait_until_gone(spill)


def test_on_fewer_nodes_the_plan_stays(
    ray: RayCluster,
    on_ray: tuple[str, ...],
    records: Path,
    wanted: Tree,
    home: Path,
    spill: Path,
    tmp_path: Path,
) -> None:
    job = [
        "terasort",
        records,
        tmp_path / "out",
        "--memory",
        "66M",
        "--workers",
        "6",
        *PARTS,
        *on_ray,
    ]
    (tmp_path / "logs").mkdir()
    with joined(ray, "127.0.0.1", [], tmp_path / "logs"):
        done = killed(job, home, spill, spilled)
    again = report("resume", "last")
    assert again["workers"] == 6
    assert again["counters"]["KEPT_TASKS"] >= done["spill"]
    assert tree(tmp_path / "out") == wanted
    assert_clean(spill, tmp_path)


def test_what_a_dead_job_left_is_pruned(
    on_ray: tuple[str, ...], records: Path, home: Path, spill: Path, tmp_path: Path
) -> None:
    killed(["terasort", records, tmp_path / "out", *MANY, *on_ray], home, spill, merged)
    wait_until_ended(spill)
    assert runs_in(spill)
    run("jobs", "prune", "--older-than", "0")
    assert_clean(spill, tmp_path)


def test_a_driver_that_dies_leaves_no_runs_to_a_job_that_begins_anew(
    on_ray: tuple[str, ...], records: Path, home: Path, spill: Path, tmp_path: Path
) -> None:
    job = ["terasort", records, tmp_path / "out", *MANY, *on_ray]
    killed(job, home, spill, spilled)
    wait_until_ended(spill)
    run(*job, "--spill-dir", spill)
    assert_clean(spill, tmp_path)
