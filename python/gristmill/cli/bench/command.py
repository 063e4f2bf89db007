"""The group `gristmill bench`, whose commands are made when they are asked for."""

from importlib import import_module

import click

from gristmill.cli.groups import CommandGroup
from gristmill.installing import install_extra

__all__ = ["bench"]

_COMMANDS = {"run": "running", "compare": "comparing", "report": "reporting"}
"""The commands in the order of the help: the module of each."""


class _Bench(CommandGroup):
    """A group that imports a command when it is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all commands."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command by its name."""
        if cmd_name not in _COMMANDS:
            return None
        return getattr(import_module(f"gristmill.cli.bench.{_COMMANDS[cmd_name]}"), cmd_name)


bench = _Bench(
    name="bench",
    help="Time jobs again and again, with confidence intervals; compare and draw the results. Needs"
    f' the extra "analysis": {install_extra("analysis")}.',
    short_help="Time jobs, with confidence intervals; compare and draw the results",
    context_settings={"help_option_names": ["-h", "--help"]},
)
