"""The engine's table of commands and options, typed; and options as the engine takes them.

    crates/engine/src/plan/table.rs ──▶ COMMANDS ──▶ the command line, its help, the environment
                                                  ──▶ checked against the functions of job.py

An option is defined there and nowhere else. Whether its value makes sense, the engine says.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from gristmill import _core

__all__ = ["Command", "Option", "Value", "ValueKind", "commands", "spec"]

ValueKind = Literal[
    "flag", "count", "bytes", "rows", "choice", "path", "paths", "path_list", "text"
]

StrPath = str | os.PathLike[str]
Value = str | int | StrPath | Iterable[StrPath] | None


@dataclass(frozen=True, slots=True)
class Option:
    """An argument or option of a command."""

    name: str
    """Its name; on the command line with dashes."""
    kind: ValueKind
    """What it takes."""
    choices: tuple[str, ...]
    """The words of a choice."""
    positional: bool
    """Whether it stands by its place, without a name."""
    short: str
    """A letter that stands for the name on the command line; empty where none does."""
    default: str
    """What holds when it is not given, in words; empty where it must be given."""
    help: str
    """What it does."""
    environment: str
    """The variable that gives it where the command line does not; empty where none does."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that runs a job."""

    name: str
    """Its name."""
    help: str
    """What it does."""
    example: str
    """A command line that works."""
    options: tuple[Option, ...]
    """Its arguments and options, in the order of the help."""


@cache
def commands() -> dict[str, Command]:
    """Return the engine's commands by name, in the engine's order.

    Example:
        >>> [option.name for option in commands()["teravalidate"].options if option.positional]
        ['input']
    """
    table = json.loads(_core.commands())
    return {entry["name"]: _command(entry) for entry in table}


def _command(entry: dict[str, Any]) -> Command:
    options = tuple(_option(option) for option in entry["options"])
    return Command(entry["name"], entry["help"], entry["example"], options)


def _option(entry: dict[str, Any]) -> Option:
    kind, choices = entry["kind"], ()
    if isinstance(kind, dict):  # {"choice": [words]}
        (kind, choices) = next(iter(entry["kind"].items()))
    return Option(
        name=entry["name"],
        kind=kind,
        choices=tuple(choices),
        positional=entry["positional"],
        short=entry["short"],
        default=entry["default"],
        help=entry["help"],
        environment=entry["environment"],
    )


def spec(command: str, values: Mapping[str, Value]) -> str:
    """Return a job's options as the engine takes them; those that are `None` are left out.

    Raises:
        ValueError: A path is no text, which the engine could not take.

    Example:
        >>> from pathlib import Path
        >>> spec("terasort", {"inputs": ["a", Path("b")], "output": "c", "memory": None})
        '{"terasort": {"inputs": ["a", "b"], "output": "c"}}'
    """
    given = {name: _plain(value) for name, value in values.items() if value is not None}
    return json.dumps({command: given})


def _plain(value: Value) -> object:
    match value:
        case str() | os.PathLike():
            return _text(value)
        case Iterable():
            return [_text(item) for item in value]
        case _:  # a number, or what the engine will not take and can say so
            return value


def _text(path: StrPath) -> str:
    text = os.fspath(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"cannot read the options: the name {text!a} is not UTF-8."
            " To go on: give the file another name."
        ) from None
    return text
