"""`make bench-floor`, `make bench-external`: sorts against the floor of the device, or GNU sort.

    warm     5 GB in the page cache     against a cached read and a direct write; start of processes
    cold     5 GB on the device         against a direct read and a direct write
    spill    10 GB with 2 GB of memory  against two reads and two writes
    flat     user CPU per GB over sizes in memory, and over numbers of runs
    lines    2 GB of lines              against GNU sort with the same memory
    own      2 GB of this machine's own sources and manuals, the same
    skew     hard keys                  against random ones

Every round measures what is compared back to back, every other round in the other order, so that a
machine whose speed drifts drifts for both. Medians are quoted; the tables go to benchmarks/results.

    python benchmarks/external.py                          all of it
    python benchmarks/external.py spill --rows 20m         one of them
    python benchmarks/external.py warm --rows 1m --rounds 1   a try of the script itself
"""

import argparse
import gzip
import mmap
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from running import GRISTMILL, STREAMS, figures_of, gristmill, read_cached
from tables import RESULTS, Row, keep, rows_of, span, those

from gristmill._core import device_floor

GNU = {**os.environ, "LC_ALL": "C"}


def read_directly(paths: list[Path]) -> None:
    """Read files past the page cache through one reused buffer."""
    buffer = mmap.mmap(-1, 4 << 20)
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
        try:
            at = 0
            while read := os.preadv(descriptor, [buffer], at):
                at += read
        finally:
            os.close(descriptor)


def device(data: Path, size: int) -> tuple[float, float]:
    """Seconds to read the input and to write as much past the cache, with concurrent streams.

    The very files of the input: a file that was written a moment ago can come from a host's cache.
    """
    paths = sorted(data.glob("part-*"))
    began = time.perf_counter()
    with ThreadPoolExecutor(STREAMS) as pool:
        list(pool.map(read_directly, [paths[first::STREAMS] for first in range(STREAMS)]))
    read_s = time.perf_counter() - began
    write_s, _ = device_floor(data.parent, size, STREAMS)
    return read_s, write_s


def drop_caches() -> None:
    """Empty the page cache (needs root)."""
    subprocess.run(["sync"], check=True)
    Path("/proc/sys/vm/drop_caches").write_text("3")


Step = Callable[[], Row]


def rounds_of(count: int, steps: dict[str, Step], what: str) -> list[Row]:
    """Run the steps in each round, every other round in the other order; a row for each."""
    rounds: list[dict[str, Row]] = []
    for number in range(count):
        order = list(steps) if number % 2 == 0 else list(steps)[::-1]
        rounds.append({name: steps[name]() for name in order})
    return rows_of(rounds, what=what)


def sort_of(data: Path, output: Path, *options: str) -> Row:
    """What a TeraSort takes; its output is removed."""
    report = gristmill("terasort", str(data), str(output), *options)
    subprocess.run(["rm", "-rf", output], check=True)
    return figures_of(report)


def terasort(
    folder: Path,
    rows: str,
    rounds: int,
    options: list[str],
    *,
    what: str,
    passes: int = 1,
    is_warm: bool = False,
) -> list[Row]:
    """Sorts of one input with these options, each beside the floor of `passes` reads and writes.

    The input is read from the device, or with `is_warm` from the page cache: sorts, not floors.
    """
    data, output = folder / "data", folder / "sorted"
    size = gristmill("teragen", rows, str(data))["output_bytes"]

    def floor() -> Row:
        read_s, write_s = device(data, size)
        return {"wall_s": passes * (read_s + write_s), "read_s": read_s, "write_s": write_s}

    def sort() -> Row:
        drop_caches()
        if is_warm:
            read_cached(data)
        return sort_of(data, output, *options)

    found = rounds_of(rounds, {"floor": floor, "sort": sort}, what)
    subprocess.run(["rm", "-rf", data], check=True)
    show_terasort(found)
    return found


def show_terasort(found: list[Row]) -> None:
    """Print the medians."""
    sorts, floors = those(found, program="sort"), span(found, program="floor")
    ratio, cpu = span(sorts) / floors, span(sorts, "user_s") / (sorts[0]["bytes"] / 1e9)
    print(
        f"terasort of {sorts[0]['bytes'] / 1e9:g} GB, {sorts[0]['what']}: {span(sorts):.2f} s,"
        f" {ratio.shown('.2f')} x the floor, user CPU {cpu:.2f} s/GB,"
        f" peak {span(sorts, 'peak_bytes').high / 1e6:.0f} MB,"
        f" {sorts[0]['runs']} runs, {sorts[0]['passes']} passes"
    )


