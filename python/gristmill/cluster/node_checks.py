"""What `gristmill doctor` asks of this machine, and of all nodes of a cluster at once.

    this machine                    machine ─ directories ─ places
    cluster    probes begin ─▶ machine ─▶ clock ─▶ spill ─▶ paths ─▶ places ─▶ agents ─▶ reach
               (an actor on each node, which takes none of its CPUs)

Each question has a time limit. A node that does not answer one is not asked any more, and the
others are. Whatever happens, agents end and files that were left are removed.
"""

import os
import secrets
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from gristmill import _core
from gristmill.cluster import actor, node_probe
from gristmill.cluster.connection import alive, connected, first_line, load, variables_of_stores
from gristmill.cluster.on_ray import told_all
from gristmill.cluster.packing import kept_by, packed
from gristmill.cluster.reserving import on_node
from gristmill.cluster.user_code import UserCode
from gristmill.names import from_json

__all__ = ["HERE", "Cluster", "Node", "NodeCheckRequest", "cluster_found", "machine_found"]

HERE = "this machine"
"""What the machine of the command is called, beside nodes."""

_BEGIN_S = 60.0
_ANSWER_S = 30.0
_END_S = 5.0
_TICK_S = 0.1
_CLOCKS = 5
"""The quickest of so many questions says most of a clock."""


@dataclass(frozen=True)
class NodeCheckRequest:
    """What is to be looked at."""

    paths: tuple[str, ...]
    """Directories that jobs read and write."""
    places: tuple[str, ...]
    """The same in stores."""
    spill_dir: tuple[str, ...]


@dataclass
class Node:
    """What was found of a node, by the question; or at which question it did not answer."""

    name: str
    cpus: int | None = None
    """Those that Ray has there."""
    memory_bytes: int | None = None
    answers: dict[str, Any] = field(default_factory=dict[str, Any])
    failed: tuple[str, str] | None = None
    left: str = ""
    """The name of the file that it leaves in each directory, and how that of a trial begins."""
    actor: Any = None


@dataclass(frozen=True)
class Cluster:
    """What was found of a cluster."""

    address: str
    nodes: list[Node]
    here: Node
    idle: list[str]
    """Nodes without CPUs: they get no agent."""


def machine_found(asked: NodeCheckRequest) -> Node:
    """Look at this machine alone."""
    folder = _folder()
    here = Node(HERE, left=_file_name("here"))
    here.answers["machine"] = node_probe.machine(folder)
    here.answers["spill"] = [
        node_probe.directory(path, folder, here.left) for path in asked.spill_dir
    ]
    here.answers["paths"] = [node_probe.directory(path, folder, here.left) for path in asked.paths]
    for location in asked.places:
        here.answers[location] = node_probe.place(location, folder, dict(os.environ))
    return here


def cluster_found(asked: NodeCheckRequest, check: Callable[[], None]) -> Cluster:
    """Look at all nodes of a cluster.

    Args:
        asked: What is to be looked at.
        check: Called while nodes are waited for; what it raises ends that.

    Raises:
        ValueError: Ray is not installed, or its address makes no sense.
        OSError: The cluster cannot be reached.
    """
    ray = load()
    with connected(ray):
        known = alive(ray)
        names = _names(known)
        here = Node(HERE, left=_file_name("here"))
        nodes: list[Node] = []
        idle: list[str] = []
        for number, (node, name) in enumerate(zip(known, names, strict=True)):
            resources = node["Resources"]
            cpus = int(resources.get("CPU", 0))
            if cpus == 0:
                idle.append(name)
                continue
            memory = int(resources.get("memory", 0))
            nodes.append(Node(name, cpus, memory, left=_file_name(str(number))))
        found = Cluster(ray.get_runtime_context().gcs_address, nodes, here, idle)
        by_name = dict(zip(names, known, strict=True))
        specs = _specs(found, by_name, asked)
        with _probes(ray, found, by_name, asked):
            _look(_Questions(ray, found, check), asked, specs)
    return found


def _look(
    questions: "_Questions", asked: NodeCheckRequest, specs: Mapping[str, dict[str, Any]]
) -> None:
    """Ask all nodes; `specs` says what the agents are told, by node."""
    found, paths, variables = questions.found, list(asked.paths), variables_of_stores()
    here, folder = found.here, _folder()
    questions.ask("machine", lambda node: node.actor.machine.remote(), _BEGIN_S)
    here.answers["machine"] = node_probe.machine(folder)
    questions.ask_clocks()
    spill = [os.path.abspath(path) for path in asked.spill_dir]  # noqa: PTH100 - links stay
    questions.ask("spill", lambda node: node.actor.directories.remote(spill, node.left))
    if paths:
        questions.ask("paths", lambda node: node.actor.directories.remote(paths, node.left))
        here.answers["paths"] = [node_probe.directory(path, folder, here.left) for path in paths]
        questions.ask("leave", lambda node: node.actor.leave.remote(paths, node.left))
        here.answers["leave"] = node_probe.leave(paths, here.left)
        names = [here.left, *(node.left for node in questions.living())]
        questions.ask("see", lambda node: node.actor.see.remote(paths, names))
        here.answers["see"] = node_probe.see(paths, names)
    for location in asked.places:
        question = partial(_place, location, variables)
        questions.ask(location, question, node_probe.PLACE_S + _ANSWER_S)
        here.answers[location] = node_probe.place(location, folder, dict(os.environ))
    questions.ask(
        "agent", lambda node: node.actor.begin_somewhere.remote(specs[node.name], variables)
    )
    begun = {node.name: node.answers["agent"].get("hello") for node in questions.living()}
    urls = {name: _url(from_json(hello)["place"]) for name, hello in begun.items() if hello}
    token = next(iter(specs.values()))["token"] if specs else ""
    limit_s = _ANSWER_S + node_probe.REACH_S * len(urls) / node_probe.AT_ONCE
    questions.ask("reach", lambda node: node.actor.reach.remote(urls, token), limit_s)
    here.answers["reach"] = node_probe.reach(urls, token)


