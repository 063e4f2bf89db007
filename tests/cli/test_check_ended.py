"""A signal ends `gristmill check` and the child that calls the user's code."""

import signal
import time
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


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_check_and_its_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, status: int
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.py").write_text(JOB)
    process = start("check", "job.py")
    deadline_s = time.monotonic() + 30
    while not (Path("child").exists() and Path("child").read_text()):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    child = Path("/proc", Path("child").read_text())
    assert child.name != str(process.pid)
    process.send_signal(number)
    done = end(process, 20)
    assert done.status == status, done
    assert not child.exists()
    assert not (tmp_path / "out").exists()
