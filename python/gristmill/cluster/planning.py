"""What a job would have on a Ray cluster, for `explain`: asked of the nodes, and nothing begins.

shares of the workers ─▶ a probe on each of their nodes, which takes none of its CPUs
◀─ memory that the node has to give, and what an idle engine holds there
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from gristmill import _core
from gristmill.cluster import actor
from gristmill.cluster.connection import connected, failed, first_line, load
from gristmill.cluster.node_probe import NodeProbe
from gristmill.cluster.packing import kept_by, packed
from gristmill.cluster.reserving import memory_of_worker, on_node, shares
from gristmill.cluster.user_code import UserCode
from gristmill.cluster.watching import draining
from gristmill.names import to_json

__all__ = ["as_planned"]

_ANSWER_S = 60.0


def as_planned(options: Mapping[str, Any]) -> str:
    """Return what the engine is told of the agents that a job would have.

    Raises:
        ValueError: An option makes no sense, or Ray is not installed.
        OSError: The cluster cannot be reached, or a node does not answer.
    """
    ray, probes = load(), list[Any]()
    with connected(ray):
        try:
            workers, nodes = options.get("workers"), options.get("nodes")
            given = shares(ray, workers, draining(ray), most=nodes)
            memory_of_worker(given, options.get("memory"), workers)  # refuses
            told = kept_by(ray, packed(UserCode())), actor.machine()
            probes += [
                on_node(ray, node, NodeProbe, 0).remote(*told)  # none of its CPUs
                for node, _ in given
            ]
            asked = [probe.machine.remote() for probe in probes]
            agents = [
                _agent(node, workers, _answer(ray, node, answer))
                for (node, workers), answer in zip(given, asked, strict=True)
            ]
        finally:
            for probe in probes:
                with suppress(Exception):
                    ray.kill(probe)
    return to_json({"token": "", "agents": agents, "is_planned": True})


def _answer(ray: Any, node: dict[str, Any], asked: Any) -> dict[str, Any]:  # noqa: ANN401 - Ray's
    """What the engine on a node says of it."""
    where = f"node {node['NodeManagerAddress']}"
    try:
        answer = ray.get(asked, timeout=_ANSWER_S)
    except Exception as error:
        raise failed(f"{where} does not answer: {first_line(error)}", _ADVICE) from error
    engine = answer["engine"]
    if "error" in engine:
        raise failed(f"the engine cannot be loaded on {where}: {engine['error']}", _ADVICE)
    return engine


_ADVICE = "look at `gristmill doctor --on ray`"


def _agent(node: dict[str, Any], workers: int, engine: dict[str, Any]) -> dict[str, Any]:
    """What an agent on a node would say of itself."""
    address = f"{node['NodeManagerAddress']}:0"
    return {
        "place": {"address": address, "folders": [], "nonce": ""},
        "version": _core.VERSION,
        "workers": workers,
        "available_bytes": engine["available_bytes"] or 0,
        "held_bytes": engine["held_bytes"],
    }
