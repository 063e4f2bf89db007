"""`make bench-whole`: every benchmark that docs/benchmarks.md quotes, and the page made from them.

    PARTS ──▶ each a program of its own, its raw result in benchmarks/results
                  │ results/whole.json: which file, measured at which commit
                  ▼
    page.md, with figures as {floor.wall:.1f} s ──▶ docs/benchmarks.md and its picture

    python benchmarks/whole.py               what has no result at this commit yet: two hours
    python benchmarks/whole.py floor cold    these alone, anew
    python benchmarks/whole.py --page        the page alone

Called again, it goes on after a break. A part that fails is named, and the others go on; its rows
keep the figures that they had. Exit code 1 if a part failed.
"""

import argparse
import csv
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import figures
from compare import plot
from run import machine

HERE = Path(__file__).parent
RESULTS = HERE / "results"
STATE = RESULTS / "whole.json"
PAGE = HERE.parent / "docs/benchmarks.md"
PICTURE = HERE.parent / "docs/bench.svg"

State = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Part:
    """A raw result: what makes it, and what the page says of it."""

    command: str
    result: str
    digest: Callable[[Any], dict[str, object]]
    suffix: str = "json"

    def words(self, peers: str, frameworks: str) -> list[str]:
        """The words of the command line; `_` stands for a space within one."""
        given = {"PEERS": peers, "FRAMEWORKS": frameworks}
        script, *words = self.command.split()
        return [str(HERE / script), *(given.get(word, word.replace("_", " ")) for word in words)]


PARTS = {
    "floor": Part("run.py", "terasort-50m", figures.floor),
    "cold": Part("external.py cold --rounds 3", "cold", partial(figures.external, kind="cold")),
    "spill": Part("external.py spill --rounds 3", "spill", partial(figures.external, kind="spill")),
    "skew": Part("external.py skew --rounds 3", "skew", figures.skew),
    "lines": Part("external.py lines --rounds 3", "lines", figures.lines),
    "compare": Part("compare.py --peers PEERS --minutes 60", "compare-50m", figures.compare),
    "keys": Part("commands.py keys", "commands", figures.commands),
    "words": Part("commands.py words --peers PEERS", "commands", figures.commands),
    "grep": Part("commands.py grep", "commands", figures.commands),
    "grep_cold": Part("commands.py cold", "commands", figures.commands),
    "s3": Part("s3.py --rows 50m --pairs 3", "s3", figures.s3),
    "s3_link": Part("s3.py --rows 50m --pairs 3 --gbit 1", "s3", figures.s3),
    "s3_late": Part("s3.py --latency-ms 50", "s3", figures.s3),
    "hdfs": Part("hdfs.py --rows 50m --pairs 3", "hdfs", figures.hdfs),
    "ray": Part(
        "cluster.py sort --rows 50m --memory 2G --pairs 3", "cluster-sort", figures.cluster
    ),
    "ray_two": Part("cluster.py two --rows 10m --pairs 3", "cluster-two", figures.cluster),
    "ray_small": Part("cluster.py small", "cluster-small", figures.cluster),
    "ray_tasks": Part("cluster.py tasks --rows 30k --pairs 3", "cluster-tasks", figures.tasks),
    "natural": Part("mapreduce.py --natural --rounds 3", "mapreduce", figures.python_jobs),
    "rare": Part("mapreduce.py --rounds 3", "mapreduce", figures.python_jobs),
    "ten": Part("ten_jobs.py --rounds 3", "ten-jobs", figures.ten_jobs, "csv"),
    "spark": Part(
        "wordcount.py --natural --text 1000 --rounds 1 --through 1 --only gristmill,PySpark_RDDs"
        " --frameworks FRAMEWORKS",
        "wordcount",
        figures.counts,
    ),
    "spark_rare": Part(
        "wordcount.py --text 1000 --rounds 1 --through 1 --only gristmill,PySpark_RDDs"
        " --frameworks FRAMEWORKS",
        "wordcount",
        figures.counts,
    ),
    "hadoop": Part(
        "wordcount.py --natural --text 1000 --rounds 1 --through 1"
        " --only gristmill,Hadoop_Streaming",
        "wordcount",
        figures.counts,
    ),
    "mrjob": Part(
        "wordcount.py --natural --text 60 --rounds 1 --through 1 --only gristmill,mrjob_local",
        "wordcount",
        figures.counts,
    ),
    "streaming": Part(
        "wordcount.py --natural --text 200 --only gristmill_streaming,scripts_alone,"
        "Hadoop_Streaming,gristmill_streaming_with_one_reducer,cat_|_sort_|_cat",
        "wordcount",
        figures.streaming,
    ),
    "plain": Part(
        "wordcount.py --text 1"
        " --only gristmill_streaming_with_one_reducer,Hadoop_Streaming_as_it_comes",
        "wordcount",
        figures.plain,
    ),
    "memory": Part("memory.py", "memory", figures.memory),
    "memory_again": Part("memory.py --seed 2", "memory", figures.memory),
    "memory_resumed": Part("memory.py --jobs 40 --resumed", "memory", figures.memory),
    "coverage": Part("coverage.py --singly 3", "coverage", figures.coverage),
    "bootstraps": Part(
        "coverage.py --singly 100 --bootstraps 400 --measured seconds", "coverage", figures.coverage
    ),
    "causes": Part("causes.py --seed 5", "causes", figures.causes),
}


