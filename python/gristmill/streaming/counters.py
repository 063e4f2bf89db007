"""The counters of a job with scripts, as Hadoop's client prints them when the job is over."""

from gristmill.report import JobReport
from gristmill.streaming.client_log import log_line

__all__ = ["counter_lines"]


def counter_lines(report: JobReport, output: object, *, timed: bool = True) -> list[str]:
    """Return Hadoop's counters, in its layout, and where the output is.

    Args:
        report: The job's.
        output: Its output.
        timed: Whether to say how long it took, which Hadoop does not.
    """
    groups = {"Map-Reduce Framework": dict(report.counters), **report.user_counters}
    count = sum(map(len, groups.values()))
    # A line of a log, as programs that read Hadoop's expect it: mrjob does.
    lines = [log_line(f"Counters: {count}")]
    for group, counters in groups.items():
        lines.append(f"\t{group}")
        lines += [f"\t\t{name}={amount}" for name, amount in sorted(counters.items())]
    took = f" ({report.wall_s:.1f} s)" if timed else ""
    lines.append(log_line(f"Output directory: {output}{took}", logger="streaming.StreamJob"))
    return lines
