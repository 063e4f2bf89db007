"""What `gristmill bench` adds to what it measures: a process started by it, and started bare.

Pairs, in turns: `launch` of the benchmark, and `posix_spawn` with `waitpid` and nothing else. The
program is `true`, so that nothing hides the difference: each measured run has as much too much. It
is then shown as a share of a sort, beside the CPU time of the benchmark's own process meanwhile.

    python benchmarks/measuring.py                 400 pairs of `true`, ten sorts of 1m rows
"""

import argparse
import os
import statistics
import sys
import tempfile
import time

from gristmill.analysis.bench.launching import launch


def bare(program: str) -> float:
    """Seconds of a process that nobody measures more than its time of."""
    began = time.perf_counter()
    os.waitpid(os.posix_spawn(program, [program], os.environ), 0)
    return time.perf_counter() - began


def differences(program: str, pairs: int) -> list[float]:
    """Seconds that `launch` takes longer, of each pair; either is first in every other one."""
    found: list[float] = []
    for number in range(pairs):
        if number % 2:
            measured = launch([program]).wall_s
            found.append(measured - bare(program))
        else:
            alone = bare(program)
            found.append(launch([program]).wall_s - alone)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=400, help="pairs of processes (400)")
    parser.add_argument("--rows", default="1m", help="rows of the sorts (1m)")
    parser.add_argument("--sorts", type=int, default=10, help="how many of them (10)")
    given = parser.parse_args()
    later_s = statistics.median(differences("/bin/true", given.pairs))
    print(f"a process: {later_s * 1e6:.1f} microseconds longer (median of {given.pairs} pairs)")
    program = [sys.executable, "-m", "gristmill"]
    with tempfile.TemporaryDirectory() as folder:
        launch([*program, "teragen", given.rows, f"{folder}/in"])
        sort = [*program, "terasort", f"{folder}/in", f"{folder}/out", "--overwrite"]
        runs = [launch(sort) for _ in range(given.sorts)]
    own = max(run.own_cpu_s / run.wall_s for run in runs)
    median = statistics.median(run.wall_s for run in runs)
    print(
        f"a sort of {given.rows} rows: {median:.3f} s; {later_s / median:.4%} of it is the longer"
        f" start; own CPU time is {own:.4%} at most"
    )


if __name__ == "__main__":
    main()
