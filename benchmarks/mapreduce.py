"""MapReduce in Python against the same loops without it, paired: what the engine costs.

    words    the word count of the README   against the bare loop, on two processes over the halves
    batches  `map_batches` with pyarrow     against the same pyarrow calls on two processes
    start    how long until a job's first record, cold and warm; and what a task costs
    memory   one key with half of the data, in little memory: the peak of all processes together

    python benchmarks/mapreduce.py                    1 GB of text, three rounds
    python benchmarks/mapreduce.py --text 20 --rounds 1

Every program is a process of its own, timed from outside. The table goes to benchmarks/results.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from external import natural_text
from tables import RESULTS, Row, keep, rows_of, span, those

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


def timed(program: str, text: Path, folder: Path) -> Row:
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
    found = {"wall_s": wall_s, "user_s": user_s, "peak_bytes": peak}
    # `START` prints three figures.
    names = ("cold_s", "warm_s", "task_s")
    return found | dict(zip(names, map(float, printed.split()), strict=False))


def pair(ours: str, theirs: str, text: Path, folder: Path, *, turned: bool) -> dict[str, Row]:
    """Both programs one after the other, in one order or the other."""
    programs = {"ours": ours, "theirs": theirs}
    order = ("theirs", "ours") if turned else ("ours", "theirs")
    return {name: alone(programs[name], text, folder) for name in order}


def alone(program: str, text: Path, folder: Path) -> Row:
    """One program, in a folder of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        return timed(program, text, Path(scratch))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", type=int, default=1000, help="MB of text (1000)")
    parser.add_argument("--natural", action="store_true", help="words of Zipf's law, none rare")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (3)")
    parser.add_argument("--dir", type=Path, default=Path(), help="where the data go (.)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the table goes")
    given = parser.parse_args()
    rounds: dict[str, list[dict[str, Row]]] = {}
    with tempfile.TemporaryDirectory(prefix="gristmill-bench-", dir=given.dir.absolute()) as name:
        folder, text = Path(name), Path(name, "text")
        (natural_text if given.natural else rare_text)(text, given.text * 1_000_000)
        words, size = "natural" if given.natural else "with rare ones", text.stat().st_size
        for number in range(given.rounds):
            turned = bool(number % 2)
            found = {
                "words": pair(WORDS, BARE_WORDS, text, folder, turned=turned),
                "batches": pair(BATCHES, BARE_BATCHES, text, folder, turned=turned),
                "start": {"ours": alone(START, text, folder)},
                "memory": {"ours": alone(MEMORY, text, folder)},
            }
            for what, programs in found.items():
                rounds.setdefault(what, []).append(programs)
            print(f"round {number}: {found}", flush=True)
    rows = [
        row
        for what, found in rounds.items()
        for row in rows_of(found, what=what, text=words, bytes=size)
    ]
    show(rows)
    keep("mapreduce", rows, given.results)


def show(rows: list[Row]) -> None:
    """Print the medians."""
    for what in ("words", "batches"):
        ours, theirs = (span(rows, what=what, program=name) for name in ("ours", "theirs"))
        print(f"{what}: {ours:.2f} s, {(ours / theirs).shown('.2f')} x the bare loop")
    start = those(rows, what="start")
    for name in ("cold_s", "warm_s", "task_s"):
        print(f"{name}: {span(start, name):.4f}")
    print(f"memory: {span(rows, 'peak_bytes', what='memory').high / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
