"""A click command for each command of the engine's table.

    CommandSpec ──▶ arguments by their places, options by their names in any order, --json
                ──▶ --help: what it does, an example, arguments, options with defaults and variables

Here it is only decided whether a value has the form that the table names; what it means, the engine
says, in one place for the command line and the Python functions.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, cast

import click

from gristmill.cli.failures import ADDRESS, Refused
from gristmill.cli.runner import run_command
from gristmill.options import HISTORY, Command, Option

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = [
    "JSON",
    "JobCommand",
    "Places",
    "command_of",
    "count",
    "files",
    "help_options",
    "job_ids",
    "with_options",
]

_Callback = Callable[..., int]
_Completer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem[str]]"]

_METAVARS = {
    "count": "N",
    "bytes": "SIZE",
    "rows": "ROWS",
    "number": "NUMBER",
    "path": "PATH",
    "path_list": "PATH",
    "pairs": "KEY=VALUE",
    "text": "TEXT",
    "text_list": "TEXT",
    "seconds": "SECONDS",
}

_ON = "[local|ray|URL]"
"""Also the address of a dashboard: program.py submits the command before click reads this."""

JSON = click.Option(
    ["--json", "as_json"], is_flag=True, help="Print the job's report as one JSON object."
)


class JobCommand(click.Command):
    """A command whose help shows an example first, and says what its arguments are."""

    def __init__(self, *, example: str, arguments: list[tuple[str, str]], **rest: object) -> None:
        super().__init__(**rest)  # pyright: ignore[reportArgumentType] - click's own keywords
        self.example = example
        self.arguments = arguments

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the command line apart; an error says to which command it belongs."""
        given = list(args)  # click takes from the list what it has read
        try:
            if self.name == "sort":
                from gristmill.cli.gnu import gnu_sort

                args = gnu_sort.translated(args)
            bundles: dict[str, Sequence[str]] = {}
            rest = super().parse_args(ctx, list(_bundled(args, bundles)))
            for name, value in ctx.params.items() if bundles else ():
                if isinstance(value, tuple):
                    words = cast("tuple[str, ...]", value)
                    all_words = (bundles.get(word, (word,)) for word in words)
                    ctx.params[name] = tuple(chain.from_iterable(all_words))
            if self.name == "sort":
                from gristmill.cli.gnu import gnu_sort

                gnu_sort.complete(ctx)
            return rest
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            if self.name != "sort":
                raise
            from gristmill.cli.gnu.gnu_sort import explained

            raise explained(error, given) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example and the arguments before the options."""
        with formatter.section("Example"):
            formatter.write(f"  {self.example}\n")  # whole, to be copied
        if self.arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(self.arguments)
        super().format_options(ctx, formatter)


_WORTH_A_BUNDLE = 1000
"""Arguments in a row."""


def _bundled(words: Sequence[str], bundles: dict[str, Sequence[str]]) -> Iterator[str]:
    """Let one word stand for many that can only be arguments: no word has a NUL in it.

    click moves all that follow for each word that it takes: 100,000 names of files took 2.6 s. What
    may be the value of an option, or an argument at an end, is left as it is.
    """
    begin = 0
    while begin < len(words):
        end = begin
        while end < len(words) and not words[end].startswith("-"):
            end += 1
        if end - begin < _WORTH_A_BUNDLE:
            yield from words[begin : end + 1]
        else:
            name = f"\0{len(bundles)}"
            bundles[name] = words[begin + 1 : end - 1]
            yield from (words[begin], name, *words[end - 1 : end + 1])
        begin = end + 1


def command_of(command: Command) -> JobCommand:
    """Return the click command for a command of the table."""
    positional = [option for option in command.options if option.positional]
    more: list[click.Option] = []
    if command.name == "sort":
        from gristmill.cli.gnu import gnu_sort

        more = gnu_sort.more_options()
    return JobCommand(
        name=command.name,
        help=command.help,
        short_help=command.help.split(":")[0].rstrip("."),
        params=[
            *(_parameter(command.name, option) for option in (*command.options, HISTORY)),
            *more,
            JSON,
        ],
        context_settings=help_options(command),
        callback=partial(run_command, command.name),
        example=command.example,
        arguments=[(_argument_metavar(option), option.help) for option in positional],
    )


def help_options(command: Command) -> dict[str, list[str]]:
    """Return by which options a command shows its help: GNU sort's -h is another thing."""
    has_own = any(option.short == "h" for option in command.options)
    return {"help_option_names": ["--help"] if has_own else ["-h", "--help"]}


