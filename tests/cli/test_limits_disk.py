"""The disk that runs need: what `explain` says, against what jobs take."""

import os
import random
import resource
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import Mount
from .harness import report, run

#: Beside the 30 % that `explain` may say too much: a block of each of some runs.
CONSTANT = 300_000

Prepare = Callable[[], None]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """12 MB of records, of lines, and of a table."""
    folder = tmp_path_factory.mktemp("inputs")
    run("teragen", "120k", folder / "records", "--no-sync")
    chance = random.Random(11)
    with (folder / "lines").open("w") as lines, (folder / "table.csv").open("w") as table:
        table.write("name,number\n")
        for _ in range(250_000):
            word = f"{chance.getrandbits(120):030x}"
            lines.write(f"{word} {chance.randrange(10**9)} x\n")
            table.write(f"{word},{chance.randrange(10**9)}\n")
    yield folder
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def files_at_once(limit: int | None) -> Prepare | None:
    """What limits open files in a child, so that merges take fewer runs and go in more passes."""
    if limit is None:
        return None
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def peak_of(disk: Path, work: Callable[[], Any]) -> int:
    """The most bytes that a file system of its own has had in use while `work` was done."""

    def used() -> int:
        found = os.statvfs(disk)
        return (found.f_blocks - found.f_bfree) * found.f_frsize

    over, before, most = threading.Event(), used(), [0]

    def look() -> None:
        while not over.wait(0.001):
            most[0] = max(most[0], used())

    looking = threading.Thread(target=look)
    looking.start()
    try:
        work()
    finally:
        over.set()
        looking.join()
    return most[0] - before


TERASORT, LINES, NUMBERS, TABLE = "terasort", "lines", "numbers", "table"
JOBS = [
    # What, memory, workers, open files, passes.
    (TERASORT, "20M", 1, None, 0),
    (TERASORT, "30M", 2, None, 0),
    (TERASORT, "20M", 2, 80, 1),
    (TERASORT, "20M", 2, 64, 1),
    (TERASORT, "20M", 2, 60, 2),
    (TERASORT, "18M", 1, 40, 1),
    (TERASORT, "20M", 1, 40, 1),
    (TERASORT, "17M", 1, 40, 1),
    (TERASORT, "30M", 3, 90, 1),
    (LINES, "30M", 2, None, 0),
    (LINES, "24M", 1, None, 0),
    (LINES, "20M", 2, 64, 1),
    (LINES, "20M", 2, 56, 2),
    (LINES, "17M", 1, 42, 2),
    (LINES, "24M", 3, 78, 3),
    (NUMBERS, "30M", 2, None, 0),
    (NUMBERS, "20M", 2, 64, 2),
    (NUMBERS, "20M", 2, 72, 1),
    (TABLE, "30M", 2, None, 0),
    (TABLE, "20M", 2, 64, 1),
    (TABLE, "20M", 2, 68, 1),
]


def arguments_of(what: str, inputs: Path, out: Path) -> list[str | Path]:
    match what:
        case "terasort":
            return ["terasort", inputs / "records", out, "--no-sync"]
        case "lines":
            return ["sort", inputs / "lines", "-o", out]
        case "numbers":
            return ["sort", "-k2,2n", inputs / "lines", "-o", out]
        case _:
            return ["sort", "--csv", "-k", "number:num", inputs / "table.csv", "-o", out]


@pytest.mark.parametrize(("what", "memory", "workers", "files", "passes"), JOBS)
def test_needs_are_what_a_job_takes(
    what: str,
    memory: str,
    workers: int,
    files: int | None,
    passes: int,
    inputs: Path,
    mount: Mount,
    tmp_path: Path,
) -> None:
    disk = mount("size=100m")
    command = arguments_of(what, inputs, tmp_path / "out")
    command += ["--memory", memory, "--workers", str(workers), "--spill-dir", disk]
    prepare = files_at_once(files)
    plan = report("explain", *command, preexec=prepare)
    [needs] = [found for found in plan["disks"] if found["purpose"] == "runs"]
    # Two workers that merge at once, by chance, take more than two that merge in turns.
    peak = 0
    for _ in range(5):
        peak = max(peak, peak_of(disk, lambda: run(*command, preexec=prepare)))
        if needs["needs"] <= 1.3 * peak + CONSTANT:
            break
    assert peak <= needs["needs"] <= 1.3 * peak + CONSTANT
    assert (needs["passes"] > 0) == (passes > 0)
