"""Histories as HTML files: nothing is fetched, everything is in one file.

    JobHistory ──▶ facts, columns (JSON) ──▶ page.html, its scripts, uPlot ──▶ one file
    two of them ──▶ pair.py, differences ──▶ pair.html, likewise

Names and options come from users: they are JSON in the page, made text by the script, never markup.
uPlot draws the charts; it and its licence are in vendor/.
"""

# Decision: docs/decisions/report-charts.md.

import json
from statistics import median
from typing import Any

from gristmill.history.limits import named_uses
from gristmill.history.model import JobHistory
from gristmill.history.page.filled import filled
from gristmill.history.page.on_nodes import on_nodes
from gristmill.history.page.page_data import (
    attempt_columns,
    ending_of,
    facts_of,
    figures_of,
    head_and_tail,
    numbered,
    sample_rates,
)
from gristmill.names import show_texts

__all__ = ["render"]

_SCRIPTS = ("tell.js", "text.js", "attempts.js", "plot.js", "nodes.js", "charts.js")
_DETAILS = {
    "stderr": "The end of its stderr",
    "stdout": "The end of its stdout",
    "retry": "To try it again alone",
    "again": "To try it again alone",
}
_LAST_STAGES = ("reduce", "merge", "generate")
_PART_SERIES = (
    ("bytes read", "bytes", "FILE_BYTES_READ"),
    ("bytes written", "bytes", "FILE_BYTES_WRITTEN"),
    ("records read", "records", "REDUCE_INPUT_RECORDS"),
    ("records made", "records", "MAP_OUTPUT_RECORDS"),
)


def render(history: JobHistory) -> str:
    """Return the page.

    Example:
        >>> page = render(JobHistory(job_id="</script><b>", command="sort"))
        >>> "<b>" in page, page.startswith("<!doctype html>")
        (False, True)
    """
    title = f"{history.command} {history.job_id} - Gristmill"
    return filled("page.html", title, _data(history), _SCRIPTS)


def _data(history: JobHistory) -> dict[str, Any]:
    number = numbered(attempt.phase for attempt in history.attempts)
    heads = numbered(head_and_tail(attempt.input)[0] for attempt in history.attempts)
    return {
        "job_id": history.job_id,
        "name": history.name,
        "command": history.command,
        "state": history.state,
        "program": history.program,
        "unix_ms": history.unix_ms,
        "end_ms": history.end_ms,
        "resumed_ms": history.resumed_ms,
        "facts": facts_of(history),
        "figures": figures_of(history),
        "error": ending_of(history),
        "details": _details(history),
        "uses": [
            {
                "name": name,
                "seconds": use.seconds,
                "limit": use.limit,
                "busy": use.busy,
                "steal": use.steal,
                "read_rate": use.read_rate,
                "write_rate": use.write_rate,
            }
            for name, use in named_uses(history)
        ],
        "counters": [
            *([name, *sides] for name, sides in history.counters().items()),
            *(
                [f"{group}: {name}", None, None, total]
                for group, counters in history.user_counters().items()
                for name, total in counters.items()
            ),
        ],
        "left_out": history.report.get("left_out", []),
        "options": [
            [name, value if isinstance(value, str) else json.dumps(value)]
            for name, value in show_texts(history.other_options()).items()
        ],
        "plan": history.plan,
        "phases": list(number),
        "attempts": attempt_columns(history.attempts, number, heads),
        "input_heads": list(heads),
        "errors": {
            place: attempt.error for place, attempt in enumerate(history.attempts) if attempt.error
        },
        "samples": sample_rates(history.samples, history.resumed_ms),
        **on_nodes(history),
        **_parts(history),
    }


def _details(history: JobHistory) -> list[tuple[str, str]]:
    """What is known of a failure beside its message: a traceback, output, how to try it again."""
    failure: dict[str, Any] = history.report.get("error") or {}
    details: dict[str, str] = dict(failure.get("details") or {})
    if "retry" in details:  # the number of the task that failed
        details["retry"] = f"gristmill retry {history.job_id}"
    names = sorted(details, key=lambda name: name != "traceback")
    return [(_DETAILS.get(name, name.capitalize()), details[name].rstrip()) for name in names]


def _parts(history: JobHistory) -> dict[str, Any]:
    """What each task of the last stage read and wrote, as far as that is known, and what a task is.

    Example:
        >>> _parts(JobHistory(job_id="job_1"))
        {'parts': [], 'parts_caption': ''}
    """
    for stage in _LAST_STAGES:
        done = [a for a in history.attempts if a.phase == stage and a.outcome == "succeeded"]
        done.sort(key=lambda attempt: attempt.task)
        series = [
            [name, unit, [attempt.counters.get(counter, 0) for attempt in done]]
            for name, unit, counter in _PART_SERIES
            if done and counter in done[0].counters
        ]
        if series:
            return {
                "parts": series,
                "parts_caption": f"{_what_parts(history, stage)}{_skew(series)}",
            }
    return {"parts": [], "parts_caption": ""}


def _what_parts(history: JobHistory, stage: str) -> str:
    if stage == "generate":
        return "Each task, in the order of the files"
    if history.plan.get("buckets"):
        return "Each task of the last stage, in the order of the keys"
    return (
        "Each partition, by its number; a hash of the key chooses it, or the job's own partitioner"
    )


def _skew(series: list[list[Any]]) -> str:
    """How uneven the first series is."""
    name, _, sizes = series[0]
    middle = median(sizes)
    return f". {name}: the largest is {max(sizes) / middle:.1f} times the median" if middle else ""
