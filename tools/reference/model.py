"""The commands as pages for readers: what the reference and the manual pages show of each.

click's commands ──▶ CommandPage: usage, help, example, arguments, options ──▶ commands.md
                                                                         └──▶ gristmill-NAME.1
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import click

from gristmill.cli.generated import JobCommand
from gristmill.cli.program import Program, the_program
from gristmill.options import commands as of_engine

__all__ = ["CommandPage", "OptionRow", "pages"]

_NOTE = re.compile(r"\s*\[(default|env): ([^\]]*)\]")
_SELF_DOCUMENTED = ("--help",)


@dataclass(frozen=True, slots=True)
class OptionRow:
    """An option."""

    name: str
    """As it is written, with its value: `-o, --output PATH`."""
    text: str
    """What it does."""
    default: str
    """What holds without it; empty where nothing is said."""
    environment: str
    """The variable that gives it; empty where none does."""


@dataclass(frozen=True, slots=True)
class CommandPage:
    """A command."""

    name: str
    """Its name, without the program's: `jobs show`."""
    usage: str
    """How it is written."""
    summary: str
    """What it does, in a line."""
    text: tuple[str, ...]
    """What it does, in paragraphs."""
    example: str
    """A command line that works; empty where none is given."""
    arguments: tuple[tuple[str, str], ...]
    options: tuple[OptionRow, ...]


def pages() -> list[CommandPage]:
    """Return all commands in the order of the first screen, each with those below it."""
    program = the_program()
    root = click.Context(program, info_name="gristmill")
    return list(_pages_of(program, root))


def _pages_of(program: Program, root: click.Context) -> Iterator[CommandPage]:
    from gristmill.cli.render.overview import ROWS

    order = [name for row in ROWS for name in row.names]
    names = sorted(program.list_commands(root), key=lambda name: _place(name, order))
    for name in names:
        command = program.get_command(root, name)
        assert command is not None
        if name in ("streaming", "hadoop"):
            yield _of_hadoop(name, command)
            continue
        context = click.Context(command, info_name=name, parent=root)
        yield _page(name, command, context)
        if isinstance(command, click.Group) and name != "explain":
            for below in command.list_commands(context):
                found = command.get_command(context, below)
                assert found is not None
                inner = click.Context(found, info_name=below, parent=context)
                yield _page(f"{name} {below}", found, inner)


def _place(name: str, order: list[str]) -> int:
    return order.index(name) if name in order else len(order)


def _page(name: str, command: click.Command, context: click.Context) -> CommandPage:
    paragraphs = _paragraphs(command.help or "")
    if (ours := of_engine().get(name)) is not None and ours.details:
        paragraphs = (*paragraphs, *_paragraphs(ours.details))
    if name == "explain":
        known = (
            ", ".join(command.list_commands(context)) if isinstance(command, click.Group) else ""
        )
        paragraphs = (*paragraphs, f"COMMAND is one of {known}; its options are those of the job.")
    return CommandPage(
        name=name,
        usage=" ".join([f"gristmill {name}", *command.collect_usage_pieces(context)]),
        summary=command.get_short_help_str(1000).rstrip("."),
        text=paragraphs,
        example=command.example if isinstance(command, JobCommand) else "",
        arguments=tuple(command.arguments) if isinstance(command, JobCommand) else (),
        options=tuple(
            _option(option, context)
            for option in command.get_params(context)
            if isinstance(option, click.Option) and not _is_left_out(option)
        ),
    )


def _is_left_out(option: click.Option) -> bool:
    return option.hidden or option.opts[-1] in _SELF_DOCUMENTED


def _option(option: click.Option, context: click.Context) -> OptionRow:
    record = option.get_help_record(context)
    assert record is not None, option.opts
    name, text = record
    notes = dict(_NOTE.findall(text))
    return OptionRow(
        name, _NOTE.sub("", text).strip(), notes.get("default", ""), notes.get("env", "")
    )


def _of_hadoop(name: str, command: click.Command) -> CommandPage:
    from gristmill.streaming.options import OPTIONS

    rows = OPTIONS if name == "streaming" else ()
    return CommandPage(
        name=name,
        usage=f"gristmill {name} " + ("[OPTIONS]" if rows else "COMMAND [ARGS]..."),
        summary=command.get_short_help_str(1000).rstrip("."),
        text=_paragraphs(command.help or ""),
        example="gristmill streaming -input logs -output counts -mapper cat -reducer wc"
        if rows
        else "gristmill hadoop fs -ls books",
        arguments=(),
        options=tuple(OptionRow(row.shown, row.what, "", "") for row in rows),
    )


def _paragraphs(text: str) -> tuple[str, ...]:
    parts = re.split(r"\n\s*\n", text.replace("\b", "").strip())
    return tuple(" ".join(part.split()) for part in parts if part.strip())
