"""A job of Ray on the head, followed from this machine until it ends.

    its log, asked for again and again ──▶ lines by their marks (on_head.py) ──▶ who shows them
    its state                          ──▶ whether it is over
    a signal here                      ──▶ the job is stopped, and followed to its end

A dashboard that is silent for a while changes nothing: the job does not need this machine.
"""

import time
from collections.abc import Callable, Generator
from typing import NamedTuple, Protocol

from gristmill.cluster.connection import failed
from gristmill.cluster.submission.dashboard import Dashboard, NoAnswerError, State

__all__ = ["Ended", "Shows", "follow"]

_SOON_S, _LATER_S = 0.2, 1.0
_SLOW = 10.0
"""How many times longer than a question the pause after it is: a log that grows is asked less."""

_PATIENCE_S = 60.0
"""How long the dashboard may be silent."""

_STOP_S = 90.0
"""How long a job may take to end that was stopped."""


class Shows(Protocol):
    """Who is told what the job says."""

    def line(self, mark: str, text: str) -> None:
        """A line of the job, complete."""
        ...

    def stopping(self) -> None:
        """The job has been asked to end."""
        ...


class Ended(NamedTuple):
    """How a job ended."""

    state: State
    """As Ray has it."""
    code: int | None
    """The exit code of the command; none if it did not come to that."""


def follow(
    dashboard: Dashboard, job: str, shows: Shows, is_asked_to_end: Callable[[], bool]
) -> Ended:
    """Show what a job says until it has ended.

    Args:
        dashboard: Where it was submitted.
        job: Its name.
        shows: Is told each of its lines.
        is_asked_to_end: Whether the user wants it to end.

    Raises:
        OSError: The dashboard does not answer any more, or the job does not end.
    """
    told, code, stops_by = 0, None, float("inf")
    for log, state in _looks(dashboard, job):
        end = log.rfind("\n") + 1
        for line in log[told:end].splitlines():
            mark, _, text = line.partition(" ")
            if mark == "end":
                code = int(text)
            else:
                shows.line(mark, text)
        told = max(told, end)
        if state.is_over:
            return Ended(state, code)
        if is_asked_to_end():
            _stop(dashboard, job)  # again and again: one that has not begun may not have heard it
            if stops_by == float("inf"):
                stops_by = time.monotonic() + _STOP_S
                shows.stopping()
        if time.monotonic() > stops_by:
            raise failed(
                f"{job} was stopped, and has not ended after {_STOP_S:.0f} s",
                f"look at {dashboard.address}",
            )
    raise AssertionError


def _stop(dashboard: Dashboard, job: str) -> None:
    try:
        dashboard.stop(job)
    except NoAnswerError as error:
        raise _silent(dashboard, job, error) from error


def _looks(dashboard: Dashboard, job: str) -> Generator[tuple[str, State]]:
    """The log of a job and its state, which is asked first: the last log is whole."""
    answered = time.monotonic()
    log = ""
    while True:
        began = time.monotonic()
        try:
            state = dashboard.state(job)
            log = dashboard.log(job)
            answered = time.monotonic()
            yield log, state
        except NoAnswerError as error:
            if time.monotonic() - answered > _PATIENCE_S:
                raise _silent(dashboard, job, error) from error
        time.sleep(min(_LATER_S, max(_SOON_S, _SLOW * (time.monotonic() - began))))


def _silent(dashboard: Dashboard, job: str, error: NoAnswerError) -> OSError:
    return failed(
        f"the dashboard {dashboard.address} does not answer any more ({error.reason}); the job"
        f" {job} runs on, if its cluster does",
        f"see how it ends with `ray job logs {job} --follow --address {dashboard.address}`",
    )
