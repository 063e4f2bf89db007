"""`gristmill retry` after a job on a cluster: what its code failed at is where it was started."""

from pathlib import Path

import pytest

from .agents import wait_until_gone
from .harness import run

JOB = """
import gristmill as gm

BAD = {bad!r}


def fail():
    raise LookupError("no such luck")


def pairs(line):
    if BAD == "map" and line == "line 7":
        fail()
    yield int(line[-1]) % 3, line


def total(key, lines):
    for line in lines:
        if BAD == "reduce" and line == "line 7":
            fail()
    yield key, 1


def swapped(pair):
    if BAD == "chain" and pair[0] == 1:
        fail()
    yield pair[1], pair[0]


def job(input, output):
    first = gm.Job(gm.text(input), map=pairs, reduce=total, parts=2, split_max=40)
    return first.then(map=swapped, output=gm.kv(output))
"""

SAYS = {"map": "'line 7'", "reduce": "value 'line 7'", "chain": "(1, 1)"}

REDUCER = """#!/bin/sh
while read -r line; do
    case $line in *7) echo "no such luck" >&2; exit {code};; esac
done
"""


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Ten lines in a file."""
    file = tmp_path / "in.txt"
    file.write_text("".join(f"line {number}\n" for number in range(10)))
    return file


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("bad", SAYS)
def test_the_record_is_tried_again_here(
    bad: str, on_ray: tuple[str, ...], text: Path, tmp_path: Path, spill: Path
) -> None:
    file, out = tmp_path / "job.py", tmp_path / "out"
    file.write_text(JOB.format(bad=bad))
    job = ("run", file, "--input", text, "--output", out, *on_ray, "--spill-dir", spill)
    failed = run(*job, status=1)
    assert "LookupError: no such luck" in failed.stderr
    assert "retry job_" in failed.stderr.splitlines()[-1]
    wait_until_gone(spill)  # what the agent kept went with it
    again = run("retry", "last", status=1)
    assert SAYS[bad] in again.stdout + again.stderr
    job_id = failed.stderr.splitlines()[-1].partition("retry ")[2].split()[0]
    assert f"gristmill: what {job_id} failed at runs again" in again.stderr.splitlines()
    file.write_text(JOB.format(bad="nothing"))
    mended = run("retry", "last")
    assert SAYS[bad] in mended.stdout + mended.stderr
    assert "did not fail this time" in mended.stderr


@pytest.mark.usefixtures("home")
def test_a_script_is_tried_again_here(
    on_ray: tuple[str, ...], text: Path, tmp_path: Path, spill: Path
) -> None:
    script = tmp_path / "reducer.sh"
    script.write_text(REDUCER.format(code=7))
    script.chmod(0o755)
    words = ["-files", script, "-input", text, "-output", tmp_path / "out", "-numReduceTasks", "1"]
    words += ["-mapper", "cat", "-reducer", "reducer.sh", "-spill-dir", spill]
    failed = run("streaming", *words, *on_ray, status=1)
    assert "retry job_" in failed.stderr.splitlines()[-1]
    again = run("retry", "last", status=1)
    assert "no such luck" in again.stdout + again.stderr
    script.write_text(REDUCER.format(code=0))
    assert "the task did not fail this time" in run("retry", "last").stderr
