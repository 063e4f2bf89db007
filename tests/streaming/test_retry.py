"""Scripts that fail end with a command that shows it again, alone, and that works as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

GRISTMILL = Path(sys.executable).with_name("gristmill")

# A reducer that fails at one key, once it has seen all of its values.
REDUCER = """#!/usr/bin/env python3
import os, sys
from itertools import groupby
assert os.environ["MODE"] == "x"
for key, lines in groupby(sys.stdin, lambda line: line.split("\\t")[0]):
    count = len(list(lines))
    if key == {bad!r}:
        part = os.environ["mapreduce_task_partition"]
        raise ValueError(f"bad {{key}}: {{count}} values, of {{part}}")
    print(key, count, sep="\\t")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRISTMILL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{GRISTMILL.parent}{os.pathsep}{os.environ['PATH']}")
    folder = tmp_path / "it's\nhere"
    folder.mkdir()
    (folder / "in.txt").write_text("".join(f"{n % 50}\t{n}\n" for n in range(5000)))
    return folder


def script(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def failing(folder: Path, *words: str) -> str:
    """What a job says that fails."""
    command = (GRISTMILL, "streaming", "-input", "in.txt", "-output", "out", *words)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    return done.stderr


def retried(said: str, cwd: Path, status: int) -> str:
    """What the command says that is printed at the end, in a shell, from another folder."""
    (command,) = re.findall(r"(?m)^To try it again alone: (.*)$", said)
    done = subprocess.run(
        ["bash", "-c", command], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_reducer(folder: Path) -> None:
    script(folder, "reduce.py", REDUCER.format(bad="17"))
    more = ("-mapper", "cat", "-reducer", "reduce.py", "-file", "reduce.py")
    more += ("-cmdenv", "MODE=x", "-numReduceTasks", "3")
    said = failing(folder, *more)
    says = re.search(r"bad 17: 100 values, of \d", said)
    assert says is not None, said
    again = retried(said, folder.parent, 1)
    assert "cannot reduce a partition: the reducer `reduce.py` ended" in again
    assert says[0] in again
    assert "Traceback" in again
    # Mended, it is tried with what it is now.
    script(folder, "reduce.py", REDUCER.format(bad="none"))
    assert "did not fail this time" in retried(said, folder.parent, 0)


def test_a_combiner(folder: Path) -> None:
    script(folder, "combine.py", REDUCER.format(bad="21"))
    said = failing(
        folder, "-mapper", "cat", "-combiner", "combine.py", "-reducer", "cat",
        "-file", "combine.py", "-cmdenv", "MODE=x",
    )  # fmt: skip
    assert "cannot combine what the mapper wrote: the combiner `combine.py` ended" in said
    assert "--only-split" not in said  # it has no combiner
    again = retried(said, folder.parent, 1)
    assert "cannot combine what the mapper wrote: the combiner `combine.py` ended" in again
    assert "bad 21" in again


def test_an_aggregate(folder: Path) -> None:
    said = failing(folder, "-mapper", "cat", "-reducer", "aggregate")
    assert "cannot aggregate" in retried(said, folder.parent, 1)


def test_a_mapper_by_its_command_line_with_odd_names(folder: Path) -> None:
    name = "odd \u202e'\x1b[31m.txt"
    (folder / name).write_text("a\nb\n")
    done = subprocess.run(
        [GRISTMILL, "streaming", "-input", name, "-output", "out", "-mapper", "false"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    (command,) = re.findall(r"^To try it again alone: (.*)$", done.stderr, re.MULTILINE)
    for locale in ("C", "C.UTF-8"):
        shell = subprocess.run(
            ["bash", "-c", command], cwd=folder.parent, env={**os.environ, "LC_ALL": locale},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert shell.returncode == 1
        assert "`false` ended with exit code 1" in shell.stderr, shell.stderr


def test_braces_of_a_mapper_are_its_own(folder: Path) -> None:
    said = failing(folder, "-mapper", "sh -c 'echo {}; exit 3'")
    assert "{}" in retried(said, folder.parent, 1)
    (command,) = re.findall(r"(?m)^To try it again alone: (.*)$", said)
    assert "echo {}" in command


def test_a_large_partition_keeps_its_end(folder: Path) -> None:
    lines = "".join(f"{n:08}\t{'x' * 1000}\n" for n in range(80_000))
    (folder / "in.txt").write_text(lines)
    script(folder, "reduce.py", REDUCER.format(bad="00079000"))
    more = ("-mapper", "cat", "-reducer", "reduce.py", "-file", "reduce.py", "-cmdenv", "MODE=x")
    said = failing(folder, *more)
    assert "bad 00079000: 1 values" in retried(said, folder.parent, 1)
    kept = sum(path.stat().st_size for path in folder.parent.glob("home/jobs/*/failed/*/*"))
    assert 20e6 < kept < 50e6
    script(folder, "reduce.py", REDUCER.format(bad="none"))
    assert "with the last 32 MB of its input" in retried(said, folder.parent, 0)
