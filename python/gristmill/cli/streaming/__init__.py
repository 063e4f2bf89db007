"""`gristmill streaming`: Hadoop's own command line, which is not click's to take apart."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ["hadoop", "streaming"]


class _Streaming(click.Command):
    """A command whose options are Hadoop's."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list["CompletionItem[str]"]:  # noqa: ARG002
        """Return the options that begin so, with one dash or two."""
        from click.shell_completion import CompletionItem

        from gristmill.streaming.options import OPTIONS

        shown = [(option.shown.partition(" ")[0], option.what) for option in OPTIONS]
        return [
            CompletionItem(name, help=what) for name, what in shown if name.startswith(incomplete)
        ]


def _files(_: click.Context, __: click.Parameter, incomplete: str) -> list["CompletionItem[str]"]:
    from gristmill.cli.generated import files

    return files(_, __, incomplete)


@click.command(
    "streaming",
    cls=_Streaming,
    short_help="Run Hadoop Streaming scripts, with Hadoop's own command line.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, shell_complete=_files)
def streaming(words: tuple[str, ...]) -> int:
    """Run Hadoop Streaming scripts, with Hadoop's own command line."""
    from gristmill.cli.streaming.launch import main

    return main(words)


class _Hadoop(click.Command):
    """A command whose words are those of the program hadoop."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list["CompletionItem[str]"]:
        """Return the commands of `fs` that begin so."""
        from click.shell_completion import CompletionItem

        from gristmill.cli.streaming.hadoop_shim import FILE_COMMANDS

        words: tuple[str, ...] = ctx.params.get("words") or ()
        names = FILE_COMMANDS if words[:1] in (("fs",), ("dfs",)) else ("--help",)
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _words(
    ctx: click.Context, argument: click.Parameter, incomplete: str
) -> list["CompletionItem[str]"]:
    """Commands of hadoop in the first place; files elsewhere."""
    from click.shell_completion import CompletionItem

    names = ("fs", "jar", "version") if not ctx.params.get("words") else ()
    found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return found or _files(ctx, argument, incomplete)


@click.command(
    "hadoop",
    cls=_Hadoop,
    short_help="Stand in for the hadoop program where mrjob and others call it.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, shell_complete=_words)
def hadoop(words: tuple[str, ...]) -> int:
    """Stand in for the hadoop program, where mrjob and others call it."""
    from gristmill.cli.streaming.hadoop_shim import main

    return main(words)
