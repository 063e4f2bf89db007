"""What is found of a node, and what that means: a function for each check, which asks nobody.

A limit stands here with its reason. `ok` needs nothing, a `warning` costs time or some jobs, with
`wrong` jobs fail.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gristmill.units import show_bytes, show_count, show_seconds

__all__ = [
    "Check",
    "Verdict",
    "clock",
    "cpus",
    "failed",
    "is_full",
    "memory",
    "open_files",
    "path",
    "place",
    "reach",
    "room",
    "spill",
    "versions",
]

Verdict = Literal["ok", "warning", "wrong"]

CLOCK_WARNING_S = 1.0
"""Times of several nodes, in histories and of files, no longer show what came first."""

CLOCK_WRONG_S = 300.0
"""Kerberos refuses clocks that differ by five minutes, S3 those by fifteen."""

ROOM_WRONG_BYTES = 100_000_000
ROOM_WARNING_BYTES = 2_000_000_000
"""Runs of a job that does not fit in memory are gigabytes."""

MEMORY_BYTES = 128_000_000
"""For each task at once: an interpreter for user code, and room to sort in."""

FILES_PER_CPU = 400
"""A merge has 200 runs at most, each of them two files."""

FILES_BESIDE = 200

_IN_MEMORY = ("tmpfs", "ramfs")


@dataclass(frozen=True)
class Check:
    """A check of one node."""

    check: str
    node: str
    verdict: Verdict
    found: str
    expected: str = ""
    advice: str = ""
    margin: float = 0.0
    """How far from trouble; of nodes that are alike the one with the least is shown."""


def failed(check: str, node: str, why: str) -> Check:
    """A node that did not answer; what came before it did.

    Example:
        >>> failed("machine", "10.0.0.2", "no answer within 60 s").verdict
        'wrong'
    """
    advice = "look at `ray status`, and at the node: a mount that hangs, a full process table"
    return Check(check, node, "wrong", why, "an answer", advice)


def no_nodes(idle: int) -> Check:
    """A cluster of which no node runs tasks.

    Example:
        >>> no_nodes(1).found
        '1 node, without CPUs'
    """
    found = f"{show_count(idle, 'node')}, without CPUs"
    advice = "start nodes with CPUs: `ray start --address HOST:PORT` takes all that a machine has"
    return Check("nodes", "the cluster", "wrong", found, "a node with CPUs", advice)


def versions(node: str, found: Mapping[str, Any], here: Mapping[str, Any]) -> Check:
    """Versions of a node, and of the machine of the command.

    Example:
        >>> here = {"python": "3.11.7", "ray": "2.60.0", "engine": {"version": "1.0"}}
        >>> versions("a", here, here).found
        'Gristmill 1.0, Python 3.11.7, Ray 2.60.0'
        >>> check = versions("a", here | {"python": "3.12.1"}, here)
        >>> check.verdict, check.found
        ('wrong', 'Gristmill 1.0, Python 3.12.1, Ray 2.60.0')
        >>> versions("a", here | {"engine": {"error": "no GLIBC_2.34"}}, here).found
        'the engine does not load: no GLIBC_2.34'
    """
    expected = _versions(here)
    error = found["engine"].get("error")
    if error is not None:
        what = f"the engine does not load: {error}"
        advice = "use the same kind of system there as here: the engine is copied from here"
        return Check("versions", node, "wrong", what, expected, advice)
    minor = [one["python"].rpartition(".")[0] for one in (found, here)]
    if minor[0] != minor[1]:
        advice = f"start Ray there with Python {minor[1]}: Python functions of a job need the same"
        return Check("versions", node, "wrong", _versions(found), expected, advice)
    if found["ray"] != here["ray"]:
        advice = f"install Ray {here['ray']} there: pip install ray=={here['ray']}"
        return Check("versions", node, "wrong", _versions(found), expected, advice)
    return Check("versions", node, "ok", _versions(found), expected)


def _versions(of: Mapping[str, Any]) -> str:
    ray = f", Ray {of['ray']}" if of["ray"] else ""
    return f"Gristmill {of['engine'].get('version', '?')}, Python {of['python']}{ray}"


def clock(node: str, ahead_s: float, took_s: float) -> Check:
    """How far a clock is ahead of this machine's, as far as an answer after `took_s` tells.

    Example:
        >>> clock("a", 0.004, 0.001).found, clock("a", 0.004, 0.01).found
        ('0.004 s ahead', 'the same within 0.005 s')
        >>> clock("a", -3600.0, 0.001).found, clock("a", -3600.0, 0.001).verdict
        ('3600 s behind', 'wrong')
        >>> clock("a", 5.0, 1.0).verdict, clock("a", 1.2, 1.0).verdict
        ('warning', 'ok')
    """
    sure_s = max(abs(ahead_s) - took_s / 2, 0.0)
    side = "ahead" if ahead_s > 0 else "behind"
    found = f"{show_seconds(abs(ahead_s))} {side}"
    expected = f"less than {CLOCK_WARNING_S:.0f} s from this machine's"
    if sure_s == 0.0:
        same = f"the same within {show_seconds(max(took_s / 2, 0.001))}"
        return Check("clock", node, "ok", same, expected, margin=-took_s)
    advice = "set the clock there, and keep it: chrony or another NTP service on every node"
    if sure_s >= CLOCK_WRONG_S:
        advice += "; Kerberos and S3 refuse requests with such a clock"
        return Check("clock", node, "wrong", found, expected, advice)
    if sure_s >= CLOCK_WARNING_S:
        advice += "; times in reports do not fit together"
        return Check("clock", node, "warning", found, expected, advice)
    return Check("clock", node, "ok", found, expected, margin=-sure_s)


def cpus(node: str, found: int, of_ray: int | None) -> Check:
    """Processors that the processes there may use, and those that Ray counts on.

    Example:
        >>> cpus("a", 16, 4).found, cpus("a", 4, None).found
        ('4 for Ray, of 16', '4')
        >>> cpus("a", 2, 8).verdict
        'warning'
    """
    if of_ray is None:
        return Check("CPUs", node, "ok", f"{found}", margin=found)
    what, expected = f"{of_ray} for Ray, of {found}", f"at most {found} for Ray"
    if of_ray <= found:
        return Check("CPUs", node, "ok", what, expected, margin=of_ray)
    advice = f"ray start --num-cpus={found}: more tasks at once only wait for each other"
    return Check("CPUs", node, "warning", what, expected, advice)


def memory(
    node: str, available: int | None, total: int, cpus: int, of_ray: int | None = None
) -> Check:
    """Memory that new work can have, all of it, and what Ray counts on.

    Example:
        >>> memory("a", 9_000_000_000, 25_000_000_000, 4, 12_000_000_000).found
        '9.00 GB free, of 25.0 GB; 12.0 GB for Ray'
        >>> memory("a", 300_000_000, 25_000_000_000, 4).verdict
        'warning'
        >>> memory("a", 9_000_000_000, 10_000_000_000, 4, 12_000_000_000).verdict
        'warning'
    """
    free = "?" if available is None else show_bytes(available)
    found = f"{free} free, of {show_bytes(total)}"
    found += f"; {show_bytes(of_ray)} for Ray" if of_ray else ""
    needed = MEMORY_BYTES * cpus
    expected = f"at least {show_bytes(needed)} free, for {show_count(cpus, 'task')} at once"
    if available is not None and available < needed:
        advice = "end what else runs there, or give jobs fewer --workers"
        return Check("memory", node, "warning", found, expected, advice)
    if of_ray and of_ray > total:
        advice = "ray start --memory=BYTES: Ray counts on memory that is not there"
        return Check("memory", node, "warning", found, expected, advice)
    return Check("memory", node, "ok", found, expected, margin=available or 0)


def open_files(node: str, limit: int, cpus: int) -> Check:
    """The limit of open files of a process there; below 0 it has none.

    Example:
        >>> open_files("a", 1024, 2).verdict, open_files("a", 1024, 16).expected
        ('ok', 'at least 6600')
        >>> open_files("a", -1, 2).found
        'no limit'
    """
    needed = FILES_PER_CPU * cpus + FILES_BESIDE
    expected = f"at least {needed}"
    found = f"{limit} at once" if limit >= 0 else "no limit"
    if 0 <= limit < needed:
        advice = f"raise the limit: `ulimit -n {needed}`, on a node before `ray start`"
        return Check("open files", node, "warning", found, expected, advice)
    return Check("open files", node, "ok", found, expected, margin=limit if limit >= 0 else 1e18)


def room(found: Mapping[str, Any]) -> str:
    """What there is to say of a directory's room.

    Example:
        >>> room({"free_bytes": 5_000_000_000, "free_names": 3, "kind": "ext4"})
        '5.00 GB free, ext4'
        >>> room({"free_bytes": 5_000_000_000, "free_names": 0, "kind": "ext4"})
        '5.00 GB free, but for no more files, ext4'
    """
    names = ", but for no more files" if found.get("free_names") == 0 else ""
    kind = f", {found['kind']}" if found.get("kind") else ""
    return f"{show_bytes(found['free_bytes'])} free{names}{kind}"


def spill(node: str, found: Mapping[str, Any], refused: str | None = None) -> Check:
    """A directory for runs; `refused` is what an agent said that could not begin there.

    Example:
        >>> full = {"path": "/a", "free_bytes": 0, "kind": "ext4", "error": "No space left"}
        >>> spill("n", full).found, spill("n", full).verdict
        ('full: 0 B free, ext4', 'wrong')
        >>> spill("n", {"path": "/a", "free_bytes": 5e9, "kind": "tmpfs"}).verdict
        'warning'
        >>> spill("n", {"path": "/a", "error": "No such file or directory"}).found
        'no such file or directory'
    """
    name = f"spill {found['path']}"
    expected = f"a directory on a disk of the node, with at least {show_bytes(ROOM_WARNING_BYTES)}"
    another = "or name another directory with --spill-dir"
    if "free_bytes" in found and is_full(found):
        advice = f"remove what is not needed there, {another}"
        return Check(name, node, "wrong", f"full: {room(found)}", expected, advice)
    if "error" in found:
        advice = f"make the directory, and let the user of Ray write there, {another}"
        return Check(name, node, "wrong", _lower(found["error"]), expected, advice)
    if refused is not None:
        what, _, advice = refused.partition(" What to do: ")
        return Check(name, node, "wrong", what.rstrip("."), expected, advice.rstrip(".") or another)
    if found.get("kind") in _IN_MEMORY:
        advice = f"it lies in memory, which the job needs: put it on a disk, {another}"
    elif found.get("shared"):
        advice = f"runs go over the network: put it on a disk of the node, {another}"
    elif found["free_bytes"] < ROOM_WARNING_BYTES:
        advice = f"a job needs as much room as it has data, divided by nodes: make room, {another}"
    else:
        return Check(name, node, "ok", room(found), expected, margin=found["free_bytes"])
    return Check(name, node, "warning", room(found), expected, advice)


def path(node: str, found: Mapping[str, Any]) -> Check:
    """A directory that jobs of one machine read and write.

    Example:
        >>> path("here", {"path": "/a", "error": "No such file or directory"}).advice
        'make the directory, or correct the path'
        >>> path("here", {"path": "/a", "free_bytes": 5e9, "kind": "ext4"}).found
        '5.00 GB free, ext4'
    """
    name, expected = f"path {found['path']}", "a directory where files can be written"
    if "free_bytes" not in found:
        advice = "make the directory, or correct the path"
        return Check(name, node, "wrong", _lower(found["error"]), expected, advice)
    if is_full(found):
        advice = "remove what is not needed there: jobs can only read"
        return Check(name, node, "warning", f"full: {room(found)}", expected, advice)
    if "error" in found:
        what = f"it cannot be written ({_lower(found['error'])})"
        advice = "jobs can read it; for an output get the permission to write there"
        return Check(name, node, "warning", what, expected, advice)
    return Check(name, node, "ok", room(found), expected)


def is_full(found: Mapping[str, Any]) -> bool:
    """Whether a directory has no room for what a job writes.

    Example:
        >>> is_full({"free_bytes": 1}), is_full({"free_bytes": 5e9, "free_names": None})
        (True, False)
    """
    return found["free_bytes"] < ROOM_WRONG_BYTES or found.get("free_names") == 0


def place(node: str, location: str, found: Mapping[str, Any]) -> Check:
    """A location in a store, as a node is answered.

    Example:
        >>> place("a", "s3://b/c", {"is_there": False}).found
        'the store answers; nothing is there'
        >>> place("a", "s3://b/c", {"error": "cannot ask: no. What to do: pay."}).advice
        'pay'
    """
    name = f"path {location}"
    if "error" in found:
        what, _, advice = found["error"].partition(" What to do: ")
        advice = advice.rstrip(".") or "check that the node reaches the store"
        return Check(name, node, "wrong", what.rstrip("."), "an answer of the store", advice)
    what = "it is there" if found["is_there"] else "nothing is there"
    return Check(name, node, "ok", f"the store answers; {what}", "an answer of the store")


def reach(node: str, found: Mapping[str, float | str], missing: Sequence[str] = ()) -> Check:
    """How long the agent of each node takes to answer this one; `missing` are nodes without.

    Example:
        >>> reach("a", {"a": 0.001, "b": 0.002}).found
        '2 agents, in 0.002 s at most'
        >>> reach("a", {"a": 0.001, "b": "Connection refused", "c": "Connection refused"}).found
        'b: connection refused; c: connection refused'
    """
    expected = "an answer of every agent"
    wrong = [f"{name}: {_lower(why)}" for name, why in found.items() if isinstance(why, str)]
    if wrong:
        advice = (
            "let nodes connect to each other at any port above 1023 (firewalls, security groups),"
            " at the addresses that `ray status` shows"
        )
        return Check("reach", node, "wrong", "; ".join(wrong), expected, advice)
    times = [took_s for took_s in found.values() if not isinstance(took_s, str)]
    longest_s = max(times, default=0.0)
    what = f"{show_count(len(times), 'agent')}, in {show_seconds(longest_s)} at most"
    less = f" ({show_count(len(missing), 'node')} without)" if missing else ""
    return Check("reach", node, "ok", what + less, expected, margin=-longest_s)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
