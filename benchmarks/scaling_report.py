"""What benchmarks/scaling.py makes of its runs: CSV files, fits, pictures, and figures of a page.

    runs ──▶ CSV (p, seconds, phases, waste:NAME) ──▶ the same fit as `gristmill scale fit` ──▶ text
                                                                     └──▶ pictures, page

The page has two pairs of comments, and what is between them is rewritten:

    <!-- figures --> ... <!-- end of figures -->      <!-- pictures --> ... <!-- end of pictures -->
"""

import csv
import io
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from gristmill.analysis.histories import Cause, cause_of
from gristmill.analysis.runs import Run
from gristmill.analysis.scale.fitting import fit_runs
from gristmill.analysis.scale.plots import figures
from gristmill.analysis.scale.reading import read
from gristmill.analysis.scale.reasons import Causes, explain
from gristmill.analysis.scale.result import Estimate, Fit

__all__ = ["NOT_MEASURED", "Told", "draw", "fill", "lines_of", "tell", "write_csv"]

NOT_MEASURED = "not measured yet"
_DRAWN = {"plain": ("speedup",), "throttled": ("speedup", "causes"), "widened": ("speedup",)}
_TITLES = {"speedup": "the speedup", "causes": "times with and without wastes"}
_DPI = 90


@dataclass(frozen=True)
class Told:
    """What the program says of a machine; without a fit, why there is none."""

    machine: str
    measured: Sequence[Any]
    runs: Sequence[Run]
    fit: Fit | None
    causes: Causes | None
    loss: Cause | None
    why: str = ""


def write_csv(measured: Sequence[Any], path: Path | None) -> Sequence[Run]:
    """Write runs as `gristmill scale fit` reads them; returns them as it does."""
    phases = list(dict.fromkeys(name for run in measured for name in run.phases))
    wastes = [name for name in measured[0].wastes if any(run.wastes[name] for run in measured)]
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["p", "seconds", *phases, *(f"waste:{name}" for name in wastes)])
    for run in measured:
        of_phases = [run.phases.get(name, 0.0) for name in phases]
        rows.writerow([run.p, run.seconds, *of_phases, *(run.wastes[name] for name in wastes)])
    if path is not None:
        path.write_text(text.getvalue())
        return read(path).runs
    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder, "runs.csv")
        temporary.write_text(text.getvalue())
        return read(temporary).runs


def tell(machine: str, runs: Sequence[Run], measured: Sequence[Any]) -> Told:
    """Fit the runs of a machine, and ask for the cause."""
    try:
        fit = fit_runs(runs, measured="seconds")
        return Told(machine, measured, runs, fit, explain(runs), cause_of(runs))
    except ValueError as error:  # too few runs, or no law
        return Told(machine, measured, runs, None, None, None, str(error))


def lines_of(told: Told) -> list[str]:
    """What is printed of a machine."""
    if told.fit is None or told.causes is None or told.loss is None:
        return [f"{told.machine}: {told.why}"]
    fit, causes = told.fit, told.causes
    means = ", ".join(f"{point.mean:.2f} s at {point.p:g}" for point in fit.points)
    return [
        f"{told.machine}: {len(told.runs)} runs; {means}",
        f"  sigma {shown(fit.sigma)}, kappa {shown(fit.kappa)}; verdict: {fit.verdict}",
        f"  cause: {cause_in_words(causes)}; losses: {told.loss.sentence}",
        f"  sigma without the wastes {shown(causes.sigma_without_wastes)}",
        *(f"  {sentence}" for sentence in causes.sentences),
        *(f"  mind {check.name}: {check.says}" for check in fit.checks if not check.ok),
    ]


def shown(estimate: Estimate | None) -> str:
    """A figure with its interval.

    >>> shown(Estimate(0.01234, 0.001, 0.0101, None)), shown(None)
    ('0.0123 (0.0101 to -)', '-')
    """
    if estimate is None or estimate.value is None:
        return "-"
    low, high = ("-" if end is None else f"{end:.3g}" for end in (estimate.low, estimate.high))
    return f"{estimate.value:.3g} ({low} to {high})"


def cause_in_words(causes: Causes) -> str:
    """The cause; what is not superlinear has none."""
    return causes.cause or {"not superlinear": "none"}.get(causes.outcome, causes.outcome)


# --- pictures ---


