"""Jobs that share a cluster: side by side, one after another, on some of its nodes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .harness import end, report, run, start
from .own_code import Bench
from .ray_cluster import CONNECT, holding
from .resuming import RUNS, Tree, tree


def test_jobs_share_a_cluster(
    on_ray: tuple[str, ...], records: Path, wanted: Tree, tmp_path: Path
) -> None:
    began = [
        start("terasort", records, tmp_path / f"out-{number}", *RUNS, *on_ray, "--json")
        for number in range(2)
    ]
    assert [end(job).status for job in began] == [0, 0]
    assert tree(tmp_path / "out-0") == tree(tmp_path / "out-1") == wanted


def test_jobs_that_want_all_of_a_cluster_take_turns(
    on_ray: tuple[str, ...], records: Path, wanted: Tree, tmp_path: Path
) -> None:
    """None has some nodes and waits for those of another."""
    began = [
        start("terasort", records, tmp_path / f"out-{number}", "--memory", "44M", *on_ray)
        for number in range(3)
    ]
    assert [end(job).status for job in began] == [0, 0, 0]
    for number in range(3):
        parts = tree(tmp_path / f"out-{number}").values()
        assert b"".join(parts) == b"".join(wanted.values())


def test_nodes_and_memory_bound_a_job(
    on_ray: tuple[str, ...], records: Path, wanted: Tree, tmp_path: Path
) -> None:
    job = ("terasort", records, tmp_path / "out", *on_ray)
    plan = report("explain", *job, "--nodes", "1")
    assert (plan["nodes"], plan["workers"]) == (1, 2)
    done = report(*job, "--nodes", "1", "--memory", "22M")
    assert done["workers"] == 2
    assert done["counters"]["SHUFFLE_BYTES_OTHER_NODES"] == 0 < done["counters"]["SHUFFLED_MAPS"]
    assert tree(tmp_path / "out") == wanted
    few = run(*job, "--overwrite", "--nodes", "1", "--workers", "3", status=2).stderr
    assert "with 1 node it has 2 CPUs" in few
    much = run(*job, "--overwrite", "--memory", "900G", status=2).stderr
    assert "needs 450 GB of its " in much
    here = run("terasort", records, tmp_path / "new", "--nodes", "1", status=2).stderr
    assert "nodes is for jobs on a cluster" in here
    assert tree(tmp_path / "out") == wanted


def test_a_job_waits_for_memory_that_others_have(
    on_ray: tuple[str, ...], records: Path, wanted: Tree, tmp_path: Path
) -> None:
    """The nodes have CPUs enough."""
    memory = memory_of_a_node() * 2 // 3
    usual = ("--nodes", "1", "--workers", "1", "--memory", str(memory))
    with holding({"memory": memory}, 2):
        job = start("terasort", records, tmp_path / "out", *usual, *on_ray)
        with pytest.raises(subprocess.TimeoutExpired):
            job.wait(6)  # it says so after three seconds
    done = end(job)
    assert done.status == 0, done.stderr
    assert re.search(r"waiting for 1 CPUs and [0-9.]+ GB of memory of the cluster", done.stderr)
    assert b"".join(tree(tmp_path / "out").values()) == b"".join(wanted.values())


def test_a_job_of_functions_says_that_it_waits(
    on_ray: tuple[str, ...], words: Path, tmp_path: Path
) -> None:
    with holding({"CPU": 2}, 2):
        job = start(*Bench(words).command("aggregate", tmp_path / "out"), *on_ray)
        with pytest.raises(subprocess.TimeoutExpired):
            job.wait(6)
    done = end(job)
    assert done.status == 0, done.stderr
    assert "waiting for 2 CPUs of the cluster" in done.stderr


def memory_of_a_node() -> int:
    """What Ray counts on, on the smallest node of the tests' cluster."""
    code = (
        "sizes = [node['Resources']['memory'] for node in ray.nodes() if node['Alive']]\n"
        "print(int(min(sizes)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", CONNECT + code], capture_output=True, text=True, check=True
    )
    return int(done.stdout.split()[-1])
