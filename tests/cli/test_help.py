"""Every help text as a user sees it in 80 columns: whole, fitting, in plain words."""

import re
from functools import cache

import click
import pytest

from gristmill.cli.program import the_program
from gristmill.cli.render.overview import ROWS
from gristmill.options import commands

from .harness import run

PROGRAM = the_program()
CONTEXT = click.Context(PROGRAM)
PAGES = [
    "",
    *commands(),
    "explain",
    *(f"explain {command.name}" for command in commands().values() if command.explained),
    *("run", "check", "streaming", "hadoop"),
    *(
        "jobs",
        "jobs show",
        "jobs watch",
        "jobs prune",
        "report",
        "retry",
        "doctor",
        "demo",
        "completion",
        "grep",
    ),
    *("scale", "scale fit", "scale run"),
    *("bench", "bench run", "bench compare", "bench report"),
]

# Metavars and usage lines of things that may be given several times.
ELLIPSIS = re.compile(r"\b[A-Z]+\]?\.\.\.|\bfs -\.\.\.|gm\.Job\(\.\.\.\)|,\.\.\.")

# Sentences that are not how people of this field speak; see CONTRIBUTING.
ODD = re.compile(
    r"\b(people's|whoever|nobody|somebody|look whether|go on with|goes on with|"
    r"(?<!there )is no [a-z]+|are no [a-z]+|in the place of|one's own)\b",
    re.IGNORECASE,
)


@cache
def page(command: str) -> str:
    return run(*command.split(), "--help", COLUMNS="80").stdout


@pytest.mark.parametrize("command", ["", "sort", "jobs show"])
def test_help_is_a_word_too(command: str) -> None:
    assert run("help", *command.split(), COLUMNS="80").stdout == page(command)


def test_the_help_of_help_is_that_of_the_program() -> None:
    assert run("help", "help", COLUMNS="80").stdout == page("")


def test_every_command_has_a_page() -> None:
    assert set(PROGRAM.list_commands(CONTEXT)) <= set(PAGES)
    for of in ("explain", "jobs", "bench", "scale"):
        listed = page(of).partition("Commands:\n")[2].partition("\n\n")[0]
        for name in re.findall(r"(?m)^  ([a-z]+) ", listed):
            assert f"{of} {name}".strip() in PAGES


def test_the_first_screen_fits() -> None:
    shown = page("").splitlines()
    assert len(shown) < 24  # and a line for the prompt
    words = {word for line in shown for word in line.split()}
    assert set(PROGRAM.list_commands(CONTEXT)) <= words


def test_every_command_has_its_line_on_the_first_screen() -> None:
    rows = [name for row in ROWS for name in row.names]
    assert len(rows) == len(set(rows))
    assert set(PROGRAM.list_commands(CONTEXT)) <= set(rows), "add a row to cli/render/overview.py"


@pytest.mark.parametrize("command", PAGES)
def test_it_fits(command: str) -> None:
    too_long = [line for line in page(command).splitlines() if len(line) > 80]
    # An example is whole, to be copied.
    assert [line for line in too_long if not line.startswith("  gristmill ")] == []


@pytest.mark.parametrize("command", PAGES)
def test_nothing_is_cut(command: str) -> None:
    rest = ELLIPSIS.sub("", page(command))
    rest = rest.replace(".../hadoop-streaming.jar", "")
    assert "..." not in rest
    assert "\N{HORIZONTAL ELLIPSIS}" not in rest


@pytest.mark.parametrize("command", PAGES)
def test_its_words_are_plain(command: str) -> None:
    assert ODD.findall(page(command)) == []


@pytest.mark.parametrize("command", PAGES)
def test_it_says_how_it_is_used(command: str) -> None:
    shown = page(command)
    assert shown.startswith(f"Usage: gristmill {command}".rstrip())
    # Each option has a sentence of its own: with a verb, and not of one word or two.
    for text in re.findall(r"(?m)^  -[^\n]*?  +(\S[^\n]*)$", shown):
        assert len(text.split()) > 2, text


@pytest.mark.parametrize("command", PAGES)
def test_limits_are_words(command: str) -> None:
    assert re.findall(r"x[<>]=|[<>]=x", page(command)) == []


@pytest.mark.parametrize("command", ["resume", "report", "retry", "jobs show", "jobs watch"])
def test_a_job_is_named_by_its_id(command: str) -> None:
    words = re.findall(r"\b(?:JOB|JOB_ID|ID)\b", page(command).partition("\n")[0])
    assert set(words) == {"ID"}


@pytest.mark.parametrize("command", PAGES)
def test_a_directory_is_a_directory(command: str) -> None:
    assert re.findall(r"(?i)\bfolders?\b", page(command)) == []


def test_it_promises_what_there_is() -> None:
    promised = page("").partition("\n\n")[2].partition("\n\n")[0]
    assert "search" not in promised
    assert "copy" not in promised
