"""Programs that tests start as servers: where they are, when they answer, how they end."""

import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import HTTPSHandler, ProxyHandler, build_opener

TOP = Path(__file__).parent.parent.parent

_START_TIMEOUT_S = 30.0


class ServerMissing(Exception):
    """There is no server to start, and what to do about it."""


@dataclass(frozen=True)
class Host:
    """Where a server runs: its address, and the words before a command that is to run there."""

    address: str = "127.0.0.1"
    before: tuple[str, ...] = ()


#: This machine, for itself alone.
HERE = Host()


def compiled(name: str, program: str, by: str = "Go") -> Path:
    """A server's program: of the PATH, or as `make test-servers` makes it."""
    found = shutil.which(program)
    if found is not None:
        return Path(found)
    tools = TOP / os.environ.get("TOOLS", ".tools")
    made = sorted(tools.glob(f"{name}*/bin/{program}"))
    if not made:
        raise ServerMissing(f"no {name}: install {by}, then run `make test-servers`")
    return made[-1]


def answers(endpoint: str, authority: Path | None = None) -> bool:
    """Whether there is an HTTP server, whatever it says; with TLS, one that `authority` signed."""
    trusted = HTTPSHandler(context=ssl.create_default_context(cafile=authority))
    try:
        build_opener(ProxyHandler({}), trusted).open(endpoint, timeout=5).close()
    except HTTPError:
        return True  # it refuses whoever signs nothing
    except OSError:
        return False
    return True


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


@contextmanager
def started(
    command: Callable[[str, int], Sequence[str | Path]],
    log: Path,
    host: Host = HERE,
    port: int | None = None,
    authority: Path | None = None,
    **environment: str,
) -> Generator[tuple[str, subprocess.Popen[bytes]]]:
    """Start a server, on a port that is free or on `port`, and end it.

    `command` gives the words for an address and a port. Yields `http://ADDRESS:PORT`, or `https://`
    where the server has a certificate of `authority`.
    """
    for _ in range(5):  # somebody else may take the port before the server does
        chosen = port or free_port()
        with log.open("a") as told:
            process = subprocess.Popen(
                [*host.before, *command(host.address, chosen)],
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=told,
            )
        try:
            endpoint = f"{'https' if authority else 'http'}://{host.address}:{chosen}"
            deadline_s = time.monotonic() + _START_TIMEOUT_S
            while process.poll() is None and time.monotonic() < deadline_s:
                if answers(endpoint, authority):
                    yield endpoint, process
                    return
                time.sleep(0.02)
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()
    raise ServerMissing(f"the server does not start: {log.read_text()}")
