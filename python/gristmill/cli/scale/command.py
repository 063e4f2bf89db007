"""The group `gristmill scale`; its commands are imported when one of them is named."""

from importlib import import_module

import click

from gristmill.cli.groups import CommandGroup

__all__ = ["scale"]

_COMMANDS = {"fit": "fit", "run": "run"}


class _Scale(CommandGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        return getattr(import_module(f"gristmill.cli.scale.{_COMMANDS[cmd_name]}"), cmd_name)


scale = _Scale(
    name="scale",
    help="Measure how speed depends on the number of workers or nodes. Fit the Universal"
    " Scalability Law: contention, coherency and the peak, each with its error.",
    short_help="Measure and fit how speed depends on the number of workers",
)
