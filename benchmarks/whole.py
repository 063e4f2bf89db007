"""`make bench-whole`: every benchmark that docs/benchmarks.md quotes, and the page made from them.

    PARTS ──▶ each a program of its own, its table in benchmarks/results
                  │ results/measured.csv: which table is of which part, measured at which commit
                  ▼
    page.md, with figures as {floor.wall:.1f} s ──▶ docs/benchmarks.md and its picture

    python benchmarks/whole.py               what has no result at this commit yet: two hours
    python benchmarks/whole.py floor cold    these alone, anew
    python benchmarks/whole.py --page        the page alone

Called again, it goes on after a break. A part that fails is named, and the others go on; its rows
keep the figures that they had. Exit code 1 if a part failed.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import digests
from compare import plot
from tables import HERE, RESULTS, Row, commit, read, read_measured, write_measured

PAGE = HERE.parent / "docs/benchmarks.md"
PICTURE = HERE.parent / "docs/bench.svg"


@dataclass(frozen=True)
class Part:
    """A table: what makes it, and what the page says of it."""

    command: str
    result: str
    digest: Callable[[digests.Rows], digests.Found]

    def words(self, peers: str, frameworks: str) -> list[str]:
        """The words of the command line; `_` stands for a space within one."""
        given = {"PEERS": peers, "FRAMEWORKS": frameworks}
        script, *words = self.command.split()
        return [str(HERE / script), *(given.get(word, word.replace("_", " ")) for word in words)]


PARTS = {
    "floor": Part("external.py warm", "warm", digests.external),
    "cold": Part("external.py cold --rounds 3", "cold", digests.external),
    "spill": Part("external.py spill --rounds 3", "spill", digests.external),
    "skew": Part("external.py skew --rounds 3", "skew", digests.skew),
    "lines": Part("external.py lines --rounds 3", "lines", digests.lines),
    "own": Part("external.py own --rounds 3", "own", digests.lines),
    "compare": Part("compare.py --peers PEERS --minutes 60", "compare-50m", digests.compare),
    "keys": Part("commands.py keys", "commands", digests.commands),
    "words": Part("commands.py words --peers PEERS", "commands", digests.commands),
    "grep": Part("commands.py grep", "commands", digests.commands),
    "grep_cold": Part("commands.py cold", "commands", digests.commands),
    "records": Part("records.py --peers PEERS", "records", digests.commands),
    "copies": Part("copies.py", "copies", digests.commands),
    "s3": Part("s3.py --rows 50m --pairs 3", "s3", digests.s3),
    "s3_link": Part("s3.py --rows 50m --pairs 3 --gbit 1", "s3", digests.s3),
    "s3_late": Part("s3.py --latency-ms 50", "s3", digests.s3),
    "hdfs": Part("hdfs.py --rows 50m --pairs 3", "hdfs", digests.hdfs),
    "ray": Part(
        "cluster.py sort --rows 50m --memory 2G --pairs 3", "cluster-sort", digests.cluster
    ),
    "ray_two": Part("cluster.py two --rows 10m --pairs 3", "cluster-two", digests.cluster),
    "ray_small": Part("cluster.py small", "cluster-small", digests.cluster),
    "ray_tasks": Part("cluster.py tasks --rows 30k --pairs 3", "cluster-tasks", digests.tasks),
    "natural": Part("mapreduce.py --natural --rounds 3", "mapreduce", digests.python_jobs),
    "rare": Part("mapreduce.py --rounds 3", "mapreduce", digests.python_jobs),
    "ten": Part("ten_jobs.py --rounds 5", "ten-jobs", digests.ten_jobs),
    "spark": Part(
        "wordcount.py --natural --text 1000 --rounds 1 --through 1 --only gristmill,PySpark_RDDs"
        " --frameworks FRAMEWORKS",
        "wordcount",
        digests.counts,
    ),
    "spark_rare": Part(
        "wordcount.py --text 1000 --rounds 1 --through 1 --only gristmill,PySpark_RDDs"
        " --frameworks FRAMEWORKS",
        "wordcount",
        digests.counts,
    ),
    "hadoop": Part(
        "wordcount.py --natural --text 1000 --rounds 1 --through 1"
        " --only gristmill,Hadoop_Streaming",
        "wordcount",
        digests.counts,
    ),
    "mrjob": Part(
        "wordcount.py --natural --text 60 --rounds 1 --through 1 --only gristmill,mrjob_local",
        "wordcount",
        digests.counts,
    ),
    "streaming": Part(
        "wordcount.py --natural --text 200 --only gristmill_streaming,scripts_alone,"
        "Hadoop_Streaming,gristmill_streaming_with_one_reducer,cat_|_sort_|_cat",
        "wordcount",
        digests.streaming,
    ),
    "plain": Part(
        "wordcount.py --text 1"
        " --only gristmill_streaming_with_one_reducer,Hadoop_Streaming_as_it_comes",
        "wordcount",
        digests.plain,
    ),
    "memory": Part("memory.py", "memory", digests.memory),
    "memory_again": Part("memory.py --seed 2", "memory", digests.memory),
    "memory_resumed": Part("memory.py --jobs 40 --resumed", "memory", digests.memory),
    "coverage": Part("coverage.py --singly 3", "coverage", digests.coverage),
    "bootstraps": Part(
        "coverage.py --singly 100 --bootstraps 400 --measured seconds", "coverage", digests.coverage
    ),
    "causes": Part("causes.py --seed 5", "causes", digests.causes),
}


NOT_MEASURED = SimpleNamespace(file="none yet", rows="| not measured yet | | | | |")
"""What the page says of a part that has no result."""


def state() -> dict[str, Row]:
    """What was measured of each part: its table, and at which commit."""
    return {row["part"]: row for row in read_measured() if "part" in row}


def measure(name: str, words: list[str]) -> bool:
    """Run a part and note which table it made; whether it made one."""
    print(f"--- {name}: {PARTS[name].command}", flush=True)
    before = read_measured()
    done = subprocess.run([sys.executable, *words], check=False)
    rows = read_measured()
    made = [row for row in rows if row not in before]
    if done.returncode or len(made) != 1 or not made[0]["file"].startswith(PARTS[name].result):
        print(f"--- {name}: no result (exit code {done.returncode})", file=sys.stderr, flush=True)
        return False
    for row in rows:
        if row == made[0] or row.get("part") == name:
            row["part"] = name if row == made[0] else ""
    write_measured(rows)
    return True


def page() -> str:
    """docs/benchmarks.md: its text is page.md, and its figures are those of the tables."""
    found: dict[str, Any] = {}
    rows: list[str] = []
    known = state()
    for name, part in PARTS.items():
        if name not in known:
            found[name] = NOT_MEASURED
            continue
        row = known[name]
        file = f"`{row['file']}`"
        found[name] = SimpleNamespace(file=file, **part.digest(read(RESULTS / row["file"])))
        cpu = row.get("cpu", "not recorded")
        rows.append(f"| {shown(part)} | `{row['commit']}` | {cpu} | {file} |")
    return (HERE / "page.md").read_text().format(**found, measured="\n".join(rows))


def shown(part: Part) -> str:
    """The command of a part, as the page shows it: without the programs that it is told."""
    words = part.words("", "")[1:]
    told = [word for word in words if word not in ("", "--peers", "--frameworks")]
    quoted = [f'"{word}"' if " " in word else word for word in told]
    # A bar would end the cell of a table.
    command = " ".join([f"benchmarks/{part.command.split()[0]}", *quoted]).replace("|", "\\|")
    return f"`{command}`"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--page", action="store_true", help="write the page, and measure nothing")
    parser.add_argument("--peers", default=sys.executable, help="a Python with the other programs")
    parser.add_argument("--frameworks", default=sys.executable, help="that of Spark")
    given = parser.parse_args()
    if unknown := [name for name in given.parts if name not in PARTS]:
        parser.error(f"there is no {unknown[0]!r}; take some of {', '.join(PARTS)}")
    here, known = commit(), state()
    left = [name for name in PARTS if known.get(name, {}).get("commit") != here]
    wanted = [] if given.page else given.parts or left
    failed = [
        name
        for name in wanted
        if not measure(name, PARTS[name].words(given.peers, given.frameworks))
    ]
    PAGE.write_text(page())
    plot(read(RESULTS / state()["compare"]["file"]), PICTURE)
    if failed:
        sys.exit(f"no result: {', '.join(failed)}")


if __name__ == "__main__":
    main()
