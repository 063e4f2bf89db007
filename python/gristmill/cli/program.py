"""The program as click sees it: its options, and its commands, each made when it is asked for."""

from collections.abc import Sequence
from importlib import import_module

import click

from gristmill import __version__
from gristmill.cli.failures import DONE
from gristmill.cli.groups import CommandGroup

__all__ = ["run"]

_ABOUT = "Sort, group and count data that is bigger than memory."
_EXAMPLE = """\b
Begin with:
  gristmill demo                      make, sort and prove a gigabyte here
  gristmill sort big.txt -o done.txt  sort lines
  gristmill terasort data/ sorted/    sort 100-byte records
  gristmill run job.py                run MapReduce of your own functions
  gristmill terasort --help           what else it can do"""


_OURS = {
    "run": "mapreduce.run",
    "check": "mapreduce.check",
    "retry": "mapreduce.retry",
    "streaming": "streaming",
    "hadoop": "streaming",
    "explain": "explain",
    "jobs": "jobs",
    "report": "job_report",
    "doctor": "doctor.command",
    "demo": "demo.command",
}
"""Commands that are not the engine's, in the order of the help: the module of each."""


class Program(CommandGroup):
    """A group that reads the engine's table only when it is asked for one of its commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all commands, in the order of the help."""
        from gristmill.options import commands

        return [*commands(), *_OURS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command by its name."""
        if cmd_name in _OURS:
            return getattr(import_module(f"gristmill.cli.{_OURS[cmd_name]}"), cmd_name)
        from gristmill.cli.generated import command_of
        from gristmill.options import commands

        found = commands().get(cmd_name)
        return None if found is None else command_of(found)


def run(arguments: Sequence[str]) -> int:
    """Run a command line; returns its exit code.

    Not `Program.main`, which has its own ideas of how a program ends.
    """
    program = _program()
    with program.make_context("gristmill", list(arguments)) as context:
        code = program.invoke(context)
    return code if isinstance(code, int) else DONE


def _program() -> Program:
    program = Program(
        name="gristmill",
        help=_ABOUT,
        epilog=_EXAMPLE,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    version = click.version_option(__version__, message="gristmill %(version)s")
    return version(program)
