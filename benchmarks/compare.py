"""`make bench`: TeraSort and lines against other programs, and against the device's floor.

    data once ──▶ round 1: every cell, every program in it ──▶ round 2, in the other order ──▶ ...
                  each run a process of its own, its output durable, then removed

Every single run is kept as it ends, in a file beside the results; a bench that was interrupted, or
whose time was up, goes on there when it is called again. When all rounds are done, that is the
result.

    python benchmarks/compare.py                      25 minutes of three rounds; again, to go on
    python benchmarks/compare.py --rows 1m --text 20  a try: 100 MB of records, 20 MB of lines
    python benchmarks/compare.py --show FILE          the table and the plot of a result
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from external import device, drop_caches, natural_text
from peers import FORMS, FRAMEWORKS
from running import GRISTMILL, STREAMS, gristmill, read_cached
from tables import HERE, RESULTS, Row, keep, read, those, write

from gristmill._core import device_floor
from gristmill.analysis.bench.launching import launch

PLENTY = 8_000_000_000
LITTLE = 1_000_000_000

NAMES = {
    "floor": "the floor: reads and writes alone",
    "gristmill": "Gristmill",
    "clickhouse": "ClickHouse, in process",
    "duckdb": "DuckDB",
    "gnu": "GNU sort",
    "numpy": "NumPy",
    "polars": "Polars, streaming",
    "daft": "Daft",
    "spark": "Spark, DataFrames",
    "ray": "Ray Data",
    "hadoop": "Hadoop, local runner",
}


@dataclass(frozen=True)
class Cell:
    """Programs that do the same with the same memory."""

    title: str
    memory: int
    programs: tuple[str, ...]
    cold: bool = False
    passes: int = 1
    lines: bool = False


CELLS = {
    "warm": Cell(
        "TeraSort, input in the page cache",
        PLENTY,
        ("floor", "gristmill", "numpy", "clickhouse", "duckdb", "polars", "gnu"),
    ),
    "cold": Cell(
        "TeraSort, cold", PLENTY, ("floor", "gristmill", "numpy", "clickhouse", "duckdb"), cold=True
    ),
    "little": Cell(
        "TeraSort with 1 GB of memory",
        LITTLE,
        ("floor", "gristmill", "clickhouse", "duckdb", "gnu"),
        passes=2,
    ),
    "lines": Cell("Lines of natural text", PLENTY, ("gristmill", "duckdb", "gnu"), lines=True),
    # Of `make bench-all`: 1 and 10 GB.
    "all": Cell(
        "TeraSort against everyone",
        PLENTY,
        (
            *("floor", "gristmill", "numpy", "clickhouse", "duckdb", "polars", "gnu"),
            *("daft", "spark", "ray", "hadoop"),
        ),
    ),
    # Of neither: --cells big --rows 100m.
    "big": Cell(
        "TeraSort with 2 GB of memory",
        2 * LITTLE,
        ("floor", "gristmill", "clickhouse", "duckdb", "gnu"),
        passes=2,
    ),
}


@dataclass(frozen=True)
class Data:
    """The input in every form."""

    raw: Path
    text: Path
    parquet: Path
    lines: Path
    bytes: int

    @classmethod
    def make(
        cls, folder: Path, rows: str, text_bytes: int, peers: Path, cells: list[str]
    ) -> "Data":
        """Make what is not there yet and a cell needs."""
        programs = {p for cell in cells for p in CELLS[cell].programs if not CELLS[cell].lines}
        forms = {FORMS.get(program, "raw") for program in programs}
        raw, ascii_, lines = folder / "raw", folder / "ascii", folder / "lines"
        text, parquet = ascii_ / "part-m-00000", folder / "records.parquet"
        if not raw.exists():
            gristmill("teragen", rows, str(raw))
        if not ascii_.exists() and forms & {"text", "parquet"}:
            gristmill("teragen", rows, str(ascii_), "--layout", "ascii", "--files", "1")
        if not parquet.exists() and "parquet" in forms:
            command = [peers, HERE / "peers.py", "to-parquet", text, parquet, str(PLENTY)]
            subprocess.run(command, check=True)
        if "hadoop" in programs:
            subprocess.run([peers, HERE / "peers.py", "prepare-hadoop", raw, raw, "0"], check=True)
        if not lines.exists() and any(CELLS[cell].lines for cell in cells):
            natural_text(lines, text_bytes)
        size = sum(path.stat().st_size for path in raw.glob("part-*"))
        return cls(raw, text, parquet, lines, size)

    def of(self, cell: Cell, program: str) -> Path:
        """The form that a program takes."""
        if cell.lines:
            return self.lines
        return {"raw": self.raw, "text": self.text, "parquet": self.parquet}[
            FORMS.get(program, "raw")
        ]


def warm(path: Path) -> None:
    """Bring an input into the page cache."""
    folder = path if path.is_dir() else path.parent
    if path.is_dir():
        read_cached(folder)
        return
    with path.open("rb", buffering=0) as file:
        buffer = bytearray(4 << 20)
        while file.readinto(buffer):
            pass


def floor(cell: Cell, data: Data, folder: Path) -> Row:
    """What the cell's reads and writes alone take."""
    if cell.cold or cell.passes > 1:
        read_s, write_s = device(data.raw, data.bytes)
    else:
        read_s = read_cached(data.raw)
        write_s, _ = device_floor(folder, data.bytes, STREAMS)
    return {"wall_s": cell.passes * (read_s + write_s), "read_s": read_s, "write_s": write_s}


