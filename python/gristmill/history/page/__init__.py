"""Histories as HTML files: nothing is fetched, everything is in one file.

    JobHistory ──▶ facts, columns (JSON) ──▶ page.html, its scripts, uPlot ──▶ one file
    two of them ──▶ pair.py, differences ──▶ pair.html, likewise

Names and options come from users: they are JSON in the page, made text by the script, never markup.
uPlot draws the charts; it and its licence are in vendor/.
"""

# Decision: docs/decisions/report-charts.md.

import json
from typing import Any

from gristmill.history.limits import uses
from gristmill.history.page.filled import filled
from gristmill.history.page.on_nodes import on_nodes
from gristmill.history.page.told import (
    attempt_columns,
    ending_of,
    facts_of,
    figures_of,
    head_and_tail,
    numbered,
    sample_rates,
)
from gristmill.history.reader import JobHistory
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
    unit, sizes = _parts(history)
    return {
        "job_id": history.job_id,
        "name": history.name,
        "command": history.command,
        "state": history.state,
        "program": history.program,
        "unix_ms": history.unix_ms,
        "end_ms": history.end_ms,
        "facts": facts_of(history),
        "figures": figures_of(history),
        "error": ending_of(history),
        "details": _details(history),
        "uses": [
            {
                "name": use.name,
                "seconds": use.seconds,
                "limit": use.limit,
                "busy": use.busy,
                "steal": use.steal,
                "read_rate": use.read_rate,
                "write_rate": use.write_rate,
            }
            for use in uses(history)
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
        "samples": sample_rates(history.samples),
        **on_nodes(history),
        "parts": sizes,
        "parts_unit": unit,
    }


def _details(history: JobHistory) -> list[tuple[str, str]]:
    """What is known of a failure beside its message: a traceback, output, how to try it again."""
    failure: dict[str, Any] = history.report.get("error") or {}
    details: dict[str, str] = dict(failure.get("details") or {})
    if "retry" in details:  # the number of the task that failed
        details["retry"] = f"gristmill retry {history.job_id}"
    names = sorted(details, key=lambda name: name != "traceback")
    return [(_DETAILS.get(name, name.capitalize()), details[name].rstrip()) for name in names]


def _parts(history: JobHistory) -> tuple[str, list[int]]:
    """What each task of the last stage wrote, and in which unit that is known."""
    for stage in _LAST_STAGES:
        done = [a for a in history.attempts if a.phase == stage and a.outcome == "succeeded"]
        done.sort(key=lambda attempt: attempt.task)
        for unit, counter in (
            ("bytes", "FILE_BYTES_WRITTEN"),
            ("records", "REDUCE_OUTPUT_RECORDS"),
            ("records", "MAP_OUTPUT_RECORDS"),
        ):
            if done and counter in done[0].counters:
                return unit, [attempt.counters.get(counter, 0) for attempt in done]
    return "bytes", []
