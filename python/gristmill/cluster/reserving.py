"""What a job asks of a Ray cluster: workers on nodes, with their CPUs and memory, all at once.

shares ──▶ how many workers each node has
memory_of_worker ──▶ what Ray is asked for each of them, if the job was given memory
Reserved ──▶ all of that together, for actors that begin by on_node
"""

import threading
from collections.abc import Container
from contextlib import suppress
from importlib import import_module
from typing import Any

from gristmill.amounts import parse_bytes
from gristmill.cluster.connection import alive, failed, wrong
from gristmill.units import show_bytes, show_count

__all__ = ["Reserved", "memory_of_worker", "on_node", "shares"]

_AT_ONCE = 3
"""Calls of an actor that run at once: one waits for the end of its agent, while another ends it."""


def shares(
    ray: Any,  # noqa: ANN401 - a module
    workers: int | None,
    but: Container[str] = (),
    *,
    most: int | None = None,
    fewer: bool = False,
) -> list[tuple[dict[str, Any], int]]:
    """Return how many workers each node has: all its CPUs, or those that were asked for in turns.

    Args:
        ray: The module.
        workers: How many there are in all.
        but: Nodes that have none.
        most: How many nodes there are at most: those with most CPUs that are free; or all of them.
        fewer: Whether fewer will do, where there are not so many; else that is an error.

    Raises:
        ValueError: There are not so many, or a number is less than 1.
        OSError: The cluster has no CPUs.
    """
    _check_numbers(workers=workers, nodes=most)
    nodes = [node for node in alive(ray) if node["NodeID"] not in but]
    cpus = [(node, int(node["Resources"].get("CPU", 0))) for node in nodes]
    if most is not None:
        free = _free_cpus(ray)
        cpus.sort(key=lambda one: (-free.get(one[0]["NodeID"], one[1]), -one[1]))
        cpus = cpus[:most]
    total = sum(count for _, count in cpus)
    if total == 0:
        raise failed("it has no CPUs", "look at `ray status`")
    if workers is None:
        workers = total
    if fewer:
        workers = min(workers, total)
    if workers > total:
        which = (
            "the cluster has" if most is None else f"with {show_count(len(cpus), 'node')} it has"
        )
        raise wrong(
            f"cannot run the job on the cluster: workers is {workers}, and {which} {total} CPUs."
            " What to do: give a smaller number."
        )
    given = [0] * len(cpus)
    while sum(given) < workers:
        for place, (_, count) in enumerate(cpus):
            if given[place] < count and sum(given) < workers:
                given[place] += 1
    return [(node, count) for (node, _), count in zip(cpus, given, strict=True) if count]


def _check_numbers(**given: int | None) -> None:
    for name, number in given.items():
        if number is not None and number < 1:
            raise wrong(f"cannot read the options: {name} must be at least 1, not {number}.")


def _free_cpus(ray: Any) -> dict[str, float]:  # noqa: ANN401 - a module
    """The CPUs of each node that no job has; of none where Ray does not say so."""
    with suppress(Exception):  # not in the part of Ray that is promised to stay
        state = import_module("ray._private.state").state
        known: dict[str, dict[str, float]] = {}
        if ray.is_initialized():
            known = state.available_resources_per_node()
        return {node: float(one.get("CPU", 0.0)) for node, one in known.items()}
    return {}


def memory_of_worker(
    given: list[tuple[dict[str, Any], int]], memory: str | int | None, workers: int | None
) -> int:
    """Return the memory that each worker is to have of Ray, in bytes; 0 if none is asked for.

    Args:
        given: The nodes, with their workers.
        memory: That of the job, if it was given one.
        workers: How many its plan is for, if there are fewer.

    Raises:
        ValueError: A node has less than its workers are to have.
    """
    if memory is None:
        return 0
    total = parse_bytes(memory, "memory")
    each = total // max(workers or 0, sum(count for _, count in given))
    for node, count in given:
        known, wanted = int(node["Resources"].get("memory", 0)), each * count
        if known < wanted:
            raise wrong(
                f"cannot run the job on the cluster: it needs {show_bytes(wanted)} of its"
                f" {show_bytes(total)} of memory on node {node['NodeManagerAddress']}, and Ray has"
                f" {show_bytes(known)} there. What to do: give less, or start the node by"
                " `ray start --memory BYTES`."
            )
    return each


