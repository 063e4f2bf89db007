"""A command with commands below it: what its help shows, and what it says of a wrong name.

no name         ──▶ its help, on stderr: exit code 2
unknown name    ──▶ refused, with the names that are much like it
--help          ──▶ what each command does, whole: click itself would cut it to a line
"""

from collections.abc import Generator
from contextlib import contextmanager

import click

from gristmill.cli.failures import HelpWanted, Refused

__all__ = ["CommandGroup", "PlainCommand", "told_of"]

_ANY_LENGTH = 1000


@contextmanager
def told_of(ctx: click.Context) -> Generator[None]:
    """Let a wrong command line say to which command it belongs: click leaves that out at times."""
    try:
        yield
    except click.UsageError as error:
        error.ctx = error.ctx or ctx
        raise


class PlainCommand(click.Command):
    """A command whose errors say that they are its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the command line apart."""
        with told_of(ctx):
            return super().parse_args(ctx, args)


class CommandGroup(click.Group):
    """A group of commands."""

    command_class = PlainCommand

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the command line apart; without a command the help is what is wanted."""
        if not args and not self.invoke_without_command and not ctx.resilient_parsing:
            raise HelpWanted(ctx)
        with told_of(ctx):
            return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is named."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            from difflib import get_close_matches

            raise Refused(
                f"no such command {name!r}",
                self.advice(name),
                ctx,
                near=get_close_matches(name, self.list_commands(ctx)),
            )
        return super().resolve_command(ctx, args)

    def advice(self, name: str) -> str:  # noqa: ARG002 - for groups that know more
        """Return what to do about an unknown command, if that is more than to read the help."""
        return ""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each command does, none of it left out."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str(_ANY_LENGTH).rstrip("."))
                    for name, command in found
                    if command is not None
                ]
            )
