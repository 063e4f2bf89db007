"""The pictures of a fit, by matplotlib, without a display.

    speedup     linear bound, curve, band, peak, ceiling, crossover, payback region, the runs
    efficiency  work of each processor against that of one
    deviation   (p / S - 1) / (p - 1), which is sigma + kappa p: a straight line where the law holds
    residuals   each run against the curve
    times       what was measured, on logarithmic axes, with standard errors
    phases      seconds of each phase, stacked
    causes      times with and without wastes; waste against time at one p

They are made to be printed in grey: lines differ in their strokes, points in their marks, areas in
their hatching, and every colour in its lightness.
"""

# matplotlib's keywords are untyped, and so in part is each of its methods.
# pyright: reportUnknownMemberType=false

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gristmill.analysis.runs import Run
from gristmill.analysis.scale.reasons import Causes
from gristmill.analysis.scale.result import Fit
from gristmill.analysis.scale.scoring import Floats

__all__ = ["TITLES", "figures", "save", "svg_of"]

TITLES = {
    "speedup": "Speedup",
    "efficiency": "Efficiency",
    "deviation": "Deviation from linear",
    "residuals": "Residuals",
    "times": "Times",
    "phases": "Phases",
    "causes": "Wastes",
}

_STYLE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10,
    "grid.alpha": 0.35,
    "grid.linewidth": 0.6,
    "legend.edgecolor": "none",
    "legend.framealpha": 0.85,
    "svg.hashsalt": "gristmill",
}
_SIZE = (7.2, 4.6)
_DPI = 130

_DARK, _MIDDLE, _LIGHT, _PALE = "#1b2a49", "#a4452c", "#6f9bc8", "#d5e3f0"
"""Dark blue, brick, light blue, pale: 17, 40, 62 and 89 % light."""
_FILLS = ("#1b2a49", "#6f9bc8", "#d5e3f0", "#a4452c", "#e0b48a", "#777777", "#f2f2f2")
_HATCHES = ("", "//", "..", "\\\\", "xx", "--", "++")


def figures(fit: Fit, runs: Sequence[Run], causes: Causes | None = None) -> dict[str, Figure]:
    """Draw all pictures that the data have, by name."""
    drawn: dict[str, Callable[[Figure], None]] = {
        "speedup": lambda figure: _speedup(figure.subplots(), fit),
        "efficiency": lambda figure: _efficiency(figure.subplots(), fit),
        "deviation": lambda figure: _deviation(figure.subplots(), fit),
        "residuals": lambda figure: _residuals(figure.subplots(), fit, runs),
        "times": lambda figure: _times(figure.subplots(), fit),
    }
    if fit.phases:
        drawn["phases"] = lambda figure: _phases(figure.subplots(), runs)
    if causes is not None and causes.wastes:
        drawn["causes"] = lambda figure: _causes(figure, runs, causes)
    found: dict[str, Figure] = {}
    with _styled():
        for name, draw in drawn.items():
            figure = Figure(figsize=_SIZE, layout="constrained")
            draw(figure)
            found[name] = figure
    return found


