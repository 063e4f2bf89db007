"""What a test needs and a machine may lack: a loud skip for a user, a failure under CI."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import NoReturn

import pytest
from tests.cli.servers import ServerMissing


def missing(untested: str, problem: str) -> NoReturn:
    """End a test that cannot run: skipped, with a banner at the end; where CI=true it fails."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"needed under CI: {problem}", pytrace=False)
    pytest.skip(f"{untested}\n{problem}")


#: What did not start in this process, and why: nobody waits for it once more.
_failed: dict[str, str] = {}


@contextmanager
def or_missing(what: str) -> Generator[None]:
    """End a test whose server cannot be started, and any other one at once."""
    untested = f"NOT TESTED: {what}"
    if what in _failed:
        missing(untested, _failed[what])
    try:
        yield
    except ServerMissing as problem:
        _failed[what] = str(problem)
        missing(untested, str(problem))
    except AssertionError:  # of a test, whose server has started
        raise
    except BaseException as problem:  # also the time limit of a test
        _failed[what] = f"it did not start before: {problem}"
        raise


def show_missing(terminal: pytest.TerminalReporter) -> None:
    """Write a banner for all that is missing; tests may have run in other processes."""
    skipped = terminal.stats.get("skipped", [])
    reasons = {report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)}
    for reason in sorted(reasons):
        untested, _, problem = reason.removeprefix("Skipped: ").partition("\n")
        if problem:  # else the test is for another kind of machine
            terminal.section(untested, red=True, bold=True)
            terminal.line(problem)
