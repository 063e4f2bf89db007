"""Jobs over tables and lines, drawn at random: within their memory, and killed at any moment.

    seed, number ──▶ Job ──▶ with much memory: the bytes that are wanted
                         ├─▶ with its own: the same bytes; its peak is within --memory
                         └─▶ killed with -9 after a share of that time, and resumed: the same bytes

A job is a function of seed and number alone; the moment of the kill depends on how fast the machine
is. A job that is refused for its memory must say so, and be within it.
"""

import gzip
import json
import math
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.harness import GRISTMILL, clean_environment
from tests.cli.harness import end as ended
from tests.cli.resuming import Tree, is_over, tree

__all__ = ["campaign"]

MEMORY = (26_000_000, 400_000_000)
MUCH = ("--memory", "1G", "--workers", "1")
NEEDED_BYTES = 4_500_000
"""What each worker beyond the second one needs."""
LONGEST_S = 120.0
NOTHING_THERE = re.compile("no job can be resumed|there is no job in")
"""What is said of a job that was killed before its history was begun."""


@dataclass(frozen=True)
class Job:
    """A command line without what says how it runs, and that."""

    number: int
    words: tuple[str, ...]
    inputs: tuple[str, ...]
    memory: int
    how: tuple[str, ...]
    share: float
    """When it is killed: after this share of the time that it takes."""


# --- what is drawn ---


def drawn(seed: int, number: int) -> Job:
    """Draw a job."""
    chosen = random.Random(f"jobs {seed} {number}")
    command = chosen.choice([distinct, group, join, sample, shuf, split, top])
    words, inputs = command(chosen)
    low, high = map(math.log, MEMORY)
    memory = round(math.exp(chosen.uniform(low, high)))
    workers = chosen.choice([1, 2, 2, 3])
    memory += NEEDED_BYTES * max(workers - 2, 0)
    how = ["--workers", str(workers)]
    how += chosen.choice([[], [], [], ["--compress-runs", "lz4"], ["--compress-runs", "zstd"]])
    if "--compress-runs" in how:
        memory += NEEDED_BYTES * workers
    return Job(number, words, inputs, memory, tuple(how), chosen.uniform(0.1, 1))


Words = tuple[tuple[str, ...], tuple[str, ...]]


def some(chosen: random.Random, *options: str) -> list[str]:
    """Some of these options, each of which may have its value behind it."""
    return [word for option in options if chosen.randrange(2) for word in option.split()]


def parted(chosen: random.Random) -> list[str]:
    """Whether the output is one file, in one order, or in parts."""
    return chosen.choice([[], [], ["--sorted"], ["--parts", str(chosen.randrange(1, 6))]])


def rows(chosen: random.Random) -> str:
    return chosen.choice(["table.csv", "table.csv", "tables"])


def distinct(chosen: random.Random) -> Words:
    how = [
        *some(chosen, "--count", "--keep last"),
        *chosen.choice([[], [], ["--once"], ["--repeated"]]),
    ]
    how += parted(chosen)
    if chosen.randrange(3) == 0:
        return ("distinct", *how, *chosen.choice([[], ["-f"], ["-t,", "-k2,2"]])), ("lines",)
    key = chosen.choice(["id", "few", "many:nocase", "number:num", "few,word"])
    return ("distinct", "--csv", "--key", key, *how), (rows(chosen),)


def group(chosen: random.Random) -> Words:
    by = chosen.choice(["id", "few", "many", "few,word"])
    figures = some(
        chosen, "--count", "--sum number", "--mean number", "--min number", "--first text"
    )
    figures += some(chosen, "--last text") if by != "few" else some(chosen, "--max id")
    figures += some(chosen, "--distinct word", "--median number") if by == "many" else []
    return ("group", "--csv", "--by", by, *figures, *parted(chosen)), (rows(chosen),)


def join(chosen: random.Random) -> Words:
    how = chosen.choice(["inner", "left", "right", "full", "semi", "anti"])
    right = chosen.choice(["right.csv", "table.csv"]) if how in ("semi", "anti") else "right.csv"
    by = "id" if right == "table.csv" else chosen.choice(["id=key", "many=key"])
    return ("join", "--csv", "--by", by, "--how", how, *parted(chosen)), (rows(chosen), right)


def sample(chosen: random.Random) -> Words:
    how = chosen.choice([["-n", "1000"], ["--rate", "0.3"], ["-n", "2", "--by", "many"]])
    return ("sample", "--csv", *how, "--seed", str(chosen.randrange(9))), (rows(chosen),)


def shuf(chosen: random.Random) -> Words:
    how = ["--seed", str(chosen.randrange(9)), *chosen.choice([[], ["--parts", "3"]])]
    if chosen.randrange(3) == 0:
        return ("shuf", *how), ("lines",)
    return ("shuf", "--csv", *how), (rows(chosen),)


def split(chosen: random.Random) -> Words:
    return ("split", "--csv", "--by", chosen.choice(["few", "word", "few,word"])), (rows(chosen),)


def top(chosen: random.Random) -> Words:
    key = chosen.choice(["number:num:desc", "id", "text:nocase,id:desc", "many"])
    number = chosen.choice(["1", "10", "5000"])
    by = chosen.choice([[], ["--by", "few"], ["--by", "many"], ["--by", "id"]])
    parts = ["--parts", "3"] if by and chosen.randrange(3) == 0 else []
    return ("top", number, "--csv", "--key", key, *by, *some(chosen, "--ties all"), *parts), (
        rows(chosen),
    )


