"""The plans of a shuffle side by side, for little memory and many parts.

    plasma    Plasma's experiment: lines of 100 bytes, keys of 16 bits, ten files, 80 parts
    records   1 GB of the sort benchmark's records, 16 and 5,000 parts, with four memories
    nodes     the same on two Ray nodes in network namespaces (root), with links of 1 and 0.2 Gbit/s

    python benchmarks/shuffle.py                                  all, three rounds
    python benchmarks/shuffle.py records --size 20 --rounds 1     a try: 20 MB

Seconds are those of the process; of two nodes those of the job, without Ray's start. Each plan is
a process of its own, in turn with the others. What `auto` takes is compared with the best of the
three. All plans make the same bytes, or it ends here. The table goes to benchmarks/results.
"""

import os
import random
import shutil
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from cells import chosen_of, command_line, keep_all
from running import figures_of, gristmill
from tables import Row

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.cli.network import network
from tests.cli.ray_cluster import in_network

PLANS = {
    "immediate": ("--shuffle", "immediate"),
    "two-level": ("--shuffle", "two-level"),
    "iterative": ("--shuffle", "iterative"),
    "auto": (),
}
MEMORIES = ("40M", "64M", "256M", "2G")
PARTS = (16, 5000)
OF_NODES = ("64M", "128M", "512M", "2G")
"""The memory of both nodes; two workers of one take 22 MB at least."""
GBITS = (1.0, 0.2)
FILES = 10
LINE_BYTES = 100

Cell = tuple[str, list[str]]


def plasma(folder: Path, size: int) -> Iterator[Cell]:
    """Keys of four hexadecimal digits, so that many lines have the same."""
    made, lines = random.Random(4), folder / "lines"
    lines.mkdir()
    filling = "x" * (LINE_BYTES - 6)
    for number in range(FILES):
        with (lines / str(number)).open("w") as file:
            for _ in range(size * 1_000_000 // FILES // LINE_BYTES):
                file.write(f"{made.getrandbits(16):04x} {filling}\n")
    files = [str(path) for path in sorted(lines.iterdir())]
    options = ["-k1,1", "-s", "--parts", "80", "--memory", "40M"]
    yield "plasma", ["sort", *files, *options, "-o"]


def records(folder: Path, size: int) -> Iterator[Cell]:
    """Random keys of ten bytes."""
    given = folder / "records"
    gristmill("teragen", str(size * 10_000), str(given))
    for parts in PARTS:
        for memory in MEMORIES:
            options = ["--partitions", str(parts), "--memory", memory, "--overwrite"]
            yield f"{parts} parts, {memory}", ["terasort", *options, str(given)]


def nodes(folder: Path, size: int) -> Iterator[Cell]:
    """The same on two nodes; runs of one are no files for the other."""
    given = folder / "records-of-nodes"
    gristmill("teragen", str(size * 10_000), str(given))
    for gbit in GBITS:
        with network(2, gbit) as machines, in_network(machines) as cluster:
            os.environ.update(cluster.environment)
            usual = ["--overwrite", "--on", "ray", "--spill-dir", str(cluster.of_head)]
            for parts in PARTS:
                for memory in OF_NODES:
                    options = ["--partitions", str(parts), "--memory", memory, *usual]
                    what = f"two nodes, {gbit:g} Gbit/s, {parts} parts, {memory}"
                    yield what, ["terasort", *options, str(given)]


CELLS = {"plasma": plasma, "records": records, "nodes": nodes}


def bytes_of(out: Path) -> int:
    """What a job made, as one number."""
    return sum(zlib.crc32(path.read_bytes(), number) for number, path in files_of(out))


def files_of(out: Path) -> list[tuple[int, Path]]:
    return list(enumerate(sorted(out.glob("part-*"))))


def measured(what: str, job: list[str], out: Path, rounds: int) -> list[Row]:
    """All plans of a cell, in turn."""
    rows: list[Row] = []
    made: set[int] = set()
    for number in range(rounds):
        for plan, options in PLANS.items():
            report = gristmill(*job, str(out), *options)
            made.add(bytes_of(out))
            counters = report["counters"]
            rows.append(
                {
                    "what": what,
                    "program": plan,
                    "round": number,
                    **figures_of(report),
                    "disk_bytes": counters["FILE_BYTES_WRITTEN"] + counters["FILE_BYTES_READ"],
                    "link_bytes": counters.get("SHUFFLE_BYTES_OTHER_NODES", 0),
                }
            )
            if "ray" in job:
                rows[-1]["wall_s"] = report["wall_s"]
            shutil.rmtree(out)
    if len(made) != 1:
        raise SystemExit(f"{what}: the plans made {len(made)} different outputs")
    return rows


def show(rows: list[Row]) -> None:
    """The medians of a cell: seconds, and bytes of disks, beside those of the best plan."""
    seconds = {
        plan: median(row["wall_s"] for row in rows if row["program"] == plan) for plan in PLANS
    }
    best = min(taken for plan, taken in seconds.items() if plan != "auto")
    figures = "  ".join(f"{plan} {taken:.2f} s" for plan, taken in seconds.items())
    print(f"{rows[0]['what']:<20} {figures}  auto by best {seconds['auto'] / best:.2f}", flush=True)


def main() -> None:
    words = command_line("The plans of a shuffle side by side", CELLS, ("MB of input", 1000), 3)
    given = chosen_of(words, CELLS)

    def rows_of(folder: Path) -> Iterator[list[Row]]:
        for chosen in given.cells:
            for what, job in CELLS[chosen](folder, given.size):
                found = measured(what, job, folder / "out", given.rounds)
                show(found)
                yield found

    keep_all("shuffle", given, rows_of)


if __name__ == "__main__":
    main()
