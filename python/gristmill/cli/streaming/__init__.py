"""`gristmill streaming`: Hadoop's own command line, which is not click's to take apart."""

import click

__all__ = ["hadoop", "streaming"]


@click.command(
    "streaming",
    short_help="Run Hadoop Streaming scripts, with Hadoop's own command line.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
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
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def hadoop(words: tuple[str, ...]) -> int:
    """Stand in for the hadoop program, where mrjob and others call it."""
    from gristmill.cli.streaming.hadoop_shim import main

    return main(words)
