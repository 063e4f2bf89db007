"""A mount that hangs: what is awaited is said, and a second Ctrl-C, or SIGTERM, ends the job.

The server of the mount (sshfs) is stopped, as one that does not answer any more.
"""

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.optional import or_missing

from .harness import Done, clean_environment, end, job_folders, names, run, start, wait_for_job
from .mount_server import Mounts, mounted

LINE = re.compile(r"waiting \d+ s for \S*mnt/in\.txt")
AT_ONCE = {"grep", "run", "streaming"}
"""They have begun nothing when they look at their inputs: one Ctrl-C ends them."""
ENDS_S = 10.0
"""Within 2 s, on a machine that has nothing else to do."""


@pytest.fixture
def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A mount with a text in it, `mnt/in.txt` of the working directory."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    with or_missing("SHARED MOUNTS"), mounted(folder) as mounts:
        assert isinstance(mounts, Mounts)
        (mounts.data / "in.txt").write_text("b\na\n" * 2_000_000)
        work = tmp_path / "work"
        work.mkdir()
        (work / "mnt").symlink_to(mounts.a)
        monkeypatch.chdir(work)
        yield mounts.a


@contextmanager
def hung(place: Path) -> Generator[None]:
    """Stop the server of a mount; it goes on afterwards, whatever happens."""
    pids = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and str(place).encode() in _command(entry).split(b"\0")
    ]
    assert pids
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def is_ended_but_for_its_files(process: subprocess.Popen[str]) -> bool:
    """Whether a process has no memory any more: it has ended, as far as it can."""
    return "VmSize" not in Path(f"/proc/{process.pid}/status").read_text()


def commands(work: Path) -> dict[str, list[str | Path]]:
    """Jobs that read the file of the mount."""
    (work / "job.py").write_text(
        "import gristmill as gm\n"
        "job = gm.Job(gm.text('mnt/in.txt'), map=lambda line: [(line, 1)], reduce=gm.sum(),"
        " output=gm.text('out-run'))\n"
    )
    return {
        "sort": ["sort", "mnt/in.txt", "-o", "out-sort"],
        "wordcount": ["wordcount", "mnt/in.txt", "out-wordcount"],
        "grep": ["grep", "-c", "b", "mnt/in.txt"],
        "terasort": ["terasort", "mnt/in.txt", "out-terasort"],
        "run": ["run", "job.py"],
        "streaming": [
            *("streaming", "-input", "mnt/in.txt", "-output", "out-streaming"),
            *("-mapper", "cat", "-reducer", "cat"),
        ],
    }


def _said(process: subprocess.Popen[str], pattern: re.Pattern[str], within_s: float) -> str:
    """Read stderr until a line of a pattern comes."""
    assert process.stderr is not None
    number = process.stderr.fileno()
    deadline_s, said = time.monotonic() + within_s, ""
    while not pattern.search(said):
        assert process.poll() is None, said
        assert time.monotonic() < deadline_s, f"{process.args}: {said!r}"
        if select.select([number], [], [], 0.1)[0]:
            said += os.read(number, 4096).decode()
    return said


def _ended(process: subprocess.Popen[str], within_s: float) -> Done:
    try:
        return end(process, within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


@pytest.mark.parametrize("name", ["sort", "wordcount", "grep", "terasort", "run", "streaming"])
def test_what_is_awaited_is_said_and_a_second_ctrl_c_ends(name: str, mount: Path) -> None:
    command = commands(Path())[name]
    with hung(mount):
        process = start(*command)
        _said(process, LINE, 60.0)
        process.send_signal(signal.SIGINT)
        if name not in AT_ONCE:
            said = _said(process, re.compile("press Ctrl-C again"), 30.0)
            assert re.search(r"waiting for \S*mnt/in\.txt; press Ctrl-C again", said)
            process.send_signal(signal.SIGINT)
        done = _ended(process, ENDS_S)
    assert done.status == 130, done
    if name in {"sort", "wordcount"}:
        run(*command)
        assert not any(job_folders(Path(f"out-{name}")))
        assert names(Path()) == ["job.py", "mnt", f"out-{name}"]


@pytest.mark.parametrize("name", ["sort", "wordcount", "grep", "run", "streaming"])
def test_sigterm_ends_a_job_that_waits_for_a_mount(name: str, mount: Path) -> None:
    with hung(mount):
        process = start(*commands(Path())[name])
        time.sleep(3)
        process.send_signal(signal.SIGTERM)
        done = _ended(process, ENDS_S)
    assert done.status == 143, done


def test_a_mount_that_hangs_while_the_job_runs(mount: Path) -> None:
    """The system waits for the server when it closes the file of a process that has ended."""
    process = start("sort", "mnt/in.txt", "-o", "out")
    wait_for_job(Path("out"), process)
    with hung(mount):
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        deadline_s = time.monotonic() + ENDS_S
        while process.poll() is None and not is_ended_but_for_its_files(process):
            assert time.monotonic() < deadline_s
            time.sleep(0.1)
    assert _ended(process, ENDS_S).status == 143
    run("sort", "mnt/in.txt", "-o", "out")
    assert names(Path()) == ["mnt", "out"]


_NOTEBOOK = """
import threading, os, signal, time, warnings
import gristmill
warnings.simplefilter("always")
def interrupt():
    time.sleep(3); os.kill(os.getpid(), signal.SIGINT)
    time.sleep(3); os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
began = time.monotonic()
try:
    gristmill.wordcount("mnt/in.txt", "out")
except KeyboardInterrupt:
    print("interrupted", flush=True)
assert time.monotonic() - began < 6 + 10
print(sum(range(10)), flush=True)
"""


def test_a_second_ctrl_c_gives_python_back(mount: Path) -> None:
    assert shutil.which("sshfs")
    with hung(mount):
        process = subprocess.Popen(
            [sys.executable, "-c", _NOTEBOOK],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=clean_environment(),
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )
        try:
            stdout, stderr = process.communicate(timeout=40)
        finally:
            process.kill()
    assert (process.returncode, stdout) == (0, "interrupted\n45\n"), stderr
    assert "press Ctrl-C again to leave the job" in stderr
    assert "the job is left" in stderr
