"""A job of Ray on the head, followed from this machine until it ends.

    its log, asked for again and again ──▶ lines by their marks (on_head.py) ──▶ who shows them
    a key in the log                   ──▶ the variables of stores, sealed by it (secrets.py)
    its state                          ──▶ whether it is over
    a signal here                      ──▶ the job is stopped, and followed to its end

A dashboard that is silent for a while changes nothing: the job does not need this machine. A user
who wants an end does not wait for it.
"""

import time
from collections.abc import Callable, Generator
from threading import Thread
from typing import NamedTuple, Protocol

from gristmill.cluster.connection import failed
from gristmill.cluster.submission.dashboard import Dashboard, NoAnswerError, State
from gristmill.cluster.submission.secrets import sealed_by

__all__ = ["Ended", "Shows", "follow"]

_SOON_S, _LATER_S = 0.2, 1.0
_SLOW = 10.0
"""How many times longer than a question the pause after it is: a log that grows is asked less."""

_PATIENCE_S = 60.0
"""How long the dashboard may be silent."""

_ASKED_PATIENCE_S = 3.0
"""The same, once the user wants the job to end: who sends a signal expects an end in seconds."""

_TICK_S = 0.1

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
    patient = _Patient(dashboard, job, is_asked_to_end)
    for log, state in _looks(patient):
        end = log.rfind("\n") + 1
        for line in log[told:end].splitlines():
            mark, _, text = line.partition(" ")
            if mark == "end":
                code = int(text)
            elif mark == "key":
                _send_variables(patient, text)
            else:
                shows.line(mark, text)
        told = max(told, end)
        if state.is_over:
            return Ended(state, code)
        if is_asked_to_end():
            # Again and again: one that has not begun may not have heard it.
            patient.ask(lambda: dashboard.stop(job))
            if stops_by == float("inf"):
                stops_by = time.monotonic() + _STOP_S
                shows.stopping()
        if time.monotonic() > stops_by:
            raise failed(
                f"{job} was stopped, and has not ended after {_STOP_S:.0f} s",
                f"look at {dashboard.address}",
            )
    raise AssertionError


def _send_variables(patient: "_Patient", key: str) -> None:
    """Send the variables of stores to the driver that has told a key."""
    package = sealed_by(key)
    while not patient.ask(lambda: patient.dashboard.put(*package)):
        patient.pause(_SOON_S)


class _Patient:
    """Asks a dashboard that may be silent for a while, and hears the user meanwhile."""

    def __init__(self, dashboard: Dashboard, job: str, is_asked_to_end: Callable[[], bool]) -> None:
        self.dashboard = dashboard
        self.job = job
        self._is_asked_to_end = is_asked_to_end
        self._answered = time.monotonic()
        self._asked: float | None = None
        self._longest_s = 0.0
        self._reason = "no answer"

    def ask(self, request: Callable[[], object]) -> bool:
        """Send a request, or several; False if nothing answers for now.

        Raises:
            OSError: The dashboard has been silent for too long, or refuses the request.
        """
        failures: list[Exception] = []

        def send() -> None:
            try:
                request()
            except Exception as error:  # noqa: BLE001 - raised below
                failures.append(error)

        began = time.monotonic()
        sending = Thread(target=send, daemon=True)  # one that gets no answer is left behind
        sending.start()
        while sending.is_alive():
            sending.join(_TICK_S)
            self._check()
        if not failures:
            self._answered = time.monotonic()
            self._longest_s = max(self._longest_s, self._answered - began)
            return True
        (error,) = failures
        if not isinstance(error, NoAnswerError):
            raise error
        self._reason = error.reason
        self._check()
        return False

    def pause(self, seconds: float) -> None:
        """Wait so long, or until the user wants an end."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._check():
            time.sleep(min(left, _TICK_S))

    def _check(self) -> bool:
        """Whether the user has wanted an end since the last time that this was asked."""
        now, is_new = time.monotonic(), False
        if self._asked is None and self._is_asked_to_end():
            self._asked, is_new = now, True
        patience = _PATIENCE_S
        if self._asked is not None:
            patience = max(_ASKED_PATIENCE_S, 2 * self._longest_s)  # a long log takes its time
        if now - max(self._answered, self._asked or 0.0) > patience:
            raise self._silent()
        return is_new

    def _silent(self) -> OSError:
        address, job = self.dashboard.address, self.job
        how = f"see how it ends with `ray job logs {job} --follow --address {address}`"
        if self._asked is not None:
            how = f"stop it with `ray job stop {job} --address {address}` when it answers"
        return failed(
            f"the dashboard {address} does not answer any more ({self._reason}); the job"
            f" {job} runs on, if its cluster does",
            how,
        )


def _looks(patient: _Patient) -> Generator[tuple[str, State]]:
    """The log of a job and its state, which is asked first: the last log is whole."""
    dashboard, job = patient.dashboard, patient.job
    found: list[tuple[State, str]] = []
    while True:
        began = time.monotonic()
        if patient.ask(lambda: found.append((dashboard.state(job), dashboard.log(job)))):
            state, log = found.pop()
            yield log, state
        patient.pause(min(_LATER_S, max(_SOON_S, _SLOW * (time.monotonic() - began))))