# --- inputs ---


def made_inputs(folder: Path, size: int) -> None:
    """Tables and lines of about so many bytes each."""
    chosen = random.Random(1)

    def row(at: int) -> str:
        text = chosen.choice(["", "x", '"a ""b"""', '"line\nline"', '"a,b"', "é" * 20])
        few, word = chosen.choice("kkkklm"), chosen.choice(["red", "Red", "blue", ""])
        many = f"{chosen.getrandbits(13):x}"
        number = chosen.choice([at, -at, f"{at}.5", "", f" {at}"])
        return f"{chosen.getrandbits(40):010x},{few},{many},{word},{number},{text}\n"

    count = size // 40
    header = "id,few,many,word,number,text\n"
    table = [row(at) for at in range(count)]
    (folder / "table.csv").write_text(header + "".join(table))
    (folder / "tables").mkdir()
    third = count // 3
    (folder / "tables/a.csv").write_text(header + "".join(table[:third]))
    (folder / "tables/b.csv").write_text(header + "".join(table[third:-third]))
    last = (header + "".join(table[-third:])).encode()
    (folder / "tables/c.csv.gz").write_bytes(gzip.compress(last, 1))
    lines = (
        f"{chosen.getrandbits(chosen.choice([10, 60])):x},{at % 9999}\n" for at in range(count)
    )
    (folder / "lines").write_text("".join(lines))
    keys = [row.partition(",")[0] for row in table[::7]] + [f"{at:x}" for at in range(1 << 13)]
    chosen.shuffle(keys)
    (folder / "right.csv").write_text("key,note\n" + "".join(f"{key},n{key}\n" for key in keys))


# --- a job ---


class Ground:
    """A folder with the inputs, and one that takes the outputs in turn."""

    def __init__(self, folder: Path, size: int) -> None:
        self.inputs = folder / "in"
        self.inputs.mkdir()
        self.place = folder / "place"
        made_inputs(self.inputs, size)

    def run(self, job: Job) -> str:
        """Run a job three times; what came of it, in a line."""
        what = f"{job.number:3} {' '.join(job.words)}"
        wanted, _ = self._undisturbed(job, MUCH)
        began_s = time.monotonic()
        found, report = self._undisturbed(job, ("--memory", str(job.memory), *job.how))
        took_s = time.monotonic() - began_s
        peak = report["peak_anon_bytes"] / job.memory
        what = f"{what}: {job.memory / 1e6:.0f} MB {' '.join(job.how)}, peak {peak:.2f}"
        assert peak <= 1, f"more memory than it may have: {what}"
        if report["status"] != "succeeded":
            assert report["error"]["kind"] in ("memory", "refused"), report["error"]
            return f"{what}, refused: {report['error']['message']}"
        assert found == wanted, f"the bytes differ: {what}"
        outcome = self._killed(job, took_s)
        assert tree(self.place / "out") == wanted, f"the bytes differ once it is resumed: {what}"
        left = [path.name for path in self.place.iterdir() if "gristmill" in path.name]
        assert not left, f"{left} is left: {what}"
        return f"{what}, {outcome}"

    def _undisturbed(self, job: Job, how: tuple[str, ...]) -> tuple[Tree, dict[str, Any]]:
        process = self._start(job, (*how, "--json"))
        done = ended(process, LONGEST_S)
        assert done.stdout, done.stderr
        found = tree(self.place / "out") if done.status == 0 else {}
        return found, json.loads(done.stdout)

    def _killed(self, job: Job, took_s: float) -> str:
        """Kill it, and what resumes it; then let it end."""
        process = self._start(job, ("--memory", str(job.memory), *job.how, "--history"))
        time.sleep(job.share * took_s)
        process.kill()
        done = ended(process, LONGEST_S)
        if done.status != -signal.SIGKILL:
            assert done.status == 0, done.stderr
            return "over before the kill"
        again = ended(self._gristmill(("resume", "last")), LONGEST_S)
        if is_over(again):
            return "resumed"
        assert again.status == 1, again
        assert NOTHING_THERE.search(again.stderr), again.stderr
        done = ended(self._start(job, ("--memory", str(job.memory), *job.how)), LONGEST_S)
        assert done.status == 0, done.stderr
        return "killed before it began"

    def _start(self, job: Job, how: tuple[str, ...]) -> "subprocess.Popen[str]":
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()
        inputs = [str(self.inputs / name) for name in job.inputs]
        out = ["out"] if job.words[0] == "split" else ["-o", "out"]
        return self._gristmill((*job.words, *inputs, *out, *how))

    def _gristmill(self, words: tuple[str, ...]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [GRISTMILL, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            cwd=self.place,
            env=clean_environment(GRISTMILL_HOME=str(self.place / "home")),
        )


def campaign(
    numbers: Iterable[int], seed: int, say: Callable[[str], None], folder: Path, *, size: int
) -> None:
    """Run jobs, and say of each what came of it; at the end fail if one was wrong."""
    wrong: list[str] = []
    ground = Ground(folder, size)
    for number in numbers:
        try:
            say(ground.run(drawn(seed, number)))
        except AssertionError as problem:
            wrong.append(f"job {number} of seed {seed}: {problem}")
            say(f"WRONG: {wrong[-1]}")
    assert not wrong, "\n".join(wrong)
