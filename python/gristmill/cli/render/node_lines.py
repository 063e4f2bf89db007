"""What `gristmill jobs show` says of the nodes of a cluster: nothing of a job on one machine.

nodes:
  NODE          ATTEMPTS     CPU   MEMORY  DEVICE READS   WRITES  OWN RUNS  RECEIVED ...
  10.0.0.2            12  0.62 s  58.4 MB        338 MB   334 MB    134 MB       0 B ...

bytes of runs, read by (down) and kept by (across):
"""

from gristmill.history import JobHistory
from gristmill.history.cluster import NodeTotal, lost_of, node_totals, reads_between
from gristmill.units import show_bytes, show_count, show_seconds

__all__ = ["node_lines"]

_IN_TABLE_MAX = 8
"""Nodes between which a table fits on a terminal."""

_HEAD = [
    *("NODE", "ATTEMPTS", "WASTED", "CPU", "MEMORY", "DEVICE READS", "WRITES"),
    *("OWN RUNS", "RECEIVED", "AS FILES", "SENT"),
]


def node_lines(history: JobHistory) -> list[str]:
    """Return the lines.

    Example:
        >>> node_lines(JobHistory(job_id="job_1"))
        []
    """
    totals = node_totals(history)
    if not totals:
        return []
    lines = ["", "nodes:", *_table([_HEAD, *map(_row, totals)])]
    names = [total.used.node for total in totals]
    reads = reads_between(history, names) if len(names) <= _IN_TABLE_MAX else []
    if reads:
        cells = [[name, *map(show_bytes, row)] for name, row in zip(names, reads, strict=True)]
        lines += ["", "bytes of runs, read by (down) and kept by (across):"]
        lines += _table([["", *names], *cells])
    lost = lost_of(history)
    if lost:
        counters = history.report["counters"]
        work = show_bytes(counters.get("LOST_TASK_ATTEMPT_BYTES", 0))
        amounts = ", ".join(show_count(number, what) for number, what in lost)
        lines += ["", f"lost: {amounts}; {work} of work"]
    return lines


def _row(total: NodeTotal) -> list[str]:
    used = total.used
    wasted = f"{total.wasted}, {show_bytes(total.wasted_bytes)}" if total.wasted else "-"
    moved = (used.disk_read_bytes, used.disk_write_bytes, used.own_bytes)
    moved += (used.received_bytes, used.file_bytes, used.sent_bytes)
    return [
        used.node + (" (lost)" if used.is_lost else ""),
        str(total.attempts),
        wasted,
        show_seconds(used.user_s + used.sys_s),
        show_bytes(total.peak_bytes),
        *map(show_bytes, moved),
    ]


def _table(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(["  " + name.ljust(widths[0]), *map(str.rjust, cells, widths[1:])])
        for name, *cells in rows
    ]
