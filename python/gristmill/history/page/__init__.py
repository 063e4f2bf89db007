"""A job's history as one HTML file: nothing is fetched, everything is in it.

    JobHistory ──▶ facts, columns (JSON) ──▶ page.html, its scripts, uPlot ──▶ one file

Names and options come from users: they are JSON in the page, made text by the script, never markup.
uPlot draws the charts; it and its licence are in vendor/.
"""

# Decision: docs/decisions/report-charts.md.

import html
import json
from collections.abc import Iterable
from importlib.resources import files
from itertools import pairwise
from typing import Any

from gristmill.history.limits import uses
from gristmill.history.page.on_nodes import on_nodes
from gristmill.history.proof import proved
from gristmill.history.reader import Attempt, JobHistory, Sample
from gristmill.names import quote, show_texts
from gristmill.units import show_bytes, show_count, show_cpu, show_rate, show_seconds

__all__ = ["render"]

_OUTCOMES = {None: 0, "succeeded": 1, "failed": 2, "killed": 3}
_SCRIPTS = ("text.js", "attempts.js", "nodes.js", "charts.js")
_LEAST_APART_MS = 50
_MOST_INPUTS = 20
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
    ours, vendor = files(__name__), files(__name__) / "vendor"
    data = json.dumps(show_texts(_data(history)), ensure_ascii=True, separators=(",", ":"))
    parts = {
        "@@title@@": html.escape(f"{history.command} {history.job_id} - Gristmill"),
        "@@css@@": (vendor / "uPlot.min.css").read_text() + (ours / "page.css").read_text(),
        "@@uplot@@": (vendor / "uPlot.iife.min.js").read_text(),
        "@@js@@": "".join((ours / script).read_text() for script in _SCRIPTS),
        "@@data@@": data.replace("<", "\\u003c"),  # no end of a script, no comment inside it
    }
    head, *rest = (ours / "page.html").read_text().split("@@")
    page = [head]
    for name, text in zip(rest[::2], rest[1::2], strict=True):
        page += [parts[f"@@{name}@@"], text]
    return "".join(page)


def _data(history: JobHistory) -> dict[str, Any]:
    number = _numbered(attempt.phase for attempt in history.attempts)
    heads = _numbered(_head_and_tail(attempt.input)[0] for attempt in history.attempts)
    unit, sizes = _parts(history)
    return {
        "job_id": history.job_id,
        "name": history.name,
        "command": history.command,
        "state": history.state,
        "program": history.program,
        "unix_ms": history.unix_ms,
        "end_ms": history.end_ms,
        "facts": _facts(history),
        "figures": _figures(history),
        "error": _ending(history),
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
        "counters": [[name, *sides] for name, sides in history.counters().items()],
        "options": [
            [name, value if isinstance(value, str) else json.dumps(value)]
            for name, value in show_texts(history.other_options()).items()
        ],
        "plan": history.plan,
        "phases": list(number),
        "attempts": _columns(history.attempts, number, heads),
        "input_heads": list(heads),
        "errors": {
            place: attempt.error for place, attempt in enumerate(history.attempts) if attempt.error
        },
        "samples": _rates(history.samples),
        **on_nodes(history),
        "parts": sizes,
        "parts_unit": unit,
    }


def _numbered(names: Iterable[str]) -> dict[str, int]:
    """Each name with its place among those that differ."""
    return {name: place for place, name in enumerate(dict.fromkeys(names))}


def _columns(
    attempts: list[Attempt], phases: dict[str, int], heads: dict[str, int]
) -> dict[str, list[Any]]:
    """What there is to say of attempts, a list for each fact; -1 stands for what is not known."""
    return {
        "task": [a.task for a in attempts],
        "attempt": [a.attempt for a in attempts],
        "phase": [phases[a.phase] for a in attempts],
        "start": [a.start_ms for a in attempts],
        "took": [-1 if a.end_ms is None else a.end_ms - a.start_ms for a in attempts],
        "outcome": [_OUTCOMES.get(a.outcome, 2) for a in attempts],
        "bytes": [a.bytes for a in attempts],
        "records": [-1 if a.records is None else a.records for a in attempts],
        "input_head": [heads[_head_and_tail(a.input)[0]] for a in attempts],
        "input_tail": [_head_and_tail(a.input)[1] for a in attempts],
    }


