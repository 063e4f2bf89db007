"""What scripts of several cells have in common: a command line, a folder for the data, a table.

words = command_line("Copies beside GNU cp", CELLS, ("MB of the long file", 5000), rounds=5)
given = chosen_of(words, CELLS)
keep_all("copies", given, rows_of)      rows_of(folder) gives the rows of one cell after another
"""

import argparse
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tables import RESULTS, Row, keep


def command_line(
    description: str, cells: Iterable[str], size: tuple[str, int], rounds: int
) -> argparse.ArgumentParser:
    """The options that all have; a script adds its own."""
    what, megabytes = size
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("cells", nargs="*", default=[*cells], help=", ".join(cells))
    parser.add_argument("--size", type=int, default=megabytes, help=f"{what} ({megabytes})")
    parser.add_argument("--rounds", type=int, default=rounds, help=f"rounds ({rounds})")
    parser.add_argument("--dir", type=Path, default=Path(), help="where the data go (.)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the table goes")
    return parser


def chosen_of(parser: argparse.ArgumentParser, cells: Iterable[str]) -> argparse.Namespace:
    """What was given; a cell that is not there is refused."""
    given, known = parser.parse_args(), [*cells]
    if unknown := [name for name in given.cells if name not in known]:
        parser.error(f"there is no {unknown[0]!r}; take some of {', '.join(known)}")
    return given


def keep_all(
    name: str, given: argparse.Namespace, rows_of: Callable[[Path], Iterator[list[Row]]]
) -> None:
    """Measure all cells, in a folder that goes with them, and keep their rows."""
    rows: list[Row] = []
    within = given.dir.absolute()
    with tempfile.TemporaryDirectory(prefix="gristmill-bench-", dir=within) as folder:
        for found in rows_of(Path(folder)):
            rows += found
    keep(name, rows, given.results)
