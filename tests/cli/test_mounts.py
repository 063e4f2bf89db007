"""Jobs on a mount that several machines share: written through one mount, read through another.

The mounts are sshfs's, on this machine, made once for all tests.
"""

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.optional import or_missing

from .harness import end, failure, job_folders, names, report, run, start, wait_for_job
from .mount_server import Mounts, mounted
from .own_code import Bench
from .resuming import RUNS, Tree, is_over, kill_when, killed_again_and_again, merged, spilled, tree

NOTICE = "on a mount that several machines share (fuse.sshfs)"


@pytest.fixture(scope="module")
def mounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounts]:
    folder = tmp_path_factory.mktemp("mounts")
    with or_missing("SHARED MOUNTS"), mounted(folder) as mounts:
        yield mounts


@pytest.fixture
def there(mounts: Mounts, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mounts:
    """An empty directory of a test's own, at both places; the working directory is on a disk."""
    assert not home.exists()
    (mounts.data / tmp_path.name).mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    data, a, b = (place / tmp_path.name for place in (mounts.data, mounts.a, mounts.b))
    return Mounts(data, a, b, mounts.pids)


@pytest.mark.parametrize(
    "memory",
    [("--memory", "400M"), RUNS, ("--memory", "64M", "--runner", "processes")],
    ids=["memory", "runs", "processes"],
)
def test_terasort(memory: tuple[str, ...], there: Mounts, records: Path, wanted: Tree) -> None:
    shutil.copytree(records, there.data / "in")
    done = run("terasort", there.a / "in", there.a / "out", *memory)
    assert done.stderr == ""
    assert tree(there.b / "out") == wanted
    found = report("teravalidate", there.b / "out", "--against", there.b / "in")
    assert found["records"] == 600_000
    assert "exists" in failure("terasort", there.b / "in", there.b / "out", *memory)
    run("terasort", there.b / "in", there.b / "out", *memory, "--overwrite", "--no-sync")
    assert tree(there.data / "out") == wanted
    assert names(there.data) == ["in", "out"]
    assert names(Path()) == []


def test_teragen_durable_and_not(there: Mounts, tmp_path: Path) -> None:
    run("teragen", "300k", tmp_path / "wanted", "--files", "2", "--no-sync")
    for name, lazy in (("durable", []), ("lazy", ["--no-sync"])):
        more = [*lazy, "--split-size", "1M"]
        found = report("teragen", "300k", there.a / name, "--files", "2", *more)
        assert found["durable"] is not bool(lazy)
        assert found["bytes_per_s"] > 0
        assert tree(there.b / name) == tree(tmp_path / "wanted")


def test_sort(there: Mounts, much_text: Path, much_text_sorted: Path) -> None:
    shutil.copy(much_text, there.data / "text")
    run("sort", there.a / "text", "-o", there.a / "sorted", "--memory", "24M")
    assert (there.b / "sorted").read_bytes() == much_text_sorted.read_bytes()
    run("sort", there.b / "text", "-o", there.b / "text", "--no-sync")  # in place
    assert (there.data / "text").read_bytes() == much_text_sorted.read_bytes()
    assert names(there.data) == ["sorted", "text"]


def test_a_python_job(there: Mounts, tmp_path: Path) -> None:
    bench = Bench.made(tmp_path / "bench", 1_000_000)
    shutil.copytree(bench.folder, there.data / "bench")
    run(*bench.command("function", tmp_path / "wanted"))
    run(*Bench(there.a / "bench").command("function", there.a / "out"))
    assert tree(there.b / "out") == tree(tmp_path / "wanted")


@pytest.mark.parametrize("is_time", [spilled, merged])
def test_resume(
    is_time: Callable[[list[dict[str, Any]]], bool],
    there: Mounts,
    home: Path,
    records: Path,
    wanted: Tree,
) -> None:
    kill_when(["terasort", records, there.a / "out", *RUNS], home, is_time)
    assert is_over(end(start("resume", "last")))
    assert tree(there.b / "out") == wanted
    assert names(there.data) == ["out"]
    assert names(Path()) == []


def test_a_job_killed_again_and_again(
    there: Mounts, home: Path, records: Path, wanted: Tree
) -> None:
    job: list[str | Path] = ["terasort", records, there.a / "out", *RUNS]
    assert killed_again_and_again(job, home, took_s=2.0) >= 1
    assert tree(there.b / "out") == wanted
    assert names(there.data) == ["out"]
    assert names(Path()) == []


def test_a_job_that_lives_is_left_alone_through_the_other_mount(
    there: Mounts, much_text: Path
) -> None:
    os.mkfifo("fifo")
    writer = os.open("fifo", os.O_RDWR)  # so that the job waits for lines
    process = start("sort", "fifo", "-o", there.a / "out")
    wait_for_job(there.data / "out", process)
    (folder,) = job_folders(there.data / "out")
    deadline_s = time.monotonic() + 20
    while not ((folder / "lock").is_file() and (folder / "lock").stat().st_size):
        assert time.monotonic() < deadline_s, "the lock names nobody"
        time.sleep(0.01)
    said = failure("sort", much_text, "-o", there.b / "out")
    assert "another job is writing this output now" in said
    os.write(writer, b"b\na\n")
    os.close(writer)
    assert end(process).status == 0
    assert (there.b / "out").read_bytes() == b"a\nb\n"
    assert names(there.data) == ["out"]


def test_a_job_of_another_machine_is_left_alone(there: Mounts, data: Path) -> None:
    folder = there.data / ".out.gristmill-job_1"
    folder.mkdir()
    owner = '{"host":"elsewhere","boot":"b","numbers":"n","process":1,"started":1}'
    (folder / "lock").write_text(owner)
    said = failure("terasort", data, there.a / "out")
    assert "a job on the machine elsewhere" in said
    assert "remove its directory" in said
    assert names(folder) == ["lock"]
    shutil.rmtree(folder)
    run("terasort", data, there.a / "out")


def test_runs_on_a_mount_are_told_before_the_start(
    there: Mounts, records: Path, wanted: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = ["--spill-dir", there.a]
    command = ["terasort", records, there.a / "out", *RUNS]
    assert NOTICE not in run("explain", *command).stdout
    assert NOTICE in run("explain", *command, *named).stdout
    done = run(*command, *named)
    assert re.fullmatch(rf"gristmill: sorted runs go to {there.a}, .*\n", done.stderr)
    assert NOTICE in done.stderr
    monkeypatch.chdir(there.a)
    found = report(*command, "--overwrite")
    assert [NOTICE in notice for notice in found["notices"]] == [True]
    assert tree(there.b / "out") == wanted
    assert names(there.data) == ["out"]
