"""`gristmill scale fit FILE`: the law of runs that are measured already."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gristmill.analysis.runs import Run
from gristmill.cli.failures import DONE, FAILED, fail
from gristmill.cli.generated import JobCommand
from gristmill.cli.scale.shared import FIT_OPTIONS, Wanted, fitted
from gristmill.names import show_path

if TYPE_CHECKING:
    from gristmill.analysis.scale.reading import Data

__all__ = ["fit"]


def _run(files: tuple[Path, ...], *, weak: bool, **options: Any) -> int:  # noqa: ANN401 - click's
    from gristmill.analysis.scale.needs import require
    from gristmill.analysis.scale.reading import read

    try:
        require("scipy", "numpy")
        data = [read(path) for path in files]
    except OSError as error:
        fail("scale fit", _cannot_read(error))
        return FAILED
    except (ValueError, ModuleNotFoundError) as error:
        fail("scale fit", str(error))
        return FAILED
    return _fitted(data, Wanted(**options), weak=weak)


def _fitted(data: "Sequence[Data]", wanted: Wanted, *, weak: bool) -> int:
    measured = data[0].measured
    if any(one.measured != measured for one in data):
        what = "cannot fit the runs: some files have seconds, others throughput"
        fail("scale fit", f"{what}. What to do: fit them one by one.")
        return FAILED
    runs = [_weakly(run, measured) if weak else run for one in data for run in one.runs]
    try:
        return DONE if fitted("scale fit", runs, measured, wanted) else FAILED
    except (ValueError, ModuleNotFoundError) as error:
        fail("scale fit", str(error))
        return FAILED


def _weakly(run: Run, measured: str) -> Run:
    """A run whose work is in proportion to p; a throughput stays what it is."""
    seconds = run.seconds if measured == "seconds" else run.p / run.rate
    return replace(run, work=run.p, seconds=seconds)


def _cannot_read(error: OSError) -> str:
    why = (error.strerror or str(error)).lower()
    return (
        f"cannot read the runs: {why} ({show_path(error.filename or 'FILE')}). What to do: name"
        " a CSV file, or the runs.jsonl of gristmill scale run."
    )


fit = JobCommand(
    name="fit",
    help="Fit the Universal Scalability Law to runs with different numbers of processors: sigma,"
    " kappa and gamma with their errors, the peak, the crossover, the ceiling, and a verdict. It"
    " refuses data that cannot carry the law, and says why. The runs are lines of a CSV file with"
    " the columns p and seconds, or p and throughput. Other columns of numbers are seconds of"
    " phases; columns named waste:NAME are seconds lost to NAME. Needs gristmill[analysis].",
    short_help="Fit the Universal Scalability Law to runs of a CSV file",
    params=[
        click.Argument(
            ["files"],
            nargs=-1,
            required=True,
            metavar="FILE...",
            type=click.Path(path_type=Path),
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
    arguments=[("FILE...", "CSV files, or the runs.jsonl of gristmill scale run.")],
)
