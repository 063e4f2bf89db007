"""What `scale fit` and `scale run` have in common: the options of a fit, and how it is told."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import click

from gristmill.cli.failures import fail
from gristmill.cli.numbers import share, whole_number
from gristmill.cli.scale.text import cause_lines, fit_lines, wrapped
from gristmill.errors import ours
from gristmill.names import show_path, to_json
from gristmill.terminal import console

if TYPE_CHECKING:
    from gristmill.analysis.histories import Cause
    from gristmill.analysis.runs import Run
    from gristmill.analysis.scale.reasons import Causes
    from gristmill.analysis.scale.result import Fit

__all__ = ["FIT_OPTIONS", "Wanted", "check_targets", "fitted"]

FIT_OPTIONS = [
    click.Option(
        ["--errors"],
        type=click.Choice(["relative", "absolute"]),
        default="relative",
        help="How the error of a run behaves: relative, it grows with what is measured; absolute,"
        " it is the same at every p.  [default: relative]",
    ),
    click.Option(
        ["--level"],
        type=share(0.5, 0.999),
        default=0.95,
        metavar="SHARE",
        help="The confidence level of the intervals, from 0.5 to 0.999.  [default: 0.95]",
    ),
    click.Option(
        ["--bootstraps"],
        type=whole_number(0, 100_000),
        default=1000,
        metavar="N",
        help="How many bootstrap samples are drawn; 0 leaves bootstrap intervals out."
        "  [default: 1000]",
    ),
    click.Option(
        ["--plots"],
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Draw all plots into this directory, as PNG and SVG.",
    ),
    click.Option(
        ["--html"],
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Write one HTML page with the figures and all plots.",
    ),
    click.Option(["--json", "as_json"], is_flag=True, help="Print the fit as one JSON object."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How to fit, and what to make of it."""

    errors: Literal["relative", "absolute"] = "relative"
    level: float = 0.95
    bootstraps: int = 1000
    plots: Path | None = None
    html: Path | None = None
    as_json: bool = False


def check_targets(wanted: Wanted) -> None:
    """Check that pictures and the page can be drawn and written, before anything is measured.

    Raises:
        ValueError: They cannot.
        ModuleNotFoundError: What draws is not installed.
    """
    if wanted.plots is None and wanted.html is None:
        return
    from gristmill.analysis.scale.needs import require

    require("matplotlib")
    if wanted.plots is not None:
        made = [wanted.plots, *wanted.plots.parents]
        there = next((path for path in made if path.exists()), Path())
        _check_folder("--plots", there, "a directory, or a new one in a directory")
    if wanted.html is not None:
        if wanted.html.is_dir():
            _cannot_write("--html", wanted.html, "it is a directory", "a file in it")
        _check_folder("--html", wanted.html.parent, "a file in a directory")


def _check_folder(option: str, folder: Path, expected: str) -> None:
    if not folder.is_dir():
        why = "it is not a directory" if folder.exists() else "there is no such directory"
        _cannot_write(option, folder, why, f"{expected} that is there")
    if not os.access(folder, os.W_OK | os.X_OK):
        _cannot_write(option, folder, "permission denied", f"{expected} that you may write to")


def _cannot_write(option: str, path: Path, why: str, expected: str) -> NoReturn:
    text = f"cannot write what {option} asks for: {why} ({show_path(path)})."
    raise ours(ValueError(f"{text} What to do: name {expected}."), "bad_option")


def fitted(
    command: str,
    runs: "Sequence[Run]",
    measured: Literal["seconds", "throughput"],
    wanted: Wanted,
    *,
    refusal_fails: bool = True,
) -> bool:
    """Fit runs, and print, draw and write what is wanted; returns whether there is a law."""
    from gristmill.analysis.scale.fitting import fit_runs
    from gristmill.analysis.scale.sample import CannotFitError

    check_targets(wanted)
    try:
        found = fit_runs(
            runs,
            measured=measured,
            errors=wanted.errors,
            level=wanted.level,
            bootstraps=wanted.bootstraps,
        )
    except CannotFitError as error:
        _refused(command if refusal_fails else None, str(error), wanted)
        return False
    causes = _causes(runs, wanted.level)
    loss = _loss(runs)
    _draw(found, runs, causes, wanted)
    if wanted.as_json:
        told = {} if causes is None else {"cause": causes.to_dict()}
        more = {} if loss is None else {"loss": asdict(loss)}
        console.put(to_json({**found.to_dict(), **told, **more}))
    else:
        console.say(*fit_lines(found))
        if causes is not None:
            console.say("", *cause_lines(causes, loss))
    return True


def _causes(runs: "Sequence[Run]", level: float) -> "Causes | None":
    """What wastes say, where there are any."""
    if not any(run.wastes for run in runs):
        return None
    from gristmill.analysis.scale.reasons import explain

    return explain(runs, level)


def _loss(runs: "Sequence[Run]") -> "Cause | None":
    """What changes most with p, of wastes that runs have."""
    if not any(run.wastes for run in runs):
        return None
    from gristmill.analysis.histories import cause_of

    return cause_of(runs)


def _draw(fit: "Fit", runs: "Sequence[Run]", causes: "Causes | None", wanted: Wanted) -> None:
    if wanted.plots is None and wanted.html is None:
        return
    from gristmill.analysis.scale.page import page
    from gristmill.analysis.scale.plots import figures, save

    drawn = figures(fit, runs, causes)
    if wanted.plots is not None:
        save(drawn, wanted.plots)
    if wanted.html is not None:
        wanted.html.write_text(page(fit, drawn, causes), encoding="utf-8")


def _refused(command: str | None, why: str, wanted: Wanted) -> None:
    if wanted.as_json:
        figures = ("sigma", "kappa", "gamma", "peak_p", "peak_speedup", "crossover_p", "ceiling")
        found: dict[str, Any] = dict.fromkeys(figures)
        console.put(to_json({**found, "verdict": "refused", "reason": why}))
    elif command is None:
        console.say(*wrapped(f"{why[:1].upper()}{why[1:]}"), "")
    if command is not None:
        fail(command, why)
