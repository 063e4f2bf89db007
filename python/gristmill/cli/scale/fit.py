"""`gristmill scale fit`: the law of runs that are measured already.

CSV, runs.jsonl        ──reading────▶ ┐
jobs, folders, .jhist  ──histories──▶ ┴─ runs ──shared.fitted──▶ text, JSON, pictures
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gristmill.analysis.runs import Run
from gristmill.analysis.scale.crowding import uncrowded
from gristmill.cli.failures import DONE, FAILED, HelpWanted, Refused, fail
from gristmill.cli.generated import JobCommand, files
from gristmill.cli.scale.shared import FIT_OPTIONS, Wanted, fitted
from gristmill.names import show_path
from gristmill.terminal import console

if TYPE_CHECKING:
    from gristmill.analysis.scale.reading import Data

__all__ = ["fit"]


def _run(
    names: tuple[str, ...],
    of_command: str | None,
    *,
    per_node: bool,
    weak: bool,
    **options: Any,  # noqa: ANN401 - those of a fit
) -> int:
    from gristmill.analysis.scale.needs import require

    if not names and of_command is None:
        raise HelpWanted(click.get_current_context())
    if "" in names:
        raise Refused("a FILE or JOB is empty", "name a CSV file, a runs.jsonl, or jobs")
    try:
        require("scipy", "numpy")
        data = _read(names, of_command, per_node=per_node)
        return _fitted(data, Wanted(**options), weak=weak)
    except (LookupError, ValueError, ModuleNotFoundError) as error:
        fail("scale fit", str(error.args[0]))
        return FAILED


def _read(names: Sequence[str], command: str | None, *, per_node: bool) -> "list[Data]":
    """The runs of files, each its own, and those of all histories together."""
    from gristmill.analysis.histories import is_history, runs_of
    from gristmill.analysis.scale.reading import Data, read

    data: list[Data] = []
    for name in names:
        if not is_history(name):
            try:
                data.append(read(Path(name)))
            except OSError as error:
                raise ValueError(_cannot_read(error)) from error
    histories = [name for name in names if is_history(name)]
    if histories or command is not None:
        runs = runs_of(histories, command=command, per_node=per_node, note=console.note)
        data.append(Data(runs, "seconds"))
    return data


def _fitted(data: "Sequence[Data]", wanted: Wanted, *, weak: bool) -> int:
    measured = data[0].measured
    if any(one.measured != measured for one in data):
        what = "cannot fit the runs: some files have seconds, others throughput"
        raise ValueError(f"{what}. What to do: fit them one by one.")
    found: list[Run] = []
    for one in data:
        runs, said = uncrowded(one.runs, one.processors)
        found += runs
        if said is not None:
            console.note(f"gristmill scale fit: {said}.")
    runs = [_weakly(run, measured) if weak else run for run in found]
    return DONE if fitted("scale fit", runs, measured, wanted) else FAILED


def _weakly(run: Run, measured: str) -> Run:
    """A run whose work is in proportion to p; a throughput stays what it is."""
    seconds = run.seconds if measured == "seconds" else run.p / run.rate
    return replace(run, work=run.p, seconds=seconds)


def _cannot_read(error: OSError) -> str:
    why = (error.strerror or str(error)).lower()
    return (
        f"cannot read the runs: {why} ({show_path(error.filename or 'FILE')}). What to do: name"
        " a CSV file, the runs.jsonl of gristmill scale run, or jobs."
    )


fit = JobCommand(
    name="fit",
    help="Fit the Universal Scalability Law to runs with different numbers of processors: sigma,"
    " kappa and gamma with their errors, the peak, the crossover, the ceiling, and a verdict. It"
    " refuses data that cannot carry the law, and says why. The runs are lines of a CSV file with"
    " the columns p and seconds, or p and throughput; other columns of numbers are seconds of"
    " phases, and those named waste:NAME are seconds lost to NAME. Or name jobs:"
    " Gristmill reads the same figures from their histories. Needs gristmill[analysis].",
    short_help="Fit the Universal Scalability Law to runs, of a CSV file or of histories",
    params=[
        click.Argument(
            ["names"],
            nargs=-1,
            required=False,
            metavar="[FILE|JOB]...",
            type=str,
            shell_complete=files,
        ),
        click.Option(
            ["--command", "of_command"],
            metavar="NAME",
            help="Only jobs of this command; without FILE and JOB, all that are kept.",
        ),
        click.Option(
            ["--per-node"],
            is_flag=True,
            help="Of jobs, p is the number of their nodes, not of their workers.",
        ),
        click.Option(
            ["--weak"],
            is_flag=True,
            help="The work grew with p, in proportion to it (weak scaling).",
        ),
        *FIT_OPTIONS,
    ],
    callback=_run,
    example="gristmill scale fit runs.csv --plots pictures/",
    arguments=[
        ("FILE", "A CSV file, the runs.jsonl of gristmill scale run, a .jhist file of Hadoop."),
        ("JOB", "A job's name, a part of it that no other job has, last, or a directory of jobs."),
    ],
)