def draw(each: Sequence[Told], folder: Path) -> list[Path]:
    """Draw the pictures of the page: as PNG, without a time in them."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for told in each:
        if told.fit is None:
            continue
        drawn = figures(told.fit, told.runs, told.causes)
        for name in _DRAWN[told.machine]:
            if name in drawn:
                paths.append(folder / f"{told.machine}-{name}.png")
                drawn[name].savefig(paths[-1], dpi=_DPI, metadata={"Software": None})
    paths += together(each, folder / "speedups.png")
    return paths


def together(each: Sequence[Told], path: Path) -> list[Path]:
    """Draw the speedups of all machines as one picture."""
    from matplotlib.figure import Figure

    fitted = [told for told in each if told.fit is not None]
    if not fitted:
        return []
    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    axes = figure.subplots()
    styles = zip(("o-", "s-", "^--"), ("#6f9bc8", "#a4452c", "#1b2a49"), strict=True)
    for told, (style, colour) in zip(fitted, styles, strict=False):
        assert told.fit is not None
        points = [(point.p, point.speedup) for point in told.fit.points]
        axes.plot(*zip(*points, strict=True), style, color=colour, label=told.machine)
    last = max(run.p for told in fitted for run in told.runs)
    axes.plot([0, last], [0, last], ":", color="black", label="linear")
    axes.set_xticks(sorted({run.p for told in fitted for run in told.runs}))
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("p")
    axes.set_ylabel("speedup")
    axes.grid(alpha=0.35, linewidth=0.6)
    axes.legend(loc="upper left")
    figure.savefig(path, dpi=_DPI, metadata={"Software": None})
    return [path]


# --- the page ---


def fill(
    page: Path, each: Sequence[Told], notes: Sequence[str], pictures: Path | None, name: str
) -> None:
    """Rewrite the figures of a page, and if pictures were drawn, the links to them."""
    text = between(page.read_text(), "figures", "\n".join(table(each, notes, name)))
    if pictures is not None:
        text = between(text, "pictures", "\n\n".join(links(each, pictures, page.parent)))
    page.write_text(text)


def between(text: str, name: str, content: str) -> str:
    """Put something between two comments of a page.

    >>> between("a <!-- x --> old <!-- end of x --> b", "x", "new").split()
    ['a', '<!--', 'x', '-->', 'new', '<!--', 'end', 'of', 'x', '-->', 'b']
    """
    first, last = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, found, rest = text.partition(first)
    _, ends, after = rest.partition(last)
    if not (found and ends):
        raise ValueError(f"the page has no {first} with {last} after it")
    return f"{before}{first}\n\n{content}\n\n{last}{after}"


_COLUMNS = (
    *("machine", "runs", "p = 1", "p = {last}", "sigma (95 %)", "kappa", "verdict", "cause"),
    *("sigma without the wastes", "failed attempts at p = 1"),
)


def table(each: Sequence[Told], notes: Sequence[str], name: str) -> list[str]:
    """The figures as lines of Markdown."""
    last = max((run.p for told in each for run in told.runs), default=8)
    header = [column.format(last=f"{last:g}") for column in _COLUMNS]
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    for told in each:
        lines.append(f"| {' | '.join(cells(told, last))} |")
    lines += ["", "What the program says of each:", ""]
    for told in each:
        says = [told.why] if told.causes is None else list(told.causes.sentences)
        lines.append(f"- **{told.machine}**: {' '.join(says)}")
    told_notes = "; ".join(notes) or "no run was left out"
    return [*lines, "", f"Raw results: `benchmarks/results/{name}.csv` ({told_notes})."]


def cells(told: Told, last: float) -> list[str]:
    """A row of the table."""
    if told.fit is None or told.causes is None:
        empty = [NOT_MEASURED] * (len(_COLUMNS) - 2)
        return [told.machine, str(len(told.runs)), *empty]
    failed = [run.failed_attempts for run in told.measured if run.p == 1]
    means = {point.p: f"{point.mean:.2f} s" for point in told.fit.points}
    return [
        told.machine,
        str(len(told.runs)),
        means.get(1, "-"),
        means.get(last, "-"),
        shown(told.fit.sigma),
        "-" if told.fit.kappa.value is None else f"{told.fit.kappa.value:.3g}",
        told.fit.verdict,
        cause_in_words(told.causes),
        shown(told.causes.sigma_without_wastes),
        f"{fmean(failed):.1f}" if failed else "-",
    ]


def links(each: Sequence[Told], pictures: Path, page_folder: Path) -> list[str]:
    """The pictures as Markdown."""
    folder = Path(os.path.relpath(pictures, page_folder)).as_posix()
    found = [f"![Speedups of the three machines]({folder}/speedups.png)"]
    for told in each:
        for name in _DRAWN[told.machine]:
            if (pictures / f"{told.machine}-{name}.png").exists():
                title = f"The {told.machine} machine: {_TITLES[name]}"
                found.append(f"![{title}]({folder}/{told.machine}-{name}.png)")
    return found
