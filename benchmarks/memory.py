"""Jobs drawn by chance, with and without a terminal: does the process stay within `--memory`?

    draw: sort, sort of a pipe, terasort, wordcount, a word count of Python functions; budget 15M
          to 1G; input of a third to ten times that; with a terminal, or without
    kill: with --resumed each job but those of pipes is killed after a while, and resumed
    watch: RssAnon + RssShmem of the process and of what it began, about a thousand times a second;
          workers with user code have their own memory and do not count

    python benchmarks/memory.py                  100 jobs, inputs of up to 300 MB
    python benchmarks/memory.py --jobs 8 --most 40
    python benchmarks/memory.py --resumed        the same, killed and resumed

A budget that is too small for two workers is refused. Exit code 1 if a job used more than its
budget, or failed otherwise. The table goes to benchmarks/results.
"""

import argparse
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from external import natural_text
from running import GRISTMILL
from tables import RESULTS, Row, keep

KINDS = ("sort", "sort", "pipe", "terasort", "terasort", "words", "wordcount")
BUDGETS = (15_000_000, 1_000_000_000)
SHARES = (0.3, 10.0)
"""The input as a multiple of the budget."""
WORDCOUNT_BUDGET_MIN = 24_000_000
"""Two workers that count words need 21 MB."""
CODECS = ("none", "none", "lz4", "zstd")
COMPRESSED_BYTES = 5_000_000
"""Two workers that compress runs need so much more."""
LOOK_EVERY_S = 0.001

WORDS = """
import sys
import gristmill as gm

def words(line):
    for word in line.split():
        yield word, 1

job = gm.Job(gm.text(sys.argv[1]), map=words, reduce=gm.sum(), output=gm.tsv(sys.argv[2]))
if __name__ == "__main__":
    shown = True if sys.stderr.isatty() else None
    options = {"memory": sys.argv[3], "compress_runs": sys.argv[4]}
    job.run(**options, progress=shown, history="--history" in sys.argv)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A job to run."""

    kind: str
    budget: int
    input_bytes: int
    terminal: bool
    codec: str = "none"
    """What compresses its runs."""
    killed_after_s: float = 0
    """When it is killed, to be resumed; 0: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What became of it."""

    drawn: Drawn
    peak_bytes: int
    wall_s: float
    status: int
    said: str

    @property
    def kept(self) -> bool:
        """Whether the job did its work within its budget."""
        return self.status == 0 and self.peak_bytes <= self.drawn.budget

    @property
    def refused(self) -> bool:
        """Whether the job was refused, within its budget, since that was too small."""
        return "is too small for" in self.said and self.peak_bytes <= self.drawn.budget


def draw(chance: random.Random, most_bytes: int, *, resumed: bool = False) -> Drawn:
    """Draw a job: budget and size by their logarithms, so that small are as likely as large."""

    def between(least: float, most: float) -> float:
        return math.exp(chance.uniform(math.log(least), math.log(most)))

    budget = round(between(*BUDGETS))
    wanted = min(most_bytes, round(budget * between(*SHARES)))

    kind = chance.choice(KINDS)
    if kind == "wordcount":
        budget = max(budget, WORDCOUNT_BUDGET_MIN)
    codec = chance.choice(CODECS)
    if codec != "none":
        budget += COMPRESSED_BYTES
    return Drawn(
        kind=kind,
        budget=budget,
        input_bytes=wanted // 100 * 100,
        terminal=chance.random() < 0.5,
        codec=codec,
        killed_after_s=chance.uniform(0.3, 1.5) if resumed and kind != "pipe" else 0,
    )


def held_bytes(root: int) -> int:
    """Anonymous and shared memory of a process and what it began, without workers."""
    total, left = 0, [root]
    while left:
        process = left.pop()
        try:
            status = Path(f"/proc/{process}/status").read_text()
            children = Path(f"/proc/{process}/task").glob("*/children")
            below = " ".join(thread.read_text() for thread in children).split()
            left += [int(child) for child in below if not is_worker(child, process)]
        except OSError:
            continue
        for line in status.splitlines():
            if line.startswith(("RssAnon:", "RssShmem:")):
                total += int(line.split()[1]) * 1024
    return total


def is_worker(process: str, parent: int) -> bool:
    """Whether a process runs user code, or was forked this moment to become one."""
    command = Path(f"/proc/{process}/cmdline").read_bytes()
    return b"/worker.py" in command or command == Path(f"/proc/{parent}/cmdline").read_bytes()


def command_of(drawn: Drawn, folder: Path) -> list[str]:
    """The command line of a job; its input is made to size."""
    out, memory = str(folder / "out"), [str(drawn.budget)]
    if drawn.kind == "words":
        memory.append(drawn.codec)
    else:
        memory += ["--compress-runs", drawn.codec]
    if drawn.killed_after_s:
        memory.append("--history")
    if drawn.kind == "terasort":
        data = folder / "records"
        cut(folder.parent / "records", data, drawn.input_bytes)
        return [str(GRISTMILL), "terasort", str(data), out, "--memory", *memory]
    text = folder / "text"
    cut(folder.parent / "text", text, drawn.input_bytes)
    if drawn.kind == "words":
        program = folder / "words.py"
        program.write_text(WORDS)
        return [sys.executable, str(program), str(text), out, *memory]
    if drawn.kind == "wordcount":
        return [str(GRISTMILL), "wordcount", str(text), out, "--memory", *memory]
    source = "-" if drawn.kind == "pipe" else str(text)
    return [str(GRISTMILL), "sort", source, "-o", out, "--memory", *memory]


