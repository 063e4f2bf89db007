"""`gristmill report ID`: a job's history as one HTML file, to be opened in a browser."""

from pathlib import Path

import click

from gristmill.cli.failures import DONE
from gristmill.cli.generated import job_ids
from gristmill.cli.groups import PlainCommand
from gristmill.cli.jobs import failing
from gristmill.history import find_job, load
from gristmill.terminal import console

__all__ = ["report"]


@click.command(cls=PlainCommand)
@click.argument("job_id", metavar="ID", shell_complete=job_ids)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write; `-` for standard output.  [default: ID.html]",
)
@failing
def report(job_id: str, output: Path | None) -> int:
    """Draw a job: a timeline of its tasks, what it used, its counters, in one HTML file.

    ID is a job's name, a part of it that no other job has, or `last`.
    """
    from gristmill.history.page import render

    history = load(find_job(job_id))
    page = render(history)
    if output == Path("-"):
        console.put(page)
        return DONE
    path = output or Path(f"{find_job(job_id).name}.html")
    path.write_text(page, encoding="utf-8")
    console.say(str(path))
    return DONE