def warm(folder: Path, rows: str | None, rounds: int) -> list[Row]:
    """5 GB in the page cache, against a read and a direct write; and the start of processes."""
    data, output = folder / "data", folder / "sorted"
    size = gristmill("teragen", rows or "50m", str(data))["output_bytes"]

    def floor() -> Row:
        read_s = read_cached(data)
        write_s, _ = device_floor(folder, size, STREAMS)
        return {"wall_s": read_s + write_s, "read_s": read_s, "write_s": write_s}

    made = gristmill("terasort", str(data), str(output))
    if gristmill("teravalidate", str(output))["checksum"] != made["checksum"]:
        sys.exit(f"{output}: the validator finds another checksum")
    subprocess.run(["rm", "-rf", output], check=True)
    read_cached(data)
    steps = {"floor": floor, "sort": lambda: sort_of(data, output)}
    found = rounds_of(rounds, steps, "warm")
    show_terasort(found)
    return found + start_up(folder, max(rounds, 5))


def start_up(folder: Path, rounds: int) -> list[Row]:
    """Whole processes that do next to nothing: `--version`, and a sort of 1 MB."""
    data, output = folder / "small", folder / "small-sorted"
    gristmill("teragen", "10k", str(data))

    def seconds(*arguments: str) -> Row:
        began = time.perf_counter()
        subprocess.run([GRISTMILL, *arguments], stdout=subprocess.DEVNULL, check=True)
        return {"wall_s": time.perf_counter() - began}

    sort = ("terasort", str(data), str(output), "--overwrite")
    steps = {"version": lambda: seconds("--version"), "sort of 1 MB": lambda: seconds(*sort)}
    found = rounds_of(rounds, steps, "start")
    for name in steps:
        print(f"{name}: {span(found, program=name).shown('.3f')} s")
    return found


def spill(folder: Path, rows: str | None, rounds: int) -> list[Row]:
    """10 GB under 2 GB of memory, against two reads and two writes."""
    return terasort(folder, rows or "100m", rounds, ["--memory", "2G"], what="spill", passes=2)


def cold(folder: Path, rows: str | None, rounds: int) -> list[Row]:
    """5 GB in memory, nothing of it in the page cache."""
    return terasort(folder, rows or "50m", rounds, [], what="cold")


def flat(folder: Path, rows: str | None, rounds: int) -> list[Row]:
    """User CPU per GB over sizes in memory, and over numbers of runs."""
    found: list[Row] = []
    for size in [rows] if rows else ["10m", "50m", "100m"]:
        memory = ["--memory", "13G"]
        found += terasort(folder, size, rounds, memory, what=f"memory-{size}", is_warm=True)
    for size in ["2400M", "1200M", "620M"]:
        memory = ["--memory", size]
        found += terasort(folder, rows or "50m", rounds, memory, what=f"spill-{size}", passes=2)
    return found


def with_keys(data: Path, output: Path, key: Callable[[int, bytes], bytes]) -> None:
    """The records of `data`, each place of their keys as `key` gives it from what was there."""
    output.mkdir()
    for path in sorted(data.glob("part-*")):
        records = bytearray(path.read_bytes())
        for place in range(10):
            records[place::100] = key(place, bytes(records[place::100]))
        (output / path.name).write_bytes(records)


def backwards(data: Path, output: Path) -> None:
    """The records of `data` from the last to the first."""
    output.mkdir()
    for number, path in enumerate(sorted(data.glob("part-*"), reverse=True)):
        records = path.read_bytes()
        turned = b"".join(records[at : at + 100] for at in range(len(records) - 100, -1, -100))
        (output / f"part-{number:05}").write_bytes(turned)


def distributions(folder: Path, rows: str) -> dict[str, Path]:
    """One input for each distribution of keys that a sort may find hard."""
    names = ["random", "skew", "equal", "distinct", "sorted", "reversed"]
    made = {name: folder / name for name in names}
    gristmill("teragen", rows, str(made["random"]))
    gristmill("teragen", rows, str(made["skew"]), "--skew")
    with_keys(made["random"], made["equal"], lambda _, old: b"k" * len(old))
    with_keys(made["random"], made["distinct"], lambda at, old: old if at < 2 else b"k" * len(old))
    gristmill("terasort", str(made["random"]), str(made["sorted"]))
    backwards(made["sorted"], made["reversed"])
    return made


def skew(folder: Path, rows: str | None, rounds: int) -> list[Row]:
    """Hard distributions of keys against random ones, in memory and spilled."""
    inputs, output = distributions(folder, rows or "10m"), folder / "output"
    found: list[Row] = []
    for memory, options in {"memory": [], "spill": ["--memory", "250M"]}.items():
        steps = {name: partial(sort_of, data, output, *options) for name, data in inputs.items()}
        of_memory = rounds_of(rounds, steps, memory)
        found += of_memory
        for name in list(inputs)[1:]:
            ratio = span(of_memory, program=name) / span(of_memory, program="random")
            peak = span(of_memory, "peak_bytes", program=name).high
            print(
                f"terasort of {name} keys, {memory}: {ratio.shown('.2f')} x the time of random"
                f" ones, peak {peak / 1e6:.0f} MB"
            )
    subprocess.run(["rm", "-rf", *inputs.values()], check=True)
    return found


