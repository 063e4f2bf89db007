"""Jobs that are ended from outside: at once, nothing left, the output whole or not there.

A job is met once its folder is there, which is when it has begun to allocate and to write.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .harness import (
    GRISTMILL,
    Done,
    clean_environment,
    end,
    is_whole,
    job_folders,
    names,
    only_object,
    report,
    run,
    start,
    wait_for_job,
)

AT_ONCE_S = 5.0


def interrupt(
    process: subprocess.Popen[str], output: Path, signum: signal.Signals, after_s: float = 0.0
) -> tuple[Done, float]:
    """Send a signal to a job that has begun; returns how it ended, and how long that took."""
    wait_for_job(output, process)
    time.sleep(after_s)
    began_s = time.monotonic()
    process.send_signal(signum)
    done = end(process)
    return done, time.monotonic() - began_s


@pytest.mark.parametrize(
    ("signum", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
@pytest.mark.parametrize("command", ["terasort", "teragen"])
def test_a_signal_ends_the_job_at_once(
    command: str, signum: signal.Signals, status: int, much_data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = ["terasort", much_data, out] if command == "terasort" else ["teragen", "10m", out]
    done, took_s = interrupt(start(*arguments), out, signum, after_s=0.05)
    assert done == Done(
        status, "", f"gristmill {command}: cannot finish the job: it was cancelled.\n"
    )
    assert took_s < AT_ONCE_S
    assert names(tmp_path) == []


def test_a_cancelled_job_reports_too(much_data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done, _ = interrupt(start("terasort", much_data, out, "--json"), out, signal.SIGINT)
    assert done.status == 130
    found = only_object(done.stdout)
    assert (found["status"], found["error"]["kind"]) == ("cancelled", "cancelled")


def test_a_command_that_has_no_job_yet_reports_too(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    (tmp_path / "job.py").write_text(
        f"import pathlib, time\npathlib.Path({str(begun)!r}).touch()\ntime.sleep(60)\n"
    )
    process = start("run", tmp_path / "job.py", "--json")
    while not begun.exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    done = end(process)
    found = only_object(done.stdout)
    assert (done.status, found["status"], found["error"]["kind"]) == (130, "cancelled", "cancelled")


def test_an_impatient_user(much_data: Path, tmp_path: Path) -> None:
    """A second and a third Ctrl-C do not break off the cleaning up."""
    out = tmp_path / "out"
    process = start("terasort", much_data, out)
    wait_for_job(out, process)
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
    assert end(process).status == 130
    assert names(tmp_path) == []


def test_ctrl_c_while_python_starts(data: Path, tmp_path: Path) -> None:
    """At any moment of starting: no traceback of ours, and nothing left."""
    out = tmp_path / "out"
    for _ in range(8):
        process = start("terasort", data, out)
        time.sleep(random.uniform(0.02, 0.2))
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate()
        if process.returncode == 0:
            assert is_whole(out, 1)
            shutil.rmtree(out)
        elif "Traceback" in stderr:
            # Python had not yet come to our code.
            assert not re.search(r'gristmill/\S+\.py", line \d+, in main\n', stderr)
        assert names(tmp_path) == []


def test_the_overwritten_output_survives_an_end(
    much_data: Path, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    before = report("terasort", data, out)["job_id"]
    done, _ = interrupt(start("terasort", much_data, out, "--overwrite"), out, signal.SIGINT)
    assert done.status == 130
    assert is_whole(out, 1)
    assert before in (out / "_SUCCESS").read_text()
    assert names(tmp_path) == ["out"]


@pytest.fixture
def medium_data(tmp_path: Path) -> Iterator[Path]:
    """50 MB: enough to die in, quick enough to begin again."""
    folder = tmp_path / "in"
    run("teragen", "500k", folder, "--no-sync")
    yield folder
    shutil.rmtree(folder)


def test_kill_9_at_any_moment(medium_data: Path, tmp_path: Path) -> None:
    """The output is whole or not there; the next job to it clears the dead one away."""
    out = tmp_path / "out"
    killed = left = 0
    for attempt in range(10):
        process = start("terasort", medium_data, out, "--partitions", "3")
        if attempt % 5:  # else before or while it starts
            wait_for_job(out, process)
        time.sleep(random.uniform(0, 0.1))
        process.kill()
        killed += end(process).status == -signal.SIGKILL
        left += len(job_folders(out))
        if is_whole(out, 3):
            shutil.rmtree(out)
        again = report("terasort", medium_data, out, "--partitions", "3", "--no-sync")
        assert again["status"] == "succeeded"
        assert is_whole(out, 3)
        assert names(tmp_path) == ["in", "out"]
        shutil.rmtree(out)
    assert killed > 3, "the jobs were over before they could be killed"
    assert left > 0, "no job was killed while it had a folder"


def names_at(folder: Path) -> list[str]:
    """All names in the directory that has this name from before the look until after it.

    One that was replaced meanwhile is no output any more, and is being removed.
    """
    while True:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            found = os.listdir(descriptor)  # noqa: PTH208 - of the directory that is open
            if os.path.samestat(os.fstat(descriptor), folder.stat()):
                return found
        finally:
            os.close(descriptor)


@pytest.mark.parametrize("overwrite", [False, True])
def test_no_part_without_success(overwrite: bool, medium_data: Path, tmp_path: Path) -> None:
    """Whoever looks at any moment sees a whole output, the old one or the new one; or none."""
    out = tmp_path / "out"
    over = threading.Event()
    looks: list[list[str]] = []

    def look() -> None:
        while not over.is_set():
            try:
                looks.append(names_at(out))
            except FileNotFoundError:
                looks.append([])

    if overwrite:
        run("teragen", "1k", out)
    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for partitions in (2, 3):
            run("terasort", medium_data, out, "--partitions", str(partitions), "--overwrite")
    finally:
        over.set()
        watcher.join()
    assert any(looks)
    for seen in looks:
        assert not seen or "_SUCCESS" in seen, seen
        assert not overwrite or seen, "there was none for a moment"


def test_two_jobs_to_one_output(much_data: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = start("terasort", much_data, out)
    wait_for_job(out, first)
    second = end(start("terasort", data, out))
    assert second.status == 1
    assert "another job is writing this output now" in second.stderr
    assert end(first).status == 0
    assert names(tmp_path) == ["out"]


def test_ctrl_c_that_the_parent_ignores_stays_ignored(data: Path, tmp_path: Path) -> None:
    """As in `nohup`, or a shell script's background job."""
    command = 'trap "" INT; exec "$0" "$@"'
    process = subprocess.Popen(
        ["sh", "-c", command, str(GRISTMILL), "terasort", data, tmp_path / "out"],
        env=clean_environment(),
        stdout=subprocess.DEVNULL,
    )
    for _ in range(10):
        time.sleep(0.02)
        process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0