#: What no figure depends on: results and pages can be committed between two parts.
NOT_MEASURED = (":(top,exclude)benchmarks/results", ":(top,exclude)docs", ":(top,exclude)*.md")


def commit() -> str:
    """The last commit that changed what is measured; `-dirty` with changes beside it."""
    last = git("log", "-1", "--format=%h", "--", ":(top)", *NOT_MEASURED)
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ":(top)", *NOT_MEASURED)
    return f"{last}-dirty" if changed else last


def git(*words: str) -> str:
    """What git prints."""
    told = subprocess.run(["git", "-C", HERE, *words], capture_output=True, text=True, check=True)
    return told.stdout.strip()


def measure(name: str, words: list[str], state: State) -> bool:
    """Run a part and keep what it gave; whether it gave a raw result."""
    print(f"--- {name}: {PARTS[name].command}", flush=True)
    pattern, measured = f"{PARTS[name].result}-*.{PARTS[name].suffix}", commit()
    before = whole_results(pattern)
    done = subprocess.run([sys.executable, *words], check=False)
    made = [path for path in whole_results(pattern) if path not in before]
    if done.returncode or len(made) != 1:
        print(f"--- {name}: no result (exit code {done.returncode})", file=sys.stderr, flush=True)
        return False
    state[name] = {"file": made[0].name, "commit": measured, "cpu": machine()["cpu"]}
    STATE.write_text(json.dumps(state, indent=1) + "\n")
    return True


def whole_results(pattern: str) -> list[Path]:
    """The raw results of a name, without those that are still being made."""
    return [path for path in RESULTS.glob(pattern) if not path.name.endswith(".partial.json")]


def page(state: State) -> str:
    """docs/benchmarks.md: its text is page.md, and its figures are those of the raw results."""
    found: dict[str, Any] = {}
    for name, part in PARTS.items():
        kept = state[name]
        digest = part.digest(raw_of(RESULTS / kept["file"]))
        found[name] = SimpleNamespace(file=f"`{kept['file']}`", **digest)
    rows = [
        f"| {shown(PARTS[name])} | `{kept['commit']}` | {kept['cpu'] or 'not recorded'}"
        f" | {found[name].file} |"
        for name, kept in ((name, state[name]) for name in PARTS)
    ]
    return (HERE / "page.md").read_text().format(**found, measured="\n".join(rows))


def raw_of(path: Path) -> Any:  # noqa: ANN401 - JSON, or the rows of a table
    """A raw result."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file)) if path.suffix == ".csv" else json.load(file)


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
    state: State = json.loads(STATE.read_text())
    left = [name for name in PARTS if state.get(name, {}).get("commit") != commit()]
    wanted = [] if given.page else given.parts or left
    failed = [
        name
        for name in wanted
        if not measure(name, PARTS[name].words(given.peers, given.frameworks), state)
    ]
    PAGE.write_text(page(state))
    plot(json.loads((RESULTS / state["compare"]["file"]).read_text()), PICTURE)
    if failed:
        sys.exit(f"no result: {', '.join(failed)}")


if __name__ == "__main__":
    main()
