"""`make bench`: TeraSort against the floor of its device, paired in one run.

Every round measures, one right after the other, the floor (reading the input from the page cache
plus writing as many bytes past it, made durable) and a whole `gristmill terasort` process, so that
a machine whose speed drifts drifts for both. Medians are quoted; every single figure is kept under
benchmarks/results, with the machine.

    python benchmarks/run.py                        5 GB, five rounds: what the README quotes
    python benchmarks/run.py --rows 1m --rounds 1   a try of the script itself
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gristmill._core import device_floor

HERE = Path(__file__).parent
GRISTMILL = Path(sys.executable).with_name("gristmill")
RECORD_BYTES = 100
#: Streams of the floor's writer: as many as gristmill has workers here.
STREAMS = os.cpu_count() or 1

Figures = dict[str, Any]


def gristmill(*arguments: str) -> Figures:
    """Run a command as a whole process; its report, with the seconds seen from outside.

    Without the place of its history: results name no paths of the machine.
    """
    began = time.perf_counter()
    done = subprocess.run(
        [GRISTMILL, *arguments, "--json"], stdout=subprocess.PIPE, text=True, check=True
    )
    process_s = time.perf_counter() - began
    report = json.loads(done.stdout)
    report.pop("history", None)
    return {**report, "process_s": process_s}


def read_cached(folder: Path) -> float:
    """Seconds to read the files of a folder through the page cache into one reused buffer."""
    buffer = bytearray(4 << 20)
    began = time.perf_counter()
    for path in sorted(folder.glob("part-*")):
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
    return time.perf_counter() - began


def one_round(data: Path, output: Path, number: int) -> Figures:
    """The floor and a sort, back to back; every other round in the other order."""
    size = sum(path.stat().st_size for path in data.glob("part-*"))

    def floor() -> Figures:
        read_s = read_cached(data)
        write_s, _ = device_floor(output.parent, size, STREAMS)
        return {"read_s": read_s, "write_s": write_s, "floor_s": read_s + write_s}

    def sort() -> Figures:
        report = gristmill("terasort", str(data), str(output))
        check = gristmill("teravalidate", str(output)) if number == 0 else report
        if check["checksum"] != report["checksum"]:
            sys.exit(f"{output}: the validator finds another checksum")
        subprocess.run(["rm", "-rf", output], check=True)
        return report

    read_cached(data)
    steps = [floor, sort] if number % 2 == 0 else [sort, floor]
    results = {step.__name__: step() for step in steps}
    ratio = results["sort"]["process_s"] / results["floor"]["floor_s"]
    return {**results, "ratio": ratio, "user_s_per_gb": results["sort"]["user_s"] / size * 1e9}


def start_up(folder: Path, rounds: int) -> Figures:
    """Seconds of whole processes that do next to nothing: `--version`, and a sort of 1 MB."""
    data, output = folder / "small", folder / "small-sorted"
    gristmill("teragen", "10k", str(data))

    def seconds(*arguments: str) -> float:
        began = time.perf_counter()
        subprocess.run([GRISTMILL, *arguments], stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - began

    sort = ("terasort", str(data), str(output), "--overwrite")
    return {
        "version_s": [seconds("--version") for _ in range(rounds)],
        "sort_1mb_s": [seconds(*sort) for _ in range(rounds)],
    }


def machine() -> Figures:
    """What the figures were measured on, without names of hosts or paths."""
    cpu = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": cpu[0] if cpu else platform.machine(),
        "cores": os.cpu_count(),
        "memory_bytes": memory,
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def show(results: Figures) -> None:
    """Print the medians, each with its range."""

    def line(name: str, values: list[float], unit: str) -> None:
        low, high = min(values), max(values)
        median = statistics.median(values)
        print(f"  {name:<38} {median:8.3f} {unit:<6} ({low:.3f} to {high:.3f})")

    rounds = results["rounds"]
    gigabytes = rounds[0]["sort"]["input_bytes"] / 1e9
    print(f"TeraSort of {gigabytes:g} GB, input in the page cache, {len(rounds)} rounds, medians:")
    line("floor: cached read + direct write", [r["floor"]["floor_s"] for r in rounds], "s")
    line("gristmill terasort, whole process", [r["sort"]["process_s"] for r in rounds], "s")
    line("ratio, round by round", [r["ratio"] for r in rounds], "x")
    line("user CPU, proof included", [r["user_s_per_gb"] for r in rounds], "s/GB")
    sys_s = [r["sort"]["sys_s"] / gigabytes for r in rounds]
    line("kernel CPU", sys_s, "s/GB")
    line("peak anonymous memory", [r["sort"]["peak_anon_bytes"] / 1e9 for r in rounds], "GB")
    line("gristmill --version", results["start_up"]["version_s"], "s")
    line("terasort of 1 MB, whole process", results["start_up"]["sort_1mb_s"], "s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", default="50m", help="records, with TeraGen's suffixes (50m)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (5)")
    parser.add_argument("--dir", type=Path, default=Path(), help="where the data go (.)")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="raw results")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gristmill-bench-", dir=given.dir) as name:
        folder = Path(name)
        gristmill("teragen", given.rows, str(folder / "data"))
        output = folder / "sorted"
        rounds = [one_round(folder / "data", output, number) for number in range(given.rounds)]
        results = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "rounds": rounds,
            "start_up": start_up(folder, max(given.rounds, 5)),
        }
    given.results.mkdir(parents=True, exist_ok=True)
    path = given.results / f"terasort-{given.rows}-{results['at'].replace(':', '')[:17]}.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    show(results)
    print(f"raw results: {path}")


if __name__ == "__main__":
    main()
