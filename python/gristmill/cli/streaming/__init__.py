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


@click.command(
    "hadoop",
    short_help="Stand in for the hadoop program where mrjob and others call it.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, shell_complete=_files)
def hadoop(words: tuple[str, ...]) -> int:
    """Stand in for the hadoop program, where mrjob and others call it."""
    from gristmill.cli.streaming.hadoop_shim import main

    return main(words)
