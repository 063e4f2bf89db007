"""The examples in the package's docstrings and in the guide: they run, and give what they say.

A page of the guide runs from its top to its end, in a folder of its own: blocks of `python` share
their names, lines of `console` that begin with `$` are commands, and what they print is what
follows, in the same block or in one of `text`; `...` stands for anything. A block with a `title`
is the file of that name. What is indented does not run: it is other programs', or takes a cluster.
"""

import doctest
import gzip
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.harness import clean_environment

import gristmill
from gristmill.options import commands

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(gristmill.__path__, "gristmill.")
    if module.name not in ("gristmill.__main__", "gristmill._core")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0, "see the output above"


def test_the_public_functions_have_examples() -> None:
    finder = doctest.DocTestFinder(recurse=False)
    for function in (getattr(gristmill, command.function) for command in commands().values()):
        assert any(test.examples for test in finder.find(function)), function


# --- the guide ---

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    path
    for pattern in ("guide/*.md", "from-*.md", "index.md", "tutorial.md")
    for path in (ROOT / "docs").glob(pattern)
)
_BLOCK = re.compile(
    r"^```(python|console|text)(?: title=\"([\w.]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_of_the_guide(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = page.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "books").mkdir()
    (tmp_path / "books/hamlet.txt").write_text("to be or not to be\n")
    (tmp_path / "books/more.txt.gz").write_bytes(gzip.compress(b"is a question\n"))
    blocks = _BLOCK.findall(text)
    assert len(blocks) == text.count("\n```") // 2, "a block of another language"
    if blocks:
        (tmp_path / "job.py").write_text(blocks[0][2].split("result =")[0])
    names: dict[str, object] = {"__name__": "guide"}
    printed = ""
    for language, title, block in blocks:
        if title:
            (tmp_path / title).write_text(block)
        elif language == "text":
            assert_like(block, printed)
        elif language == "python":
            exec(compile(block, f"<{page.name}>", "exec"), names)
            printed = capsys.readouterr().out
        else:
            for command, expected in commands_of(block):
                assert_like(expected, run_in_shell(command, tmp_path))


def commands_of(block: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def run_in_shell(command: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        cwd=folder,
        env=clean_environment(PATH=path, HOME=str(folder)),
        timeout=60,
        check=False,
    )
    return done.stdout.replace(f"{folder}/", "")


def assert_like(expected: str, found: str) -> None:
    checker = doctest.OutputChecker()
    assert checker.check_output(expected, found, doctest.ELLIPSIS), f"{expected}\n---\n{found}"


def test_each_row_of_the_options_names_a_test() -> None:
    text = (ROOT / "docs/guide/mapreduce.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| (tests/\S+\.py)::(\w+) \|$", text, re.MULTILINE)
    assert len(rows) > 30
    for path, name in rows:
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), (path, name)