def _url(place: dict[str, Any]) -> str:
    return f"{'https' if place.get('tls') else 'http'}://{place['address']}"


def _place(location: str, variables: dict[str, str], node: Node) -> Any:  # noqa: ANN401 - Ray's
    return node.actor.place.remote(location, variables)


def _specs(
    found: Cluster, by_name: dict[str, dict[str, Any]], asked: NodeCheckRequest
) -> dict[str, dict[str, Any]]:
    """What the agents are told, by node."""
    token = secrets.token_hex(32)
    told = told_all(f"doctor-{token[:8]}", token, asked.spill_dir)
    return {
        node.name: told
        | {"agent": number, "workers": 1, "host": by_name[node.name]["NodeManagerAddress"]}
        for number, node in enumerate(found.nodes)
    }


@contextmanager
def _probes(
    ray: Any,  # noqa: ANN401 - a module
    found: Cluster,
    by_name: dict[str, dict[str, Any]],
    asked: NodeCheckRequest,
) -> Generator[None]:
    """Begin an actor on each node, and end them with all that they left."""
    paths = list(asked.paths)
    told = kept_by(ray, packed(UserCode())), actor.machine()
    try:
        for node in found.nodes:
            kind = on_node(ray, by_name[node.name], node_probe.NodeProbe, 0)
            node.actor = kind.remote(*told)
        yield
    finally:
        begun = [node for node in found.nodes if node.actor is not None]
        with suppress(Exception):  # the cluster may be gone
            ends = [node.actor.end.remote(paths, node.left) for node in begun if not node.failed]
            ray.wait(ends, num_returns=len(ends), timeout=_END_S)
        for node in begun:
            with suppress(Exception):
                ray.kill(node.actor)
        # What a node could not remove, this machine can where it sees the same directory.
        node_probe.clear(paths, [found.here.left, *(node.left for node in found.nodes)])


class _Questions:
    """Asks all nodes at once, and waits for them."""

    def __init__(self, ray: Any, found: Cluster, check: Callable[[], None]) -> None:  # noqa: ANN401
        self._ray = ray
        self._check = check
        self.found = found

    def living(self) -> list[Node]:
        """The nodes that have answered so far."""
        return [node for node in self.found.nodes if node.failed is None]

    def ask(self, name: str, question: Callable[[Node], Any], limit_s: float = _ANSWER_S) -> None:
        """Ask all nodes something; their answers get this name."""
        asked = {node.name: question(node) for node in self.living()}
        self._wait(list(asked.values()), limit_s)
        for node in self.living():
            self._take(node, name, asked[node.name], limit_s)

    def ask_clocks(self) -> None:
        """Ask each node by itself what time it is: how far it is ahead, and how long that took."""
        for node in self.living():
            self._check()
            clocks: list[tuple[float, float]] = []
            for _ in range(_CLOCKS):
                began_s, began = time.monotonic(), time.time()
                self._take(node, "now", node.actor.now.remote(), _ANSWER_S, wait=True)
                if node.failed is not None:
                    break
                took_s = time.monotonic() - began_s
                clocks.append((took_s, node.answers["now"] - (began + took_s / 2)))
            if clocks:
                node.answers["clock"] = min(clocks)

    def _wait(self, waiting: Sequence[Any], limit_s: float) -> None:
        deadline_s = time.monotonic() + limit_s
        while waiting and time.monotonic() < deadline_s:
            self._check()
            _, waiting = self._ray.wait(waiting, num_returns=len(waiting), timeout=_TICK_S)

    def _take(
        self,
        node: Node,
        name: str,
        answer: Any,  # noqa: ANN401 - Ray's
        limit_s: float,
        *,
        wait: bool = False,
    ) -> None:
        try:
            node.answers[name] = self._ray.get(answer, timeout=limit_s if wait else 0.001)
        except self._ray.exceptions.GetTimeoutError:
            node.failed = (name, f"no answer within {limit_s:.0f} s")
        except Exception as error:  # noqa: BLE001 - whatever Ray says of a node
            node.failed = (name, first_line(error))


def _folder() -> Path:
    """Where the engine is, on this machine."""
    return Path(_core.__file__ or "").parent


def _file_name(of: str) -> str:
    return f".gristmill-doctor-{secrets.token_hex(8)}-{of}"


def _names(nodes: list[dict[str, Any]]) -> list[str]:
    """What nodes are called: by their addresses, and where several have one, by their ids."""
    addresses = [node["NodeManagerAddress"] for node in nodes]
    return [
        address if addresses.count(address) == 1 else f"{address} ({node['NodeID'][:6]})"
        for node, address in zip(nodes, addresses, strict=True)
    ]