def natural_text(path: Path, size: int) -> None:
    """Lines of words by Zipf's law: of 100 MB of them, halves put together in ever new pairs."""
    made = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(made.choices(letters, k=made.randint(1, 10))) for _ in range(50_000)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    base: list[tuple[str, str]] = []
    for _ in range(max(1, min(size, 100_000_000) // 3_000_000)):
        drawn = made.choices(words, weights, k=600_000)
        at = 0
        while at < len(drawn):
            words_of_line = drawn[at : at + made.randint(4, 20)]
            half = len(words_of_line) // 2
            base.append((" ".join(words_of_line[:half]), " ".join(words_of_line[half:])))
            at += len(words_of_line)
    written, turn = 0, 0
    with path.open("w") as file:
        while written < size:
            for i, (first, _) in enumerate(base):
                line = f"{first} {base[(i + 7919 * turn) % len(base)][1]}\n"
                file.write(line)
                written += len(line)
            turn += 1


def random_lines(path: Path, size: int) -> None:
    """Lines of random length and letters."""
    made = random.Random(2)
    letters = bytes(range(33, 127))
    table = bytes(letters[i % len(letters)] for i in range(256))
    with path.open("wb") as file:
        written = 0
        while written < size:
            block = bytearray(made.randbytes(1 << 20).translate(table))
            at = made.randint(1, 120)
            while at < len(block):
                block[at] = 10
                at += made.randint(1, 120)
            file.write(block)
            written += len(block)
        file.write(b"\n")


def own_text(path: Path, size: int) -> None:
    """This machine's own sources, manuals and pages, again and again: many lines are equal."""
    roots = [*map(Path, OWN), Path(os.__file__).parent]
    files = [file for root in roots for file in sorted(root.rglob("*")) if file.is_file()]
    written = 0
    with path.open("wb") as out:
        while written < size:
            before = written
            for file in files:
                data = file.read_bytes()
                data = gzip.decompress(data) if file.suffix == ".gz" else data
                if b"\0" not in data and written < size:
                    written += out.write(data.rstrip(b"\n") + b"\n")
            if written == before:
                sys.exit(f"no text in {', '.join(OWN)}")


OWN = ("/usr/include", "/usr/share/doc", "/usr/share/man")


def lines(folder: Path, rows: str | None, rounds: int) -> list[Row]:
    """2 GB of lines that are made."""
    return against_gnu({"natural": natural_text, "random": random_lines}, folder, rows, rounds)


def own(folder: Path, rows: str | None, rounds: int) -> list[Row]:
    """2 GB of this machine's own text."""
    return against_gnu({"own": own_text}, folder, rows, rounds)


def against_gnu(
    kinds: dict[str, Callable[[Path, int], None]], folder: Path, rows: str | None, rounds: int
) -> list[Row]:
    """Lines against GNU sort with the same memory, in memory and with spills."""
    size = int(rows or 2_000_000_000)
    text, ours, theirs = folder / "text", folder / "ours", folder / "theirs"
    found: list[Row] = []

    def sort(memory: str) -> Row:
        return figures_of(gristmill("sort", str(text), "-o", str(ours), "--memory", memory))

    def gnu(memory: str) -> Row:
        began = time.perf_counter()
        buffer = ["-S", memory, f"--parallel={STREAMS}", "-T", str(folder)]
        subprocess.run(["sort", *buffer, text, "-o", theirs], env=GNU, check=True)
        with theirs.open("rb") as file:
            os.fsync(file.fileno())
        return {"wall_s": time.perf_counter() - began}

    for kind, make in kinds.items():
        make(text, size)
        for memory in ["8G", "512M"]:
            steps = {"sort": partial(sort, memory), "gnu": partial(gnu, memory)}
            rows_found = rounds_of(rounds, steps, f"{kind}-{memory}")
            subprocess.run(["cmp", ours, theirs], check=True)
            found += rows_found
            wall = span(rows_found, program="sort")
            ratio = span(rows_found, program="gnu") / wall
            print(
                f"sort of {kind} lines, {memory}: {wall:.2f} s,"
                f" {ratio.shown('.2f')} x as fast as GNU sort"
            )
    for path in [text, ours, theirs]:
        path.unlink()
    return found


WORKLOADS = {
    "warm": warm,
    "spill": spill,
    "cold": cold,
    "lines": lines,
    "own": own,
    "skew": skew,
    "flat": flat,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("workloads", nargs="*", default=list(WORKLOADS), help=", ".join(WORKLOADS))
    parser.add_argument("--rows", help="records (bytes, for lines) instead of each one's own")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (5)")
    parser.add_argument("--dir", type=Path, default=Path(), help="where the data go (.)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the tables go")
    given = parser.parse_args()
    unknown = set(given.workloads) - WORKLOADS.keys()
    if unknown:
        sys.exit(f"no such workload: {', '.join(sorted(unknown))}")
    for name in given.workloads:
        with tempfile.TemporaryDirectory(prefix="gristmill-bench-", dir=given.dir) as folder:
            found = WORKLOADS[name](Path(folder), given.rows, given.rounds)
        keep(name, found, given.results)


if __name__ == "__main__":
    main()
