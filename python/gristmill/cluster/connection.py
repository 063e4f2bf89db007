"""The connection of this process to a Ray cluster, and its nodes.

    load ──▶ ray, if it is installed
    connected(ray) ──▶ the cluster of RAY_ADDRESS, or of this machine, or one that begins here
                       and ends with the last user of the connection
    alive ──▶ its nodes

Jobs that run at once in one process share its connection. A process that is connected already
keeps it: a job of Ray, a notebook.
"""

import atexit
import os
import signal
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from gristmill import _core
from gristmill.cluster.head import answers, at_most, patient, ray_is_called
from gristmill.errors import ours
from gristmill.installing import install_extra

__all__ = [
    "alive",
    "connected",
    "failed",
    "first_line",
    "load",
    "variables_of_stores",
    "wrong",
]

_REACH_S = 5.0
"""How long a cluster's head may take to accept a connection."""

_END_S = 2.0
"""How long the end of a connection may take without a head."""


def load() -> Any:  # noqa: ANN401 - a module
    """Return Ray.

    Raises:
        ValueError: It is not installed.
    """
    try:
        with patient():
            return import_module("ray")
    except ImportError as error:
        advice = f"leave out --on ray, or install Ray: {install_extra('ray')}"
        message = (
            f"cannot run the job on a Ray cluster: Ray is not installed. What to do: {advice}."
        )
        raise wrong(message) from error


@contextmanager
def connected(ray: Any) -> Generator[None]:  # noqa: ANN401 - a module
    """Be connected to the cluster.

    Raises:
        ValueError: RAY_ADDRESS is no address of a cluster.
        OSError: The cluster cannot be reached.
    """
    _connections.enter(ray)
    try:
        yield
    finally:
        _connections.leave(ray)


class _Connections:
    """The connection of this process, which jobs share that run at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._is_ours = False

    def enter(self, ray: Any) -> None:  # noqa: ANN401 - a module
        """Connect, unless this process is connected."""
        with self._lock:
            if self._users == 0:
                self._is_ours = _connect(ray)
            self._users += 1

    def leave(self, ray: Any) -> None:  # noqa: ANN401 - a module
        """Give the connection up after the last job, if it is ours."""
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._is_ours:
                _disconnect(ray)


_connections = _Connections()


def wrong(message: str) -> ValueError:
    """Return the error of an option that makes no sense."""
    return ours(ValueError(message), "bad_option")


def failed(what: str, advice: str) -> OSError:
    """Return the error of a cluster that cannot be used."""
    message = f"cannot run the job on the cluster: {what}. What to do: {advice}."
    return ours(OSError(message), "io")


def _connect(ray: Any) -> bool:  # noqa: ANN401 - a module
    """Connect to the cluster, unless this process is; whether it is to be left again."""
    if ray.is_initialized():
        if not answers(_head(ray)):
            raise failed(
                f"its head, {_head(ray)}, does not answer",
                "start a cluster, then run the job in a new process",
            )
        return False
    address = os.environ.get("RAY_ADDRESS") or None
    if address is not None:
        _reach(address)
    _keep_stdout()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    is_ended = False
    try:
        with patient():
            ray.init(
                address=address,
                log_to_driver=False,
                logging_level="ERROR",
                configure_logging=False,
                include_dashboard=False if address is None else None,
            )
    except Exception as error:
        raise failed(
            f"Ray says {first_line(error)}", "look at `ray status`, and at RAY_ADDRESS"
        ) from error
    except SystemExit as error:  # by Ray's handler of SIGTERM, which gives way to ours below
        is_ended = True
        raise failed("it was ended while it connected", "run the job again") from error
    finally:
        for number, handler in before.items():
            with suppress(ValueError):  # of another thread: Ray has set none there
                signal.signal(number, handler)
        if is_ended:
            os.kill(os.getpid(), signal.SIGTERM)
    return True


def _keep_stdout() -> None:
    """Keep Ray from printing what nodes complain of: it takes stdout, which is that of a report.

    `log_to_driver=False` does not do that, and there is no option for it.
    """
    with suppress(ImportError):  # not in the part of Ray that is promised to stay
        listens: Any = import_module("ray._private.worker")
        listens.print_to_stdstream = _say_nothing


def _say_nothing(*_arguments: object, **_named: object) -> None:
    pass


def _disconnect(ray: Any) -> None:  # noqa: ANN401 - a module
    """End the connection. Ray waits for a head that is gone; we wait for Ray only so long.

    While another thread of ours waits in a call of Ray, the connection stays.
    """
    if answers(_head(ray)):
        ray.shutdown()
        return
    atexit.unregister(ray.shutdown)
    if not ray_is_called():
        at_most(_END_S, ray.shutdown)


def _head(ray: Any) -> str:  # noqa: ANN401 - a module
    return str(ray.get_runtime_context().gcs_address)


def _reach(address: str) -> None:
    """Fail at once where nothing answers at the address of a cluster: Ray would try for minutes."""
    if address in {"auto", "local"}:
        return
    if address.startswith(("http://", "https://")):
        raise wrong(
            f"cannot run the job on the cluster: RAY_ADDRESS is {address}, the address of a"
            " dashboard, to which commands are submitted, and not programs. What to do: start"
            " `gristmill run FILE --on ray`, or run the program on a node of the cluster."
        )
    if "://" in address:
        raise wrong(
            f"cannot run the job on the cluster: RAY_ADDRESS is {address}, an address of Ray's"
            " client. What to do: run the job on a node of the cluster, with"
            " RAY_ADDRESS=HOST:6379 or auto."
        )
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()):
        raise wrong(
            f"cannot run the job on the cluster: RAY_ADDRESS is {address}, which has no port."
            " What to do: set it to HOST:PORT, as in RAY_ADDRESS=HOST:6379, or to auto."
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACH_S).close()
    except (OSError, OverflowError) as error:
        raise failed(
            f"nothing answers at {address}, which RAY_ADDRESS names ({error})",
            "start the cluster (`ray start --head`), or correct RAY_ADDRESS",
        ) from error


def alive(ray: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - a module
    """Return the nodes of the cluster that live, as Ray knows them, always in the same order."""
    return [node for node in sorted(ray.nodes(), key=lambda node: node["NodeID"]) if node["Alive"]]


def variables_of_stores() -> dict[str, str]:
    """Return the variables by which stores are found and asked: agents have those of the job."""
    begin = tuple(name for kind in _core.store_kinds() for name in kind["variables"])
    return {name: text for name, text in os.environ.items() if name.startswith(begin)}


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, without a full stop.

    Of an error that a process of Ray reports, that of its cause: it begins with where it was.
    """
    cause = getattr(error, "cause", None)
    error = cause if isinstance(cause, BaseException) else error
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__
