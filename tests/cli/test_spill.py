"""Sorts that do not fit in their memory, as processes: same bytes, memory kept, killed, cleaned up.

50 MB under 20 MB of memory: several runs, in the job's own folder or in spill directories.
"""

import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .harness import content, end, failure, is_whole, names, report, run, start, wait_for_job

MEMORY = "20M"
SORT = ("--memory", MEMORY, "--partitions", "3")


@pytest.fixture(scope="module")
def medium_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("medium") / "in"
    run("teragen", "500k", folder, "--no-sync")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def wanted(medium_data: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What the sort in memory makes of it."""
    out = tmp_path_factory.mktemp("wanted") / "out"
    found = report("terasort", medium_data, out, "--partitions", "3", "--no-sync")
    assert found["counters"]["SPILLED_RECORDS"] == 0
    return content(out)


@pytest.mark.parametrize("workers", ["1", "2", "3"])
def test_the_same_bytes_within_the_budget(
    workers: str, medium_data: Path, wanted: bytes, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    found = report("terasort", medium_data, out, *SORT, "--workers", workers)
    assert found["counters"]["SPILLED_RUNS"] >= 3
    assert found["counters"]["SPILLED_RECORDS"] >= 500_000
    assert found["budget_peak_bytes"] <= 20_000_000
    assert found["peak_anon_bytes"] < 20_000_000 + 150_000_000
    assert content(out) == wanted
    assert names(tmp_path) == ["out"]


def test_runs_go_to_the_named_directories_and_from_there(
    medium_data: Path, wanted: bytes, tmp_path: Path
) -> None:
    out, first, second = tmp_path / "out", tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    dead = first / ".gristmill-spill-dead"
    dead.mkdir()
    (dead / "lock").touch()
    run("terasort", medium_data, out, *SORT, "--spill-dir", first, "--spill-dir", second)
    assert content(out) == wanted
    assert (names(first), names(second)) == ([], [])


@pytest.mark.parametrize("options", [SORT, ()], ids=["runs", "memory"])
def test_a_spill_directory_that_is_none_is_refused(
    options: tuple[str, ...], medium_data: Path, tmp_path: Path
) -> None:
    out, file = tmp_path / "out", tmp_path / "file"
    file.touch()
    for place, words in [(tmp_path / "missing", "does not exist"), (file, "is not a directory")]:
        status = 2 if place == file else 1
        says = failure("terasort", medium_data, out, *options, "--spill-dir", place, status=status)
        assert words in says
        assert str(place) in says
    assert names(tmp_path) == ["file"]


def test_kill_9_at_any_moment_of_a_spill(medium_data: Path, wanted: bytes, tmp_path: Path) -> None:
    """The output is whole or not there; the next job to it clears the dead one's runs away."""
    out, spill = tmp_path / "out", tmp_path / "spill"
    spill.mkdir()
    killed = left = 0
    for attempt in range(10):
        place = ["--spill-dir", spill] if attempt % 2 else []
        process = start("terasort", medium_data, out, *SORT, *place)
        wait_for_job(out, process)
        time.sleep(random.uniform(0, 0.3))
        process.kill()
        killed += end(process).status == -signal.SIGKILL
        left += len(names(spill)) + len(names(tmp_path)) - 1
        if is_whole(out, 3):
            shutil.rmtree(out)
        run("terasort", medium_data, out, *SORT, "--spill-dir", spill, "--no-sync")
        assert content(out) == wanted
        assert names(tmp_path) == ["out", "spill"]
        assert names(spill) == []
        shutil.rmtree(out)
    assert killed > 3, "the jobs were over before they could be killed"
    assert left > 0, "no job was killed while it had a folder"


def test_ctrl_c_in_a_spill_leaves_nothing(medium_data: Path, tmp_path: Path) -> None:
    out, spill = tmp_path / "out", tmp_path / "spill"
    spill.mkdir()
    process = start("terasort", medium_data, out, *SORT, "--spill-dir", spill)
    wait_for_job(out, process)
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert end(process).status == 130
    assert (names(tmp_path), names(spill)) == (["spill"], [])
