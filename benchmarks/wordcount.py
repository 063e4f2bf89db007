"""Word counts by people's own Python code, here and elsewhere; and scripts that do nothing.

    words    the same functions as a gm.Job, by gristmill streaming, in a pipe with `sort`, by
             Hadoop Streaming, mrjob and PySpark; and the CPU time of the scripts alone
    nothing  `cat` as mapper and reducer: gristmill streaming and Hadoop, with a reducer on each
             core; gristmill streaming, `cat | sort | cat` and Hadoop as it comes, with one

    python benchmarks/wordcount.py                              100 MB of words, 1 GB through cat
    python benchmarks/wordcount.py --text 10 --through 20       a try
    python benchmarks/wordcount.py --frameworks PYTHON          with PySpark
    python benchmarks/wordcount.py --text 1000 --only "gristmill,PySpark RDDs" --frameworks PYTHON

Each program is a process of its own, timed from outside, in turn with the others. The table goes to
benchmarks/results.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from external import natural_text
from mapreduce import WORDS, rare_text
from running import GRISTMILL
from tables import HERE, RESULTS, Row, keep, names, span, those

Command = list[str | Path]

MEMORY = "1G"

MAPPER = """#!/usr/bin/env python3
import sys
for line in sys.stdin:
    for word in line.split():
        print(word, 1, sep="\\t")
"""

REDUCER = """#!/usr/bin/env python3
import sys
from itertools import groupby
pairs = (line.split("\\t") for line in sys.stdin)
for word, of_word in groupby(pairs, lambda pair: pair[0]):
    print(word, sum(int(count) for _, count in of_word), sep="\\t")
"""

MRJOB = """
from mrjob.job import MRJob

class Words(MRJob):
    def mapper(self, _, line):
        for word in line.split():
            yield word, 1

    def reducer(self, word, counts):
        yield word, sum(counts)

Words.run()
"""

PYSPARK = """
import sys, os
os.environ["SPARK_LOCAL_HOSTNAME"] = "localhost"
from pyspark import SparkConf, SparkContext

conf = SparkConf().setMaster("local[2]").set("spark.ui.enabled", "false")
context = SparkContext(conf=conf.set("spark.driver.memory", "4g"))
lines = context.textFile(sys.argv[1], 2)
words = lines.flatMap(lambda line: line.split()).map(lambda word: (word, 1))
words.reduceByKey(lambda a, b: a + b).saveAsTextFile(sys.argv[2])
"""


def streaming(text: Path, out: Path, mapper: str, reducer: str, *more: str) -> Command:
    """Our command line, which is Hadoop's."""
    scripts = ["-mapper", mapper, "-reducer", reducer]
    return [GRISTMILL, "streaming", *more, "-input", text, "-output", out, *scripts]


#: Both scripts one after the other; the reducer of pairs that were sorted before.
ALONE = "scripts alone"

#: A reducer for each core, as Hadoop is told too.
BOTH_CORES = ("-D", "mapreduce.job.reduces=2")


#: What Hadoop's local runner is told, to use both cores and to spill less.
BOTH_CORES_OF_HADOOP = {
    "mapreduce.job.reduces": "2",
    "mapreduce.local.map.tasks.maximum": "2",
    "mapreduce.local.reduce.tasks.maximum": "2",
    "mapreduce.task.io.sort.mb": "256",
}


def hadoop(text: Path, out: Path, mapper: str, reducer: str, folder: Path, how: str) -> None:
    """The same by Hadoop's jar in its local runner: with both cores, or as it comes."""
    sys.path.insert(0, str(HERE.parent / "tests"))
    from hadoop.harness import Hadoop

    program = Hadoop.prepare(folder)
    quick = ("-Xmx", "-XX:TieredStop", "-XX:+UseSerial")
    jvm = tuple(flag for flag in program.jvm if not flag.startswith(quick))
    program = replace(program, jvm=(*jvm, "-Xmx4g"), timeout_s=3600.0)
    settings = BOTH_CORES_OF_HADOOP if how == "both" else {}
    words = [word for item in settings.items() for word in ("-D", "=".join(item))]
    words += ["-input", str(text), "-output", str(out), "-mapper", mapper, "-reducer", reducer]
    program.streaming({"job": words}, folder, folder)


def programs(text: Path, folder: Path, frameworks: Path | None) -> dict[str, Command | str]:
    """The word counts: command lines, or what the shell runs."""
    mapper, reducer = folder / "mapper.py", folder / "reducer.py"
    scripts = {"job.py": WORDS, "mapper.py": MAPPER, "reducer.py": REDUCER}
    for name, content in {**scripts, "mrjob.py": MRJOB, "spark.py": PYSPARK}.items():
        (folder / f"the_{name}" if name == "mrjob.py" else folder / name).write_text(content)
    for script in (mapper, reducer):
        script.chmod(0o755)
    out = folder / "out"
    sort = f"LC_ALL=C sort --parallel=2 -S {MEMORY} -T {folder}"
    pairs = folder / "pairs"
    found: dict[str, Command | str] = {
        "gristmill": [sys.executable, folder / "job.py", text, out],
        "gristmill streaming": streaming(text, out, str(mapper), str(reducer), *BOTH_CORES),
        ALONE: f"{mapper} < {text} > /dev/null && {reducer} < {pairs} > {out}",
        "pipe with sort": f"{mapper} < {text} | {sort} | {reducer} > {out}",
        "Hadoop Streaming": hadoop_command(text, out, str(mapper), str(reducer), folder),
        "mrjob local": [
            *(sys.executable, folder / "the_mrjob.py", "-r", "local", "--output-dir", out, text)
        ],
    }
    if frameworks is not None:
        found["PySpark RDDs"] = [frameworks, folder / "spark.py", text, out]
    return found


