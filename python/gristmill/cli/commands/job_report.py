"""`gristmill report ID [ID]`: histories as one HTML file, to be opened in a browser.

one job   ──▶ its page            ID.html
two jobs  ──▶ both on one page    ID-and-ID.html
"""

import os
from contextlib import suppress
from pathlib import Path

import click

from gristmill.cli.commands.jobs import failing
from gristmill.cli.failures import DONE, FAILED, Refused, fail
from gristmill.cli.generated import job_ids
from gristmill.cli.groups import PlainCommand
from gristmill.history import JobHistory, find_job, load
from gristmill.names import show_path
from gristmill.terminal import console

__all__ = ["report"]

_LOST_MIN = 0.01
"""Of the longer job: less is not shown."""


@click.command(cls=PlainCommand)
@click.argument("job_id", metavar="ID", shell_complete=job_ids)
@click.argument("other_id", metavar="[ID]", required=False, shell_complete=job_ids)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write; `-` for standard output.  [default: ID.html]",
)
@failing
def report(job_id: str, other_id: str | None, output: Path | None) -> int:
    """Draw a job: a timeline of its tasks, what it used, its counters, in one HTML file.

    With two IDs, draw both jobs on one page, on one time axis, and say what differs. The first job
    is called A, the second B.

    ID is a job's name, a part of it that no other job has, or `last`.
    """
    folder = find_job(job_id)
    other = find_job(other_id) if other_id is not None else None
    if other == folder:
        raise Refused(
            f"both names are those of one job: {folder.name}", "name two jobs (gristmill jobs)"
        )
    page = _page(folder, other)
    if output == Path("-"):
        console.put(page)
        return DONE
    name = folder.name if other is None else f"{folder.name}-and-{other.name}"
    path = output or Path(f"{name}.html")
    try:
        path.write_text(page, encoding="utf-8")
    except FileNotFoundError:
        what = f"{show_path(path)}: the directory {show_path(path.parent)} does not exist"
        fail("report", f"cannot write {what}. What to do: make it, or name another file with -o.")
        return FAILED
    if not _is_stdout(path):
        console.say(str(path))
    return DONE


def _is_stdout(path: Path) -> bool:
    """Whether a name such as /dev/stdout leads there: what is said would be written over it."""
    with suppress(OSError):
        return os.path.samestat(path.stat(), os.fstat(1))
    return False


def _page(folder: Path, other: Path | None) -> str:
    if other is None:
        from gristmill.history.page import render

        return render(load(folder))
    from gristmill.history.page.pair import render_pair

    a, b = load(folder), load(other)
    return render_pair(a, b, _lost(a, b))


def _lost(a: JobHistory, b: JobHistory) -> list[tuple[str, float, float]]:
    """What both lost, where it is worth a line; nothing of a job whose end is not known."""
    from gristmill.analysis.histories.causes import WORDS
    from gristmill.analysis.histories.losses import losses

    if not (a.report and b.report):
        return []
    of_a, of_b = losses(a), losses(b)
    least = _LOST_MIN * max(a.wall_s, b.wall_s)
    names = [name for name in of_a if max(of_a[name], of_b[name]) >= least]
    return [(WORDS[name], of_a[name], of_b[name]) for name in names]
