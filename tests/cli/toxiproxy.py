"""A proxy that makes a network bad, on this machine: toxiproxy, in front of a server."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from .servers import compiled, started


@dataclass(frozen=True)
class Proxy:
    """A proxy that runs in front of one server."""

    control: str
    endpoint: str

    def worsen(self, kind: str, share: float = 1.0, **attributes: int) -> None:
        """Make a share of the connections bad: `kind` and `attributes` are a toxic's."""
        toxic = {"type": kind, "toxicity": share, "stream": "downstream", "attributes": attributes}
        _asked("POST", f"{self.control}/proxies/server/toxics", toxic)

    def open(self, is_open: bool) -> None:
        """Take connections, or cut all that there are and refuse new ones."""
        _asked("POST", f"{self.control}/proxies/server", {"enabled": is_open})

    def mend(self) -> None:
        """Be a good network again."""
        _asked("POST", f"{self.control}/reset")


def _asked(method: str, url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    data = json.dumps(body or {}).encode()
    request = Request(url, data=data, method=method, headers={"User-Agent": "tests"})
    with build_opener(ProxyHandler({})).open(request, timeout=10) as reply:
        return json.loads(reply.read() or b"{}")


@contextmanager
def proxied(endpoint: str, log: Path) -> Generator[Proxy]:
    """Start a proxy in front of the server at `endpoint`, and end it."""
    program = compiled("toxiproxy", "toxiproxy-server")

    def command(address: str, port: int) -> list[str | Path]:
        return [program, "-host", address, "-port", str(port)]

    with started(command, log) as (control, _):
        server = {"name": "server", "listen": "127.0.0.1:0", "upstream": urlsplit(endpoint).netloc}
        made = _asked("POST", f"{control}/proxies", {**server, "enabled": True})
        yield Proxy(control, f"http://{made['listen']}")