def throughs(text: Path, folder: Path) -> dict[str, Command | str]:
    """What goes through `cat` and `cat`."""
    out = folder / "out"
    return {
        "gristmill streaming": streaming(text, out, "cat", "cat", "--memory", MEMORY, *BOTH_CORES),
        "gristmill streaming with one reducer": streaming(
            text, out, "cat", "cat", "--memory", MEMORY
        ),
        "cat | sort | cat": f"cat {text} | LC_ALL=C sort --parallel=2 -S {MEMORY} -T {folder}"
        f" | cat > {out}",
        "Hadoop Streaming": hadoop_command(text, out, "cat", "cat", folder),
        "Hadoop Streaming as it comes": hadoop_command(text, out, "cat", "cat", folder, "plain"),
    }


def hadoop_command(
    text: Path, out: Path, mapper: str, reducer: str, folder: Path, how: str = "both"
) -> Command:
    """This program, which runs Hadoop."""
    return [sys.executable, __file__, "--hadoop", text, out, mapper, reducer, folder, how]


def timed(command: Command | str, folder: Path) -> Row:
    """A program as a process of its own; what it wrote is removed."""
    began = time.perf_counter()
    before = os.times()
    done = subprocess.run(
        command if isinstance(command, str) else [str(word) for word in command],
        shell=isinstance(command, str),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=folder,
        check=False,
    )
    wall_s, after = time.perf_counter() - began, os.times()
    if done.returncode:
        raise SystemExit(
            f"{command} exited with {done.returncode}:\n{done.stderr.decode()[-2000:]}"
        )
    out = folder / "out"
    if out.is_dir():
        shutil.rmtree(out)
    else:
        out.unlink()
    cpu_s = after.children_user + after.children_system
    return {"wall_s": wall_s, "cpu_s": cpu_s - before.children_user - before.children_system}


def main() -> None:
    if sys.argv[1:2] == ["--hadoop"]:
        text, out, mapper, reducer, folder, how = sys.argv[2:]
        hadoop(Path(text), Path(out), mapper, reducer, Path(folder), how)
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", type=int, default=100, help="MB of words (100)")
    parser.add_argument("--natural", action="store_true", help="words of Zipf's law, none rare")
    parser.add_argument("--through", type=int, default=1000, help="MB through cat (1000)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (3)")
    parser.add_argument("--frameworks", type=Path, help="a Python that has PySpark")
    parser.add_argument("--only", help="these programs, with commas between them")
    parser.add_argument("--dir", type=Path, default=Path(), help="where the data go (.)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the table goes")
    given = parser.parse_args()
    rows: list[Row] = []
    known = {
        "words": {
            "text": "natural" if given.natural else "with rare ones",
            "bytes": given.text * 1_000_000,
        },
        "nothing": {"text": "natural", "bytes": given.through * 1_000_000},
    }
    with tempfile.TemporaryDirectory(
        prefix="gristmill-bench-", dir=given.dir.absolute()
    ) as scratch:
        folder = Path(scratch)
        words, lines = folder / "words", folder / "lines"
        (natural_text if given.natural else rare_text)(words, given.text * 1_000_000)
        natural_text(lines, given.through * 1_000_000)
        frameworks = given.frameworks and given.frameworks.absolute()
        cells = {"words": programs(words, folder, frameworks), "nothing": throughs(lines, folder)}
        if given.only is not None:
            wanted = given.only.split(",")
            cells = {
                cell: {n: c for n, c in found.items() if n in wanted}
                for cell, found in cells.items()
            }
        if ALONE in cells["words"]:
            sort = f"LC_ALL=C sort -T {folder} > {folder / 'pairs'}"
            subprocess.run(f"{folder / 'mapper.py'} < {words} | {sort}", shell=True, check=True)
        for number in range(given.rounds):
            for cell, commands in cells.items():
                order = list(commands.items())
                for name, command in order if number % 2 == 0 else reversed(order):
                    run = timed(command, folder)
                    rows.append(
                        {"what": cell, "program": name, "round": number, **run, **known[cell]}
                    )
                    print(f"{number}/{cell}/{name}: {run['wall_s']:.2f} s", flush=True)
    rows.sort(key=lambda row: row["what"] != "words")
    for cell in names(rows, "what"):
        print(cell)
        found = those(rows, what=cell)
        ours = span(found, program=found[0]["program"])
        for name in names(found, "program"):
            wall, cpu = span(found, program=name), span(found, "cpu_s", program=name)
            print(f"  {name}: {wall:.1f} s, {wall / ours:.2f} x, {cpu:.1f} s of CPU")
    keep("wordcount", rows, given.results)


if __name__ == "__main__":
    main()