def timed(command: list[Any]) -> Row:
    """A whole process: seconds from outside, CPU seconds and peak memory of it and its children."""
    found = launch([str(word) for word in command])
    if found.status:
        return {"failed": found.status, "wall_s": found.wall_s}
    cpu_s = found.user_s + found.sys_s
    return {"wall_s": found.wall_s, "cpu_s": cpu_s, "peak_bytes": found.peak_bytes}


def command_of(
    cell: Cell, program: str, source: Path, output: Path, pythons: dict[str, Path]
) -> list[Any]:
    """The command line of a run."""
    if program != "gristmill":
        python = pythons["frameworks" if program in FRAMEWORKS else "peers"]
        return [python, HERE / "peers.py", program, source, output, cell.memory]
    memory = ["--memory", str(cell.memory)]
    if cell.lines:
        return [GRISTMILL, "sort", source, "-o", output, *memory]
    return [GRISTMILL, "terasort", source, output, *memory]


def one_run(cell: Cell, program: str, data: Data, folder: Path, pythons: dict[str, Path]) -> Row:
    """One run of one program, from a cold or a warm input; its output is removed."""
    if program == "floor":
        drop_caches() if cell.cold else warm(data.raw)
        return floor(cell, data, folder)
    source, output = data.of(cell, program), folder / "output"
    if cell.cold:
        drop_caches()
        subprocess.run([GRISTMILL, "--version"], stdout=subprocess.DEVNULL, check=True)
    else:
        warm(source)
    found = timed(command_of(cell, program, source, output, pythons))
    for left in [output, folder / "duckdb"]:
        if left.is_dir():
            shutil.rmtree(left)
        else:
            left.unlink(missing_ok=True)
    return found


def runs_of(rounds: int, cells: list[str]) -> list[tuple[int, str, str]]:
    """All runs, round by round; every other round in the other order."""
    names = [(cell, program) for cell in cells for program in CELLS[cell].programs]
    return [
        (number, cell, program)
        for number in range(rounds)
        for cell, program in (names if number % 2 == 0 else names[::-1])
    ]


def bench(given: argparse.Namespace, rows: list[Row], save: Callable[[], None]) -> bool:
    """Make the runs that are not there yet, until they all are or time is up."""
    began = time.monotonic()
    pythons = {"peers": given.peers.absolute(), "frameworks": given.frameworks.absolute()}
    folder = given.dir / "gristmill-bench-data"
    folder.mkdir(exist_ok=True)
    data = Data.make(folder, given.rows, given.text * 1_000_000, pythons["peers"], given.cells)
    runs = [
        (number, cell, program)
        for number, cell, program in runs_of(given.rounds, given.cells)
        if not those(rows, round=number, what=cell, program=program)
    ]
    for done, (number, cell, program) in enumerate(runs):
        if (time.monotonic() - began) / 60 > given.minutes:
            print(f"{len(runs) - done} runs are left: call it again to go on")
            return False
        size = data.lines.stat().st_size if CELLS[cell].lines else data.bytes
        with tempfile.TemporaryDirectory(prefix="run-", dir=folder) as scratch:
            run = one_run(CELLS[cell], program, data, Path(scratch), pythons)
        rows.append({"what": cell, "program": program, "round": number, **run, "bytes": size})
        save()
        print(f"{number}/{cell}/{program}: {run['wall_s']:.2f} s", flush=True)
    shutil.rmtree(folder)
    return True


# --- what came out ---


