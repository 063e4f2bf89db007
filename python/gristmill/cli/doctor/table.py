"""The checks as a table that is read at a glance, and below it what to do.

Nodes that are alike share a line: what is fine takes one line for each check, however many nodes
there are.
"""

import sys
from collections.abc import Sequence

from gristmill.cli.doctor.verdicts import Check, Verdict
from gristmill.terminal import console
from gristmill.units import show_count

__all__ = ["advice", "rows", "say_checks", "summary"]

_HEAD = ("CHECK", "NODE", "VERDICT", "FOUND")
_STYLES: dict[Verdict, str] = {"ok": "green", "warning": "yellow", "wrong": "bold red"}
_ORDER: tuple[Verdict, ...] = ("wrong", "warning", "ok")
_NAMES = 3
"""So many nodes are named in a line."""

Row = tuple[str, str, Verdict, str]


def say_checks(title: str, checks: Sequence[Check]) -> None:
    """Say the checks on stdout."""
    console.say(title, "")
    table = rows(checks)
    if console.is_terminal(sys.stdout):
        _draw(table)
    else:
        lines = [_HEAD, *table]
        widths = [max(len(line[column]) for line in lines) for column in range(3)]
        for *cells, found in lines:
            padded = "  ".join(
                f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)
            )
            console.say(f"{padded}  {found}")
        console.say("")
    todo = advice(checks)
    if todo:
        console.say("What to do:", *(f"  {line}" for line in todo), "")
    console.say(summary(checks))


def rows(checks: Sequence[Check]) -> list[Row]:
    """Return the lines of the table: of each check the worst nodes first, and those alike in one.

    Example:
        >>> fine = [Check("memory", f"n{n}", "ok", f"{n} GB", margin=n) for n in (3, 2, 4)]
        >>> rows(fine)
        [('memory', 'all 3', 'ok', '2 GB (n2; more on others)')]
        >>> for row in rows([*fine, Check("memory", "n1", "warning", "1 GB")]):
        ...     print(*row)
        memory n1 warning 1 GB
         3 others ok 2 GB (n2; more on others)
    """
    found: list[Row] = []
    for name in dict.fromkeys(check.check for check in checks):
        of_name = [check for check in checks if check.check == name]
        title = name
        for verdict in _ORDER:
            alike = [check for check in of_name if check.verdict == verdict]
            texts = dict.fromkeys(check.found for check in alike)
            if verdict == "ok" and alike:
                found.append((title, _nodes(alike, of_name), verdict, _least(alike)))
                continue
            for text in texts:
                same = [check for check in alike if check.found == text]
                found.append((title, _nodes(same, of_name), verdict, text))
                title = ""
    return found


def advice(checks: Sequence[Check]) -> list[str]:
    """Return what to do, once for all nodes that need the same.

    Example:
        >>> advice([Check("clock", node, "wrong", "", "", "set it") for node in ("a", "b")])
        ['clock, on a, b: set it']
    """
    nodes: dict[tuple[str, str], list[str]] = {}
    for verdict in _ORDER[:-1]:
        for check in checks:
            if check.verdict == verdict and check.advice:
                nodes.setdefault((check.check, check.advice), []).append(check.node)
    return [f"{check}, on {_few(of)}: {todo}" for (check, todo), of in nodes.items()]


def summary(checks: Sequence[Check]) -> str:
    """Return one line for all.

    Example:
        >>> summary([Check("a", "n", "wrong", ""), Check("b", "n", "ok", "")])
        '1 of 2 checks is wrong'
        >>> summary([Check("a", "n", "warning", ""), Check("b", "n", "ok", "")])
        '2 checks, 1 warning'
        >>> summary([Check("b", "n", "ok", "")])
        '1 check, all ok'
    """
    count = {verdict: sum(check.verdict == verdict for check in checks) for verdict in _ORDER}
    warnings = f", {show_count(count['warning'], 'warning')}" if count["warning"] else ""
    total = show_count(len(checks), "check")
    if count["wrong"]:
        verb = "is" if count["wrong"] == 1 else "are"
        return f"{count['wrong']} of {total} {verb} wrong{warnings}"
    return f"{total}{warnings or ', all ok'}"


def _draw(table: Sequence[Row]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, padding=(0, 1))
    for name in _HEAD:
        drawn.add_column(name, overflow="fold")
    for title, node, verdict, text in table:
        cells = (console.printable(cell) for cell in (title, node))
        found = Text(console.printable(text))
        drawn.add_row(*map(Text, cells), Text(verdict, _STYLES[verdict]), found)
    Console(highlight=False).print(drawn)


def _nodes(some: Sequence[Check], of_all: Sequence[Check]) -> str:
    """What these nodes are called, of all that have the check."""
    if len(some) == 1:
        return some[0].node
    if len(some) == len(of_all):
        return f"all {len(some)}"
    if all(check.verdict == "ok" for check in some):
        return f"{len(some)} others"
    return _few([check.node for check in some])


def _few(nodes: Sequence[str]) -> str:
    more = f" and {len(nodes) - _NAMES} more" if len(nodes) > _NAMES else ""
    return ", ".join(nodes[:_NAMES]) + more


def _least(alike: Sequence[Check]) -> str:
    """What is found on the node that is nearest to trouble."""
    least = min(alike, key=lambda check: check.margin)
    if all(check.found == least.found for check in alike):
        return least.found
    is_ranked = any(check.margin > least.margin for check in alike)
    others = "differs on others"
    if is_ranked:
        others = "less on others" if least.margin < 0 else "more on others"
    return f"{least.found} ({least.node}; {others})"
