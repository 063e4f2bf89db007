"""A job that put out nothing, though it read something: said at its end.

The usual cause is a function that lacks a `yield`. A job whose functions count, or left records
out, did something else.
"""

from dataclasses import replace

from gristmill.mapreduce.functions import name_of
from gristmill.mapreduce.results.result import LEFT_OUT, Part
from gristmill.mapreduce.spec import Spec
from gristmill.report import JobReport
from gristmill.units import show_count

__all__ = ["said_if_nothing"]


def said_if_nothing(report: JobReport, job: Spec, parts: tuple[Part, ...]) -> JobReport:
    """Return the report of a job, with a warning if it put out nothing."""
    counted = report.counters
    left_out = any(counted.get(name, 0) for name in LEFT_OUT)
    if any(part.records for part in parts) or report.user_counters or left_out:
        return report
    read, mapped = counted.get("MAP_INPUT_RECORDS", 0), counted.get("MAP_OUTPUT_RECORDS", 0)
    groups = counted.get("REDUCE_INPUT_GROUPS", 0)
    if groups:
        which, of = _named("reduce", job.reduce or job.reduce_batches), show_count(groups, "key")
    elif mapped:
        which, of = _named("combine", job.combine), show_count(mapped, "pair")
    elif read:
        which, of = _named("map", job.map or job.map_batches), show_count(read, "record")
    else:
        return report
    said = (
        f"the output is empty: {which} put out nothing for {of}. Does it lack a yield or a return?"
    )
    return replace(report, warnings=(*report.warnings, said))


def _named(role: str, function: object) -> str:
    return f"{role} {name_of(function)}" if callable(function) else role
