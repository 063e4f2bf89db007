"""Whether a path is the same directory on all nodes: each left a file there, and looked for all.

    sees       a b c        a and b see the same, c another one:
            a  x x .        wrong on c, since more nodes see the other one
            b  x x .
            c  . . x

Of groups of one size that of the first node counts: the machine of the command.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gristmill.cli.doctor.verdicts import Check, is_full, room

__all__ = ["Seen", "groups", "shared"]


@dataclass(frozen=True)
class Seen:
    """What a node says of a directory."""

    found: Mapping[str, Any]
    """What the directory is there."""
    refused: str | None
    """Why the node could leave nothing."""
    sees: frozenset[str]
    """The nodes of which it sees the file."""


def groups(seen: Mapping[str, Seen]) -> list[set[str]]:
    """Return which nodes have the same directory, those first that the others are measured by.

    Example:
        >>> node = lambda *sees: Seen({}, None, frozenset(sees))
        >>> found = groups({"here": node("here"), "a": node("a", "b"), "b": node("a", "b")})
        >>> [sorted(group) for group in found]
        [['a', 'b'], ['here']]
    """
    found: list[set[str]] = []
    for name, one in seen.items():
        same = {name} | {other for other in one.sees if other in seen}
        joined = [group for group in found if group & same]
        found = [group for group in found if not group & same]
        found.append(same.union(*joined))
    order = list(seen)
    return sorted(found, key=lambda group: (-len(group), min(map(order.index, group))))


def shared(path: str, seen: Mapping[str, Seen]) -> list[Check]:
    """Return a check for each node; the machine of the command is the first of them.

    Example:
        >>> is_there = {"free_bytes": 5_000_000_000, "kind": "nfs4"}
        >>> node = lambda *sees: Seen(is_there, None, frozenset(sees))
        >>> checks = shared("/data", {"a": node("a"), "b": node("b", "c"), "c": node("b", "c")})
        >>> for check in checks:
        ...     print(check.node, check.verdict, check.found)
        a wrong another directory than on b, c
        b ok 5.00 GB free, nfs4
        c ok 5.00 GB free, nfs4
    """
    there = {name: one for name, one in seen.items() if "free_bytes" in one.found}
    reference = groups(there)[0] if there else set[str]()
    nobody_writes = all(one.refused is not None for one in there.values())
    return [_check(path, name, one, reference, nobody_writes) for name, one in seen.items()]


def _check(path: str, name: str, one: Seen, reference: set[str], nobody_writes: bool) -> Check:
    title = f"path {path}"
    expected = "the same directory on all nodes, where they can write"
    if "free_bytes" not in one.found:
        what = str(one.found.get("error", "?"))
        advice = "mount the shared directory there, under the same path as on the other nodes"
        return Check(title, name, "wrong", what[:1].lower() + what[1:], expected, advice)
    if nobody_writes:
        what = f"no node can write there ({(one.refused or '').lower()})"
        advice = (
            "jobs can read it, if it is the same directory everywhere, which could not be tried;"
            " for an output let the user of Ray write there"
        )
        return Check(title, name, "warning", what, expected, advice)
    if name not in reference:
        others = ", ".join(sorted(reference)[:3]) + (" ..." if len(reference) > 3 else "")
        advice = "mount the shared directory there, under the same path as on the other nodes"
        what = f"another directory than on {others}"
        return Check(title, name, "wrong", what, expected, advice)
    if one.refused is not None:
        what = f"this node cannot write there ({one.refused.lower()})"
        advice = "jobs can read it; for an output let the user of Ray write there"
        return Check(title, name, "warning", what, expected, advice)
    if is_full(one.found):
        what, advice = (
            f"full: {room(one.found)}",
            "remove what is not needed there: jobs can only read",
        )
        return Check(title, name, "warning", what, expected, advice)
    return Check(title, name, "ok", room(one.found), expected, margin=one.found["free_bytes"])
