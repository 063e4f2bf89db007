"""What `gristmill --help` shows: all commands, by what people want to do, on one screen.

    Begin      demo         make a gigabyte of records, sort them, prove it
    what for   commands     what they do: one line, never cut

A command that no row names stands under "More", with the first sentence of its own help; a row
whose commands are all missing is left out. So a new command shows up before it has a row.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

__all__ = ["ROWS", "Row", "overview", "summary_of"]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the overview."""

    purpose: str
    """What people want to do."""
    names: tuple[str, ...]
    """The commands, in the order in which they are used."""
    text: str
    """What they do."""


ROWS = (
    Row("Begin", ("demo",), "make a gigabyte of records, sort them, prove it"),
    Row("Begin", ("doctor",), "check that jobs can run here"),
    Row("Files", ("sort",), "sort lines, tables or records, as LC_ALL=C sort does"),
    Row("Files", ("grep", "wordcount", "matchcount"), "print or count what matches"),
    Row("Files", ("cp",), "copy between disks, S3 and HDFS, and prove each file"),
    Row("Tables", ("distinct", "top", "group", "join"), "one of each, first N, figures"),
    Row("Tables", ("sample", "shuf", "split"), "draw, shuffle, a file for each value"),
    Row("Your code", ("run",), "run MapReduce of your own functions"),
    Row("Your code", ("check", "retry"), "prove that only its input counts; run a failed record"),
    Row("Hadoop", ("streaming", "hadoop"), "run its scripts unchanged; stand in for it"),
    Row("TeraSort", ("teragen", "terasort", "teravalidate"), "make, sort, check records"),
    Row("Jobs", ("explain",), "say what a job would do, without doing it"),
    Row("Jobs", ("jobs",), "list jobs, show one, watch one, remove old ones"),
    Row("Jobs", ("resume",), "resume a job that was killed"),
    Row("Jobs", ("report",), "draw a job as one HTML page"),
    Row("Measure", ("bench", "scale"), "time jobs, with confidence intervals; fit how they scale"),
    Row("Shell", ("completion",), "complete commands and options with Tab"),
)
"""The lines of the overview; commands that are not there yet are left out."""

_PURPOSE, _NAME = 11, 13


def overview(names: Iterable[str], short_help: Callable[[str], str]) -> list[str]:
    r"""Return the lines of the overview.

    Args:
        names: All commands.
        short_help: Gives what a command does, for one that no row names.

    Example:
        >>> print(*overview(["sort", "mend"], lambda name: f"{name} things"), sep="\n")
        Files      sort         sort lines, tables or records, as LC_ALL=C sort does
        More       mend         mend things
    """
    there = list(names)
    named = {name for row in ROWS for name in row.names}
    rows = [
        Row(row.purpose, tuple(name for name in row.names if name in there), row.text)
        for row in ROWS
    ]
    rows += [Row("More", (name,), short_help(name)) for name in there if name not in named]
    lines: list[str] = []
    before = ""
    for row in (row for row in rows if row.names):
        purpose = "" if row.purpose == before else row.purpose
        lines.append(f"{purpose:{_PURPOSE}}{' '.join(row.names):{_NAME - 2}}  {row.text}")
        before = row.purpose
    return lines


def summary_of(name: str) -> str:
    """Return what a command does, as its row says it; empty where it has none of its own.

    Example:
        >>> summary_of("report"), summary_of("terasort")
        ('draw a job as one HTML page', '')
    """
    return next((row.text for row in ROWS if row.names == (name,)), "")
