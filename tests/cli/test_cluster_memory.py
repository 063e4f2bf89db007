"""Runs that stay in the memory of the nodes: the same bytes, also where nodes and drivers die.

The memory of these jobs is enough for all runs, but where a test says that it is not.
"""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .agents import agents_of, wait_until_gone
from .harness import end, only_object, report, run, start
from .resuming import Tree, events_of, kept, kill_when, tree, wait_for_history

Event = dict[str, Any]
IsTime = Callable[[list[Event]], bool]

ENOUGH = ("--memory", "400M", "--workers", "2")
TIGHT = ("--memory", "115M", "--workers", "2")
"""So little that a node has no room for the runs of the other one."""

NOTICE = "sorted runs stay in the memory of the nodes"


@pytest.fixture
def job(
    on_ray: tuple[str, ...], records: Path, home: Path, spill: Path, tmp_path: Path
) -> list[str | Path]:
    """A terasort of 60 MB on two nodes, without its memory."""
    assert not home.exists()
    return ["terasort", records, tmp_path / "out", *on_ray, "--spill-dir", spill]


def begun(phase: str) -> IsTime:
    """Whether a phase has begun."""
    return lambda events: any(
        event["event"] == "phase_started" and event["name"] == phase for event in events
    )


def kill_an_agent_when(
    words: list[str | Path], home: Path, spill: Path, is_time: IsTime
) -> dict[str, Any]:
    """Run a job, and kill one of its agents when its history says that it is time."""
    process = start(*words, "--history", "--json")
    wait_for_history(home, process)
    while process.poll() is None and not is_time(events_of(home)):
        time.sleep(0.002)
    if found := list(agents_of(spill)):
        os.kill(random.choice(found), signal.SIGKILL)
    done = end(process)
    assert done.status == 0, done.stderr
    return only_object(done.stdout)


def test_no_run_goes_to_a_disk(
    job: list[str | Path], records: Path, wanted: Tree, tmp_path: Path
) -> None:
    plan = report("explain", *job, *ENOUGH)
    assert plan["mode"] == "memory"
    assert plan["reason"].startswith(NOTICE)
    assert [disk["purpose"] for disk in plan["disks"]] == ["output"]
    held = {one["name"]: one["bytes"] for one in plan["reservations"]}
    size = sum(file.stat().st_size for file in records.glob("part-*"))
    assert size < held["runs in memory"] < 3 * size
    done = report(*job, *ENOUGH)
    assert tree(tmp_path / "out") == wanted
    assert done["counters"]["SPILLED_RUNS"] > 1
    assert done["counters"]["FILE_BYTES_WRITTEN"] == size
    assert done["peak_anon_bytes"] < 400_000_000
    assert any(NOTICE in notice for notice in done["notices"])


def test_segments_cross_the_network(job: list[str | Path], wanted: Tree, tmp_path: Path) -> None:
    """A node sees the folders of the other one here, and not its memory."""
    done = report(*job, *ENOUGH)
    counters = done["counters"]
    assert counters["SHUFFLE_BYTES_RECEIVED"] == counters["SHUFFLE_BYTES_OTHER_NODES"]
    assert tree(tmp_path / "out") == wanted


def test_lines_are_sorted_alike(
    on_ray: tuple[str, ...], words: Path, spill: Path, tmp_path: Path
) -> None:
    lines = next(path for path in words.rglob("*") if path.is_file() and path.stat().st_size > 1e6)
    run("sort", lines, "-o", tmp_path / "wanted")
    there = ["sort", lines, "-o", tmp_path / "out", *on_ray, "--spill-dir", spill]
    done = report(*there, *ENOUGH)
    assert (tmp_path / "out").read_bytes() == (tmp_path / "wanted").read_bytes()
    assert done["counters"]["FILE_BYTES_WRITTEN"] == lines.stat().st_size


@pytest.mark.parametrize("phase", ["spill", "merge"])
def test_what_an_agent_had_in_memory_is_made_again(
    phase: str, job: list[str | Path], wanted: Tree, home: Path, spill: Path, tmp_path: Path
) -> None:
    kill_an_agent_when([*job, *ENOUGH], home, spill, begun(phase))
    assert tree(tmp_path / "out") == wanted
    wait_until_gone(spill, killed=1)


def test_runs_that_have_no_room_in_memory_go_to_disk(
    job: list[str | Path], records: Path, wanted: Tree, home: Path, spill: Path, tmp_path: Path
) -> None:
    """The node that is left makes all runs."""
    assert report("explain", *job, *TIGHT)["mode"] == "memory"
    size = sum(file.stat().st_size for file in records.glob("part-*"))
    for _ in range(5):
        shutil.rmtree(home, ignore_errors=True)
        done = kill_an_agent_when([*job, *TIGHT, "--overwrite"], home, spill, begun("spill"))
        assert tree(tmp_path / "out") == wanted
        assert done["peak_anon_bytes"] < 115_000_000
        if done["counters"]["FILE_BYTES_WRITTEN"] > size:
            return
    pytest.fail("each job was over before an agent could be killed")


def test_a_job_that_is_resumed_makes_its_runs_again(
    job: list[str | Path], wanted: Tree, home: Path, spill: Path, tmp_path: Path
) -> None:
    kill_when([*job, *ENOUGH], home, begun("merge"))
    assert kept(events_of(home), "spill") == 0, "the history names runs that are gone"
    again = report("resume", "last")
    assert tree(tmp_path / "out") == wanted
    assert again["counters"]["SPILLED_RUNS"] > 1
    wait_until_gone(spill)
