"""Results as one HTML page: nothing is fetched, everything is in it, and no script runs.

    Results, Figures ──▶ tables (tables.py), plots (plots.py: matplotlib's SVG) ──▶ page.html

Names and options come from users: all text is escaped. Colours are those of the page's style, in
light and dark; plots are told apart by markers and hatches, too, so that they are readable in grey.
"""

import html
from collections.abc import Sequence
from importlib.resources import files

from gristmill.analysis.bench.figures import Figures
from gristmill.analysis.bench.page.plots import draw
from gristmill.analysis.bench.page.tables import (
    facts,
    figure_table,
    measuring,
    phase_table,
    rules_of,
    run_table,
)
from gristmill.analysis.bench.results import Results
from gristmill.analysis.bench.rules import judged
from gristmill.history.page.filled import palette

__all__ = ["render"]


def render(found: Results, figures: Sequence[Figures]) -> str:
    """Return the page."""
    ours = files(__name__)
    parts = {
        "title": html.escape(f"bench {found.asked.suite} - Gristmill"),
        "css": palette() + (ours / "page.css").read_text(),
        "heading": html.escape(f"Benchmark: {found.asked.suite}"),
        "facts": facts(found),
        "figures": figure_table(figures),
        "plots": "".join(
            f"<figure><figcaption>{html.escape(caption)}</figcaption>{svg}</figure>"
            for caption, svg in draw(figures)
        ),
        "phases": phase_table(figures),
        "rules": rules_of(judged(found, figures)),
        "measuring": measuring(found, figures),
        "runs": run_table(found),
    }
    head, *rest = (ours / "page.html").read_text().split("@@")
    page = [head]
    for name, text in zip(rest[::2], rest[1::2], strict=True):
        page += [parts[name], text]
    return "".join(page)
