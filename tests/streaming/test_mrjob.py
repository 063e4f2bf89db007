"""mrjob's own examples, run by mrjob's own Hadoop runner, with `gristmill hadoop` in its place.

    job.py -r hadoop ──▶ hadoop fs -mkdir, -put ... ──▶ hadoop jar hadoop-streaming.jar, per step
                     ◀── hadoop fs -ls, -cat        ◀── gristmill streaming

mrjob's inline runner, which does the same in one process, says what the output is to be.
"""

import os
import shlex
import stat
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.optional import missing

TEXT = "the mill and the stone\nwater turns the wheel\nthe ox and the horse turn it too\n" * 5


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return prepared(tmp_path)


def prepared(folder: Path) -> Path:
    """A folder with inputs, and with `hadoop`, which is ours."""
    if find_spec("mrjob") is None:
        missing("MRJOB'S EXAMPLES NOT RUN", "mrjob is not installed (Python 3.11)")
    (folder / "in.txt").write_text(TEXT)
    (folder / "more.txt").write_text("more of the same words\n")
    program = folder / "hadoop"
    called = shlex.join([sys.executable, "-m", "gristmill", "hadoop"])
    program.write_text(f'#!/bin/sh\nexec {called} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return folder


def ran(home: Path, example: str, runner: str, *more: str) -> list[str]:
    jar = home / "hadoop-streaming.jar"
    jar.touch()
    hadoop = ["--hadoop-bin", str(home / "hadoop"), "--hadoop-streaming-jar", str(jar)]
    done = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-m", f"mrjob.examples.{example}", "--no-conf"),
            *("-r", runner, *(hadoop if runner == "hadoop" else [])),
            *more,
            *(str(home / "in.txt"), str(home / "more.txt")),
        ],
        cwd=home,
        env={**os.environ, "GRISTMILL_HOME": str(home / "gristmill")},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert "unexpected counter line" not in done.stderr
    # A line without a TAB is a key with an empty value to Hadoop, which writes a TAB behind it.
    return sorted(line.removesuffix("\t") for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    ("example", "more"),
    [
        ("mr_word_freq_count", []),  # mapper, combiner, reducer
        ("mr_most_used_word", []),  # two steps (--step-num), a file of its own (--stop-words-file)
        ("mr_next_word_stats", []),  # combiner and a sort of values
        ("mr_count_lines_by_file", []),  # mapreduce_map_input_file
        ("mr_wc", []),
    ],
)
def test_mrjobs_examples_give_what_they_give_inline(
    home: Path, example: str, more: list[str]
) -> None:
    def names(lines: list[str]) -> list[str]:
        # The file's path: here with its scheme, as Hadoop has it.
        return [line.replace("file://", "").rsplit("/", 1)[-1] for line in lines]

    ours, theirs = ran(home, example, "hadoop", *more), ran(home, example, "inline", *more)
    if example == "mr_count_lines_by_file":
        ours, theirs = names(ours), names(theirs)
    assert ours == theirs