def _parameter(command: str, option: Option) -> click.Parameter:
    if option.positional:
        return click.Argument(
            [option.name],
            nargs=-1 if option.kind == "paths" else 1,
            required=not option.default,
            metavar=_argument_metavar(option),
            type=_type_of(option),
            shell_complete=_completer_of(option),
        )
    names, attributes = _named(option)
    if command == "sort":
        from gristmill.cli.gnu import gnu_sort

        names += gnu_sort.ALIASES.get(option.name, ())
        if option.name == "output":
            attributes |= {"multiple": True, "callback": gnu_sort.one_output}
    return click.Option(names, **attributes)


def _named(option: Option) -> tuple[list[str], dict[str, Any]]:
    """The names of an option, and what click wants to know of it."""
    letters = [f"-{option.short}"] if option.short else []
    environment = f" [env: {option.environment}]" if option.environment else ""
    default = f"[default: {option.default}]" if option.default else "[must be given]"
    name = f"--{option.dashed}/--no-{option.dashed}" if option.is_on else f"--{option.dashed}"
    return [*letters, name, option.name], {
        "is_flag": option.kind == "flag" or None,  # False would mean that the value may be left out
        "multiple": option.kind in ("path_list", "pairs", "text_list"),
        "type": _type_of(option),
        "metavar": _ON if option.name == "on" else _METAVARS.get(option.kind),
        "envvar": option.environment or None,
        "help": f"{option.help}  {default}{environment}",
        "shell_complete": _completer_of(option),
        **({"default": True} if option.is_on else {}),
    }


def files(_: click.Context, __: click.Parameter, incomplete: str) -> list["CompletionItem[str]"]:
    """Let the shell complete the name of a file."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def job_ids(_: click.Context, __: click.Parameter, incomplete: str) -> list["CompletionItem[str]"]:
    """Complete the name of a job: the latest first, and `last`."""
    from click.shell_completion import CompletionItem

    from gristmill.history.home import newest_first

    names = ["last", *(folder.name for folder in islice(newest_first(), _JOBS_MAX))]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


_JOBS_MAX = 50
"""Names of jobs that a shell is told."""


def _completer_of(option: Option) -> "_Completer | None":
    """What completes an option's value; `None` leaves it to the type."""
    if option.kind in ("path", "paths", "path_list"):
        return files
    return job_ids if option.name == "job_id" else None


def with_options(options: Sequence[Option]) -> Callable[[_Callback], _Callback]:
    """Return a decorator that adds options to a command, in their order."""

    def decorate(callback: _Callback) -> _Callback:
        for option in reversed(options):
            names, attributes = _named(option)
            callback = click.option(*names, **attributes)(callback)
        return callback

    return decorate


def _argument_metavar(option: Option) -> str:
    name = "ID" if option.name == "job_id" else option.name.upper()
    if option.kind != "paths":
        return name
    one = name.removesuffix("S")
    return f"[{one}]..." if option.default else f"{one}..."


def _type_of(option: Option) -> Any:  # noqa: ANN401 - click's types got parameters only in 8.2
    match option.kind:
        case "flag":
            return None
        case "count":
            return count
        case "seconds":
            return float
        case "choice" if option.name == "on":
            return Places(option.choices)
        case "choice":
            return click.Choice(option.choices)
        case _:
            return str


class Places(click.Choice):  # pyright: ignore[reportMissingTypeArgument] - none before 8.2
    """Where a job may run: a word. Who gives an address is told where that goes."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word that was given."""
        if ":" in value:
            raise Refused(
                f"--on takes no address such as {value}",
                ADDRESS,
                ctx,
            )
        return cast("str", super().convert(value, param, ctx))


def count(value: str | int) -> int:
    """A whole number from 1 on; its upper limit is the engine's to say."""
    text = str(value)
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise click.BadParameter(f"{text!r} is not a whole number from 1 on")
    return int(text)
