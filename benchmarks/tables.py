"""Results as tables: a row a run, and one row for each table that says what it was measured on.

    benchmarks/results/NAME-DATE.csv   what, program, round, wall_s, cpu_s, peak_bytes, ...
    benchmarks/results/measured.csv    file, part, commit, cpu, cores, memory_bytes, kernel, python

A column is there if a run has such a figure. Fractions have six decimals. A column `a.b` is b
within a. A line that begins with # is a note. `part` is what whole.py calls the table; one without
was measured for another page.
"""

import csv
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

Row = dict[str, Any]

HERE = Path(__file__).parent
RESULTS = HERE / "results"
DECIMALS = 6

#: What no figure depends on: results and pages can be committed between two parts.
NOT_MEASURED = (":(top,exclude)benchmarks/results", ":(top,exclude)docs", ":(top,exclude)*.md")


def keep(name: str, rows: Iterable[Row], folder: Path = RESULTS, notes: Iterable[str] = ()) -> Path:
    """Write a table of this moment, and what it was measured on; print where it is."""
    path = folder / f"{name}-{datetime.now(UTC):%Y-%m-%dT%H%M%S}.csv"
    write(path, rows, notes)
    tell_machine(path)
    print(f"results: {path}")
    return path


def tell_machine(path: Path) -> None:
    """Note what a table was measured on."""
    row = {"file": path.name, "commit": commit(), **machine()}
    write_measured([*read_measured(path.parent), row], path.parent)


def read_measured(folder: Path = RESULTS) -> list[Row]:
    """What the tables of a folder were measured on: words, as they stand there."""
    path = folder / "measured.csv"
    return read(path, str) if path.exists() else []


def write_measured(rows: Iterable[Row], folder: Path = RESULTS) -> None:
    """The same, written."""
    columns = ("file", "part", "commit", "cpu", "cores", "memory_bytes", "kernel", "python")
    write(folder / "measured.csv", ({name: row.get(name) for name in columns} for row in rows))


def write(path: Path, rows: Iterable[Row], notes: Iterable[str] = ()) -> None:
    """Write a table, whole or not at all."""
    flat = [dict(flattened(row)) for row in rows]
    columns = list(dict.fromkeys(name for row in flat for name in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    with beside.open("w", newline="") as file:
        file.writelines(f"# {note}\n" for note in notes)
        into = csv.DictWriter(file, columns, lineterminator="\n")
        into.writeheader()
        into.writerows(flat)
    beside.replace(path)


def flattened(row: Mapping[Any, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    """A row whose figures are numbers and words.

    >>> dict(flattened({"a": 1, "b": {"c": [0.123456789, 2.0]}}))
    {'a': 1, 'b.c.0': 0.123457, 'b.c.1': 2.0}
    """
    for name, value in row.items():
        if isinstance(value, list | tuple):
            yield from flattened(dict(enumerate(value)), f"{before}{name}.")
        elif isinstance(value, Mapping):
            yield from flattened(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", round(value, DECIMALS) if isinstance(value, float) else value


def read(path: Path, parsed: Callable[[str], object] | None = None) -> list[Row]:
    """The rows of a table, without the figures that a run does not have; numbers as such."""
    with path.open(newline="") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        each = parsed or number
        return [{name: each(text) for name, text in row.items() if text} for row in rows]


def nested(row: Row) -> Row:
    """A row in which `a.b` is b within a, as before it was written.

    >>> nested({"a": 1, "b.c": 2, "b.d": 3})
    {'a': 1, 'b': {'c': 2, 'd': 3}}
    """
    found: Row = {}
    for name, value in row.items():
        of, _, within = name.partition(".")
        if within:
            found.setdefault(of, {})[within] = value
        else:
            found[name] = value
    return found


def notes_of(path: Path) -> list[str]:
    """The notes that stand above a table."""
    return [line[2:] for line in path.read_text().splitlines() if line.startswith("# ")]


def number(text: str) -> str | float | bool:
    """A number or a truth value, if the text is one.

    >>> number("3"), number("3.5"), number("True"), number("fd0864d"), number("1e5")
    (3, 3.5, True, 'fd0864d', '1e5')
    """
    if text in ("True", "False"):
        return text == "True"
    if not set(text) <= set("0123456789.-"):
        return text
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        return text


# --- figures ---


class Span:
    """The values of one figure in the rounds."""

    def __init__(self, values: Iterable[float]) -> None:
        self.values = list(values)

    @property
    def low(self) -> float:
        """The least of them."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The largest of them."""
        return max(self.values)

    def __format__(self, spec: str) -> str:
        return format(median(self.values), spec)

    def shown(self, spec: str) -> str:
        """The median and the range."""
        return f"{self:{spec}} ({self.low:{spec}} to {self.high:{spec}})"

    def __truediv__(self, other: "Span | float") -> "Span":
        """Round by round, or by a number."""
        return self._with(other, lambda a, b: a / b)

    def __add__(self, other: "Span") -> "Span":
        """Round by round."""
        return self._with(other, lambda a, b: a + b)

    def _with(self, other: "Span | float", of: Callable[[float, float], float]) -> "Span":
        others = other.values if isinstance(other, Span) else [other] * len(self.values)
        return Span(of(a, b) for a, b in zip(self.values, others, strict=True))


def those(rows: Iterable[Row], **known: object) -> list[Row]:
    """The rows that have these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in known.items())]


def names(rows: Iterable[Row], column: str) -> list[Any]:
    """The values of a column, each once."""
    return list(dict.fromkeys(row[column] for row in rows if column in row))


def span(rows: Iterable[Row], column: str = "wall_s", **known: object) -> Span:
    """A figure in all rounds."""
    return Span(row[column] for row in those(rows, **known))


def rows_of(rounds: Iterable[Mapping[str, Row]], **known: object) -> list[Row]:
    """A row for each program of each round."""
    return [
        {**known, "program": program, "round": at, **figures}
        for at, found in enumerate(rounds)
        for program, figures in found.items()
    ]


# --- where it was measured ---


def machine() -> Row:
    """What the figures were measured on, without names of hosts or paths."""
    cpu = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return {
        "cpu": cpu[0] if cpu else platform.machine(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def commit() -> str:
    """The last commit that changed what is measured; `-dirty` with changes beside it."""
    last = git("log", "-1", "--format=%h", "--", ":(top)", *NOT_MEASURED)
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ":(top)", *NOT_MEASURED)
    return f"{last}-dirty" if changed else last


def git(*words: str) -> str:
    """What git prints; nothing where there is no repository."""
    told = subprocess.run(["git", "-C", HERE, *words], capture_output=True, text=True, check=False)
    return told.stdout.strip()
