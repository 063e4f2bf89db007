"""What errors advise: options as the reader would type them, on the command line or in Python."""

import inspect
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from tests.cli.harness import GRISTMILL, clean_environment

import gristmill as gm
from gristmill import _core
from gristmill.cli.mapreduce.run import run as run_command
from gristmill.job import begin, new_job_id
from gristmill.mapreduce.run_options import RUN

JOB = """
import gristmill as gm


def pairs(line):
    for number in range(200_000):
        yield (line, number), bytes(20)


def hoard(line):
    import time
    kept = []
    while True:
        kept.append(bytearray(10_000_000))
        time.sleep(0.01)


def hang(line):
    import time
    time.sleep(60)


def listed(key, values):
    yield key, list(values)


def job(map, output="out"):
    chosen = {"pairs": pairs, "hoard": hoard, "hang": hang}[map]
    return gm.Job(gm.text("in.txt"), map=chosen, reduce=listed, output=gm.kv(output))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in.txt").write_text("one line\n")
    (tmp_path / "job.py").write_text(JOB)
    return tmp_path


def said(folder: Path, *arguments: str, before: Callable[[], None] | None = None) -> str:
    """What a command that fails says first."""
    done = subprocess.run(
        arguments,
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        preexec_fn=before,
        check=False,
    )
    assert done.returncode != 0
    paragraphs = [line for line in done.stderr.splitlines() if "cannot " in line]
    assert paragraphs, done.stderr
    return paragraphs[0]


def by_both(
    folder: Path,
    way: str,
    *arguments: str,
    python: str = "",
    before: Callable[[], None] | None = None,
) -> tuple[str, str]:
    """What the command line says of a job of `job.py`, and what `Job.run` does."""
    command = [GRISTMILL, "run", "job.py", "--set", f"map={way}", "--workers", "1", *arguments]
    program = f"import job; job.job({way!r}).run(workers=1, progress=False{python})"
    return (
        said(folder, *command, before=before),
        said(folder, sys.executable, "-c", program, before=before),
    )


def small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))


def test_an_output_that_exists(folder: Path) -> None:
    (folder / "out").mkdir()
    for_command, for_python = by_both(folder, "pairs")
    assert for_command.endswith("name another output, or give --overwrite to replace it.")
    assert for_python.endswith("name another output, or give overwrite=True to replace it.")


def test_a_worker_that_finds_the_disk_full(folder: Path) -> None:
    """Its error comes a long way: from the engine, through the worker's Python, to the driver."""
    for_command, for_python = by_both(folder, "pairs", before=small_files)
    advice = ". What to do: free some space, or add a {} on another file system."
    assert for_command.endswith(advice.format("--spill-dir"))
    assert for_python.endswith(advice.format("spill_dir"))
    assert for_command.count("What to do") == 1
    assert for_command.count("(file ") == 1
    assert for_command.count("run-") == 1, "the run is named once"


def test_a_worker_that_is_ended(folder: Path) -> None:
    option = ("--worker-memory", "200M")
    for_command, for_python = by_both(folder, "hoard", *option, python=', worker_memory="200M"')
    assert for_command.endswith("or give a larger --worker-memory.")
    assert for_python.endswith("or give a larger worker_memory.")
    for_command, for_python = by_both(folder, "hang", "--timeout", "0.5", python=", timeout_s=0.5")
    assert for_command.endswith("or give a longer --timeout.")
    assert for_python.endswith("or give a longer timeout_s.")


def test_a_sort_with_too_little_memory(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"".join(b"%d\n" % number for number in range(200_000)))
    command = [GRISTMILL, "sort", "lines", "-o", "sorted", "--memory", "64K", "--workers", "2"]
    for_command = said(tmp_path, *command)
    with pytest.raises(MemoryError) as raised:
        gm.sort(tmp_path / "lines", output=tmp_path / "sorted", memory="64K", workers=2)
    for_python = str(raised.value)
    assert re.search(r"give --memory \d+M or more", for_command), for_command
    assert re.search(r'give memory="\d+M" or more', for_python), for_python
    report = gm.report_of(raised.value)
    assert report is not None
    assert report.error is not None
    assert report.error.message == for_python, "the report is for the same reader"
    explained = said(tmp_path, GRISTMILL, "explain", *command[1:])
    assert explained.partition("What to do")[2] == for_command.partition("What to do")[2]


def test_a_job_says_it_as_it_was_begun(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    values = {"rows": "1", "output": tmp_path / "out"}
    for command_line, option in [(True, "--overwrite"), (False, "overwrite=True")]:
        job = begin("teragen", values, new_job_id(), command_line=command_line)
        while not job.wait(1):
            pass
        assert option in job.report()
        with pytest.raises(FileExistsError, match=option):
            job.raise_failure()


@pytest.mark.parametrize("name", ["timeout_s", "worker_memory"])
def test_options_of_jobs_that_errors_advise_are_there(name: str) -> None:
    """Those of the engine's table are checked beside it."""
    option = {parameter.name: parameter for parameter in run_command.params}[name]
    assert isinstance(option, click.Option)
    assert option.opts == [f"--{name.removesuffix('_s').replace('_', '-')}"]
    assert name in inspect.signature(gm.Job.run).parameters
    assert name in {option.name for option in RUN}


def test_an_engine_error_comes_in_parts(tmp_path: Path) -> None:
    """So that a worker's driver can make one paragraph of it."""
    with pytest.raises(FileNotFoundError) as raised:
        _core.CompressedReader(str(tmp_path / "none"))
    told = getattr(raised.value, "gristmill_told", "")
    assert f'"file","{tmp_path}/none"' in told


@pytest.mark.parametrize(
    "call",
    [
        lambda: gm.sort("none", output="out"),
        lambda: gm.wordcount("none", "out"),
        lambda: gm.terasort("none", "out"),
        lambda: gm.teravalidate("none"),
    ],
    ids=["sort", "wordcount", "terasort", "teravalidate"],
)
def test_an_input_that_does_not_exist(
    call: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"\(file none\)\. What to do: check the name\.$"):
        call()
