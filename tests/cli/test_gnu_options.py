"""docs/guide/gnu-options.md: each option of `sort` and `grep` has a row, which names a test."""

import re
from functools import cache
from pathlib import Path

import click
import pytest

from gristmill.cli.gnu import gnu_sort
from gristmill.cli.gnu.gnu_grep import INSTEAD
from gristmill.cli.gnu.gnu_sort import GNU_OPTIONS
from gristmill.cli.program import the_program

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/guide/gnu-options.md"
COMMANDS = ("sort", "grep")
DIFFERENTIAL = re.compile(r"tests/cli/test_gnu_(keys|grep)\.py::|tests/fuzz/|crates/\w+/tests/")


@cache
def tables(command: str) -> list[list[list[str]]]:
    """The tables below the heading of a command, as rows of cells."""
    text = PAGE.read_text(encoding="utf-8")
    section = text.partition(f"\n## gristmill {command}\n")[2].partition("\n## ")[0]
    found = re.findall(r"(?m)^\|---.*\n((?:\|.*\n)+)", section)
    return [
        [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in table.splitlines()]
        for table in found
    ]


def named(cell: str) -> list[str]:
    """The options in a cell."""
    return re.findall(r"`(-[^` ]*)`", cell)


def options(command: str, *, hidden: bool) -> set[str]:
    """The names of the options, of those that the help shows alone or of all."""
    program = the_program()
    context = click.Context(program)
    found = program.get_command(context, command)
    assert found is not None
    return {
        name
        for option in found.params
        if isinstance(option, click.Option) and (hidden or not option.hidden)
        for name in option.opts
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_each_option_of_the_help_has_one_row(command: str) -> None:
    rows = [name for cells in tables(command)[0] for name in named(cells[0])]
    assert len(rows) == len(set(rows)), "an option stands there twice"
    assert options(command, hidden=False) <= set(rows) <= options(command, hidden=True)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_row_names_a_test_that_is_there(command: str) -> None:
    for cells in tables(command)[0]:
        assert len(cells) == 3, cells
        path, _, name = cells[2].partition("::")
        source = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"^(def|fn) {name}\(", source, re.MULTILINE), cells
        is_ours = re.search(r"; (not GNU|ripgrep|Hadoop)'s", cells[1]) is not None
        assert is_ours or DIFFERENTIAL.match(cells[2]), f"no differential test: {cells}"


def test_what_is_not_here_is_what_is_refused() -> None:
    of_grep = {name: cells[1] for cells in tables("grep")[1] for name in named(cells[0])}
    assert of_grep == INSTEAD
    of_sort = {name: cells[1] for cells in tables("sort")[1] for name in named(cells[0])}
    refused = {name: one.advice for one in GNU_OPTIONS if one.advice for name in one.names}
    assert of_sort == refused | gnu_sort.INSTEAD


def test_the_rows_of_sort_are_those_of_the_program() -> None:
    tests = {name: cells[2] for cells in tables("sort")[0] for name in named(cells[0])}
    for one in GNU_OPTIONS:
        if one.test and "=" not in one.word:
            assert tests[one.word] == one.test, one
