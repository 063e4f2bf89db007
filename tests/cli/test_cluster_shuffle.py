"""Shuffles in rounds on two nodes: the same bytes, also when an agent or the driver is killed."""

from pathlib import Path

import pytest

from .agents import wait_until_gone
from .harness import end, report, run
from .own_code import Bench
from .resuming import Tree, events_of, kept, kill_when, tree, undisturbed
from .test_cluster import begun, disturbed, kill_one

#: Little memory, so that there are many runs, in many parts.
MANY = ("--memory", "30M", "--workers", "2", "--partitions", "40")
PLANS = {"two-level": ("--shuffle", "two-level"), "plasma": ("--rounds", "4,5,4")}


@pytest.fixture
def wanted(records: Path, tmp_path: Path) -> Tree:
    """What a terasort to many parts makes that nobody disturbs."""
    return undisturbed(records, tmp_path, *MANY)


@pytest.mark.parametrize("plan", PLANS)
def test_the_bytes_are_the_same(
    plan: str, on_ray: tuple[str, ...], records: Path, wanted: Tree, spill: Path, tmp_path: Path
) -> None:
    job = ["terasort", records, tmp_path / "out", *MANY, *on_ray, *PLANS[plan]]
    done = report(*job, "--spill-dir", spill)
    assert tree(tmp_path / "out") == wanted
    assert done["counters"]["MERGE_PASSES"] >= 1


def test_slices_of_nodes_spare_the_last_merge_the_network(
    on_ray: tuple[str, ...], records: Path, spill: Path, tmp_path: Path
) -> None:
    """Each slice is merged where it will be read."""
    job = ["terasort", records, tmp_path / "out", "--overwrite", *MANY, *on_ray]
    sent = {}
    for plan in ("immediate", "two-level"):
        done = report(*job, "--shuffle", plan, "--spill-dir", spill)
        sent[plan] = done["counters"]["SHUFFLE_BYTES_OTHER_NODES"]
    # Half of all bytes must cross once; a pass over all runs at once has them cross again.
    assert sent["two-level"] < 1.3 * 30_000_000, sent
    assert sent["two-level"] <= 1.1 * sent["immediate"], sent


@pytest.mark.parametrize("kind", ["function"])
def test_functions_of_users(
    kind: str, on_ray: tuple[str, ...], words: Path, spill: Path, tmp_path: Path
) -> None:
    bench, usual = Bench(words), ("--memory", "64M", "--workers", "2")
    run(*bench.command(kind, tmp_path / "wanted"), *usual)
    job = [*bench.command(kind, tmp_path / "out"), *usual, *on_ray, *PLANS["two-level"]]
    run(*job, "--spill-dir", spill)
    assert tree(tmp_path / "out") == tree(tmp_path / "wanted")


@pytest.mark.parametrize("phase", ["merge runs", "merge"])
def test_an_agent_that_is_killed_changes_nothing(
    phase: str,
    on_ray: tuple[str, ...],
    records: Path,
    wanted: Tree,
    home: Path,
    spill: Path,
    tmp_path: Path,
) -> None:
    job = ["terasort", records, tmp_path / "out", *MANY, *on_ray, *PLANS["plasma"]]
    done = end(disturbed(job, home, spill, begun(phase), kill_one))
    assert done.status == 0, done.stderr
    assert tree(tmp_path / "out") == wanted
    wait_until_gone(spill, killed=1)


def test_a_driver_that_is_killed_between_two_rounds_is_resumed(
    on_ray: tuple[str, ...],
    records: Path,
    wanted: Tree,
    home: Path,
    spill: Path,
    tmp_path: Path,
) -> None:
    job = ["terasort", records, tmp_path / "out", *MANY, *on_ray, *PLANS["plasma"]]
    kill_when([*job, "--spill-dir", spill], home, lambda events: kept(events, "merge_runs") >= 3)
    assert kept(events_of(home), "merge_runs") >= 3
    run("resume", "last")
    assert tree(tmp_path / "out") == wanted
    wait_until_gone(spill)
