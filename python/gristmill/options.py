"""The engine's table of commands and options, typed; and options as the engine takes them.

    crates/engine/src/jobs/ ──▶ jobs::commands() ──▶ the command line, its help, the environment
                            │                   └──▶ the Python functions, their docstrings, stub
                            └─▶ jobs::user_code() ─▶ Job.run, run_all, gristmill run, streaming

An option is defined there and nowhere else. Whether its value makes sense, the engine says.
"""

import json
import os
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple, cast

from gristmill import _core
from gristmill.locations import as_location
from gristmill.names import StrPath, to_json

__all__ = ["HISTORY", "Command", "Option", "Value", "ValueKind", "commands", "spec", "user_code"]

ValueKind = Literal[
    "flag",
    "count",
    "bytes",
    "rows",
    "number",
    "choice",
    "path",
    "paths",
    "path_list",
    "pairs",
    "text",
    "text_list",
    "seconds",
]

Value = str | float | StrPath | Iterable[StrPath] | Mapping[str, str] | None


class Option(NamedTuple):
    """An argument or option of a command."""

    name: str
    """Its name; on the command line with dashes."""
    kind: ValueKind
    """What it takes."""
    default: str
    """What holds when it is not given, in words; empty where it must be given."""
    help: str
    """What it does."""
    choices: tuple[str, ...] = ()
    """The words of a choice."""
    positional: bool = False
    """Whether it stands by its place, without a name."""
    short: str = ""
    """A letter that stands for the name on the command line; empty where none does."""
    environment: str = ""
    """The variable that gives it where the command line does not; empty where none does."""

    @property
    def dashed(self) -> str:
        """Its name on the command line, without the dashes in front.

        Example:
            >>> Option("timeout_s", "seconds", "600", "Stop a worker after this time.").dashed
            'timeout'
        """
        return self.name.removesuffix("_s").replace("_", "-")

    @property
    def is_on(self) -> bool:
        """Whether it is a flag that holds unless it is turned off.

        Example:
            >>> Option("speculative", "flag", "on", "Begin a second attempt.").is_on
            True
        """
        return self.kind == "flag" and self.default == "on"


HISTORY = Option(
    "history", "flag", "off", "Keep the job's history also if it takes less than a second."
)
"""An option of every job: not of the engine, which keeps the history where it is told to."""


class Command(NamedTuple):
    """A command that runs a job."""

    name: str
    """Its name."""
    function: str
    """The name of its function."""
    help: str
    """What it does."""
    details: str
    """What a reader of the reference should know besides; may be empty."""
    example: str
    """A command line that works."""
    python: str
    """An example in Python, as a doctest."""
    explained: bool
    """Whether `gristmill explain` says what a job of its would do."""
    options: tuple[Option, ...]
    """Its arguments and options, in the order of the help."""

    @property
    def writes_streams(self) -> bool:
        """Whether its output can be a stream: standard output, where none is named.

        Example:
            >>> [name for name, command in commands().items() if command.writes_streams]
            ['sort', 'distinct', 'group', 'top', 'join', 'sample', 'shuf']
        """
        outputs = (option for option in self.options if option.name == "output")
        return any(not option.positional for option in outputs)

    @property
    def reads_streams(self) -> bool:
        """Whether an input may be standard input, or a pipe.

        Example:
            >>> [name for name, command in commands().items() if not command.reads_streams]
            ['teragen', 'terasort', 'teravalidate', 'resume']
        """
        return self.name not in ("teragen", "terasort", "teravalidate", "resume")

    def prints(self, values: Mapping[str, Value]) -> bool:
        """Whether a job with these options writes its records to standard output."""
        return self.writes_streams and not values.get("check") and values["output"] in (None, "-")


@cache
def commands() -> dict[str, Command]:
    """Return the engine's commands by name, in the engine's order.

    Example:
        >>> [option.name for option in commands()["teravalidate"].options if option.positional]
        ['input']
    """
    table = json.loads(_core.commands())
    return {entry["name"]: _command(entry) for entry in table}


@cache
def user_code() -> tuple[Option, ...]:
    """Return the options that jobs of user code have in common with the commands.

    Example:
        >>> "memory" in [option.name for option in user_code()]
        True
    """
    return _command(json.loads(_core.user_code())).options


def _command(entry: dict[str, Any]) -> Command:
    options = tuple(_option(option) for option in entry["options"])
    return Command(
        name=entry["name"],
        function=entry["function"],
        help=entry["help"],
        details=entry["details"],
        example=entry["example"],
        python=entry["python"],
        explained=entry["explained"],
        options=options,
    )


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
        ValueError: No file can have the name that a path gives.

    Example:
        >>> from pathlib import Path
        >>> spec("terasort", {"inputs": ["a", Path("b")], "output": "c", "memory": None})
        '{"terasort": {"inputs": ["a", "b"], "output": "c"}}'
    """
    given = {name: _plain(value) for name, value in values.items() if value is not None}
    return to_json({command: given})


def _plain(value: Value) -> object:
    match value:
        case str() | bytes() | os.PathLike():
            return as_location(value)
        case Mapping():
            return dict(cast("Mapping[str, str]", value))
        case Iterable():
            return [item if isinstance(item, int) else as_location(item) for item in value]
        case int() if value.bit_length() > 64:
            return str(value)
        case _:  # a number, or what the engine will not take and can say so
            return value
