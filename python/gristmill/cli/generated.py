"""A click command for each command of the engine's table.

    CommandSpec ──▶ arguments by their places, options by their names in any order, --json
                ──▶ --help: what it does, an example, arguments, options with defaults and variables

Here it is only decided whether a value has the form that the table names; what it means, the engine
says, in one place for the command line and the Python functions.
"""

from functools import partial
from typing import Any

import click

from gristmill.cli.runner import run_command
from gristmill.options import Command, Option

__all__ = ["JSON", "JobCommand", "command_of"]

_METAVARS = {
    "count": "N",
    "bytes": "SIZE",
    "rows": "ROWS",
    "path": "PATH",
    "path_list": "PATH",
    "text": "TEXT",
}

JSON = click.Option(
    ["--json", "as_json"], is_flag=True, help="Print the job's report as one JSON object."
)

HISTORY = click.Option(
    ["--history", "keep_history"],
    is_flag=True,
    help="Keep the job's history also if it takes less than a second.",
)


class JobCommand(click.Command):
    """A command whose help shows an example first, and says what its arguments are."""

    def __init__(self, *, example: str, arguments: list[tuple[str, str]], **rest: object) -> None:
        super().__init__(**rest)  # pyright: ignore[reportArgumentType] - click's own keywords
        self.example = example
        self.arguments = arguments

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the command line apart; an error says to which command it belongs."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example and the arguments before the options."""
        with formatter.section("Example"):
            formatter.write(f"  {self.example}\n")  # whole, to be copied
        if self.arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(self.arguments)
        super().format_options(ctx, formatter)


def command_of(command: Command) -> JobCommand:
    """Return the click command for a command of the table."""
    positional = [option for option in command.options if option.positional]
    return JobCommand(
        name=command.name,
        help=command.help,
        short_help=command.help.split(":")[0].rstrip("."),
        params=[*(_parameter(option) for option in command.options), HISTORY, JSON],
        callback=partial(run_command, command.name),
        example=command.example,
        arguments=[(_argument_metavar(option), option.help) for option in positional],
    )


def _parameter(option: Option) -> click.Parameter:
    if option.positional:
        return click.Argument(
            [option.name],
            nargs=-1 if option.kind == "paths" else 1,
            required=not option.default,
            metavar=_argument_metavar(option),
            type=str,
        )
    letters = [f"-{option.short}"] if option.short else []
    environment = f" [env: {option.environment}]" if option.environment else ""
    return click.Option(
        [*letters, f"--{option.name.replace('_', '-')}", option.name],
        is_flag=option.kind == "flag" or None,  # False would mean that the value may be left out
        multiple=option.kind == "path_list",
        type=_type_of(option),
        metavar=_METAVARS.get(option.kind),
        envvar=option.environment or None,
        help=f"{option.help}  [default: {option.default}]{environment}",
    )


def _argument_metavar(option: Option) -> str:
    name = option.name.upper()
    return f"{name.removesuffix('S')}..." if option.kind == "paths" else name


def _type_of(option: Option) -> Any:  # noqa: ANN401 - click's types got parameters only in 8.2
    match option.kind:
        case "flag":
            return None
        case "count":
            return _count
        case "choice":
            return click.Choice(option.choices)
        case _:
            return str


def _count(text: str) -> int:
    """A whole number from 1 on; its upper limit is the engine's to say."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise click.BadParameter(f"{text!r} is not a whole number from 1 on")
    return int(text)
