"""What `gristmill hadoop jar` logs, on a terminal too: Hadoop's lines, which mrjob reads."""

import io
import os
import pty
import re
import subprocess
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.optional import missing

from gristmill.history.home import without_history

RUNNING = re.compile(r"^.* INFO mapreduce.Job: Running job: (?P<job_id>job_\d+_\d{4})\s*$", re.M)
"""As mrjob looks for a job's name (mrjob/logs/step.py)."""


def on_terminal(folder: Path, *words: str) -> tuple[int, str]:
    """Run `gristmill hadoop jar` with a terminal as its stderr, as mrjob does."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "GRISTMILL_HOME": str(folder / "home"), "TERM": "xterm"}
    command = [sys.executable, "-W", "ignore", "-m", "gristmill", "hadoop", "jar", *words]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=theirs
    ) as job:
        os.close(theirs)
        said = b""
        try:
            while some := os.read(ours, 4096):
                said += some
        except OSError:  # the terminal's way of saying that nobody has its other end
            pass
        os.close(ours)
        code = job.wait(60)
    return code, said.decode().replace("\r\n", "\n")


def read_by_mrjob(said: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What mrjob's parser makes of it, and the records that it logs."""
    if find_spec("mrjob") is None:
        missing("LOG NOT READ BY MRJOB", "mrjob is not installed (Python 3.11)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it imports `pipes`
        step: Any = import_module("mrjob.logs.step")

    records = list[dict[str, Any]]()
    lines = io.BytesIO(said.encode())
    found = step._interpret_hadoop_jar_command_stderr(lines, record_callback=records.append)
    return found, records


def streaming(folder: Path, mapper: str, *more: str) -> tuple[int, str]:
    (folder / "in.txt").write_text("a\nb\n")
    job = ["-input", "in.txt", "-output", "out", "-mapper", mapper]
    return on_terminal(folder, "hadoop-streaming.jar", *more, *job)


def test_a_job_on_a_terminal_is_logged_and_never_drawn(tmp_path: Path) -> None:
    code, said = streaming(tmp_path, "sh -c 'sleep 1.5; cat'")
    assert code == 0, said
    assert "\r" not in said
    assert "\x1b" not in said
    named = RUNNING.search(said)
    assert named is not None, said
    job_id = named["job_id"]
    messages = [line.partition(": ")[2] for line in said.splitlines() if " INFO " in line]
    assert messages[:2] == [f"Running job: {job_id}", " map 0% reduce 0%"]
    at = messages.index(" map 100% reduce 100%")
    assert messages[at + 1] == f"Job {job_id} completed successfully"
    assert messages[-1] == f"Output directory: {tmp_path}/out"
    found, _ = read_by_mrjob(said)
    assert found["job_id"] == job_id
    assert found["counters"]["Map-Reduce Framework"]["MAP_INPUT_RECORDS"] == 2
    # The name is the job's own: the command that shows jobs knows it.
    (home := tmp_path / "home").mkdir(exist_ok=True)
    code, said = streaming(tmp_path, "cat", "--overwrite", "--history")
    named = RUNNING.search(said)
    assert named is not None, said
    assert (home / "jobs" / named["job_id"]).is_dir()


def test_a_map_only_job_has_no_reduce_to_be_done(tmp_path: Path) -> None:
    code, said = streaming(tmp_path, "cat", "-D", "mapreduce.job.reduces=0")
    assert code == 0, said
    assert " map 100% reduce 0%\n" in said


def test_a_failed_job_says_why_in_a_line_of_its_own(tmp_path: Path) -> None:
    code, said = streaming(tmp_path, "sh -c 'echo told >&2; exit 3'")
    assert code == 1, said
    assert "\r" not in said
    found, records = read_by_mrjob(said)
    (failed,) = [one for one in records if "failed with state FAILED" in one["message"]]
    assert failed["message"].startswith(f"Job {found['job_id']} failed with state FAILED due to: ")
    assert "cannot map" in failed["message"].splitlines()[0]
    assert "Job not successful!" in [one["message"] for one in records]
    assert said.endswith("Streaming Command Failed!\n")


def test_examples_draw_no_bar_either(tmp_path: Path) -> None:
    code, said = on_terminal(tmp_path, "hadoop-mapreduce-examples.jar", "teragen", "9000000", "out")
    assert code == 0, said
    assert "\r" not in said


def test_a_name_in_two_parts_holds_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRISTMILL_HOME", str(tmp_path))
    folder = tmp_path / "jobs" / "job_2026112803155700000000000000000001_0001"
    folder.mkdir(parents=True)
    os.utime(folder, (0, 0))
    assert without_history() == [folder]
