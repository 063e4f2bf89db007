"""MapReduce in Python against the same loops without it, paired: what the engine costs.

    words    the word count of the README   against the bare loop, on two processes over the halves
    batches  `map_batches` with pyarrow     against the same pyarrow calls on two processes
    start    how long until a job's first record, cold and warm; and what a task costs
    memory   one key with half of the data, in little memory: the peak of all processes together

    python benchmarks/mapreduce.py                    1 GB of text, three rounds
    python benchmarks/mapreduce.py --text 20 --rounds 1

Every program is a process of its own, timed from outside. Raw results go to benchmarks/results.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from external import natural_text
from run import HERE, machine

Figures = dict[str, Any]

PROCESSES = 2

WORDS = """
import sys
import gristmill as gm

def words(line):
    for word in line.split():
        yield word, 1

job = gm.Job(gm.text(sys.argv[1]), map=words, reduce=gm.sum(), output=gm.tsv(sys.argv[2]))
job.run(workers=2, memory="4G")
"""

#: The loop as one would write it, on two processes, each over its half of the lines.
BARE_WORDS = """
import os, sys
from collections import defaultdict
from multiprocessing import Pool

def count(span):
    counts = defaultdict(int)
    with open(sys.argv[1], "rb") as raw:
        raw.seek(max(span[0] - 1, 0))
        if span[0]:
            raw.readline()
        at = raw.tell()
    with open(sys.argv[1], encoding="utf-8") as f:
        f.seek(at)
        size = 0
        for line in f:
            if at + size >= span[1]:
                break
            size += len(line)
            for w in line.split():
                counts[w] += 1
    return len(counts)

