"""The superlinear speedup, made and explained: three machines, one to eight workers.

    workers     processes that count words, a quarter of a processor each (scaling_caps.py)
    plain       every block is in memory
    throttled   each node has memory for a part of its share, and one slow disk: reads time out,
                attempts fail and are tried again. More nodes have memory for all of it
    widened     the same, with a wide disk
    asked       of each machine: sigma, the verdict, and the cause, from the histories alone

The device is a server of this benchmark (scaling_device.py), not the disk. All runs are
interleaved: a round has each machine with each p once, in an order drawn by chance.

    python benchmarks/scaling.py                           all of it: about ten minutes, as root
    python benchmarks/scaling.py --pictures docs/scaling --page docs/scaling.md
    python benchmarks/scaling.py --quick                   a minute, to see that it works
    python benchmarks/scaling.py --from benchmarks/results/scaling-DATE.csv --page docs/scaling.md

Time counts from the moment when all workers have started. A run that fails is repeated once, then
left out; no round begins that would end after `--minutes`. The table is
benchmarks/results/scaling-DATE.csv, a row a run; `--csv FOLDER` writes what `gristmill scale fit`
reads, a file for each machine.
"""

import argparse
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from scaling_caps import PERIOD_US, QUOTA_US, groups
from scaling_report import Told, draw, fill, lines_of, tell, write_csv
from scaling_runs import MACHINES, Bench, Failed, Measured, Work, benches
from tables import RESULTS, keep, nested, notes_of, read

QUICK = Work(blocks=6, cache=2, limit_s=0.06, slow_s=0.1)


class Session:
    """The rounds: what is still to run, what has run, and where that is kept."""

    def __init__(self, bench: Bench, options: argparse.Namespace) -> None:
        self.bench, self.options = bench, options
        self.began = time.monotonic()
        self.runs: list[Measured] = []
        self.failed: list[str] = []
        self.notes: list[str] = []

    def run(self) -> None:
        """Run all rounds that there is time for."""
        options = self.options
        each = [(machine, p) for machine in options.machines for p in options.workers]
        total = len(each) * options.repeat
        for number in range(options.repeat):
            if number and self.elapsed_s * (number + 1) / number > options.minutes * 60:
                self.notes.append(f"{number} rounds of {options.repeat}: the time was over")
                print(self.notes[-1])
                break
            random.Random(number).shuffle(each)
            for machine, p in each:
                if self.elapsed_s > options.minutes * 60:
                    self.notes.append(
                        f"the time was over in round {number + 1} of {options.repeat}"
                    )
                    print(self.notes[-1])
                    return
                self.once(machine, p, number, total)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.began

    def once(self, machine: str, p: int, number: int, total: int) -> None:
        """A run, which is repeated if it fails."""
        for attempt in (0, 1):
            try:
                run = self.bench.run(machine, p, number)
            except (Failed, OSError, ValueError, LookupError, AssertionError) as error:
                self.failed.append(f"{machine}, p = {p}, round {number}, try {attempt}: {error!r}")
                print(f"failed: {self.failed[-1]}", flush=True)
                continue
            self.runs.append(run)
            minutes, seconds = divmod(int(self.elapsed_s), 60)
            print(
                f"{minutes:2d}:{seconds:02d}  {len(self.runs):3d}/{total}  {machine:<9} p = {p}:"
                f" {run.seconds:6.3f} s, {run.failed_attempts} attempts failed",
                flush=True,
            )
            return
        self.notes.append(f"left out: {machine}, p = {p}, round {number}: it failed twice")


def measure(options: argparse.Namespace) -> tuple[list[Measured], list[str]]:
    """Run everything; returns the runs, and what is to be said of them."""
    work = QUICK if options.quick else Work()
    with groups() as made, benches(work, made) as bench:
        told = f"{QUOTA_US / PERIOD_US:g} of a processor for each worker: cgroup {made.version}"
        print(f"{told}, {made.folder}, {QUOTA_US} of {PERIOD_US} microseconds")
        session = Session(bench, options)
        try:
            session.run()
        except KeyboardInterrupt:
            session.notes.append("it was interrupted")
            print(session.notes[-1])
        finally:
            if options.results is not None and session.runs:
                path = keep("scaling", map(asdict, session.runs), options.results, session.notes)
                options.name = path.stem
    print(f"{len(session.runs)} runs in {session.elapsed_s / 60:.1f} minutes")
    return session.runs, session.notes


def report(options: argparse.Namespace, runs: Sequence[Measured], notes: Sequence[str]) -> None:
    """Fit what was measured, and say, draw and write what was asked for."""
    told: list[Told] = []
    for machine in MACHINES:
        of_it = [run for run in runs if run.machine == machine]
        if not of_it:
            continue
        path = None if options.csv is None else options.csv / f"{options.name}-{machine}.csv"
        told.append(tell(machine, write_csv(of_it, path), of_it))
        print("", *lines_of(told[-1]), sep="\n", flush=True)
    if options.pictures is not None:
        draw(told, options.pictures)
    if options.page is not None:
        fill(options.page, told, notes, options.pictures, options.name)
        print(f"\n{options.page}")


def main() -> int:
    options = arguments()
    if options.given is not None:
        runs = [Measured(**nested(row)) for row in read(options.given)]
        notes = notes_of(options.given)
    else:
        runs, notes = measure(options)
    if not runs:
        print("no run came to its end")
        return 1
    report(options, runs, notes)
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = ",".join(MACHINES)
    parser.add_argument("--repeat", type=int, help="rounds (6; --quick: 2)")
    parser.add_argument("--machines", default=names, help=f"which, by comma ({names})")
    parser.add_argument("--workers", help="how many, by comma (1 to 8; --quick: 1 to 4)")
    parser.add_argument("--minutes", type=float, default=14.5, help="most minutes of runs (14.5)")
    parser.add_argument("--quick", action="store_true", help="little work, and nothing is kept")
    parser.add_argument("--results", type=Path, help="folder of the table (benchmarks/results)")
    parser.add_argument("--from", type=Path, dest="given", help="a table, instead of running")
    parser.add_argument("--csv", type=Path, help="folder for the files of `gristmill scale fit`")
    parser.add_argument("--pictures", type=Path, help="folder for pictures")
    parser.add_argument("--page", type=Path, help="page whose figures are to be written")
    options = parser.parse_args()
    options.machines = options.machines.split(",")
    if unknown := set(options.machines) - set(MACHINES):
        parser.error(f"there is no machine {', '.join(unknown)}; there are {names}")
    default = "1,2,3,4" if options.quick else "1,2,3,4,5,6,7,8"
    options.workers = [int(p) for p in (options.workers or default).split(",")]
    options.repeat = options.repeat or (2 if options.quick else 6)
    options.name = "scaling" if options.given is None else options.given.stem
    if options.results is None and not options.quick:
        options.results = RESULTS
    return options


if __name__ == "__main__":
    sys.exit(main())
