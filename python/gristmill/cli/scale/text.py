"""A fit for people: tables of the runs and of the figures, the verdict, what the checks say."""

import statistics
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gristmill.analysis.runs import Run
from gristmill.analysis.scale.result import Estimate, Fit, Point
from gristmill.units import show_count

if TYPE_CHECKING:
    from gristmill.analysis.histories import Cause
    from gristmill.analysis.scale.reasons import Causes

__all__ = ["aligned", "cause_lines", "fit_lines", "times_lines", "wrapped"]

_WIDTH = 88
_FIGURES = (
    ("sigma", "sigma (contention)"),
    ("kappa", "kappa (coherency)"),
    ("gamma", "gamma (rate of one)"),
    ("peak_p", "peak p"),
    ("peak_speedup", "peak speedup"),
    ("crossover_p", "crossover p"),
    ("ceiling", "ceiling"),
)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines: the first column to the left, all others to the right.

    >>> aligned([("p", "runs"), ("16", "5")])
    ['p   runs', '16     5']
    """
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def wrapped(text: str, indent: str = "") -> list[str]:
    """Return a sentence as lines that fit a terminal.

    >>> wrapped("one two", "  ")
    ['  one two']
    """
    return textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def fit_lines(fit: Fit) -> Iterator[str]:
    """Yield the lines of a fit."""
    first, last = fit.points[0].p, fit.points[-1].p
    yield (
        f"{show_count(fit.runs, 'run')}, p = {first:g} to {last:g}, {fit.measured},"
        f" {fit.scaling} scaling; single runs are {fit.relative_error:.1%} off the curve"
    )
    yield ""
    yield from aligned([_header(fit), *map(_point, fit.points)])
    yield ""
    yield from aligned([_figure_header(fit), *_figures(fit)])
    if fit.phases:
        yield ""
        yield from aligned([_PHASE_HEADER, *_phases(fit)])
    yield ""
    yield f"Verdict: {fit.verdict}"
    for sentence in fit.sentences:
        yield from wrapped(sentence, "  ")
    yield ""
    yield "Checks"
    for check in fit.checks:
        mark = "ok    " if check.ok else "warn  "
        first_line, *rest = wrapped(f"{check.name}: {check.says}", " " * 8)
        yield f"  {mark}{first_line[8:]}"
        yield from rest


def times_lines(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a table of the times alone, where there is no law.

    >>> list(times_lines([Run(p=1, seconds=2.0), Run(p=1, seconds=4.0)]))
    ['p  runs  seconds  s.e.   r.e.', '1     2        3     1  33.3%']
    """
    rows = [("p", "runs", "seconds", "s.e.", "r.e.")]
    for p in sorted({run.p for run in runs}):
        seconds = [run.seconds for run in runs if run.p == p]
        mean = statistics.fmean(seconds)
        error = statistics.stdev(seconds) / len(seconds) ** 0.5 if len(seconds) > 1 else None
        share = "" if error is None else f"{error / mean:.1%}"
        rows.append((f"{p:g}", str(len(seconds)), _digits(mean), _digits(error), share))
    yield from aligned(rows)


def cause_lines(causes: "Causes", loss: "Cause | None") -> Iterator[str]:
    """Yield what wastes have to do with it."""
    yield f"Cause: {causes.cause or causes.outcome}"
    for sentence in (*causes.sentences, *([] if loss is None else [loss.sentence])):
        yield from wrapped(sentence, "  ")


def _header(fit: Fit) -> tuple[str, ...]:
    return ("p", "runs", fit.measured, "s.e.", "r.e.", "speedup", "efficiency", "curve", "off")


def _point(point: Point) -> tuple[str, ...]:
    return (
        f"{point.p:g}",
        str(point.runs),
        _digits(point.mean),
        _digits(point.stderr),
        "" if point.relative_error is None else f"{point.relative_error:.1%}",
        _digits(point.speedup),
        f"{point.efficiency:.2f}",
        _digits(point.fitted),
        f"{point.residual:+.1%}",
    )


def _figure_header(fit: Fit) -> tuple[str, ...]:
    return ("", "value", "s.e.", f"{fit.level:.0%} low", "high", "bootstrap low", "high")


def _figures(fit: Fit) -> Iterator[tuple[str, ...]]:
    for name, shown in _FIGURES:
        one: Estimate = getattr(fit, name)
        if (one.value, one.low, one.high) == (None, None, None):
            continue
        numbers = (one.value, one.stderr, one.low, one.high, *one.bootstrap)
        yield (shown, *map(_digits, numbers))
    if fit.verdict == "contention":  # its sentences quote this fit
        for name, one in fit.amdahl.items():
            yield (
                f"{name} (Amdahl)",
                *map(_digits, (one.value, one.stderr, one.low, one.high)),
                "",
                "",
            )


_PHASE_HEADER = ("phase", "share", "to", "sigma part", "s.e.", "kappa part", "s.e.", "own sigma")


def _phases(fit: Fit) -> Iterator[tuple[str, ...]]:
    for phase in fit.phases:
        yield (
            phase.name,
            f"{phase.share[0]:.0%}",
            f"{phase.share[1]:.0%}",
            _digits(phase.sigma_part.value),
            _digits(phase.sigma_part.stderr),
            _digits(phase.kappa_part.value),
            _digits(phase.kappa_part.stderr),
            _digits(phase.sigma),
        )


def _digits(number: float | None) -> str:
    if number is None:
        return "-"
    if number == 0:
        return "0"
    if abs(number) >= 1000:
        return f"{number:,.0f}"
    return f"{number:.4g}" if abs(number) >= 1 else f"{number:.3g}"
