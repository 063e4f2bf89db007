"""The agents of a job while it runs: nodes that join get one, and nodes that drain no more tasks.

    every second:  nodes of the cluster ─┬─▶ a node without an agent: one begins there ─▶ joined
                                         ├─▶ an agent that ended, on a node that lives: the same
                                         └─▶ a node that Ray drains ─▶ drained

What is said of agents goes to the engine, which decides what it makes of that. Nothing that goes
wrong here is the job's: it runs on the agents that it has.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from gristmill.cluster.connection import alive
from gristmill.cluster.head import CALLERS

__all__ = ["Begun", "Watch", "draining"]

_LOOK_S = 1.0
"""Between two looks at the nodes: each is one question of Ray's head, of a millisecond."""

_AGAIN_S = 10.0
"""How long a node whose agent has ended is left alone: something ended it."""

_BEGUN_MAX = 3
"""How many agents a node gets in one job: on one where they end, more of them end."""

_END_S = 3.0


class Hears(Protocol):
    """Who is told of what changes: `_core.Cluster`."""

    def joined(self, number: int, hello: str) -> None: ...
    def drained(self, number: int) -> None: ...


class Begun(NamedTuple):
    """An actor that begins an agent."""

    number: int
    node: str
    """The node, as Ray names it."""
    workers: int
    actor: Any
    hello: Any
    """What the agent says of itself, once it has begun."""
    ended: Any
    """There once the agent has ended."""


def draining(ray: Any) -> set[str]:  # noqa: ANN401 - a module
    """Return the nodes that Ray drains, which are about to go."""
    with suppress(Exception):  # not in the part of Ray that is promised to stay
        state = import_module("ray._private.state").state
        return set(state.get_draining_nodes()) if ray.is_initialized() else set()
    return set()


class Watch:
    """Looks at the nodes of a cluster while a job runs, on a thread of its own."""

    def __init__(
        self,
        ray: Any,  # noqa: ANN401 - a module
        begun: list[Begun],
        begin: Callable[[int, dict[str, Any], int], Begun],
        most: tuple[int | None, int | None],
        most_on: Callable[[str], int | None] = lambda _: None,
    ) -> None:
        """Know the agents that there are.

        Args:
            ray: The module.
            begun: The agents of the job; those that begin later are added.
            begin: Begins an agent of a number on a node, with so many workers.
            most: How many workers, and how many nodes, there may be in all.
            most_on: How many workers there may be on a node, where not all its CPUs will do.
        """
        self._ray = ray
        self._begun = begun
        self._begin = begin
        self._workers, self._nodes = most
        self._most_on = most_on
        self._waiting: list[Begun] = []
        self._drained: set[int] = set()
        self._ended: dict[int, float] = {}
        self._refused: set[str] = set()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, tells: Hears) -> None:
        """Begin to look."""
        thread = threading.Thread(target=self._run, args=(tells,), name=CALLERS)
        thread.daemon = True
        thread.start()
        self._thread = thread

    def stop(self) -> None:
        """Look no more: no agent begins from here on."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_END_S)

    def _run(self, tells: Hears) -> None:
        while not self._stop.wait(_LOOK_S):
            with suppress(Exception):  # the head may be gone, for a while or for good
                self._look(tells)

    def _look(self, tells: Hears) -> None:
        nodes, going = alive(self._ray), draining(self._ray)
        for one in self._begun:
            if one.node in going and one.number not in self._drained:
                self._drained.add(one.number)
                tells.drained(one.number)
        self._note_ended()
        self._greet(tells)
        living = self._living({node["NodeID"] for node in nodes})
        room = None if self._workers is None else self._workers - sum(one.workers for one in living)
        places = None if self._nodes is None else self._nodes - len(living)
        for node in nodes:
            if places is not None and places < 1:
                return
            most = (int(node["Resources"].get("CPU", 0)), room, self._most_on(node["NodeID"]))
            workers = min(one for one in most if one is not None)
            if workers < 1 or node["NodeID"] in going or not self._wants(node["NodeID"]):
                continue
            if self._stop.is_set():
                return
            try:
                one = self._begin(len(self._begun), node, workers)
            except Exception:  # noqa: BLE001 - of Ray: others get theirs all the same
                self._refused.add(node["NodeID"])
                continue
            self._waiting.append(one)
            self._begun.append(one)
            room = None if room is None else room - workers
            places = None if places is None else places - 1

    def _note_ended(self) -> None:
        """Note which agents have ended."""
        living = [one for one in self._begun if one.number not in self._ended]
        refs = [one.ended for one in living]
        ready, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0) if refs else ((), ())
        for one in living:
            if one.ended in ready:
                self._ended[one.number] = time.monotonic()
                self._ray.kill(one.actor)  # its CPUs are free

    def _greet(self, tells: Hears) -> None:
        """Tell of agents that have begun since."""
        for one in list(self._waiting):
            if not self._ray.wait([one.hello], timeout=0)[0]:
                continue  # it waits for CPUs that other jobs have, or begins
            self._waiting.remove(one)
            try:
                tells.joined(one.number, self._ray.get(one.hello)["hello"])
            except Exception:  # noqa: BLE001 - of Ray, of the node: no agent there
                self._refused.add(one.node)
                self._ray.kill(one.actor)

    def _living(self, nodes: set[str]) -> list[Begun]:
        """Those that have not ended, on nodes that live."""
        return [one for one in self._begun if one.node in nodes and one.number not in self._ended]

    def _wants(self, node: str) -> bool:
        """Whether a node is without an agent, and is to have one."""
        there = [one for one in self._begun if one.node == node]
        ended = [self._ended.get(one.number) for one in there]
        if node in self._refused or len(there) >= _BEGUN_MAX:
            return False
        now = time.monotonic()
        return all(at is not None and now - at > _AGAIN_S for at in ended)
