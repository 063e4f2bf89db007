"""Commands that are measured: Gristmill's with its report, and any with its time."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from tables import Row

from gristmill.analysis.bench.launching import launch

GRISTMILL = Path(sys.executable).with_name("gristmill")
#: Streams of the floor's reader and writer: as many as gristmill has workers here.
STREAMS = os.cpu_count() or 1


def gristmill(*arguments: str) -> Row:
    """Run a command as a whole process; its report, with the seconds seen from outside."""
    began = time.perf_counter()
    done = subprocess.run(
        [GRISTMILL, *arguments, "--json"], stdout=subprocess.PIPE, text=True, check=True
    )
    process_s = time.perf_counter() - began
    return {**json.loads(done.stdout), "process_s": process_s}


def figures_of(report: Row) -> Row:
    """What a table keeps of a report."""
    counters = report["counters"]
    return {
        "wall_s": report["process_s"],
        "user_s": report["user_s"],
        "sys_s": report["sys_s"],
        "peak_bytes": report["peak_anon_bytes"],
        "bytes": report["input_bytes"],
        "runs": counters.get("SPILLED_RUNS", 0),
        "passes": counters.get("MERGE_PASSES", 0),
    }


def read_cached(folder: Path) -> float:
    """Seconds to read the files of a folder through the page cache into one reused buffer."""
    buffer = bytearray(4 << 20)
    began = time.perf_counter()
    for path in sorted(folder.glob("part-*")):
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
    return time.perf_counter() - began


def measured(command: list[str | Path]) -> Row:
    """A whole process, its output thrown away: seconds, CPU seconds and peak memory."""
    found = launch([str(word) for word in command])
    if found.status:
        raise SystemExit(f"{command[0]} exited with {found.status}:\n{found.stderr[-2000:]}")
    return {
        "wall_s": found.wall_s,
        "user_s": found.user_s,
        "sys_s": found.sys_s,
        "peak_bytes": found.peak_bytes,
    }


def seconds_of(*command: str | Path, **environment: str) -> float:
    """Run a command; how many seconds it took."""
    own = {name: value for name, value in os.environ.items() if name != "AWS_CA_BUNDLE"}
    began = time.monotonic()
    subprocess.run(
        [str(word) for word in command],
        env={**own, **environment},  # rclone ends where there is a bundle of certificates
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.monotonic() - began
