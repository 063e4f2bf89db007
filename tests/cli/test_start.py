"""What the command line imports at its start: it is felt at every call."""

import subprocess
import sys

import pytest

# What a start may import beside click and what that imports.
NEEDED = {
    "gristmill", "gristmill._core", "gristmill.cli", "gristmill.cli.failures",
    "gristmill.cli.groups", "gristmill.cli.main", "gristmill.cli.program", "gristmill.errors",
    "gristmill.closed_streams", "gristmill.names", "gristmill.terminal",
    "gristmill.terminal.console", "gristmill.terminal.signals", "gristmill.terminal.watchdog",
    "_locale", "fcntl", "gc", "locale", "select", "signal",
}  # fmt: skip


def imported(code: str) -> set[str]:
    """The modules that a fresh interpreter has after `code`."""
    code += "\nimport sys; print('--', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.partition("-- ")[2].split())


def started(*words: str) -> set[str]:
    return imported(f"from gristmill.cli.main import main; main({list(words)!r})")


@pytest.fixture(scope="module")
def click() -> set[str]:
    return imported("import click, dataclasses")


def test_the_version_imports_what_it_needs(click: set[str]) -> None:
    assert started("--version") - click - NEEDED == set()


def test_a_job_imports_no_more_than_it_uses() -> None:
    found = started("sort", "--check", "/dev/null")
    unused = {"rich", "cloudpickle", "pyarrow", "difflib", "gristmill.functions",
              "gristmill.mapreduce", "gristmill.streaming", "gristmill.history.model",
              "gristmill.history.reader"}  # fmt: skip
    assert found & unused <= imported("import click, dataclasses")
