"""What the page has of the nodes of a cluster: lists that are empty of a job on one machine."""

from itertools import pairwise
from typing import Any

from gristmill.history.cluster import NodeTotal, node_totals, reads_between
from gristmill.history.model import JobHistory
from gristmill.history.nodes import NodeSample

__all__ = ["on_nodes"]

_CHARTS_MAX = 16
"""Nodes that have charts of their own: those that moved most."""

_IN_TABLE_MAX = 64
"""Nodes between which a table of bytes can be read."""

_APART_MIN_MS = 200
"""Agents count their CPU time no more often."""


def on_nodes(history: JobHistory) -> dict[str, Any]:
    """Return names, totals, rates over time, and bytes of runs from node to node."""
    totals = node_totals(history)
    names = [total.used.node for total in totals]
    numbers = {name: number for number, name in enumerate(names)}
    return {
        "nodes": names,
        "node": [numbers.get(attempt.node, -1) for attempt in history.attempts] if names else [],
        "node_totals": [_row(total) for total in totals],
        "node_rates": _rates(history, _busiest(totals)),
        "reads": reads_between(history, names) if len(names) <= _IN_TABLE_MAX else [],
    }


def _row(total: NodeTotal) -> list[Any]:
    """The order is that of the script."""
    used = total.used
    return [
        used.node,
        used.is_lost,
        total.attempts,
        total.wasted,
        total.wasted_bytes,
        used.user_s + used.sys_s,
        total.peak_bytes,
        used.disk_read_bytes,
        used.disk_write_bytes,
        used.own_bytes,
        used.received_bytes,
        used.file_bytes,
        used.sent_bytes,
    ]


def _busiest(totals: list[NodeTotal]) -> list[str]:
    def moved(total: NodeTotal) -> int:
        used = total.used
        return used.disk_read_bytes + used.disk_write_bytes + used.sent_bytes + used.received_bytes

    chosen = {id(total) for total in sorted(totals, key=moved, reverse=True)[:_CHARTS_MAX]}
    return [total.used.node for total in totals if id(total) in chosen]


def _rates(history: JobHistory, names: list[str]) -> list[list[Any]]:
    """For each node its name and a row for each sample.

    A row is: time; processors; memory; device reads and writes, runs received, sent, and read as
    files, in bytes per second.
    """
    seen: dict[str, list[tuple[int, NodeSample]]] = {name: [] for name in names}
    for sample in history.samples:
        for node in sample.nodes:
            of_node = seen.get(node.node)
            if of_node is not None and (
                not of_node or sample.t_ms - of_node[-1][0] >= _APART_MIN_MS
            ):
                of_node.append((sample.t_ms, node))
    return [[name, [_between(*two) for two in pairwise(seen[name])]] for name in names]


def _between(one: tuple[int, NodeSample], other: tuple[int, NodeSample]) -> list[float]:
    (from_ms, before), (to_ms, now) = one, other
    seconds = max(to_ms - from_ms, 1) / 1000

    def rate(name: str) -> float:
        return round(max(getattr(now, name) - getattr(before, name), 0) / seconds, 3)

    return [
        to_ms / 1000,
        round(rate("user_s") + rate("sys_s"), 3),
        now.anon_bytes,
        rate("disk_read_bytes"),
        rate("disk_write_bytes"),
        rate("received_bytes"),
        rate("sent_bytes"),
        rate("file_bytes"),
    ]