def _head_and_tail(text: str) -> tuple[str, str]:
    """What many attempts have in common, such as a file's name, and the rest."""
    head, comma, tail = text.partition(", ")
    return head + comma, tail


def _facts(history: JobHistory) -> list[tuple[str, str]]:
    """What the user asked for, and where: what is not known is left out."""
    inputs = history.inputs[:_MOST_INPUTS]
    if len(history.inputs) > _MOST_INPUTS:
        inputs.append(f"and {len(history.inputs) - _MOST_INPUTS:,} more")
    facts = [
        ("Command line", " ".join(map(quote, history.argv))),
        ("Directory", history.cwd),
        ("Host", history.host),
        ("Inputs", ", ".join(inputs)),
        ("Output", history.output),
    ]
    return [(name, value) for name, value in facts if value]


def _ending(history: JobHistory) -> str | None:
    """Why the job did not come to its end, if it did not."""
    if history.state != "dead":
        return history.error
    if history.resumable:
        return f"Its process died. What to do: gristmill resume {history.job_id}."
    return "Its process died, and it cannot be resumed. What to do: run it again."


def _details(history: JobHistory) -> list[tuple[str, str]]:
    """What is known of a failure beside its message: a traceback, output, how to try it again."""
    failure: dict[str, Any] = history.report.get("error") or {}
    details: dict[str, str] = dict(failure.get("details") or {})
    if "retry" in details:  # the number of the task that failed
        details["retry"] = f"gristmill retry {history.job_id}"
    names = sorted(details, key=lambda name: name != "traceback")
    return [(_DETAILS.get(name, name.capitalize()), details[name].rstrip()) for name in names]


def _figures(history: JobHistory) -> list[tuple[str, str]]:
    report = history.report
    took_s = history.wall_s
    figures = [("Time", show_seconds(took_s))]
    if report:
        work, number = history.work_bytes, history.number
        cpu_s = float(report.get("user_s", 0)) + float(report.get("sys_s", 0))
        memory = f"{show_bytes(number('peak_anon_bytes'))} of {show_bytes(number('memory_bytes'))}"
        figures += [
            ("Records", show_count(number("records"), "record")),
            ("Input", show_bytes(number("input_bytes"))),
            ("Output", show_bytes(number("output_bytes"))),
            ("Rate", show_rate(work, took_s)),
            ("CPU", show_cpu(cpu_s, work)),
            ("Workers", str(number("workers"))),
            ("Memory", memory),
        ]
        if history.state == "succeeded":
            figures.append(("Proof", proved(history.command, report)))
    return figures


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


def _rates(samples: list[Sample]) -> list[list[float]]:
    """For each sample its time; CPU in processors, memory in bytes, transfers in bytes per second.

    The order is that of the script: user, kernel, machine, iowait, steal; anonymous, mapped,
    reserved; reads, writes, received, sent.
    """
    rows: list[list[float]] = []
    apart = samples[:1]
    apart += [now for before, now in pairwise(samples) if now.t_ms - before.t_ms >= _LEAST_APART_MS]
    for before, now in pairwise(apart):
        between = max(now.t_ms - before.t_ms, 1) / 1000

        def rate(
            name: str, before: Sample = before, now: Sample = now, between: float = between
        ) -> float:
            return round(max(getattr(now, name) - getattr(before, name), 0) / between, 3)

        machine = {
            name: max(value - before.machine.get(name, value), 0) / between
            for name, value in now.machine.items()
        }
        rows.append(
            [
                now.t_ms / 1000,
                rate("user_s"),
                rate("sys_s"),
                round(machine.get("user_s", 0) + machine.get("sys_s", 0), 3),
                round(machine.get("iowait_s", 0), 3),
                round(machine.get("steal_s", 0), 3),
                now.anon_bytes,
                now.mapped_bytes,
                now.budget_bytes,
                rate("disk_read_bytes"),
                rate("disk_write_bytes"),
                rate("net_rx_bytes"),
                rate("net_tx_bytes"),
            ]
        )
    return [[0.0, *rows[0][1:]], *rows] if rows else rows
