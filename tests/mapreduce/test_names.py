r"""Names of files that are not UTF-8, in jobs of Python functions."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.test_names import Run, home, run

import gristmill as gm

__all__ = ["home", "run"]


@pytest.mark.parametrize("form", [gm.text, gm.tsv, gm.jsonl, gm.csv, gm.kv, gm.parquet, gm.arrow])
def test_formats(home: Path, form: Callable[..., Any]) -> None:
    (home / os.fsdecode(b"in\xe9")).mkdir()
    (home / os.fsdecode(b"in\xe9/part\xff")).write_text("b\na\n")
    record = {"a": "x"} if form in (gm.jsonl, gm.csv, gm.parquet, gm.arrow) else ("a", "x")
    first = gm.Job(gm.text(b"in\xe9"), map=lambda _line: [record], output=form(b"\xff/out\xe9"))
    (home / os.fsdecode(b"\xff")).mkdir()
    written = list(first.run().read())
    assert len(written) == 2
    again = gm.Job(form(b"\xff/out\xe9"), map=lambda found: [found], output=form("again")).run()
    assert list(again.read()) == written


def test_whole_files_have_their_names(home: Path) -> None:
    (home / os.fsdecode(b"in\xe9")).write_bytes(b"a")
    job = gm.Job(
        gm.text("in*", whole=True),
        map=lambda pair, context: [ascii(pair[0]) + context.file("side\udce9").read_text()],
        output=gm.text("out"),
        files=[b"side\xe9"],
    )
    (home / os.fsdecode(b"side\xe9")).write_text("beside")
    assert list(job.run().read()) == [r"'in\udce9'beside"]


def test_a_failure_names_the_file(home: Path) -> None:
    (home / os.fsdecode(b"in\xe9")).write_text("no number\n")
    job = gm.Job(gm.text(b"in\xe9"), map=lambda line: [int(line)], output=gm.text("out"))
    with pytest.raises(RuntimeError, match=r"file in\\xe9, offset 0"):
        job.run()


JOB = """
import gristmill as gm
job = gm.Job(
    gm.text(b"in\\xe9"), map=lambda line: [(line, 1)], reduce=gm.sum(), output=gm.tsv(b"out\\xe9")
)
"""


def test_run_and_check(run: Run, home: Path) -> None:
    (home / os.fsdecode(b"in\xe9")).write_text("b\na\n")
    (home / os.fsdecode(b"job\xe9.py")).write_text(JOB)
    assert rb"out\xe9" in run("run", b"job\xe9.py", "--history").stdout
    assert json.loads(run("jobs", "show", "last", "--json").stdout)["options"]["inputs"] == [
        "in\0e9"
    ]
    run("run", b"job\xe9.py", "--explain")
    run("check", b"job\xe9.py")
    assert rb"not-there\xe9" in run("run", b"not-there\xe9.py", code=2).stderr