if __name__ == "__main__":
    size = os.path.getsize(sys.argv[1])
    with Pool(2) as pool:
        pool.map(count, [(0, size // 2), (size // 2, size)])
"""

#: What both do with a batch of lines.
BATCH = """
import pyarrow as pa
import pyarrow.compute as pc

def counted(lines):
    words = pc.list_flatten(pc.utf8_split_whitespace(lines))
    found = pc.value_counts(words)
    return found.field("values"), found.field("counts")
"""

BATCHES = (
    BATCH
    + """
import sys
import gristmill as gm

def words(batch):
    keys, counts = counted(batch.column("line"))
    return pa.RecordBatch.from_arrays([keys, counts], names=["key", "value"])

job = gm.Job(
    gm.text(sys.argv[1]), map_batches=words, reduce=gm.sum(), output=gm.tsv(sys.argv[2])
)
job.run(workers=2, memory="4G")
"""
)

BARE_BATCHES = (
    BATCH
    + """
import os, sys
from multiprocessing import Pool
import pyarrow.csv as csv

def count(span):
    found = []
    with open(sys.argv[1], "rb") as raw:
        raw.seek(max(span[0] - 1, 0))
        if span[0]:
            raw.readline()
        while raw.tell() < span[1]:
            block = raw.read(1 << 20) + raw.readline()
            lines = pa.array(block.decode().splitlines())
            found.append(pa.table(list(counted(lines)), names=["key", "value"]))
    table = pa.concat_tables(found)
    return table.group_by("key").aggregate([("value", "sum")]).num_rows

if __name__ == "__main__":
    size = os.path.getsize(sys.argv[1])
    with Pool(2) as pool:
        pool.map(count, [(0, size // 2), (size // 2, size)])
"""
)

#: Prints the seconds from `run` to the first record of a job, of the next one, and those of a task.
START = """
import sys, time
import gristmill as gm

def first(line):
    yield time.time(), 1

def begin():
    began = time.time()
    output = gm.tsv(out + str(began))
    job = gm.Job(gm.items(["a line"]), map=first, reduce=gm.count(), output=output)
    return min(float(key) for key, _ in job.run(workers=1).read()) - began

def nothing(item):
    return ()

out = sys.argv[2]
cold = begin()
warm = min(begin() for _ in range(5))
lines = out + "lines"
with open(lines, "w") as file:
    file.writelines(f"{number:09}\\n" for number in range(1000))
output = gm.tsv(out + "tasks")
job = gm.Job(gm.text(lines), split_max=10, map=nothing, reduce=gm.count(), output=output)
began = time.time()
job.run(workers=2)
print(cold, warm, (time.time() - began) / 1000)
"""

MEMORY = """
import sys
import gristmill as gm

def pairs(line):
    for word in line.split():
        yield ("one" if len(word) % 2 else word), word

def lengths(key, values):
    yield key, sum(map(len, values))

job = gm.Job(gm.text(sys.argv[1]), map=pairs, reduce=lengths, output=gm.tsv(sys.argv[2]))
job.run(workers=2, memory="100M")
"""


def rare_text(path: Path, size: int) -> None:
    """Natural text in which every fifth word or so is rare."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        plain = Path(folder, "plain")
        natural_text(plain, size * 4 // 5)
        number = 0
        with plain.open() as lines, path.open("w") as out:
            for line in lines:
                number += 1
                rare = f"r{number * 2_654_435_761 % 999_983} s{number * 40_503 % 499_979}"
                out.write(f"{line.rstrip()} {rare}\n")


def tree_bytes(root: int) -> int:
    """Anonymous and shared memory of a process and all below it."""
    total, left = 0, [root]
    while left:
        process = left.pop()
        try:
            status = Path(f"/proc/{process}/status").read_text()
            threads = Path(f"/proc/{process}/task").glob("*/children")
            children = " ".join(thread.read_text() for thread in threads)
        except OSError:
            continue
        for line in status.splitlines():
            if line.startswith(("RssAnon:", "RssShmem:")):
                total += int(line.split()[1]) * 1024
        left += map(int, children.split())
    return total


def timed(program: str, text: Path, folder: Path) -> Figures:
    """A program as a process of its own: seconds, CPU seconds with its children's, peak memory."""
    script = folder / "program.py"
    script.write_text(program)
    command = [sys.executable, script, text, folder / "out"]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak, over = 0, threading.Event()

    def look() -> None:
        nonlocal peak
        while not over.wait(0.05):
            peak = max(peak, tree_bytes(process.pid))

    looking = threading.Thread(target=look)
    looking.start()
    before = os.times()
    printed, _ = process.communicate()
    after, wall_s = os.times(), time.perf_counter() - began
    over.set()
    looking.join()
    if process.returncode:
        raise SystemExit(f"it exited with {process.returncode}:\n{program}")
    user_s = after.children_user - before.children_user
    return {"wall_s": wall_s, "user_s": user_s, "peak_bytes": peak, "printed": printed.split()}


def pair(ours: str, theirs: str, text: Path, folder: Path, *, turned: bool) -> Figures:
    """Both programs one after the other, in one order or the other."""
    found: Figures = {}
    for name in ("theirs", "ours") if turned else ("ours", "theirs"):
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            program = ours if name == "ours" else theirs
            found[name] = timed(program, text, Path(scratch))
    ratio = found["ours"]["wall_s"] / found["theirs"]["wall_s"]
    return {**found, "ratio": ratio}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", type=int, default=1000, help="MB of text (1000)")
    parser.add_argument("--natural", action="store_true", help="words of Zipf's law, none rare")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (3)")
    parser.add_argument("--dir", type=Path, default=Path(), help="where the data go (.)")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="raw results")
    given = parser.parse_args()
    at = datetime.now(UTC)
    results: Figures = {"machine": machine(), "at": at.isoformat(timespec="seconds"), "rounds": []}
    with tempfile.TemporaryDirectory(prefix="gristmill-bench-", dir=given.dir.absolute()) as folder:
        text = Path(folder, "text")
        (natural_text if given.natural else rare_text)(text, given.text * 1_000_000)
        results["words"] = "natural" if given.natural else "with rare ones"
        results["bytes"] = text.stat().st_size
        for number in range(given.rounds):
            turned = bool(number % 2)
            found = {
                "words": pair(WORDS, BARE_WORDS, text, Path(folder), turned=turned),
                "batches": pair(BATCHES, BARE_BATCHES, text, Path(folder), turned=turned),
                "start": timed(START, text, Path(tempfile.mkdtemp(dir=folder))),
                "memory": timed(MEMORY, text, Path(tempfile.mkdtemp(dir=folder))),
            }
            results["rounds"].append(found)
            print(json.dumps(summary(results["rounds"][-1:])), flush=True)
    print(json.dumps(summary(results["rounds"]), indent=1))
    given.results.mkdir(parents=True, exist_ok=True)
    path = given.results / f"mapreduce-{at:%Y-%m-%dT%H%M%S}.json"
    path.write_text(json.dumps(results, indent=1) + "\n")


def summary(rounds: list[Figures]) -> Figures:
    """Medians."""
    start = [[float(word) for word in found["start"]["printed"]] for found in rounds]
    return {
        "words_s": median(found["words"]["ours"]["wall_s"] for found in rounds),
        "words_ratio": median(found["words"]["ratio"] for found in rounds),
        "batches_s": median(found["batches"]["ours"]["wall_s"] for found in rounds),
        "batches_ratio": median(found["batches"]["ratio"] for found in rounds),
        "cold_s": median(found[0] for found in start),
        "warm_s": median(found[1] for found in start),
        "task_s": median(found[2] for found in start),
        "memory_peak_mb": max(found["memory"]["peak_bytes"] for found in rounds) / 1e6,
    }


if __name__ == "__main__":
    main()
