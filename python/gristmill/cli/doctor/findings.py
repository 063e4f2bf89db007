"""All checks of what was found: of one machine, or of each node of a cluster."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from gristmill import _core
from gristmill.cli.doctor import verdicts
from gristmill.cli.doctor.shared import Seen, shared
from gristmill.cli.doctor.verdicts import Check
from gristmill.cluster.node_checks import Cluster, Node, NodeCheckRequest
from gristmill.names import show_path

__all__ = ["of_cluster", "of_machine"]

_PARTS = ("ray", "pyarrow", "pandas", "polars")
"""What some jobs need, and pip installs."""

_QUESTIONS = {"machine": "node", "now": "clock", "paths": "path", "leave": "path", "see": "path"}
"""Where a question has not the name of its check."""


def of_machine(found: Node, asked: NodeCheckRequest) -> list[Check]:
    """Return the checks of this machine alone."""
    return [
        *_machine(found, found.answers["machine"]),
        *(_named(verdicts.spill(found.name, one)) for one in found.answers["spill"]),
        *(_named(verdicts.path(found.name, one)) for one in found.answers["paths"]),
        *(verdicts.place(found.name, one, found.answers[one]) for one in asked.places),
        _parts(found.name),
    ]


def of_cluster(found: Cluster, asked: NodeCheckRequest) -> list[Check]:
    """Return the checks of each node, check by check."""
    checks = [] if found.nodes else [verdicts.no_nodes(len(found.idle))]
    checks += [
        verdicts.failed(_QUESTIONS.get(node.failed[0], node.failed[0]), node.name, node.failed[1])
        for node in found.nodes
        if node.failed
    ]
    for node in found.nodes:
        checks += _of_node(node, found.here)
    for number, path in enumerate(asked.paths):
        checks += shared(show_path(path), _seen(found, number, path))
    for location in asked.places:
        checks += [
            verdicts.place(node.name, location, node.answers[location])
            for node in (found.here, *found.nodes)
            if location in node.answers
        ]
    checks += _reach(found)
    order = {name: place for place, name in enumerate(dict.fromkeys(one.check for one in checks))}
    return sorted(checks, key=lambda check: order[check.check])


def _of_node(node: Node, here: Node) -> Iterator[Check]:
    answers = node.answers
    if "machine" in answers:
        yield from _machine(node, here.answers["machine"])
    if "clock" in answers:
        took_s, ahead_s = answers["clock"]
        yield verdicts.clock(node.name, ahead_s, took_s)
    refused = answers.get("agent", {}).get("spill_error")
    for one in answers.get("spill", ()):
        yield _named(verdicts.spill(node.name, one, refused))


def _machine(node: Node, here: Mapping[str, Any]) -> Iterator[Check]:
    found = node.answers["machine"]
    engine = found["engine"]
    yield verdicts.versions(node.name, found, here)
    if "error" not in engine:
        yield verdicts.cpus(node.name, engine["cpus"], node.cpus)
        tasks = engine["cpus"] if node.cpus is None else node.cpus
        free, total = engine["available_bytes"], found["total_bytes"]
        yield verdicts.memory(node.name, free, total, tasks, node.memory_bytes)
        yield verdicts.open_files(node.name, found["open_files"], tasks)


def _named(check: Check) -> Check:
    """A check whose name has a path in it, as people are shown that."""
    return replace(check, check=show_path(check.check))


def _seen(found: Cluster, number: int, path: str) -> dict[str, Seen]:
    """What each node says of the directory with this number."""
    nodes = [node for node in (found.here, *found.nodes) if "see" in node.answers]
    of_file = {node.left: node.name for node in nodes}
    return {
        node.name: Seen(
            node.answers["paths"][number],
            node.answers["leave"].get(path),
            frozenset(of_file[name] for name in node.answers["see"][path] if name in of_file),
        )
        for node in nodes
    }


def _reach(found: Cluster) -> Iterator[Check]:
    without: list[str] = []
    for node in found.nodes:
        error = node.answers.get("agent", {}).get("error")
        if error is not None:
            without.append(node.name)
            what, _, advice = error.partition(" What to do: ")
            what = f"its agent does not begin: {what.rstrip('.')}"
            yield Check("agent", node.name, "wrong", what, "an agent", advice.rstrip("."))
    for node in (found.here, *found.nodes):
        if "reach" in node.answers:
            yield verdicts.reach(node.name, node.answers["reach"], without)


def _parts(node: str) -> Check:
    """What is installed that not every job needs."""
    there: list[str] = []
    missing: list[str] = []
    for part in _PARTS:
        try:
            there.append(f"{part} {version(part)}")
        except PackageNotFoundError:
            missing.append(part)
    there += [kind["name"] for kind in _core.store_kinds() if kind["advised"]]
    lacks = f"; not installed: {', '.join(missing)}" if missing else ""
    return Check("parts", node, "ok", ", ".join(there) + lacks)
