"""The plots of the page: matplotlib's SVG, whose colours are those of the page's style.

Narrow and with large letters, so that they can be read on a telephone. matplotlib writes colours
as `#rrggbb`: those that stand for a colour of the page become its variable. Names of parts get a
prefix of their own, as all plots are in one document.
"""

import io
import re
from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import Any

from gristmill.analysis.bench.bench_request import label
from gristmill.analysis.bench.errors import library
from gristmill.analysis.bench.figures import OUTSIDE, Figures

__all__ = ["draw"]

Axes = Any
"""Of matplotlib, whose methods are typed in part only."""

_WIDTH_IN = 5.0
_INK, _SOFT, _LINE = "#010101", "#020202", "#030303"
_COLOURS = ("#010110", "#010111", "#010112", "#010113", "#010114", "#010115")
_VARIABLES = {_INK: "--ink", _SOFT: "--soft", _LINE: "--line"} | {
    colour: f"--c{place}" for place, colour in enumerate(_COLOURS)
}
_LAST_PHASES = ("", "commit", OUTSIDE)
_LABEL_LETTERS = 28
_MARKERS = "osD^vP"
_HATCHES = ("", "//", "\\\\", "xx", "--", "||")

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gristmill",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": _INK,
    "axes.edgecolor": _LINE,
    "axes.labelcolor": _SOFT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _LINE,
    "grid.linewidth": 0.5,
    "xtick.color": _SOFT,
    "ytick.color": _SOFT,
    "hatch.color": _INK,
    "hatch.linewidth": 0.4,
    "legend.frameon": False,
}


def draw(figures: Sequence[Figures]) -> list[tuple[str, str]]:
    """Return captions and SVG of the plots that there is something for."""
    with library("matplotlib").rc_context(_STYLE):
        plots = [
            _plot(_times, figures, len(figures), "times"),
            _plot(_rounds, figures, 5, "rounds"),
        ]
        captions = [
            "Seconds of each run (dots), their mean and its interval",
            "Seconds of each run by round: a drift of the machine shows here",
        ]
        sized = [one for one in figures if "gb_per_s" in one.values]
        if sized:
            plots.append(_plot(_rates, sized, len(sized), "rates"))
            captions.append("GB per second, with standard errors")
        phased = [one for one in figures if any(p.cpu_s_per_gb for p in one.phases)]
        if phased:
            plots.append(_plot(_cpu, phased, len(phased) + 1, "cpu"))
            captions.append("CPU seconds per GB, by phase")
    return list(zip(captions, plots, strict=True))


def _plot(
    onto: Callable[[Axes, Sequence[Figures]], None],
    figures: Sequence[Figures],
    rows: int,
    prefix: str,
) -> str:
    figure = library("matplotlib.figure").Figure(
        figsize=(_WIDTH_IN, 1.0 + 0.5 * rows), layout="constrained"
    )
    figure.patch.set_alpha(0)
    axes = figure.subplots()
    axes.patch.set_alpha(0)
    onto(axes, figures)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return _themed(buffer.getvalue(), prefix)


def _themed(svg: str, prefix: str) -> str:
    """The element alone, with the page's colours, as wide as there is room."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r"font-family: [^;\"]*;? ?", "", svg)  # that of the page
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)  # it would hold for the page
    svg = svg.replace("<svg ", '<svg role="img" ', 1)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'(href="|url\()#', rf"\1#{prefix}-", svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    return svg


def _labels(axes: Axes, figures: Sequence[Figures]) -> None:
    texts = ["\n".join([one.step, *wrap(label(one.config), _LABEL_LETTERS)]) for one in figures]
    axes.set_yticks(range(len(figures)), texts)
    axes.set_ylim(len(figures) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(left=0)


def _times(axes: Axes, figures: Sequence[Figures]) -> None:
    for place, one in enumerate(figures):
        seconds = [run.wall_s for run in one.runs]
        axes.plot(seconds, [place] * len(seconds), "o", color=_SOFT, markersize=3, alpha=0.5)
        low, high = one.seconds.interval or (one.seconds.mean, one.seconds.mean)
        axes.errorbar(
            one.seconds.mean,
            place + 0.22,
            xerr=[[one.seconds.mean - low], [high - one.seconds.mean]],
            fmt="D",
            color=_COLOURS[0],
            markersize=5,
            capsize=3,
        )
    axes.set_xlabel("seconds")
    _labels(axes, figures)


def _rounds(axes: Axes, figures: Sequence[Figures]) -> None:
    for place, one in enumerate(figures):
        axes.plot(
            [run.round for run in one.runs],
            [run.wall_s for run in one.runs],
            marker=_MARKERS[place % len(_MARKERS)],
            linestyle=("-", "--", ":", "-.")[place // len(_COLOURS) % 4],
            color=_COLOURS[place % len(_COLOURS)],
            markersize=4,
            linewidth=1,
            label=" ".join(filter(None, (one.step, label(one.config)))),
        )
    axes.set_xlabel("round")
    axes.set_ylabel("seconds")
    axes.set_ylim(bottom=0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0, -0.18), ncols=2)


def _rates(axes: Axes, figures: Sequence[Figures]) -> None:
    for place, one in enumerate(figures):
        rate = one.values["gb_per_s"]
        axes.barh(
            place,
            rate.mean,
            xerr=rate.stderr or 0.0,
            height=0.5,
            color=_COLOURS[0],
            error_kw={"ecolor": _INK, "capsize": 3, "color": _INK},
        )
    axes.set_xlabel("GB/s")
    _labels(axes, figures)


def _cpu(axes: Axes, figures: Sequence[Figures]) -> None:
    found = dict.fromkeys(phase.name for one in figures for phase in one.phases)
    names = sorted(found, key=lambda n: _LAST_PHASES.index(n) if n in _LAST_PHASES else 0)
    for number, name in enumerate(names):
        widths: list[float] = []
        begins: list[float] = []
        for one in figures:
            taken = {p.name: p.cpu_s_per_gb.mean for p in one.phases if p.cpu_s_per_gb}
            widths.append(taken.get(name, 0.0))
            begins.append(sum(taken.get(before, 0.0) for before in names[:number]))
        axes.barh(
            range(len(figures)),
            widths,
            left=begins,
            height=0.5,
            color=_LINE if name == OUTSIDE else _COLOURS[number % len(_COLOURS)],
            hatch="" if name == OUTSIDE else _HATCHES[number % len(_HATCHES)],
            edgecolor=_INK,
            linewidth=0.4,
            label=name,
        )
    axes.set_xlabel("CPU seconds per GB")
    _labels(axes, figures)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0, -0.18), ncols=3)