class Reserved:
    """CPUs and memory of several nodes, of all of them at once.

    Two jobs that began agent by agent could each have some nodes, and wait for the other's forever.
    """

    def __init__(
        self,
        ray: Any,  # noqa: ANN401 - a module
        given: list[tuple[dict[str, Any], int]],
        each: int,
    ) -> None:
        """Ask for so many CPUs of each node; they are there when an actor begins with them.

        Args:
            ray: The module.
            given: The nodes, with their workers.
            each: The memory of each worker, in bytes.
        """
        self._ray = ray
        self._has_gone = threading.Event()
        self._asks: threading.Thread | None = None
        self._places = {node["NodeID"]: place for place, (node, _) in enumerate(given)}
        self._workers = {node["NodeID"]: workers for node, workers in given}
        self._group = import_module("ray.util").placement_group(
            [{"CPU": cpus, **_memory(cpus * each)} for _, cpus in given],
            bundle_label_selector=[{"ray.io/node-id": node["NodeID"]} for node, _ in given],
        )

    def most(self, node: str) -> int | None:
        """How many workers an actor on a node may have; of one that was not asked for, nothing."""
        return self._workers.get(node)

    def of(self, node: str) -> Any:  # noqa: ANN401 - Ray's
        """What places an actor on the CPUs of a node; nothing of one that was not asked for."""
        if node not in self._places:
            return None
        strategies = import_module("ray.util.scheduling_strategies")
        return strategies.PlacementGroupSchedulingStrategy(
            self._group, placement_group_bundle_index=self._places[node]
        )

    def check(self) -> None:
        """Fail if a node has gone: its CPUs would be waited for in vain.

        Ray is asked on a thread of its own, as it does not answer without a head.

        Raises:
            OSError: That is so, as far as Ray has said.
        """
        if self._has_gone.is_set():
            raise failed("a node has gone before its agent began", "look at `ray status`")
        if self._asks is None or not self._asks.is_alive():
            self._asks = threading.Thread(target=self._look, daemon=True)
            self._asks.start()

    def _look(self) -> None:
        with suppress(Exception):  # the cluster may be gone
            if self._places.keys() - {node["NodeID"] for node in alive(self._ray)}:
                self._has_gone.set()

    def give_back(self) -> None:
        """Let others have the CPUs."""
        with suppress(Exception):  # the cluster may be gone
            import_module("ray.util").remove_placement_group(self._group)


def on_node(
    ray: Any,  # noqa: ANN401 - a module
    node: dict[str, Any],
    kind: type,
    cpus: int,
    reserved: Reserved | None = None,
    memory: int = 0,
) -> Any:  # noqa: ANN401 - Ray's
    """Return what makes an actor on a node, with so many of its CPUs, and bytes: those reserved."""
    by_value = import_module("ray.cloudpickle").register_pickle_by_value
    for one in kind.__mro__[:-1]:
        by_value(import_module(one.__module__))  # nodes need not have Gristmill
    near = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
    place = None if reserved is None else reserved.of(node["NodeID"])
    return ray.remote(kind).options(
        num_cpus=cpus,
        **_memory(memory),
        max_concurrency=_AT_ONCE,
        max_restarts=0,
        scheduling_strategy=place or near(node_id=node["NodeID"], soft=False),
    )


def _memory(size: int) -> dict[str, int]:
    """What asks Ray for memory; nothing where none is wanted."""
    return {"memory": size} if size else {}
