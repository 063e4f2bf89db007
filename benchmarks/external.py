"""`make bench-external`: beyond memory, cold, lines, skew; each against its floor or GNU sort.

Every round measures what is compared back to back, every other round in the other order; medians
are quoted, every figure is kept under benchmarks/results.

    python benchmarks/external.py                          all of it, as the README quotes it
    python benchmarks/external.py spill --rows 20m         one of spill, cold, lines, skew, flat
"""

import argparse
import json
import mmap
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from run import HERE, STREAMS, Figures, gristmill, machine, read_cached

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


def rounds_of(count: int, steps: list[Callable[[], Figures]]) -> list[Figures]:
    """Run the steps in each round, every other round in the other order."""
    results = []
    for number in range(count):
        order = steps if number % 2 == 0 else steps[::-1]
        results.append({step.__name__: step() for step in order})
    return results


def terasort(
    folder: Path, rows: str, rounds: int, options: list[str], *, passes: int, warm: bool = False
) -> Figures:
    """Sorts of one input with these options, each beside the floor of `passes` reads and writes.

    The input is read from the device, or with `warm` from the page cache: sorts, not floors.
    """
    data, output = folder / "data", folder / "sorted"
    size = gristmill("teragen", rows, str(data))["output_bytes"]

    def floor() -> Figures:
        read_s, write_s = device(data, size)
        return {"read_s": read_s, "write_s": write_s, "floor_s": passes * (read_s + write_s)}

    def sort() -> Figures:
        drop_caches()
        if warm:
            read_cached(data)
        report = gristmill("terasort", str(data), str(output), *options)
        subprocess.run(["rm", "-rf", output], check=True)
        return report

    results = rounds_of(rounds, [floor, sort])
    subprocess.run(["rm", "-rf", data], check=True)
    return {"size": size, "rounds": results}


def show_terasort(title: str, found: Figures) -> None:
    """Print the medians."""
    rounds, gigabytes = found["rounds"], found["size"] / 1e9
    ratios = [r["sort"]["process_s"] / r["floor"]["floor_s"] for r in rounds]
    walls = [r["sort"]["process_s"] for r in rounds]
    cpu = [r["sort"]["user_s"] / gigabytes for r in rounds]
    peak = max(r["sort"]["peak_anon_bytes"] for r in rounds)
    counters = rounds[0]["sort"]["counters"]
    print(
        f"{title}: {median(walls):.2f} s, {median(ratios):.2f} x the floor"
        f" ({min(ratios):.2f} to {max(ratios):.2f}), user CPU {median(cpu):.2f} s/GB,"
        f" peak {peak / 1e6:.0f} MB, {counters.get('SPILLED_RUNS', 0)} runs,"
        f" {counters.get('MERGE_PASSES', 0)} passes"
    )


def spill(folder: Path, rows: str | None, rounds: int) -> Figures:
    """10 GB under 2 GB of memory, against two reads and two writes."""
    found = terasort(folder, rows or "100m", rounds, ["--memory", "2G"], passes=2)
    show_terasort("terasort beyond memory (--memory 2G)", found)
    return found


def cold(folder: Path, rows: str | None, rounds: int) -> Figures:
    """5 GB in memory, nothing of it in the page cache."""
    found = terasort(folder, rows or "50m", rounds, [], passes=1)
    show_terasort("terasort in memory, cold", found)
    return found


def flat(folder: Path, rows: str | None, rounds: int) -> Figures:
    """User CPU per GB over sizes in memory, and over numbers of runs."""
    found = {}
    for size in [rows] if rows else ["10m", "50m", "100m"]:
        found[f"memory-{size}"] = terasort(
            folder, size, rounds, ["--memory", "13G"], passes=1, warm=True
        )
        show_terasort(f"terasort of {size} rows in memory", found[f"memory-{size}"])
    for memory in ["2400M", "1200M", "620M"]:
        made = terasort(folder, rows or "50m", rounds, ["--memory", memory], passes=2)
        found[f"spill-{memory}"] = made
        show_terasort(f"terasort with --memory {memory}", made)
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


