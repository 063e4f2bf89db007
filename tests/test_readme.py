"""The README: at most 120 lines, its links lead somewhere, and its examples run, on small data.

A command for a cluster is read as the command line reads it, and not run: `tests/cli` has the tests
of clusters.
"""

import gzip
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.harness import clean_environment

from gristmill.cli.program import Program

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)")

MAPPER = """#!/usr/bin/env python3
import sys
for line in sys.stdin:
    print(line.split()[0], 1, sep="\\t")
"""
REDUCER = """#!/usr/bin/env python3
import sys
for line in sys.stdin:
    print(line, end="")
"""


def blocks(language: str) -> list[str]:
    return [text for of, text in _BLOCK.findall(README) if of == language]


def commands() -> list[str]:
    """The lines of the shell blocks, without what is said beside them."""
    lines = "".join(blocks("sh")).splitlines()
    return [line.partition("  #")[0].strip() for line in lines if line.strip()]


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 120


def test_every_block_has_a_language_that_is_tested() -> None:
    assert {of for of, _ in _BLOCK.findall(README)} == {"sh", "python"}
    assert README.count("\n```") == 2 * len(_BLOCK.findall(README))


def test_its_links_lead_somewhere() -> None:
    links = [link for link in _LINK.findall(README) if "://" not in link]
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_its_make_targets_are_real() -> None:
    targets = re.findall(r"(?m)^([a-z-]+):.*## ", (ROOT / "Makefile").read_text())
    used = [command.split()[1] for command in commands() if command.startswith("make ")]
    assert used == ["demo", "test"]
    assert set(used) <= set(targets)


def test_its_figures_have_one_table() -> None:
    of_figures = [line for line in README.splitlines() if re.search(r"\| [\d.]+ x \|$", line)]
    assert 5 < len(of_figures) < 20


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "books").mkdir()
    (tmp_path / "books/hamlet.txt").write_text("to be or not to be\n")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/day.gz").write_bytes(gzip.compress(b"b 2\na 1\nb 3\n"))
    (tmp_path / "big.txt").write_text("b\nc\na\n")
    for name, text in (("mapper.py", MAPPER), ("reducer.py", REDUCER)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "job.py").write_text(blocks("python")[0])
    return tmp_path


def run_in_shell(command: str, folder: Path) -> None:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        capture_output=True,
        encoding="utf-8",
        cwd=folder,
        env=clean_environment(
            PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            GRISTMILL_HOME=str(folder / "home"),
        ),
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def test_its_examples_run(small: Path) -> None:
    for command in commands():
        if "--on ray" in command:
            understood(command)
            command = command.replace("--on ray", "")  # noqa: PLW2901 - the same, here
        if "gristmill" in command:
            if " last" in command:
                run_in_shell("gristmill sort big.txt -o kept.txt --history", small)
            run_in_shell(command.replace("10m", "1000"), small)
    assert (small / "sorted.txt").read_text() == "a\nb\nc\n"
    assert (small / "sorted-logs.txt").read_text() == "a 1\nb 2\nb 3\n"
    assert (small / "counts/part-r-00000.tsv").read_text().startswith("be\t2\n")
    assert (small / "hits/part-00000").read_text() == "a\t1\nb\t1\nb\t1\n"
    assert "<html" in (small / "report.html").read_text()


def understood(command: str) -> None:
    """Fail unless the command line takes all options of a command."""
    words = shlex.split(command)
    assert words[0] == "gristmill", command
    context = Program(name="gristmill").make_context("gristmill", words[1:])
    name, found, rest = Program(name="gristmill").resolve_command(context, words[1:])
    assert found is not None, name
    found.make_context(name, rest)
