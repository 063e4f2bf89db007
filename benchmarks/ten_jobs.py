"""Ten usual jobs, each as a job of Gristmill and as a plain loop: a dict of lists, sorted keys.

    cases ──▶ made input ──▶ gristmill: gm.Job(input, map=, reduce=, output=)  ┐ equal records?
                         └─▶ plain: for record ...: for pair in map(record)    ┘
    python ten_jobs_cases.py CASE PROGRAM FOLDER     what this starts: a process for each run

Both run the same map and reduce, and read and write the same files. In each round every case runs
both programs one right after the other, in turns first. CPU seconds are those of the process and
all that it started, start-up included.

    python benchmarks/ten_jobs.py                          seven rounds, all sizes as on the page
    python benchmarks/ten_jobs.py --rounds 1 --scale 0.01  a try of the script itself
    python benchmarks/ten_jobs.py sessions join            these alone

Each run is a row of results/ten-jobs-....csv.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from compileall import compile_dir
from pathlib import Path

from digests import ten_jobs
from tables import HERE, RESULTS, Row, keep
from ten_jobs_cases import CASES

import gristmill

PROGRAMS = ("gristmill", "plain")
#: What is imported is compiled once, as where it was installed.
ENVIRONMENT = {name: value for name, value in os.environ.items() if "BYTECODE" not in name}


def timed(case: str, program: str, folder: Path) -> tuple[float, float]:
    """Run a case by a program; the CPU seconds of it and its children, and its wall seconds."""
    command = [sys.executable, str(HERE / "ten_jobs_cases.py"), case, program, str(folder)]
    began, before = time.perf_counter(), os.times()
    subprocess.run(command, check=True, env=ENVIRONMENT)
    after, wall_s = os.times(), time.perf_counter() - began
    user_s = after.children_user - before.children_user
    return user_s + after.children_system - before.children_system, wall_s


def measured(case: str, folder: Path, number: int) -> list[Row]:
    """A round of a case: both programs, in turns first; their records are compared."""
    rows: list[Row] = []
    found: dict[str, list[str]] = {}
    for program in PROGRAMS if number % 2 else PROGRAMS[::-1]:
        cpu_s, wall_s = timed(case, program, folder)
        rows.append(
            {
                "what": case,
                "program": program,
                "round": number,
                "cpu_s": cpu_s,
                "wall_s": wall_s,
            }
        )
        found[program] = CASES[case].records(folder / program)
    if not CASES[case].same(found["gristmill"], found["plain"]):
        sys.exit(f"{case}: the records differ")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", nargs="*", help=", ".join(CASES))
    parser.add_argument("--rounds", type=int, default=7, help="rounds (7)")
    parser.add_argument("--scale", type=float, default=1, help="of the sizes of inputs (1)")
    parser.add_argument("--dir", type=Path, default=Path(), help="where the data go (.)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the table goes")
    given = parser.parse_args()
    cases = given.cases or list(CASES)
    rows: list[Row] = []
    compile_dir(Path(gristmill.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory(prefix="gristmill-bench-", dir=given.dir.absolute()) as name:
        for case in cases:
            folder = Path(name, case)
            folder.mkdir()
            CASES[case].make(folder, given.scale)
        for number in range(given.rounds):
            for case in cases:
                rows += measured(case, Path(name, case), number)
    print("| job | CPU | of the loop | ratio | time | of the loop | ratio |")
    print(ten_jobs(rows)["rows"])
    keep("ten-jobs", rows, given.results)


if __name__ == "__main__":
    main()
