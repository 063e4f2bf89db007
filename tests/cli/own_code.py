"""Jobs of people's own code, in Python and as scripts, as tests of `gristmill resume` run them."""

import random
from dataclasses import dataclass
from pathlib import Path

#: So many that each job has some splits and is killed on its way; scripts take longer for fewer.
WORDS_BYTES = 2_400_000
FEW_BYTES = 1_000_000

JOB = """
import gristmill as gm
from helper import split


def pairs(line, context):
    for word in split(line):
        context.count("words", "first letter " + word[0])
        yield word, 1


def total(word, counts):
    yield word, sum(counts)


def pairs_and_stops(line, context):
    for word in split(line):
        if len(word) < 3:
            context.output("short").write((word, context.offset))
        yield word, 1


def lines(line, context):
    context.count("lines", "seen")
    yield line.upper()


def of(input, output, **more):
    return gm.Job(gm.text(input), output=gm.tsv(output), split_max="400K", parts=3, **more)


def aggregate(input, output):
    return of(input, output, map=pairs, reduce=gm.sum())


def function(input, output):
    return of(input, output, map=pairs, reduce=total)


def named(input, output):
    return of(input, output, map=pairs_and_stops, reduce=total, outputs={"short": gm.tsv()})


def map_only(input, output):
    return gm.Job(gm.text(input), map=lines, output=gm.text(output), split_max="400K")


def items(input, output):
    data = [f"{number % 1000} of {number % 7}" for number in range(120_000)]
    return gm.Job(gm.items(data), map=pairs, reduce=total, output=gm.tsv(output), parts=3)


def tagged(record, context):
    context.count("records", context.tag)
    for word in split(record if context.tag == "lines" else record[0]):
        yield word, 1


def several(input, output):
    inputs = [gm.text(input, tag="lines"), gm.tsv(input, tag="rows")]
    return gm.Job(
        inputs, map=tagged, reduce=total, output=gm.tsv(output), split_max="400K", parts=3
    )


def chain(input, output):
    first = gm.Job(gm.text(input), map=pairs, reduce=total, split_max="400K")
    return gm.Job(first, map=lambda pair: [pair], reduce=gm.sum(), output=gm.tsv(output))
"""

HELPER = "def split(line):\n    return line.split()\n"

MAPPER = """#!/usr/bin/env python3
import sys

lines = 0
for line in sys.stdin:
    lines += 1
    for word in line.split():
        print(word + "\\t1")
sys.stderr.write(f"reporter:counter:words,lines,{lines}\\n")
"""

REDUCER = """#!/usr/bin/env python3
import sys

key, count = None, 0
for line in sys.stdin:
    word, _, number = line.rstrip("\\n").partition("\\t")
    if word != key and key is not None:
        print(f"{key}\\t{count}")
        count = 0
    key = word
    count += int(number)
if key is not None:
    print(f"{key}\\t{count}")
"""

PYTHON = ("aggregate", "function", "named", "map_only", "items", "several")

SCRIPTS = ("scripts", "combiner", "mapper_only")


@dataclass(frozen=True)
class Bench:
    """A folder with an input, and with jobs to run on it."""

    folder: Path

    @classmethod
    def made(cls, folder: Path, size: int = WORDS_BYTES) -> "Bench":
        """Write the files."""
        folder.mkdir(exist_ok=True)
        numbers = random.Random(11)
        known = [f"{numbers.getrandbits(numbers.choice((4, 8, 16, 24))):x}" for _ in range(20_000)]
        text = folder / "in.txt"
        with text.open("w") as file:
            while file.tell() < size:
                lines = (" ".join(numbers.choices(known, k=9)) for _ in range(1000))
                file.write("\n".join(lines) + "\n")
        few = text.read_text()[:FEW_BYTES].rpartition("\n")[0]
        (folder / "few.txt").write_text(few + "\n")
        for name, content in (("job.py", JOB), ("helper.py", HELPER)):
            (folder / name).write_text(content)
        for name, content in (("mapper.py", MAPPER), ("reducer.py", REDUCER)):
            (folder / name).write_text(content)
            (folder / name).chmod(0o755)
        return cls(folder)

    def command(self, job: str, out: Path) -> list[str | Path]:
        """The command line of a job."""
        text = self.folder / ("few.txt" if job in SCRIPTS else "in.txt")
        if job in SCRIPTS:
            files = f"{self.folder / 'mapper.py'},{self.folder / 'reducer.py'}"
            words = ["-files", files, "-D", "mapreduce.job.maps=8", "-input", text, "-output", out]
            words += ["-mapper", "mapper.py", "-workers", "2"]
            if job == "mapper_only":
                return ["streaming", *words, "-numReduceTasks", "0"]
            combiner = ["-combiner", "reducer.py"] if job == "combiner" else []
            return [
                "streaming",
                *words,
                "-reducer",
                "reducer.py",
                "-numReduceTasks",
                "3",
                *combiner,
            ]
        file = self.folder / "job.py"
        return ["run", file, "--job", job, "--input", text, "--output", out, "--workers", "2"]
