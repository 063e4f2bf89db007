"""A signal ends `gristmill check` and the child that calls the user's code."""

import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from .harness import end, start

JOB = """
import os, pathlib, time
import gristmill as gm

def slow(line):
    pathlib.Path("child").write_text(str(os.getpid()))
    time.sleep(60)

job = gm.Job(gm.items(["a"]), map=slow, output=gm.text("out"))
"""


def begun() -> tuple["subprocess.Popen[str]", Path]:
    """A check whose child calls user code."""
    Path("job.py").write_text(JOB)
    process = start("check", "job.py")
    deadline_s = time.monotonic() + 30
    while not (Path("child").exists() and Path("child").read_text()):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    child = Path("/proc", Path("child").read_text())
    assert child.name != str(process.pid)
    return process, child


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_check_and_its_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, status: int
) -> None:
    monkeypatch.chdir(tmp_path)
    process, child = begun()
    process.send_signal(number)
    done = end(process, 20)
    assert done.status == status, done
    assert not child.exists()
    assert not (tmp_path / "out").exists()


def test_the_child_ends_with_a_check_that_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(scratch))
    process, child = begun()
    process.kill()
    process.communicate(timeout=20)  # until the child, too, has closed them
    with suppress(FileNotFoundError):  # nobody may have waited for it
        assert "State:\tZ" in (child / "status").read_text()
    assert list(scratch.iterdir()) == []
