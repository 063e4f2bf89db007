"""The `gristmill` command: options of the whole program, and the table of its commands."""

import click

from gristmill import __version__

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gristmill", message="%(prog)s %(version)s")
def main() -> None:
    """Sort, group, count, search and copy data that is bigger than memory."""
