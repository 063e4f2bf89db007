"""One HTML page of a fit, which needs no other file: verdict, figures, pictures, runs, checks."""

import base64
from collections.abc import Iterator, Sequence
from html import escape

from matplotlib.figure import Figure

from gristmill.analysis.scale.plots import TITLES, svg_of
from gristmill.analysis.scale.reasons import Causes
from gristmill.analysis.scale.result import Estimate, Fit

__all__ = ["page"]

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem;
  color: #1b2a49; background: #fff }
h1, h2 { font-weight: 600; line-height: 1.2 }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #ddd }
th:first-child, td:first-child { text-align: left }
figure { margin: 1.5rem 0 } figure img { width: 100%; max-width: 46rem; height: auto }
.mind { font-weight: 600 }
"""

_FIGURES = {
    "sigma": "sigma (contention)",
    "kappa": "kappa (coherency)",
    "gamma": "gamma (rate of one)",
    "peak_p": "peak p",
    "peak_speedup": "peak speedup",
    "crossover_p": "crossover p",
    "ceiling": "ceiling",
}


def page(fit: Fit, drawn: dict[str, Figure], causes: Causes | None = None) -> str:
    """Return the page as text."""
    body = "\n".join(_body(fit, drawn, causes))
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>Scaling: {escape(fit.verdict)}</title>\n<style>{_STYLE}</style>\n{body}\n</html>\n"
    )


def _body(fit: Fit, drawn: dict[str, Figure], causes: Causes | None) -> Iterator[str]:
    yield f"<h1>Scaling: {escape(fit.verdict)}</h1>"
    yield from (f"<p>{escape(sentence)}</p>" for sentence in fit.sentences)
    if causes is not None and causes.wastes:
        yield "<h2>Cause</h2>"
        yield from (f"<p>{escape(sentence)}</p>" for sentence in causes.sentences)
    yield "<h2>Figures</h2>"
    level = f"{fit.level:.0%}"
    header = ("", "value", "standard error", f"{level} from", "to", "bootstrap from", "to")
    yield _table(header, list(_figures(fit)))
    for name, figure in drawn.items():
        yield f"<h2>{TITLES[name]}</h2>\n<figure>{_image(TITLES[name], figure)}</figure>"
    yield "<h2>Runs</h2>"
    yield _table(
        ("p", "runs", fit.measured, "standard error", "speedup", "efficiency", "off the curve"),
        [
            (
                f"{one.p:g}",
                str(one.runs),
                _shown(one.mean),
                _shown(one.stderr),
                f"{one.speedup:.3g}",
                f"{one.efficiency:.2f}",
                f"{one.residual:+.1%}",
            )
            for one in fit.points
        ],
    )
    yield "<h2>Checks</h2>\n<ul>"
    for check in fit.checks:
        mark = "" if check.ok else ' class="mind"'
        yield f"<li{mark}>{escape(check.name)}: {escape(check.says)}</li>"
    yield "</ul>"


def _figures(fit: Fit) -> Iterator[tuple[str, ...]]:
    for name, shown in _FIGURES.items():
        one: Estimate = getattr(fit, name)
        numbers = (one.value, one.stderr, one.low, one.high, *one.bootstrap)
        if any(number is not None for number in numbers):
            yield (shown, *map(_shown, numbers))
    if fit.verdict == "contention":  # its sentences quote this fit
        for name, one in fit.amdahl.items():
            numbers = (one.value, one.stderr, one.low, one.high)
            yield (f"{name} (Amdahl: kappa = 0)", *map(_shown, numbers), "", "")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["".join(f"<th>{escape(cell)}</th>" for cell in header)]
    lines += ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    return "<table>\n" + "\n".join(f"<tr>{line}</tr>" for line in lines) + "\n</table>"


def _image(title: str, figure: Figure) -> str:
    """A picture inside the page; its own names cannot meet those of another picture."""
    encoded = base64.b64encode(svg_of(figure)).decode("ascii")
    return f'<img alt="{escape(title)}" src="data:image/svg+xml;base64,{encoded}">'


def _shown(number: float | None) -> str:
    return "-" if number is None else f"{number:.4g}"
