"""A chain of three jobs, as tests of `gristmill resume` kill and resume it."""

import random
import time
from pathlib import Path

from .harness import end, run, start
from .own_code import HELPER

CHAIN = """
import dataclasses, os, time
import gristmill as gm
from helper import split

@dataclasses.dataclass(frozen=True, order=True)
class Seen:
    word: str
    count: int

def words(line, context):
    context.count("chain", "lines")
    for word in split(line):
        yield word, 1

def lengths(pair):
    wait(pair[0])
    yield pair[0][:3], Seen(pair[0], pair[1])

def most(start, found):
    yield start, max(found)

def shown(pair):
    wait(pair[0])
    seen = pair[1]
    yield f"{seen.word} {seen.count} {os.environ.get('OF_THE_FIRST')} {os.getcwd()}", 1

def wait(word):
    if "SLOW" in os.environ and hash(word) % 25 == 0:
        time.sleep(0.001)

def job(input="in.txt", output="out", between="none"):
    first = gm.Job(gm.text(input), map=words, reduce=gm.sum(), split_max="64k", parts=3)
    more = {} if between == "none" else {"output": gm.kv(between)}
    second = first.then(map=lengths, reduce=most, split_max="16k", parts=2, **more)
    return second.then(map=shown, reduce=gm.sum(), output=gm.tsv(output), parts=2)
"""


def make_chain(folder: Path, lines: int) -> None:
    """Write the chain, and its input."""
    draw = random.Random(5)
    text = [" ".join(f"{draw.getrandbits(14):x}" for _ in range(9)) for _ in range(lines)]
    (folder / "in.txt").write_text("\n".join(text) + "\n")
    (folder / "chain.py").write_text(CHAIN)
    (folder / "helper.py").write_text(HELPER)


def histories(home: Path) -> list[Path]:
    return sorted(home.glob("jobs/*/events.jsonl"), key=lambda path: path.stat().st_ctime)


def killed_in(home: Path, job: int, *options: str) -> None:
    """Run the chain, and kill it when a map of this job of it is over."""
    before = set(histories(home))
    process = start("run", "chain.py", "--history", "--workers", "2", *options)
    while process.poll() is None:
        begun = [path for path in histories(home) if path not in before]
        if len(begun) == job and b'"kept"' in begun[-1].read_bytes():
            process.kill()
        time.sleep(0.002)
    assert end(process).status == -9


def killed_while_it_goes_on(folder: Path, draw: random.Random, longest_s: float) -> int:
    """Resume the dead chain of a folder to its end; returns how many were killed on the way."""
    killed = 0
    for _ in range(6):
        process = start("resume", "last")
        time.sleep(draw.uniform(0.2, longest_s))
        process.kill()
        killed += end(process).status == -9
        if (folder / "out").exists():
            break
    if list(folder.glob(".out.job_*")):  # also where only that was left to remove
        run("resume", "last")
    return killed
