"""Figures as a table for people: a line for each configuration and step."""

from collections.abc import Sequence

from gristmill.analysis.bench.bench_request import label
from gristmill.analysis.bench.figures import Figures
from gristmill.analysis.bench.stats import Summary, three_digits

__all__ = ["aligned", "figure_lines"]

_COLUMNS = (
    ("gb_per_s", "GB/s"),
    ("tb_per_min", "TB/min"),
    ("cpu_s_per_gb", "CPU s/GB"),
    ("floor_share", "share of floor"),
    ("usd_per_tb", "$/TB"),
    ("joules", "joules"),
)


def figure_lines(figures: Sequence[Figures]) -> list[str]:
    """Return the lines of the table; columns that nobody has are left out."""
    shown = [column for column in _COLUMNS if any(column[0] in one.values for one in figures)]
    configs = any(one.config for one in figures)
    head = ["step", *(["configuration"] if configs else []), "n", "seconds", "median"]
    rows = [[*head, "interval", *(title for _, title in shown)]]
    for one in figures:
        cells = [one.step, *([label(one.config)] if configs else []), *_seconds(one.seconds)]
        for name, _ in shown:
            value = one.values.get(name)
            cells.append("" if value is None else three_digits(value.mean))
        rows.append(cells)
    return aligned(rows, texts=2 if configs else 1)


def aligned(rows: Sequence[Sequence[str]], texts: int = 1) -> list[str]:
    """Return rows as lines, their columns under each other: texts begin at the left, they first.

    Example:
        >>> aligned([["a", "n"], ["bcd", "10"]])
        ['a     n', 'bcd  10']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place < texts else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _seconds(seconds: Summary) -> list[str]:
    error = ""
    if seconds.stderr is not None and seconds.relative_percent is not None:
        error = f" ± {seconds.stderr:.3f} ({seconds.relative_percent:.1f} %)"
    low_high = seconds.interval
    interval = "" if low_high is None else f"{low_high[0]:.3f} to {low_high[1]:.3f}"
    return [
        str(seconds.n),
        f"{seconds.mean:.3f}{error}",
        f"{seconds.median:.3f}",
        interval,
    ]
