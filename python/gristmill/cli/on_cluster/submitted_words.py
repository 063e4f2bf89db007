"""A command line, as it is to be read on the head of a cluster, where it has another folder.

    paths of inputs and outputs   from the root on: a place that all nodes see
    files that go along           as they are, if relative: the folder there has them
    standard input and output     refused: they are of this machine

The command line is read here first, as if it ran here: so mistakes are told before anything is
sent. What the environment says of options goes along as options.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import click

from gristmill.cli.failures import Refused
from gristmill.cli.on_cluster.rebuilt import rebuilt
from gristmill.cluster.submission.address import Submitted
from gristmill.cluster.submission.package import Command
from gristmill.locations import absolute, as_location
from gristmill.options import commands

__all__ = ["Meant", "meant"]

_OF_HISTORY = ("jobs", "resume")
"""Commands on jobs of the head that have no options of a cluster."""


class Meant(NamedTuple):
    """What a command line means on the head."""

    name: str
    """The command, with the one below it."""
    command: Command
    quiet: bool
    """Whether it prints JSON, and draws no progress."""


def meant(program: click.Group, given: Submitted) -> Meant:
    """Return what a command line means on the head.

    Args:
        program: All commands.
        given: The command line.

    Raises:
        click.UsageError: It is wrong, or of a command that does not run there.
    """
    name, words = (given.words[0], given.words[1:]) if given.words else ("", [])
    with program.make_context("gristmill", list(given.words)) as context:
        if name == "streaming":
            from gristmill.cli.on_cluster.submitted_streaming import of_streaming

            return Meant(name, of_streaming(words), _is_quiet(words))
        if name in _OF_HISTORY:
            return Meant(name, Command(given.bare), _is_quiet(words))
        command = program.get_command(context, name)
        if command is None or name not in (*commands(), "run"):
            raise Refused(
                f"{name} does not run on the head of a cluster (--on {given.address})",
                "run it on a node, with RAY_ADDRESS=HOST:6379",
                context,
            )
        with command.make_context(name, list(words), parent=context) as read:
            quiet = bool(read.params.get("as_json"))
            if name == "run":
                from gristmill.cli.on_cluster.submitted_job import of_run

                return Meant(name, of_run(read), quiet)
            _check_streams(read)
            changed = {
                option.name: _from_root(read.params[option.name])
                for option in commands()[name].options
                if option.kind in ("path", "paths", "path_list")
            }
            return Meant(name, Command([name, *rebuilt(read, changed)]), quiet)


def _is_quiet(words: Sequence[str]) -> bool:
    return bool({"--json", "-json"} & set(words))


def _check_streams(context: click.Context) -> None:
    """Refuse what reads standard input or writes standard output: no process there has ours."""
    name = str(context.info_name)
    for option in commands()[name].options:
        value = context.params[option.name]
        if option.kind in ("path", "paths") and "-" in (value if _is_several(value) else (value,)):
            raise _of_this_machine("input" if option.name != "output" else "output", context)
    if not context.params.get("inputs", ("-",)):
        raise _of_this_machine("input", context)
    if commands()[name].prints(context.params):
        raise _of_this_machine("output", context)


def _of_this_machine(stream: str, context: click.Context) -> Refused:
    return Refused(
        f"standard {stream} is of this machine, and the job runs on a cluster",
        "name files in a place that all nodes see",
        context,
    )


def _is_several(value: object) -> bool:
    return isinstance(value, (tuple, list))


def _from_root(value: Any) -> Any:  # noqa: ANN401 - a path, several, or none
    if value is None or value == "":
        return value
    if _is_several(value):
        return tuple(map(_from_root, value))
    return absolute(as_location(value))
