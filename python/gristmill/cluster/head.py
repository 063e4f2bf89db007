"""The head of the cluster while a job runs: agents do without it, as long as Ray lets them.

    before Ray is loaded ──▶ patient: this process does not end when the head is gone for a minute
    every second         ──▶ does it answer? ──▶ what the engine names if no agent is left

Ray ends a process whose head does not answer for a minute. The process of a job has more to say:
that its agents are lost, and how to resume.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Protocol

from gristmill.errors import ours

__all__ = ["CALLERS", "HeadWatch", "answers", "at_most", "patient", "ray_is_called"]

_PATIENCE = "RAY_gcs_rpc_server_reconnect_timeout_s"
_PATIENCE_S = 30 * 24 * 3600

_ANSWER_S = 2.0
_LOOK_S = 1.0

_SILENCE_S = 10.0
"""How long a job that has not begun waits for a head that does not answer."""

_END_S = 3.0

CALLERS = "gristmill-ray"
"""The name of threads that call Ray, and may wait in a call for a head that is gone."""


class Hears(Protocol):
    """Who is told of it: `_core.Cluster`."""

    def headless(self, address: str | None) -> None: ...


@contextmanager
def patient() -> Generator[None]:
    """Have Ray, which reads its variables meanwhile, stay when its head is gone.

    Example:
        >>> with patient():
        ...     pass
    """
    if _PATIENCE in os.environ:
        yield
        return
    os.environ[_PATIENCE] = str(_PATIENCE_S)
    try:
        yield
    finally:
        del os.environ[_PATIENCE]


def answers(address: str) -> bool:
    """Return whether something listens at `HOST:PORT`.

    Example:
        >>> answers("127.0.0.1:1")
        False
    """
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()
    except (OSError, ValueError):
        return False
    return True


def at_most(seconds: float, call: Callable[[], object]) -> bool:
    """Call what may never return, or fail; return whether it was over in time.

    Example:
        >>> at_most(1.0, lambda: 1 // 0)
        True
        >>> late = threading.Event()
        >>> at_most(0.01, late.wait)
        False
        >>> late.set()
    """
    over = threading.Event()

    def called() -> None:
        try:
            call()
        except Exception:  # noqa: BLE001, S110 - of a cluster that may be gone
            pass
        finally:
            over.set()

    threading.Thread(target=called, name=CALLERS, daemon=True).start()
    return over.wait(seconds)


def ray_is_called() -> bool:
    """Return whether a thread of ours waits in a call of Ray.

    Ray frees at its end what such a call uses, and the process crashes.

    Example:
        >>> late = threading.Event()
        >>> at_most(0.01, late.wait), ray_is_called()
        (False, True)
        >>> late.set()
    """
    return any(thread.name == CALLERS for thread in threading.enumerate())


class HeadWatch:
    """Looks whether the head answers, on a thread of its own: whoever asks Ray without it waits."""

    def __init__(self, ray: Any) -> None:  # noqa: ANN401 - a module
        """Know where the head is."""
        self._address = str(ray.get_runtime_context().gcs_address)
        self._looked = self._answered = time.monotonic()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, tells: Hears) -> None:
        """Begin to look."""
        self._thread = threading.Thread(target=self._run, args=(tells,), name="gristmill-head")
        self._thread.daemon = True
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_END_S)

    def is_there(self) -> bool:
        """Return whether the head answers; looks at most once a second.

        Raises:
            OSError: It has not for ten seconds.
        """
        if time.monotonic() - self._looked < _LOOK_S:
            return self._looked == self._answered
        is_there = answers(self._address)
        self._looked = time.monotonic()
        if is_there:
            self._answered = self._looked
        elif self._looked - self._answered > _SILENCE_S:
            message = (
                f"cannot run the job on the cluster: its head, {self._address}, does not answer."
                " What to do: start a cluster, and run the job again."
            )
            raise ours(OSError(message), "io")
        return is_there

    def _run(self, tells: Hears) -> None:
        answered = True
        while not self._stop.wait(_LOOK_S):
            before, answered = answered, answers(self._address)
            if answered != before:
                tells.headless(None if answered else self._address)
