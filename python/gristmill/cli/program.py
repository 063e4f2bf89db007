"""The program as click sees it: its options, and its commands, each made when it is asked for."""

import os
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import click

from gristmill import _core
from gristmill.cli.failures import DONE, Refused
from gristmill.cli.groups import CommandGroup
from gristmill.names import to_json
from gristmill.terminal import console

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from gristmill.cluster.submission.address import Submitted

__all__ = ["Program", "run", "the_program"]

_ABOUT = "Sort, group and count data that is bigger than memory."
_OPTIONS = """\
More: gristmill COMMAND --help; man gristmill. Build: gristmill --version --json
"""
_WITH_VERSION = "With --version: print one JSON object."
_ANY_LENGTH = 1000
_OURS = {
    "run": "mapreduce.run",
    "check": "mapreduce.check",
    "retry": "mapreduce.retry",
    "resume": "mapreduce.resume",
    "streaming": "streaming",
    "hadoop": "streaming",
    "grep": "commands.grep",
    "explain": "commands.explain",
    "jobs": "commands.jobs",
    "report": "commands.job_report",
    "bench": "bench.command",
    "doctor": "doctor.command",
    "demo": "demo.command",
    "completion": "commands.completion",
    "scale": "scale.command",
}
"""Commands that are not the engine's alone, with their modules; overview.py has their places."""


class Program(CommandGroup):
    """A group that reads the engine's table only when it is asked for one of its commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all commands, in the order of the help."""
        from gristmill.options import commands

        return list(dict.fromkeys([*commands(), *_OURS]))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command by its name."""
        if cmd_name in _OURS:
            return getattr(import_module(f"gristmill.cli.{_OURS[cmd_name]}"), cmd_name)
        from gristmill.cli.generated import command_of
        from gristmill.options import commands

        found = commands().get(cmd_name)
        return None if found is None else command_of(found)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write all commands, by what people want to do: one screen."""
        from gristmill.cli.render.overview import overview

        lines = overview(self.list_commands(ctx), partial(self._short_help, ctx))
        formatter.write(f"Usage: {ctx.command_path} [OPTIONS] COMMAND [ARGS]...\n\n{_ABOUT}\n\n")
        formatter.write("".join(f"{line}\n" for line in lines))
        formatter.write(f"\n{_OPTIONS}")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list["CompletionItem[str]"]:
        """Return the commands that begin so; none is imported for it."""
        from click.shell_completion import CompletionItem

        from gristmill.cli.render.overview import summary_of

        options = ("--help", "--version") if incomplete.startswith("-") else ()
        names = [*options, *self.list_commands(ctx)]
        return [
            CompletionItem(name, help=summary_of(name) or None)
            for name in names
            if name.startswith(incomplete)
        ]

    def _short_help(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        return "" if command is None else command.get_short_help_str(_ANY_LENGTH).rstrip(".")


def run(arguments: Sequence[str]) -> int:
    """Run a command line; returns its exit code.

    Not `Program.main`, which has its own ideas of how a program ends.
    """
    program = the_program()
    if arguments[:1] == ["help"]:  # as of git: `gristmill help sort`
        topic = arguments[2:] if arguments[1:2] == ["help"] else arguments[1:]
        arguments = [*topic, "--help"]
    there = _submitted(arguments)
    if there is not None:
        from gristmill.cli.on_cluster.submitted import run_there

        return run_there(program, there)
    with program.make_context("gristmill", list(arguments)) as context:
        code = program.invoke(context)
    return code if isinstance(code, int) else DONE


def _submitted(arguments: Sequence[str]) -> "Submitted | None":
    """Where the command line goes, if it names the dashboard of a cluster: few do."""
    if not any(word.startswith(("--on", "-on")) for word in arguments):
        return None
    from gristmill.cluster.submission.address import submitted

    return submitted(arguments, os.environ)


def the_program() -> Program:
    """Return the program, with its own options.

    Example:
        >>> the_program().name
        'gristmill'
    """
    return Program(
        name="gristmill",
        help=_ABOUT,
        context_settings={"help_option_names": ["-h", "--help"]},
        params=[
            click.Option(["--json"], is_flag=True, is_eager=True, help=_WITH_VERSION),
            click.Option(
                ["--version"],
                is_flag=True,
                expose_value=False,
                callback=_version,
                help="Print the version and exit; with --json what was built, and how.",
            ),
        ],
        callback=_nothing,
    )


def _nothing(*, json: bool) -> None:
    """Before a command there is nothing to do."""


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    as_json = bool(ctx.params.get("json"))
    if ctx.resilient_parsing:
        return
    if wanted:
        if as_json:
            from gristmill.cli.version import build

            console.put(to_json(build()))
        else:
            console.say(f"gristmill {_core.VERSION}")
        ctx.exit()
    if as_json:
        raise Refused("--json belongs to a command or to --version", "put --json after the command")
