"""`--collect`: an output in a folder that only the machine of the driver sees."""

import os
import signal
import time
from pathlib import Path

import pytest

from .agents import agents_of
from .harness import end, failure, names, report, run, start
from .own_code import Bench
from .ray_cluster import RayCluster
from .resuming import RUNS, Tree, events_of, tree, wait_for_history


@pytest.fixture
def mine(ray: RayCluster) -> Path:
    """A folder that only the head has, where the driver is."""
    folder = ray.of_head / f"mine-{time.monotonic_ns()}"
    folder.mkdir()
    return folder


def test_what_nodes_do_not_see_is_refused_or_collected(
    ray: RayCluster,
    on_ray: tuple[str, ...],
    records: Path,
    wanted: Tree,
    mine: Path,
    spill: Path,
) -> None:
    out = mine / "out"
    job = ("terasort", records, out, *RUNS, *on_ray, "--spill-dir", spill)
    if ray.is_apart:
        refused = run(*job, status=1).stderr  # it may have to wait for CPUs, and say so
        assert "a node does not see the directory" in refused
        assert "--collect" in refused
        assert not out.exists()
    done = report(*job, "--collect")
    assert tree(out) == wanted
    assert done["durable"]
    assert "_SUCCESS" in names(out)
    assert not [name for name in names(out) if name.startswith(".")]
    assert names(mine) == ["out"]
    run(*job, "--collect", "--overwrite", "--no-sync")
    assert tree(out) == wanted
    assert names(mine) == ["out"]


@pytest.mark.parametrize("kind", ["named", "combiner"])
def test_what_user_code_writes_is_collected(
    kind: str, on_ray: tuple[str, ...], words: Path, mine: Path, tmp_path: Path
) -> None:
    bench, out = Bench(words), mine / "out"
    run(*bench.command(kind, tmp_path / "wanted"))
    run(*bench.command(kind, out), *on_ray, "--collect")
    assert tree(out) == tree(tmp_path / "wanted")
    assert names(mine) == ["out"]


def test_an_agent_that_is_killed_leaves_nothing_half(
    on_ray: tuple[str, ...], records: Path, wanted: Tree, home: Path, mine: Path, spill: Path
) -> None:
    out = mine / "out"
    job = ("terasort", records, out, *RUNS, *on_ray, "--spill-dir", spill, "--collect")
    process = start(*job, "--history")
    wait_for_history(home, process)
    while process.poll() is None and not _merges(home):
        time.sleep(0.002)
    for agent in list(agents_of(spill))[:1]:
        os.kill(agent, signal.SIGKILL)
    done = end(process)
    assert done.status == 0, done.stderr
    assert tree(out) == wanted
    assert names(mine) == ["out"]


def _merges(home: Path) -> bool:
    return any(
        event["event"] == "phase_started" and event["name"] == "merge" for event in events_of(home)
    )


def test_there_is_nothing_to_collect_on_one_machine(records: Path, tmp_path: Path) -> None:
    said = failure("terasort", records, tmp_path / "out", "--collect", status=2)
    assert "add --on ray" in said
