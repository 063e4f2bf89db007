"""Two jobs on one page, aligned: second 0 of the axis is where each of them began.

JobHistory A ─┐
JobHistory B ─┴─▶ differences, columns of both (JSON) ──▶ pair.html, its scripts ──▶ one file
"""

from collections.abc import Sequence
from typing import Any

from gristmill.history.model import JobHistory
from gristmill.history.page.differences import differences
from gristmill.history.page.filled import filled
from gristmill.history.page.page_data import ending_of, facts_of, numbered, sample_rates

__all__ = ["render_pair"]

_SCRIPTS = ("tell.js", "plot.js", "pair.js")
_OUTCOMES = {None: 0, "succeeded": 1, "failed": 2, "killed": 3}


def render_pair(a: JobHistory, b: JobHistory, lost: Sequence[tuple[str, float, float]] = ()) -> str:
    """Return the page.

    Args:
        a: The first job.
        b: The one that is held against it.
        lost: What took time that was no work: in words, seconds of A and of B.

    Example:
        >>> a, b = (JobHistory(job_id=f"job_{n}", command="</script><b>") for n in (1, 2))
        >>> page = render_pair(a, b)
        >>> "<b>" in page, page.startswith("<!doctype html>")
        (False, True)
    """
    phases = numbered(
        [span.name for one in (a, b) for span in one.phases]
        + [attempt.phase for one in (a, b) for attempt in one.attempts]
    )
    found = differences(a, b)
    data = {
        "phases": list(phases),
        "end_ms": max(a.end_ms, b.end_ms),
        "jobs": [_job(one, phases) for one in (a, b)],
        "sentences": found.sentences,
        "figures": found.figures,
        "spans": found.phases,
        "lost": lost,
        "options": found.options,
        "counters": found.counters,
    }
    title = f"{a.job_id} and {b.job_id} - Gristmill"
    return filled("pair.html", title, data, _SCRIPTS)


def _job(history: JobHistory, phases: dict[str, int]) -> dict[str, Any]:
    end_ms = history.end_ms
    return {
        "job_id": history.job_id,
        "name": history.name,
        "command": history.command,
        "state": history.state,
        "program": history.program,
        "unix_ms": history.unix_ms,
        "end_ms": end_ms,
        "facts": facts_of(history),
        "error": ending_of(history),
        "spans": [
            [phases[one.name], one.start_ms, end_ms if one.end_ms is None else one.end_ms]
            for one in history.phases
        ],
        "attempts": {
            "phase": [phases[one.phase] for one in history.attempts],
            "start": [one.start_ms for one in history.attempts],
            "end": [end_ms if one.end_ms is None else one.end_ms for one in history.attempts],
            "outcome": [_OUTCOMES.get(one.outcome, 2) for one in history.attempts],
        },
        "samples": sample_rates(history.samples, history.resumed_ms),
    }