def cut(source: Path, target: Path, size: int) -> None:
    """Copy the beginning of a file."""
    with source.open("rb") as read, target.open("wb") as write:
        while size > 0 and (block := read.read(min(size, 1 << 20))):
            write.write(block)
            size -= len(block)


def run(drawn: Drawn, folder: Path) -> Seen:
    """Run a job, and what resumes it if it is killed; look at the memory all the while."""
    command = command_of(drawn, folder)
    began_s = time.perf_counter()
    peak, status, said = watched(command, drawn, folder)
    if status == -signal.SIGKILL:
        resume = [str(GRISTMILL), "resume", "last"]
        resumed = replace(drawn, killed_after_s=0, kind="resume")
        peak_then, status, said = watched(resume, resumed, folder)
        peak = max(peak, peak_then)
    return Seen(
        drawn=drawn,
        peak_bytes=peak,
        wall_s=round(time.perf_counter() - began_s, 2),
        status=status,
        said=sentence(said, folder) if status else "",
    )


def sentence(said: str, folder: Path) -> str:
    """The last line of what a process said, without paths of the machine."""
    last = said.rstrip().rpartition("\n")[2]
    return last.strip().replace(str(folder), "...")


def watched(command: list[str], drawn: Drawn, folder: Path) -> tuple[int, int, str]:
    """Run a process; return its peak of memory, its exit code, and the end of what it said."""
    feeder = None
    if drawn.kind == "pipe":
        feeder = subprocess.Popen(["cat", folder / "text"], stdout=subprocess.PIPE)
    stdin = feeder.stdout if feeder else subprocess.DEVNULL
    ours, theirs = os.openpty() if drawn.terminal else os.pipe()
    environment = {**os.environ, "GRISTMILL_HOME": str(folder / "home"), "TERM": "xterm"}
    process = subprocess.Popen(command, stdin=stdin, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    if feeder and feeder.stdout:
        feeder.stdout.close()
    shown = bytearray()
    reading = threading.Thread(target=read_all, args=(ours, shown))
    reading.start()
    began_s, peak = time.perf_counter(), 0
    while process.poll() is None:
        peak = max(peak, held_bytes(process.pid))
        took_s = time.perf_counter() - began_s
        if drawn.killed_after_s and took_s > drawn.killed_after_s and can_be_resumed(folder):
            process.kill()
            process.wait()
        time.sleep(LOOK_EVERY_S)
    reading.join()
    os.close(ours)
    if feeder:
        feeder.wait()
    return peak, process.returncode, shown.decode(errors="replace")[-400:]


def can_be_resumed(folder: Path) -> bool:
    """Whether a history says that tasks have begun, and not that the job is over."""
    histories = [path.read_bytes() for path in folder.glob("home/jobs/*/events.jsonl")]
    return any(b'"tasks_began"' in text and b'"job_finished"' not in text for text in histories)


def read_all(descriptor: int, into: bytearray) -> None:
    """Read until the other side is closed, for which a terminal has an error."""
    try:
        while block := os.read(descriptor, 1 << 16):
            into += block
    except OSError:
        pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the jobs, say what each used, and return the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--jobs", type=int, default=100, help="how many (100)")
    parser.add_argument("--most", type=int, default=300, help="MB of the largest input (300)")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (1)")
    parser.add_argument("--resumed", action="store_true", help="kill each job, and resume it")
    parser.add_argument("--dir", type=Path, default=Path(), help="where the data go (.)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the table goes")
    given = parser.parse_args(arguments)
    chance = random.Random(given.seed)
    most_bytes = given.most * 1_000_000
    jobs: list[Seen] = []
    with tempfile.TemporaryDirectory(prefix="gristmill-memory-", dir=given.dir.absolute()) as place:
        folder = Path(place)
        natural_text(folder / "text", most_bytes)
        made = folder / "made"
        subprocess.run(
            [GRISTMILL, "teragen", str(most_bytes // 100), made, "--no-sync"], check=True
        )
        (made / "part-m-00000").rename(folder / "records")
        for number in range(given.jobs):
            drawn = draw(chance, most_bytes, resumed=given.resumed)
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                seen = run(drawn, Path(scratch))
            jobs.append(seen)
            say(number, seen)
    keep("memory", map(row_of, jobs), given.results)
    kept = sum(seen.kept for seen in jobs)
    refused = sum(seen.refused for seen in jobs)
    beside = f", {refused} refused" if refused else ""
    print(f"{kept} of {given.jobs} jobs stayed within their budget{beside}")
    return 0 if kept + refused == given.jobs else 1


def row_of(seen: Seen) -> Row:
    """What the table says of a job."""
    row = asdict(seen)
    return {**row.pop("drawn"), **row, "kept": seen.kept}


def say(number: int, seen: Seen) -> None:
    """One line for a job."""
    drawn = seen.drawn
    share = seen.peak_bytes / drawn.budget
    broken = "  BROKEN" if seen.status == 0 else f"  FAILED: {seen.said}"
    verdict = "" if seen.kept else "  refused" if seen.refused else broken
    print(
        f"{number:3}  {drawn.kind:<8}  {drawn.input_bytes / 1e6:6.1f} MB  budget"
        f" {drawn.budget / 1e6:7.1f}  peak {seen.peak_bytes / 1e6:7.1f}  {share:4.0%}"
        f"  {'terminal' if drawn.terminal else '        '}  {drawn.codec:<4}"
        f"  {'resumed' if drawn.killed_after_s else '       '}  {seen.wall_s:5.1f} s{verdict}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
