"""The counters of a job with scripts, as Hadoop's client prints them when the job is over."""

import time

from gristmill.report import JobReport

__all__ = ["counter_lines"]


def counter_lines(report: JobReport, output: object) -> list[str]:
    """Return Hadoop's counters, in its layout, and where the output is."""
    groups = {"Map-Reduce Framework": dict(report.counters), **report.user_counters}
    count = sum(map(len, groups.values()))
    # A line of a log, as programs that read Hadoop's expect it: mrjob does.
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    lines = [f"{now} INFO mapreduce.Job: Counters: {count}"]
    for group, counters in groups.items():
        lines.append(f"\t{group}")
        lines += [f"\t\t{name}={amount}" for name, amount in sorted(counters.items())]
    lines.append(
        f"{now} INFO streaming.StreamJob: Output directory: {output} ({report.wall_s:.1f} s)"
    )
    return lines
