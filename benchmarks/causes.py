"""Faults planted in real runs: is the cause named from their histories alone?

    case: a job with 1, 2 and 4 workers, and one fault (or none), its numbers drawn by chance
      disk        one slow disk below one worker (a limit of the control group); records that take
                  longer than --timeout are tried again. More workers have a disk without limit
      memory      a sort whose memory grows with the workers, and holds the data only at 4
      serial      a last step that one worker does: all keys in one part, a pause at each
      straggler   one record takes many times as long as the others
      segments    hundreds of parts of a few bytes each
      none        no fault
    asked: gristmill.analysis.histories.cause_of(runs_of(the three jobs))

    python benchmarks/causes.py                 five cases of each
    python benchmarks/causes.py --cases 1 --faults serial,none

The work of user code is a pause, so that it needs no processor and other programs do not disturb
it. `disk` needs root and the blkio controller of cgroup v1. Exit code 1 if fewer than nine of ten
are right. The table: benchmarks/results/causes-DATE.csv, a row a job.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tables import Row, keep

from gristmill.analysis.histories import cause_of, runs_of

WORKERS = (1, 2, 4)
RECORDS = 24
GROUP = Path("/sys/fs/cgroup/blkio/gristmill-causes")
RIGHT_MIN = 0.9

JOB = """
import time
import gristmill as gm

def job(pause="0.1", slow="", slow_s="0", parts="4", end="0", side=""):
    pause, slow_s, end = float(pause), float(slow_s), float(end)

    def work(line):
        name = line[:5]
        if side:
            with open(f"{side}/{name}", "rb", buffering=0) as file:
                while file.read(1 << 20):
                    pass
        time.sleep(slow_s if name == slow else pause)
        yield name, 1

    def count(key, values):
        time.sleep(end)
        yield key, sum(values)

    return gm.Job(
        gm.text("in.txt"), map=work, reduce=count, output=gm.tsv("out"), parts=int(parts),
        split_min=100, split_max=100,
    )
"""

NAMED = {
    "disk": ("retries", "device"),
    "memory": ("memory",),
    "serial": ("serial",),
    "straggler": ("stragglers",),
    "segments": ("segments",),
    "none": ("none", "machine"),
}
"""What is right to say of each fault; without one, other programs on the machine may be named."""


@dataclass
class Case:
    """A fault, how it was planted, and what was said of it."""

    fault: str
    planted: dict[str, float | str]
    runs: list[dict[str, object]] = field(default_factory=list)
    named: str = ""
    sentence: str = ""
    right: bool = False


Plant = Callable[[random.Random, Path], tuple[dict[str, float | str], Callable[[int], str]]]
"""Draws the numbers of a case; returns them, and what runs it with p workers and gives its id."""


def gristmill(folder: Path, *words: str, group: Path | None = None) -> str:
    """Run a command line, in a control group if one is given; returns the job's id."""

    def join() -> None:
        if group is not None:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    command = [sys.executable, "-m", "gristmill", *words, "--json", "--history", "--overwrite"]
    env = {**os.environ, "GRISTMILL_HOME": str(folder / "home")}
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, preexec_fn=join, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout)["job_id"]


def user_job(folder: Path, p: int, *more: str, group: Path | None = None, **values: object) -> str:
    sets = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
    words = ["run", "job.py", "--workers", str(p), *sets, *more]
    return gristmill(folder, *words, group=group)


# --- faults ---


def plain(draw: random.Random, folder: Path):  # noqa: ANN201 - Plant
    values = {"pause": round(draw.uniform(0.1, 0.2), 3)}
    return values, lambda p: user_job(folder, p, **values)


def serial(draw: random.Random, folder: Path):  # noqa: ANN201
    values = {"pause": 0.1, "parts": 1, "end": round(draw.uniform(0.05, 0.15), 3)}
    return values, lambda p: user_job(folder, p, **values)


def straggler(draw: random.Random, folder: Path):  # noqa: ANN201
    slow, slow_s = f"f{draw.randrange(RECORDS):04d}", round(draw.uniform(2.0, 4.0), 2)
    values: dict[str, float | str] = {"pause": 0.1, "slow": slow, "slow_s": slow_s}
    return values, lambda p: user_job(folder, p, **values)


def segments(draw: random.Random, folder: Path):  # noqa: ANN201
    values = {"pause": 0.1, "parts": draw.randrange(300, 600)}
    return values, lambda p: user_job(folder, p, **values)


