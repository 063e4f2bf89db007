"""Tracebacks show the user's code: of `job.run()`, and of job files that cannot be loaded."""

import subprocess
import sys
import traceback
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from tests.mapreduce.harness import gristmill

import gristmill as gm
from gristmill.mapreduce.formats.format import Input
from gristmill.mapreduce.worker.failures import user_frames


def frames_of(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def raises(line: str) -> Any:
    return line.split()[5]


LOCK = Lock()


def locked(line: str) -> Any:
    with LOCK:
        return [line]


def test_run_shows_the_users_frames_alone(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a b\n")
    source, output = gm.text(tmp_path / "in.txt"), gm.kv(tmp_path / "out")
    lock = Lock()
    failing = [
        gm.Job(source, map=raises, output=output),
        gm.Job(source, map=lambda line: [(lock, line)], output=output),
        gm.Job(gm.text(tmp_path / "no.txt"), map=raises, output=output),
    ]
    for job in failing:
        for call in (job.run, lambda job=job: gm.run_all([job])):
            with pytest.raises((RuntimeError, TypeError, OSError, ValueError)) as caught:
                call()
            frames = [name for name in frames_of(caught.value) if name != "<lambda>"]
            assert frames == ["test_run_shows_the_users_frames_alone"]
            assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_what_user_code_raises_while_a_job_is_planned_keeps_its_frames(tmp_path: Path) -> None:
    class Odd(Input):
        def plan(self, split_min: int, split_max: int) -> Any:
            return [][split_min - split_max - 1]

        def open(self, what: Any, *, tolerant: bool = False) -> Any:
            raise NotImplementedError

    with pytest.raises(IndexError) as caught:
        gm.Job(Odd(), map=raises, output=gm.kv(tmp_path / "out")).run()
    assert frames_of(caught.value)[1:] == ["plan"]


def test_the_traceback_of_a_script_is_short(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a b\n")
    (tmp_path / "analysis.py").write_text(
        "import gristmill as gm\n"
        "def words(line):\n"
        "    return [(line.split()[5], 1)]\n"
        "gm.Job(gm.text('in.txt'), map=words, reduce=gm.sum(), output=gm.tsv('out')).run()\n"
    )
    command = [sys.executable, "analysis.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    files = [line for line in done.stderr.splitlines() if line.startswith("  File ")]
    assert "analysis.py" in files[0]
    assert not any("gristmill" in line.split(",")[0] for line in files), done.stderr
    assert 'analysis.py", line 3, in words' in files[-1]


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_file_that_cannot_be_loaded_shows_the_way_through_its_modules(
    tmp_path: Path, command: str
) -> None:
    (tmp_path / "job.py").write_text("import gristmill as gm\n\nimport helper\n")
    (tmp_path / "helper.py").write_text("def begin():\n    import deeper\n\nbegin()\n")
    (tmp_path / "deeper.py").write_text("x = 1\ny = x / 0\n")
    done = gristmill(command, "job.py", cwd=tmp_path, status=2)
    assert "cannot load job.py (line 2 of " in done.stderr
    assert "ZeroDivisionError: division by zero" in done.stderr
    files = [line for line in done.stderr.splitlines() if line.startswith("  File ")]
    places = [(line.split('"')[1].rsplit("/", 1)[-1], line.split(", ")[1]) for line in files]
    assert places == [
        ("job.py", "line 3"),
        ("helper.py", "line 4"),
        ("helper.py", "line 2"),
        ("deeper.py", "line 2"),
    ]


def test_what_stands_around_our_context_managers_is_no_code_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    with pytest.raises(ValueError, match="cannot read") as caught:
        gm.parquet(tmp_path / "a.parquet").plan(1, 1)
    frames = user_frames(caught.value.__traceback__)
    assert {Path(frame.filename).name for frame in frames} == {Path(__file__).name}


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "SystemExit('no')"])
def test_a_file_that_gives_up_is_told_as_one_that_fails(tmp_path: Path, raised: str) -> None:
    (tmp_path / "job.py").write_text(f"raise {raised}\n")
    done = gristmill("run", "job.py", cwd=tmp_path, status=2)
    assert "cannot load job.py (line 1 of " in done.stderr
    assert raised.partition("(")[0] in done.stderr
