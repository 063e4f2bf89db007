"""What a test needs and a machine may lack: a loud skip for a user, a failure under CI."""

import os
from typing import NoReturn

import pytest

_MISSING = pytest.StashKey[dict[str, str]]()


def missing(config: pytest.Config, untested: str, problem: str) -> NoReturn:
    """End a test that cannot run: skipped, with a banner at the end; where CI=true it fails."""
    config.stash.setdefault(_MISSING, {})[untested] = problem
    if os.environ.get("CI") == "true":
        pytest.fail(f"needed under CI: {problem}", pytrace=False)
    pytest.skip(problem)


def show_missing(terminal: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write the banners."""
    for untested, problem in config.stash.get(_MISSING, {}).items():
        terminal.section(untested, red=True, bold=True)
        terminal.line(problem)
