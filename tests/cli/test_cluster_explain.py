"""`gristmill explain --on ray`: the plan with what the cluster has; nothing begins there."""

import os
from pathlib import Path

import pytest

from .agents import agents_of
from .harness import report, run
from .own_code import Bench


def test_a_job_is_explained_with_the_workers_and_memory_of_the_cluster(
    on_ray: tuple[str, ...], records: Path, spill: Path, tmp_path: Path
) -> None:
    job = ("terasort", records, tmp_path / "out", "--spill-dir", spill, *on_ray)
    plan = report("explain", *job)
    assert (plan["runner"], plan["nodes"], plan["workers"]) == ("agents", 2, 4)
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 100_000_000 < plan["memory_bytes"] < total
    assert plan["mode"] == "memory"
    assert plan["reason"].startswith("sorted runs stay in the memory of the nodes")
    held = {one["name"]: one["bytes"] for one in plan["reservations"]}
    assert 2_000_000 < held["agents with nothing to do"] < 100_000_000
    assert held["runs in memory"] > 60_000_000
    (output,) = plan["disks"]
    assert output["free"] > 0
    little = report("explain", *job, "--memory", "70M")
    assert little["mode"] == "runs"
    assert little["reason"].endswith("more than the budget has")
    _, runs = little["disks"]
    assert (runs["path"], runs["free"]) == ("spill directories of the nodes", None)
    assert plan["rates"] is plan["floor_s"] is None
    page = run("explain", *job).stdout
    assert "for 4 workers in agents on 2 nodes" in page
    assert "the disks of nodes are not tried" in page
    assert not agents_of(spill)
    assert not [*spill.iterdir(), *tmp_path.glob("out*")]


def test_the_plan_is_that_of_the_job(
    on_ray: tuple[str, ...], records: Path, tmp_path: Path
) -> None:
    """But for what an idle agent holds, which is a little more than what was planned with."""
    job = ("terasort", records, tmp_path / "out", "--memory", "40M", "--workers", "2", *on_ray)
    plan, done = report("explain", *job), report(*job)
    assert plan["workers"] == done["workers"] == 2
    assert plan["memory_bytes"] == done["memory_bytes"]
    assert abs(plan["runs"] - done["counters"]["SPILLED_RUNS"]) <= 2
    assert plan["passes"] == done["counters"]["MERGE_PASSES"]


def test_jobs_of_user_code_are_explained(
    on_ray: tuple[str, ...], words: Path, tmp_path: Path
) -> None:
    bench = Bench(words)
    for what in ("function", "scripts"):
        page = run(*bench.command(what, tmp_path / "out"), *on_ray, "--explain").stdout
        assert "workers in agents on 2 nodes" in page, page
    assert not (tmp_path / "out").exists()


def test_without_a_cluster_there_is_no_plan(
    on_ray: tuple[str, ...], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ("terasort", data, tmp_path / "out", *on_ray)
    many = run("explain", *job, "--workers", "100", status=2).stderr
    assert "the cluster has 4 CPUs" in many
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    assert "nothing answers at 127.0.0.1:1" in run("explain", *job, status=1).stderr