def save(drawn: dict[str, Figure], folder: Path) -> list[Path]:
    """Write each picture as PNG and as SVG; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    return list(_saved(drawn, folder))


def _saved(drawn: dict[str, Figure], folder: Path) -> Iterator[Path]:
    with _styled():
        for name, figure in drawn.items():
            for kind, metadata in (("png", {}), ("svg", {"Date": None})):
                path = folder / f"{name}.{kind}"
                figure.savefig(path, dpi=_DPI, metadata=metadata)
                yield path


def svg_of(figure: Figure) -> bytes:
    """Return a picture as SVG: the same bytes for the same picture."""
    buffer = io.BytesIO()
    with _styled():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _styled() -> AbstractContextManager[None]:
    style: Any = _STYLE
    return matplotlib.rc_context(style)


def _curve(fit: Fit) -> tuple[Floats, Floats, Floats, Floats]:
    p, speedup, low, high = np.array(fit.curve).T
    return p, speedup, low, high


def _error_bars(fit: Fit) -> Floats:
    """The relative half-widths of two standard errors."""
    return np.array([2 * (point.relative_error or 0.0) for point in fit.points])


def _dots(axes: Axes, p: Floats, means: Floats, bars: Floats, label: str) -> None:
    axes.errorbar(p, means, bars, fmt="o", color=_MIDDLE, markersize=5, capsize=3, label=label)


def _speedup(axes: Axes, fit: Fit) -> None:
    p, speedup, low, high = _curve(fit)
    law = fit.law
    points = np.array([(point.p, point.speedup) for point in fit.points])
    top = 1.15 * max(float(speedup.max()), float(points[:, 1].max()))
    axes.set_ylim(0, top)
    axes.set_xlim(0, 1.02 * float(p[-1]))
    shown = f"{fit.level:.0%} band"
    axes.fill_between(p, low, np.minimum(high, 10 * top), color=_PALE, label=shown)
    axes.plot([0, p[-1]], [0, p[-1]], "--", color=_DARK, linewidth=1, label="linear")
    axes.plot(p, speedup, "-", color=_DARK, linewidth=2, label="the law")
    bars = points[:, 1] * _error_bars(fit)
    axes.errorbar(
        points[:, 0],
        points[:, 1],
        bars,
        fmt="o",
        color=_MIDDLE,
        markersize=5,
        capsize=3,
        label="runs, ± 2 s.e.",
    )
    if law.ceiling is not None and law.ceiling < 3 * top:
        axes.axhline(law.ceiling, linestyle=":", color=_DARK, label=f"ceiling {law.ceiling:.3g}")
        axes.set_ylim(0, max(top, 1.08 * law.ceiling))
    if law.peak_p is not None and law.peak_speedup is not None and law.peak_p <= p[-1]:
        label = f"peak {law.peak_speedup:.3g} at p = {law.peak_p:.3g}"
        axes.plot(law.peak_p, law.peak_speedup, "^", color=_DARK, markersize=10, label=label)
    crossover = law.crossover_p if fit.superlinear else None  # else there is nothing to pay back
    if crossover is not None and crossover < p[-1]:
        label = f"crossover at p = {crossover:.3g}"
        axes.axvline(crossover, linestyle="-.", color=_MIDDLE, linewidth=1.2, label=label)
        axes.axvspan(
            crossover,
            float(p[-1]),
            facecolor="none",
            edgecolor=_LIGHT,
            hatch="//",
            linewidth=0,
            label="payback",
        )
    axes.set_xlabel("p")
    axes.set_ylabel("speedup")
    axes.legend(loc="best", fontsize=9)


def _efficiency(axes: Axes, fit: Fit) -> None:
    p, speedup, low, high = _curve(fit)
    points = np.array([(point.p, point.efficiency) for point in fit.points])
    top = 1.2 * max(1.0, float((speedup / p).max()), float(points[:, 1].max()))
    axes.fill_between(p, low / p, np.minimum(high / p, 10 * top), color=_PALE)
    axes.plot(p, speedup / p, "-", color=_DARK, linewidth=2, label="the law")
    axes.axhline(1, linestyle="--", color=_DARK, linewidth=1, label="linear")
    bars = points[:, 1] * _error_bars(fit)
    axes.errorbar(
        points[:, 0],
        points[:, 1],
        bars,
        fmt="o",
        color=_MIDDLE,
        markersize=5,
        capsize=3,
        label="runs",
    )
    if fit.law.best_p is not None and fit.law.best_p <= p[-1]:
        best = fit.law.best_p
        label = f"best at p = {best:.3g}"
        axes.plot(best, fit.law.efficiency(best), "^", color=_DARK, markersize=10, label=label)
    axes.set_ylim(0, top)
    _logarithmic(axes, fit)
    axes.set_ylabel("speedup / p")
    axes.legend(loc="best", fontsize=9)


def _deviation(axes: Axes, fit: Fit) -> None:
    above_one = [(point, bar) for point, bar in zip(fit.points, _error_bars(fit), strict=True)]
    above_one = [(point, bar) for point, bar in above_one if point.p > 1]
    p = np.array([point.p for point, _ in above_one])
    lost = np.array([point.p / point.speedup for point, _ in above_one])
    bars = lost * np.array([bar for _, bar in above_one]) / (p - 1)
    law = fit.law
    line = np.linspace(0, 1.02 * float(p.max()), 50)
    label = f"sigma + kappa p = {law.sigma:.3g} + {law.kappa:.3g} p"
    axes.plot(line, law.sigma + law.kappa * line, "-", color=_DARK, linewidth=2, label=label)
    axes.axhline(0, linestyle="--", color=_DARK, linewidth=1, label="linear speedup")
    _dots(axes, p, (lost - 1) / (p - 1), bars, "runs, ± 2 s.e.")
    axes.set_xlabel("p")
    axes.set_ylabel("(p / speedup - 1) / (p - 1)")
    axes.legend(loc="best", fontsize=9)


def _residuals(axes: Axes, fit: Fit, runs: Sequence[Run]) -> None:
    p = np.array([run.p for run in runs])
    seconds = fit.measured == "seconds"
    found = np.array([run.seconds / run.work * fit.unit if seconds else run.rate for run in runs])
    away = 100 * (found / np.array([fit.predict(run.p) for run in runs]) - 1)
    axes.axhline(0, color=_DARK, linewidth=1.5)
    spread = 100 * 2 * fit.relative_error
    for end in (-spread, spread):
        axes.axhline(end, color=_DARK, linewidth=1, linestyle=":")
    axes.plot(p, away, "o", color=_MIDDLE, markerfacecolor="none", markersize=5, label="runs")
    means = [(point.p, 100 * point.residual) for point in fit.points]
    axes.plot(*np.array(means).T, "D", color=_DARK, markersize=6, label="means")
    axes.plot([], [], ":", color=_DARK, label="± 2 spreads of a run")
    _logarithmic(axes, fit)
    axes.set_ylabel("off the curve, %")
    axes.legend(loc="best", fontsize=9)


def _times(axes: Axes, fit: Fit) -> None:
    p, *_ = _curve(fit)
    points = np.array([(point.p, point.mean) for point in fit.points])
    bars = points[:, 1] * _error_bars(fit)
    first = fit.predict(1.0)
    linear = first / p if fit.measured == "seconds" else first * p
    axes.plot(p, linear, "--", color=_DARK, linewidth=1, label="linear")
    curve = np.array([fit.predict(float(one)) for one in p])
    axes.plot(p, curve, "-", color=_DARK, linewidth=2, label="the law")
    axes.errorbar(
        points[:, 0],
        points[:, 1],
        bars,
        fmt="o",
        color=_MIDDLE,
        markersize=5,
        capsize=3,
        label="runs, ± 2 s.e.",
    )
    axes.set_yscale("log")
    _logarithmic(axes, fit)
    unit = "for the work of one processor" if fit.scaling == "weak" else ""
    axes.set_ylabel(f"{fit.measured} {unit}".strip())
    axes.legend(loc="best", fontsize=9)


def _phases(axes: Axes, runs: Sequence[Run]) -> None:
    names = list(dict.fromkeys(name for run in runs for name in run.phases))
    each_p = sorted({run.p for run in runs})
    bottom = np.zeros(len(each_p))
    places = np.arange(len(each_p))
    for at, name in enumerate(names):
        means = np.array(
            [np.mean([run.phases.get(name, 0.0) for run in runs if run.p == p]) for p in each_p]
        )
        axes.bar(
            places,
            means,
            0.7,
            bottom=bottom,
            label=name,
            edgecolor="black",
            linewidth=0.7,
            facecolor=_FILLS[at % len(_FILLS)],
            hatch=_HATCHES[at % len(_HATCHES)],
        )
        bottom += means
    seconds = [float(np.mean([run.seconds for run in runs if run.p == p])) for p in each_p]
    axes.plot(places, seconds, "k_", markersize=22, markeredgewidth=2, label="wall time")
    axes.set_xticks(places, [f"{p:g}" for p in each_p])
    axes.set_xlabel("p")
    axes.set_ylabel("seconds")
    axes.legend(loc="best", fontsize=9)


def _causes(figure: Figure, runs: Sequence[Run], causes: Causes) -> None:
    left, right = figure.subplots(1, 2)
    p, seconds, without = np.array(causes.times).T
    left.plot(p, seconds, "o-", color=_DARK, label="as measured")
    left.plot(p, without, "s--", color=_MIDDLE, label="without wastes")
    left.plot(p, without[0] * p[0] / p, ":", color=_DARK, label="linear, without wastes")
    left.set_xscale("log", base=2)
    left.set_yscale("log")
    left.set_xticks(p, [f"{one:g}" for one in p])
    left.set_xlabel("p")
    left.set_ylabel("seconds")
    left.legend(loc="best", fontsize=8)
    named = [one for one in causes.wastes if one.name == causes.cause] or list(causes.wastes)
    waste = named[0]
    found = waste.correlation
    at = found.p if found is not None else max(waste.shares, key=lambda one: one[1])[0]
    chosen = [run for run in runs if run.p == at]
    right.plot(
        [run.wastes.get(waste.name, 0.0) for run in chosen],
        [run.seconds for run in chosen],
        "o",
        color=_MIDDLE,
        markersize=6,
    )
    shown = (
        "" if found is None else f"\nr = {found.value:.2f} ({found.low:.2f} to {found.high:.2f})"
    )
    right.set_title(f"runs with p = {at:g}{shown}", fontsize=10)
    right.set_xlabel(f"seconds lost: {waste.name}")
    right.set_ylabel("seconds")


def _logarithmic(axes: Axes, fit: Fit) -> None:
    each_p = [point.p for point in fit.points]
    axes.set_xscale("log", base=2)
    axes.set_xticks(each_p, [f"{p:g}" for p in each_p])
    axes.minorticks_off()
    axes.set_xlabel("p")
