"""The demo's last screen: the figures as a short table, drawn on a terminal and plain in a pipe."""

import sys

from gristmill.cli.demo.figures import Figures
from gristmill.terminal import console
from gristmill.units import show_bytes, show_count, show_seconds

__all__ = ["say_figures"]


def say_figures(figures: Figures) -> None:
    """Say the figures on stdout."""
    rows = _rows(figures)
    if console.is_terminal(sys.stdout):
        _draw(rows)
        return
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = (f"{name:<{widths[0]}}  {figure:<{widths[1]}}  {what}" for name, figure, what in rows)
    console.say("", *(line.rstrip() for line in lines))


def _draw(rows: list[tuple[str, str, str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_header=False, padding=(0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for row in rows:
        table.add_row(*row)
    Console(highlight=False).print(table)


def _rows(figures: Figures) -> list[tuple[str, str, str]]:
    report, floor = figures.sorted, figures.floor
    size, wall = show_bytes(report.output_bytes), show_seconds(report.wall_s)
    read, write = show_seconds(floor.cached_read_s), show_seconds(floor.direct_write_s)
    user, system = show_seconds(report.user_s), show_seconds(report.sys_s)
    files, duplicates = show_count(report.parts, "file"), report.duplicate_keys
    return [
        ("speed", f"{figures.gb_per_s:.2f} GB/s", f"{size} in {wall}, input in cache"),
        (
            "share of floor",
            f"{figures.share_of_floor * 100:.0f} %",
            f"floor {show_seconds(floor.wall_s)}: {read} read + {write} write",
        ),
        (
            "CPU",
            f"{figures.cpu_s_per_gb:.2f} s per GB",
            f"{user} user + {system} system, with proof",
        ),
        (
            "peak memory",
            show_bytes(report.peak_anon_bytes),
            f"mapped input apart, {show_bytes(report.peak_mapped_bytes)}",
        ),
        ("proof", "same records", f"checksum in = out = {report.checksum}"),
        (
            "",
            "in order",
            f"within and across {files}, {show_count(duplicates, 'duplicate key')}",
        ),
        ("", "same bytes", "with 1 worker, in every file"),
    ]
