"""What tasks print is kept with the attempt, and `jobs show --logs` shows it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.mapreduce.harness import gristmill

import gristmill as gm


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRISTMILL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def talks(line: str) -> Any:
    print("out", line)
    print("err", line, file=sys.stderr)
    os.write(1, b"by number\n")
    yield line, 1


def quiet(line: str) -> Any:
    yield line, 1


def chatter(line: str) -> Any:
    for n in range(100_000):
        print(n, line)
    yield line, 1


def logs(*more: str) -> str:
    return gristmill("jobs", "show", "last", "--logs", *more, cwd=Path.cwd()).stdout


def test_a_short_job_that_prints_shows_it_stdout_and_stderr_apart(
    home: Path, tmp_path: Path
) -> None:
    gm.Job(gm.items(["a"]), map=talks, reduce=gm.sum(), output=gm.kv(tmp_path / "out")).run()
    shown = logs()
    assert "map task 0, attempt 1 (succeeded), stdout:\n  out a\n  by number\n" in shown
    assert "map task 0, attempt 1 (succeeded), stderr:\n  err a\n" in shown
    (found,) = json.loads(logs("--json"))
    assert found["stdout"] == "out a\nby number\n"
    assert found["stderr"] == "err a\n"
    assert home.exists()


def test_a_short_job_that_is_quiet_leaves_nothing(home: Path, tmp_path: Path) -> None:
    gm.Job(gm.items(["a"]), map=quiet, reduce=gm.sum(), output=gm.kv(tmp_path / "out")).run()
    assert not home.exists()


def test_of_much_the_end_is_kept(home: Path, tmp_path: Path) -> None:
    gm.Job(gm.items(["a"]), map=chatter, reduce=gm.sum(), output=gm.kv(tmp_path / "out")).run()
    (found,) = json.loads(logs("--json"))
    lines = found["stdout"].splitlines()
    assert lines[0] == "[...]"
    assert lines[-1] == "99999 a"
    assert lines[1:] == [f"{n} a" for n in range(100_000 - len(lines) + 1, 100_000)]
    assert 16_000 < len(found["stdout"]) < 17_000
    assert home.exists()


def test_a_history_without_logs_is_shown(home: Path, tmp_path: Path) -> None:
    job = gm.Job(gm.items(["a"]), map=quiet, reduce=gm.sum(), output=gm.kv(tmp_path / "out"))
    job.run(history=True)
    assert logs() == ""
    assert home.exists()


def test_what_a_script_says_is_kept(home: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\nb\n")
    script = "while read line; do echo seen $line >&2; echo $line; done"
    command = ["streaming", "-input", "in.txt", "-output", "out", "-mapper", f"sh -c '{script}'"]
    gristmill(*command, cwd=tmp_path)
    assert "map task 0, attempt 1 (succeeded), stderr:\n  seen a\n  seen b\n" in logs()
    assert home.exists()


def test_the_failed_attempts_are_there_too(home: Path, tmp_path: Path) -> None:
    text = (
        "import gristmill as gm\n"
        "def bad(line):\n    print('before', line)\n    raise ValueError\n"
        "gm.Job(gm.items(['a']), map=bad, output=gm.kv('out')).run()\n"
    )
    command = [sys.executable, "-"]
    subprocess.run(command, input=text, text=True, cwd=tmp_path, check=False, capture_output=True)
    found = json.loads(logs("--json"))
    assert [one["attempt"] for one in found] == [0, 1]
    assert all(one["stdout"] == "before a" for one in found)
    assert home.exists()
