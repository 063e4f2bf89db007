"""Two builds of Gristmill on the same work, in pairs: what a change costs.

    data once ──▶ pair 1: before, after ──▶ pair 2: after, before ──▶ ...
                  each run a process of its own, its output removed before the next one

    python benchmarks/pairs.py --before OLD/.venv/bin            all workloads, 11 pairs each
    python benchmarks/pairs.py --before OLD/.venv/bin --only lines,words --rows 1m --text 10
    python benchmarks/pairs.py --before .venv/bin --only terasort-1g --more "--runner processes"

A ratio is `after / before` of one pair: 1.03 means that the change costs 3 percent. What counts is
the median of the ratios. The interval beside it holds the true median with at least 95 percent
certainty. It is taken from the order of the ratios alone, so it holds for any distribution.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from pathlib import Path

from external import natural_text, random_lines
from mapreduce import WORDS
from running import GRISTMILL, measured
from tables import RESULTS, Row, Span, keep, rows_of, span

Command = list[str | Path]


@dataclass(frozen=True)
class Folder:
    """Where the data are, each made when the first workload asks for it."""

    path: Path
    rows: str
    text_bytes: int

    @property
    def out(self) -> Path:
        return self.path / "out"

    @property
    def records(self) -> Path:
        data = self.path / "records"
        if not data.exists():
            subprocess.run([GRISTMILL, "teragen", self.rows, data], check=True)
        return data

    @property
    def text(self) -> Path:
        return self._made("text", natural_text)

    @property
    def lines(self) -> Path:
        return self._made("lines", random_lines)

    @property
    def job(self) -> Path:
        script = self.path / "job.py"
        script.write_text(WORDS)
        return script

    def _made(self, name: str, make: Callable[[Path, int], None]) -> Path:
        data = self.path / name
        if not data.exists():
            make(data, self.text_bytes)
        return data


#: Each workload makes its command line from the folder of a build's programs.
WORKLOADS: dict[str, Callable[[Path, Folder], Command]] = {
    "version": lambda bins, _: [bins / "gristmill", "--version"],
    "terasort": lambda bins, at: [bins / "gristmill", "terasort", at.records, at.out],
    "terasort-1g": lambda bins, at: [
        *(bins / "gristmill", "terasort", "--memory", "1G", at.records, at.out)
    ],
    "lines": lambda bins, at: [bins / "gristmill", "sort", at.lines, "-o", at.out],
    "words": lambda bins, at: [bins / "python", at.job, at.text, at.out],
    "cat": lambda bins, at: [
        *(bins / "gristmill", "streaming", "-D", "mapreduce.job.reduces=2", "--memory", "1G"),
        *("-input", at.text, "-output", at.out, "-mapper", "cat", "-reducer", "cat"),
    ],
}


def timed(command: Command, out: Path) -> Row:
    """One run: seconds on the clock, and seconds of user and kernel CPU of all its processes."""
    found = measured(command)
    shutil.rmtree(out) if out.is_dir() else out.unlink(missing_ok=True)
    os.sync()
    return found


def interval(ratios: list[float]) -> tuple[float, float]:
    """The values between which the true median lies with 95 percent certainty, by their order.

    Source: the sign test; with fewer than six values it is their whole range.
    """
    ordered, count = sorted(ratios), len(ratios)
    outside, rank = 0.0, 0
    while rank < count // 2:
        outside += 2 * comb(count, rank) / 2**count
        if outside > 0.05:
            break
        rank += 1
    rank = max(rank - 1, 0)
    return ordered[rank], ordered[count - 1 - rank]


def show(rows: list[Row]) -> None:
    """A line for each figure: medians of both builds, and of the ratios with their interval."""
    for figure in ("wall_s", "user_s"):
        before, after = (span(rows, figure, program=build) for build in ("before", "after"))
        ratio = Span(a / max(b, 1e-9) for a, b in zip(after.values, before.values, strict=True))
        low, high = interval(ratio.values)
        print(
            f"{rows[0]['what']:<12} {figure:<7} {before:9.3f} {after:9.3f}"
            f"   {ratio:.3f} x  ({low:.3f} to {high:.3f}, {len(ratio.values)} pairs)",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--before", type=Path, required=True, help="bin/ of the older build's venv")
    parser.add_argument("--after", type=Path, default=Path(sys.executable).parent, help="the newer")
    parser.add_argument("--only", default=",".join(WORKLOADS), help="workloads, with commas")
    parser.add_argument("--more", default="", help="options for the newer build alone")
    parser.add_argument("--pairs", type=int, default=11, help="pairs of each (11)")
    parser.add_argument("--rows", default="50m", help="records of TeraSort (50m)")
    parser.add_argument("--text", type=int, default=1000, help="MB of lines and of text (1000)")
    parser.add_argument("--dir", type=Path, default=Path(), help="where the data go (.)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the table goes")
    given = parser.parse_args()
    chosen = given.only.split(",")
    if unknown := [name for name in chosen if name not in WORKLOADS]:
        parser.error(f"--only: there is no {unknown[0]!r}; take some of {', '.join(WORKLOADS)}")
    rows: list[Row] = []
    builds = {"before": given.before.absolute(), "after": given.after.absolute()}
    more = {"before": [], "after": given.more.split()}
    with tempfile.TemporaryDirectory(prefix="gristmill-bench-", dir=given.dir.absolute()) as name:
        folder = Folder(Path(name), given.rows, given.text * 1_000_000)
        for workload in chosen:
            commands = {
                build: [*WORKLOADS[workload](bins, folder), *more[build]]
                for build, bins in builds.items()
            }
            for command in commands.values():
                timed(command, folder.out)
            pairs: list[dict[str, Row]] = []
            for number in range(given.pairs):
                order = sorted(builds, reverse=bool(number % 2))
                pairs.append({build: timed(commands[build], folder.out) for build in order})
            found = rows_of(pairs, what=workload, more=given.more)
            show(found)
            rows += found
    keep("pairs", rows, given.results)


if __name__ == "__main__":
    main()