def skew(folder: Path, rows: str | None, rounds: int) -> Figures:
    """Hard distributions of keys against random ones, in memory and spilled."""
    inputs, output = distributions(folder, rows or "10m"), folder / "output"
    found = {}
    for memory, options in {"memory": [], "spill": ["--memory", "250M"]}.items():

        def step(name: str, options: list[str] = options) -> Callable[[], Figures]:
            def sort() -> Figures:
                report = gristmill("terasort", str(inputs[name]), str(output), *options)
                subprocess.run(["rm", "-rf", output], check=True)
                return report

            sort.__name__ = name
            return sort

        found[memory] = rounds_of(rounds, [step(name) for name in inputs])
        for name in list(inputs)[1:]:
            rs = found[memory]
            ratios = [r[name]["process_s"] / r["random"]["process_s"] for r in rs]
            peaks = [max(r[kind]["peak_anon_bytes"] for r in rs) for kind in ("random", name)]
            print(
                f"terasort of {name} keys, {memory}: {median(ratios):.2f} x the time of random ones"
                f" ({min(ratios):.2f} to {max(ratios):.2f}), peak {peaks[1] / 1e6:.0f} MB"
                f" (random: {peaks[0] / 1e6:.0f})"
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


def lines(folder: Path, rows: str | None, rounds: int) -> Figures:
    """2 GB of lines against GNU sort with the same memory, in memory and with spills."""
    size = int(rows or 2_000_000_000)
    text, ours, theirs = folder / "text", folder / "ours", folder / "theirs"
    found: Figures = {}
    for kind, make in {"natural": natural_text, "random": random_lines}.items():
        make(text, size)
        for memory in ["8G", "512M"]:

            def sort(memory: str = memory) -> Figures:
                return gristmill("sort", str(text), "-o", str(ours), "--memory", memory)

            def gnu(memory: str = memory) -> Figures:
                began = time.perf_counter()
                buffer = ["-S", memory, f"--parallel={STREAMS}", "-T", str(folder)]
                subprocess.run(["sort", *buffer, text, "-o", theirs], env=GNU, check=True)
                with theirs.open("rb") as file:
                    os.fsync(file.fileno())
                return {"process_s": time.perf_counter() - began}

            results = rounds_of(rounds, [sort, gnu])
            subprocess.run(["cmp", ours, theirs], check=True)
            found[f"{kind}-{memory}"] = results
            ratios = [r["gnu"]["process_s"] / r["sort"]["process_s"] for r in results]
            walls = [r["sort"]["process_s"] for r in results]
            print(
                f"sort of {kind} lines, {memory}: {median(walls):.2f} s,"
                f" {median(ratios):.2f} x as fast as GNU sort"
                f" ({min(ratios):.2f} to {max(ratios):.2f})"
            )
    for path in [text, ours, theirs]:
        path.unlink()
    return found


WORKLOADS = {"spill": spill, "cold": cold, "lines": lines, "skew": skew, "flat": flat}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("workloads", nargs="*", default=list(WORKLOADS), help=", ".join(WORKLOADS))
    parser.add_argument("--rows", help="records (bytes, for lines) instead of each one's own")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (5)")
    parser.add_argument("--dir", type=Path, default=Path(), help="where the data go (.)")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="raw results")
    given = parser.parse_args()
    unknown = set(given.workloads) - WORKLOADS.keys()
    if unknown:
        sys.exit(f"no such workload: {', '.join(sorted(unknown))}")
    for name in given.workloads:
        with tempfile.TemporaryDirectory(prefix="gristmill-bench-", dir=given.dir) as folder:
            found = WORKLOADS[name](Path(folder), given.rows, given.rounds)
        at = datetime.now(UTC)
        results = {"at": at.isoformat(timespec="seconds"), "machine": machine(), name: found}
        given.results.mkdir(parents=True, exist_ok=True)
        stamp = at.strftime("%Y-%m-%dT%H%M%S")
        (given.results / f"{name}-{stamp}.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