def memory(draw: random.Random, folder: Path):  # noqa: ANN201
    rows = draw.randrange(3_000_000, 6_000_000)
    each = draw.randrange(30, 50)
    gristmill(folder, "teragen", str(rows), "rows")
    budgets = {1: f"{each}M", 2: f"{2 * each}M", 4: "2G"}

    def run(p: int) -> str:
        words = [
            "terasort",
            "rows",
            "sorted",
            "--workers",
            str(p),
            "--memory",
            budgets[p],
            "--no-sync",
        ]
        return gristmill(folder, *words)

    return {"rows": rows, "memory": " ".join(budgets.values())}, run


def disk(draw: random.Random, folder: Path):  # noqa: ANN201
    side = folder / "side"
    side.mkdir()
    large, megabytes = (
        set(draw.sample(range(RECORDS), draw.randrange(2, 5))),
        draw.randrange(40, 56),
    )
    for record in range(RECORDS):
        content = os.urandom(megabytes << 20) if record in large else b""
        (side / f"f{record:04d}").write_bytes(content)
    os.sync()
    rate = draw.randrange(14, 18) * 1_000_000

    def run(p: int) -> str:
        drop(side)
        with slowed(folder, rate) if p == 1 else unlimited() as group:
            more = ("--timeout", "2", "--attempts", "30")
            return user_job(folder, p, *more, group=group, pause=0.05, side=side)

    return {"records": len(large), "megabytes": megabytes, "bytes_per_s": rate}, run


def drop(folder: Path) -> None:
    """Take files out of the page cache."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@contextmanager
def slowed(folder: Path, bytes_per_s: int) -> Iterator[Path]:
    """A control group whose reads from the folder's device are limited."""
    device = folder.stat().st_dev
    GROUP.mkdir(exist_ok=True)
    limit = f"{os.major(device)}:{os.minor(device)} {bytes_per_s}"
    (GROUP / "blkio.throttle.read_bps_device").write_text(limit)
    try:
        yield GROUP
    finally:
        remove_group()


def remove_group() -> None:
    for _ in range(50):  # the last process may not be gone yet
        try:
            GROUP.rmdir()
        except OSError:
            time.sleep(0.1)
        else:
            return


@contextmanager
def unlimited() -> Iterator[None]:
    yield None


FAULTS: dict[str, Plant] = {
    "disk": disk,
    "memory": memory,
    "serial": serial,
    "straggler": straggler,
    "segments": segments,
    "none": plain,
}


# --- cases ---


def run_case(fault: str, seed: int) -> Case:
    """Plant a fault, run the job with each number of workers, and ask for the cause."""
    with tempfile.TemporaryDirectory(prefix="gristmill-causes-", dir=Path.cwd()) as name:
        folder = Path(name)
        (folder / "job.py").write_text(JOB)
        lines = (f"f{record:04d}".ljust(99, "x") + "\n" for record in range(RECORDS))
        (folder / "in.txt").write_text("".join(lines))
        planted, run = FAULTS[fault](random.Random(f"{fault} {seed}"), folder)
        jobs = [folder / "home/jobs" / run(p) for p in WORKERS]
        case = Case(fault, planted)
        runs = runs_of([str(job) for job in jobs])
    for one in runs:
        wastes = {cause: round(seconds, 3) for cause, seconds in one.wastes.items()}
        case.runs.append({"p": one.p, "seconds": round(one.seconds, 3), "wastes": wastes})
    found = cause_of(runs)
    case.named, case.sentence = found.name, found.sentence
    case.right = found.name in NAMED[fault]
    return case


def rows_of(number: int, case: Case, load: float) -> list[Row]:
    """A row for each job of a case; `load` is the machine's before all of them."""
    planted = " ".join(f"{name}={value}" for name, value in case.planted.items())
    known = {"case": number, "fault": case.fault, "planted": planted}
    said = {"named": case.named, "right": case.right, "load": load}
    return [
        {**known, "p": run["p"], "seconds": run["seconds"], "waste": run["wastes"], **said}
        for run in case.runs
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=5, help="cases of each fault")
    parser.add_argument("--faults", default=",".join(FAULTS), help="which, by comma")
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--no-save", action="store_true", help="write no table")
    options = parser.parse_args()
    cases: list[Case] = []
    load, *_ = os.getloadavg()
    for number in range(options.cases):
        for fault in options.faults.split(","):
            case = run_case(fault, options.seed + number)
            cases.append(case)
            mark = "right" if case.right else "WRONG"
            took = ", ".join(f"{run['seconds']} s at p = {run['p']:g}" for run in case.runs)
            print(f"{fault:<10} {mark}: {case.named}: {case.sentence} {took}", flush=True)
    right = sum(case.right for case in cases)
    print(f"{right} of {len(cases)} right")
    if not options.no_save:
        keep("causes", [row for at, case in enumerate(cases) for row in rows_of(at, case, load)])
    return 0 if right >= RIGHT_MIN * len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
