"""A program that runs a job is ended by a signal: it ends so, and the job leaves nothing behind."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.harness import clean_environment, job_folders

MAPREDUCE = """
import sys, time, gristmill as gm
def slow(line):
    time.sleep(60)
    yield line, 1
def job(name):
    return gm.Job(gm.text("in.txt"), map=slow, reduce=gm.sum(), output=gm.tsv(name))
if sys.argv[1] == "one":
    job("out").run()
elif sys.argv[1] == "chain":
    first = gm.Job(gm.text("in.txt"), map=slow, reduce=gm.sum())
    first.then(map=lambda pair: [pair], reduce=gm.sum(), output=gm.tsv("out")).run()
else:
    gm.run_all([job("out"), job("out2")])
print("done")
"""

NATIVE = """
import gristmill as gm
while True:
    gm.teragen("2m", "out", overwrite=True, no_sync=True)
"""


def as_in_a_terminal() -> None:
    """Under nohup our parent ignores what is tried here."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def begin(tmp_path: Path, program: str, *arguments: str) -> "subprocess.Popen[str]":
    (tmp_path / "in.txt").write_text("a\n")
    (tmp_path / "job.py").write_text(program)
    command = [sys.executable, "job.py", *arguments]
    return subprocess.Popen(
        command,
        cwd=tmp_path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
        preexec_fn=as_in_a_terminal,  # noqa: PLW1509 - no thread of ours runs here
    )


def wait_for_folders(tmp_path: Path, process: "subprocess.Popen[str]") -> None:
    deadline_s = time.monotonic() + 30
    while not list(tmp_path.rglob(".*.gristmill-*")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP], ids=lambda one: one.name)
@pytest.mark.parametrize("kind", ["one", "chain", "several"])
def test_python_job_py(tmp_path: Path, kind: str, signum: signal.Signals) -> None:
    process = begin(tmp_path, MAPREDUCE, kind)
    wait_for_folders(tmp_path, process)
    time.sleep(0.3)  # into the user's function
    process.send_signal(signum)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == -signum
    assert (stdout, stderr) == ("", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "job.py"]


def test_a_job_of_the_engine_alone(tmp_path: Path) -> None:
    process = begin(tmp_path, NATIVE)
    wait_for_folders(tmp_path, process)
    process.terminate()
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGTERM
    assert job_folders(tmp_path / "out") == []


def test_a_handler_of_the_program_s_own_stays(tmp_path: Path) -> None:
    own = "import signal\nsignal.signal(signal.SIGTERM, lambda *_: print('mine', flush=True))\n"
    program = own + MAPREDUCE.replace("sleep(60)", "sleep(2)")
    process = begin(tmp_path, program, "one")
    wait_for_folders(tmp_path, process)
    process.terminate()
    stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout) == (0, "mine\ndone\n"), stderr
