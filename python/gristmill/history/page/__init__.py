"""A job's history as one HTML file: nothing is fetched, everything is in it.

    JobHistory ──▶ figures, columns (JSON) ──▶ page.html with page.css, page.js, uPlot ──▶ one file

Names and options come from users: they are JSON in the page, made text by the script, never markup.
uPlot draws the charts; it and its licence are in vendor/.
"""

import html
import json
from importlib.resources import files
from itertools import pairwise
from typing import Any

from gristmill.history.limits import uses
from gristmill.history.reader import JobHistory, Sample
from gristmill.units import show_bytes, show_count, show_rate, show_seconds

__all__ = ["render"]

_OUTCOMES = {None: 0, "succeeded": 1, "failed": 2, "killed": 3}
_LEAST_APART_MS = 50
_LAST_STAGES = ("reduce", "merge", "generate")


def render(history: JobHistory) -> str:
    """Return the page.

    Example:
        >>> page = render(JobHistory(job_id="</script><b>", command="sort"))
        >>> "<b>" in page, page.startswith("<!doctype html>")
        (False, True)
    """
    ours, vendor = files(__name__), files(__name__) / "vendor"
    data = json.dumps(_data(history), ensure_ascii=True, separators=(",", ":"))
    parts = {
        "@@title@@": html.escape(f"{history.command} {history.job_id} - Gristmill"),
        "@@css@@": (vendor / "uPlot.min.css").read_text() + (ours / "page.css").read_text(),
        "@@uplot@@": (vendor / "uPlot.iife.min.js").read_text(),
        "@@js@@": (ours / "page.js").read_text(),
        "@@data@@": data.replace("<", "\\u003c"),  # no end of a script, no comment inside it
    }
    head, *rest = (ours / "page.html").read_text().split("@@")
    page = [head]
    for name, text in zip(rest[::2], rest[1::2], strict=True):
        page += [parts[f"@@{name}@@"], text]
    return "".join(page)


def _data(history: JobHistory) -> dict[str, Any]:
    phases = list(dict.fromkeys(attempt.phase for attempt in history.attempts))
    number = {phase: place for place, phase in enumerate(phases)}
    unit, sizes = _parts(history)
    return {
        "job_id": history.job_id,
        "command": history.command,
        "state": history.state,
        "program": history.program,
        "unix_ms": history.unix_ms,
        "end_ms": history.end_ms,
        "figures": _figures(history),
        "error": history.error,
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
            for name, value in history.options.items()
            if value not in (None, False, [])
        ],
        "plan": history.plan,
        "phases": phases,
        "attempts": [
            [
                attempt.task,
                attempt.attempt,
                number[attempt.phase],
                attempt.start_ms,
                -1 if attempt.end_ms is None else attempt.end_ms,
                _OUTCOMES.get(attempt.outcome, 2),
            ]
            for attempt in history.attempts
        ],
        "errors": {
            f"{attempt.task}-{attempt.attempt}": attempt.error
            for attempt in history.attempts
            if attempt.error
        },
        "samples": _rates(history.samples),
        "parts": sizes,
        "parts_unit": unit,
    }


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
            ("CPU", f"{cpu_s:.2f} s" + (f", {cpu_s / work * 1e9:.2f} s/GB" if work else "")),
            ("Workers", str(number("workers"))),
            ("Memory", memory),
        ]
        if history.state == "succeeded":
            figures.append(("Proof", _proof(history)))
    return figures


def _proof(history: JobHistory) -> str:
    order = "" if history.command == "teragen" else "in order, "
    return (
        f"{order}checksum {history.report.get('checksum')},"
        f" {show_count(history.number('duplicate_keys'), 'duplicate key')}"
    )


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
