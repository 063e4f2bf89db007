"""Machines of their own on this one: network namespaces behind a bridge.

    this machine ── bridge 10.231.8.1 ──┬── link ── 10.231.8.2
                                        └── link ── 10.231.8.3

Addresses, and what crosses a link, are real there; links may be slow, and can be cut. It takes
root, and iproute2.
"""

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .servers import Host, ServerMissing

__all__ = ["Machine", "Network", "network"]

_PREFIX = "10.231.8"


@dataclass(frozen=True)
class Machine:
    """A machine of a network: its namespace and the end of its link on our side."""

    host: Host
    link: str

    def cut(self) -> None:
        """Let nothing through the link."""
        _ip("link", "set", self.link, "down")

    def heal(self) -> None:
        """Let all through again."""
        _ip("link", "set", self.link, "up")

    def link_bytes(self) -> tuple[int, int]:
        """Bytes that came to the machine over its link, and that it sent, headers included."""
        counts = Path("/sys/class/net", self.link, "statistics")
        sent, came = ((counts / name).read_text() for name in ("tx_bytes", "rx_bytes"))
        return int(sent), int(came)


@dataclass(frozen=True)
class Network:
    """This machine, as the others reach it, and the others."""

    address: str
    machines: tuple[Machine, ...]


@contextmanager
def network(count: int, gbit: float = 0) -> Generator[Network]:
    """Make so many machines, with links of so many Gbit/s each way if that is given.

    Raises:
        ServerMissing: Namespaces cannot be made here.
    """
    if shutil.which("ip") is None:
        raise ServerMissing("no network namespaces: install iproute2")
    name = f"gm{os.getpid()}"
    made = list[str]()
    try:
        _ip("link", "add", name, "type", "bridge")
        made.append(name)
        _ip("address", "add", f"{_PREFIX}.1/24", "dev", name)
        _ip("link", "set", name, "up")
        machines = list[Machine]()
        for number in range(count):
            machines.append(_machine(name, number, gbit))
        yield Network(f"{_PREFIX}.1", tuple(machines))
    finally:
        for number in range(count):
            _quietly("netns", "delete", f"{name}n{number}")
            _quietly("link", "delete", f"{name}v{number}")
        if made:
            _quietly("link", "delete", name)


def _machine(bridge: str, number: int, gbit: float) -> Machine:
    """One machine behind the bridge."""
    space, link, address = f"{bridge}n{number}", f"{bridge}v{number}", f"{_PREFIX}.{number + 2}"
    _ip("netns", "add", space)
    _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
    _ip("link", "set", link, "master", bridge)
    _ip("-n", space, "address", "add", f"{address}/24", "dev", "eth0")
    for words in (["link", "set", link, "up"], ["-n", space, "link", "set", "eth0", "up"]):
        _ip(*words)
    _ip("-n", space, "link", "set", "lo", "up")
    there = ("ip", "netns", "exec", space)
    if gbit:
        held = ["root", "tbf", "rate", f"{gbit}gbit", "burst", "256kb", "latency", "20ms"]
        _run("tc", "qdisc", "add", "dev", link, *held)
        _run(*there, "tc", "qdisc", "add", "dev", "eth0", *held)
    return Machine(Host(address, there), link)


def _ip(*words: str) -> None:
    _run("ip", *words)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip() or f"it ended with {done.returncode}"
        raise ServerMissing(f"no network namespaces: `{' '.join(command)}` says: {said}")


def _quietly(*words: str) -> None:
    subprocess.run(["ip", *words], capture_output=True, check=False)