def medians(rows: list[Row]) -> dict[str, dict[str, Row]]:
    """For each cell and program the medians of its runs, with the range of the time."""
    found: dict[str, dict[str, Row]] = {}
    for cell, of_cell in CELLS.items():
        for program in of_cell.programs:
            of_both = those(rows, what=cell, program=program)
            runs = [run for run in of_both if run.get("failed") is None]
            if not runs:
                continue
            walls = [run["wall_s"] for run in runs]
            found.setdefault(cell, {})[program] = {
                "wall_s": median(walls),
                "low_s": min(walls),
                "high_s": max(walls),
                "cpu_s": median(run["cpu_s"] for run in runs) if "cpu_s" in runs[0] else None,
                "bytes": runs[0]["bytes"],
            }
    return found


def table_of(cell: str, programs: dict[str, Row]) -> str:
    """The programs of a cell in Markdown, the fastest first."""
    ours = programs["gristmill"]
    size, head = ours["bytes"], "time | range | time / Gristmill's time | CPU per GB"
    rows = [f"| {CELLS[cell].title}, {size / 1e9:.3g} GB | {head} |", "|---|---|---|---|---|"]
    for program, found in sorted(programs.items(), key=lambda item: item[1]["wall_s"]):
        cpu = "" if found["cpu_s"] is None else f"{found['cpu_s'] / size * 1e9:.1f} s"
        spread = f"{found['low_s']:.1f} to {found['high_s']:.1f}"
        times = f"{found['wall_s']:.1f} s | {spread} | {found['wall_s'] / ours['wall_s']:.1f} x"
        rows.append(f"| {NAMES[program]} | {times} | {cpu} |")
    return "\n".join(rows)


def plot(rows: list[Row], path: Path) -> None:
    """Bars of the medians, a panel for each cell."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "gristmill"  # the same file from the same figures
    from matplotlib import pyplot as plt

    found = medians(rows)
    heights = [len(programs) for programs in found.values()]
    figure, panels = plt.subplots(
        len(found), 1, figsize=(8, 0.42 * sum(heights) + 0.9 * len(found)), height_ratios=heights
    )
    for panel, (cell, programs) in zip(panels, found.items(), strict=True):
        order = sorted(programs, key=lambda program: -programs[program]["wall_s"])
        walls = [programs[program]["wall_s"] for program in order]
        colours = ["#d17a22" if p == "gristmill" else "#b9b9b1" for p in order]
        bars = panel.barh([NAMES[program] for program in order], walls, color=colours)
        panel.bar_label(bars, [f"{wall:.1f} s" for wall in walls], padding=4)
        panel.set_title(CELLS[cell].title, loc="left", fontsize=11)
        panel.set_xlim(0, max(walls) * 1.15)
        panel.spines[["top", "right", "bottom"]].set_visible(False)
        panel.set_xticks([])
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", default="50m", help="records, with TeraGen's suffixes (50m)")
    parser.add_argument("--text", type=int, default=2000, help="MB of lines (2000)")
    parser.add_argument(
        "--cells", nargs="+", choices=CELLS, default=["warm", "cold", "little", "lines"]
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds (3)")
    parser.add_argument("--minutes", type=float, default=25, help="begin no run after this (25)")
    parser.add_argument("--dir", type=Path, default=Path(), help="where the data go (.)")
    parser.add_argument("--name", default="compare", help="what the results are called")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the table goes")
    parser.add_argument("--peers", type=Path, default=Path(sys.executable), help="their Python")
    parser.add_argument(
        "--frameworks", type=Path, default=Path(sys.executable), help="that of Spark, Ray and Daft"
    )
    parser.add_argument("--show", type=Path, metavar="FILE", help="a result's table and plot")
    parser.add_argument("--plot", type=Path, metavar="SVG", help="where the plot goes")
    given = parser.parse_args()
    if given.show is not None:
        rows = read(given.show)
        show(rows)
        if given.plot is not None:
            plot(rows, given.plot)
        return
    partial = given.results / f"{given.name}-{given.rows}.partial.csv"
    rows = read(partial) if partial.exists() else []
    over = bench(given, rows, lambda: write(partial, rows))
    show(rows)
    if over:
        keep(f"{given.name}-{given.rows}", rows, given.results)
        partial.unlink()


def show(rows: list[Row]) -> None:
    """Print the medians, a table for each cell."""
    for cell, found in medians(rows).items():
        print(table_of(cell, found), end="\n\n")


if __name__ == "__main__":
    main()
