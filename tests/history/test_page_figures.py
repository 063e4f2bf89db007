"""Figures of the page are those of the events: what ran at once, a resumed job, what parts hold."""

import json
from pathlib import Path
from typing import Any

from gristmill.cli.render.job_shown import shown
from gristmill.history import JobHistory, load
from gristmill.history.model import Attempt
from gristmill.history.page import render
from gristmill.history.page.page_data import sample_rates

from .harness import Browser, Event, submitted, write_history


def _data(page: str) -> dict[str, Any]:
    _, _, rest = page.partition('id="data">')
    found: dict[str, Any] = json.loads(rest.partition("</script>")[0])
    return found


def test_no_more_run_at_once_than_did(browser: Browser, tmp_path: Path) -> None:
    """Attempts of 3 ms, one after another on two workers, in bins of 11 ms."""
    events = [
        submitted("job_1"),
        {"t_ms": 0, "event": "phase_started", "name": "map", "tasks": 4400, "bytes": 7},
    ]
    for task in range(4400):
        one = {"task": task, "attempt": 0}
        start = task // 2 * 3
        events.append({"t_ms": start, "event": "attempt_started", "phase": "map", **one})
        done = {"event": "attempt_finished", "outcome": "succeeded", **one}
        events.append({"t_ms": start + 3, **done})
    events.append({"t_ms": 6600, "event": "job_finished", "status": "succeeded", "report": {}})
    page = tmp_path / "page.html"
    page.write_text(render(load(write_history(tmp_path, "job_1", events))))
    script = """
        const {series, times} = running(attempts, job.phases), step = times[1] - times[0];
        say([Math.max(...series[0]), series[0].reduce((a, b) => a + b, 0) * step]);
    """
    most, seconds = browser.act(page, script)
    assert most <= 2.001
    assert abs(seconds - 4400 * 0.003) < 0.05


def _resumed() -> list[Event]:
    def sample(t_ms: int, cpu_s: float, machine_s: float) -> Event:
        machine = {"user_s": machine_s, "sys_s": 0.0, "idle_s": 2 * t_ms / 1000 - machine_s}
        used = {"user_s": cpu_s, "sys_s": 0.0, "machine": machine}
        return {"t_ms": t_ms, "event": "sample", **used}

    begun = {"event": "attempt_started", "attempt": 0, "phase": "spill"}
    report = {"wall_s": 3.0, "user_s": 0.4, "sys_s": 0.1, "input_bytes": 500_000_000, "workers": 2}
    counters = {"KEPT_TASKS": 1}
    return [
        submitted("job_1"),
        {"t_ms": 0, "event": "phase_started", "name": "spill", "tasks": 2, "bytes": 7},
        {**begun, "t_ms": 0, "task": 0},
        sample(0, 0.0, 0.0),
        sample(1000, 0.5, 2.0),
        {"t_ms": 1500, "event": "job_resumed"},
        {"t_ms": 1500, "event": "phase_started", "name": "spill", "tasks": 2, "bytes": 7},
        sample(1600, 0.1, 40.0),
        sample(2600, 0.2, 42.04),  # ticks: a little more than two processors
        {
            "t_ms": 4500,
            "event": "job_finished",
            "status": "succeeded",
            "report": {**report, "counters": counters},
        },
    ]


def test_a_resumed_job_is_that_of_both_processes(tmp_path: Path) -> None:
    history = load(write_history(tmp_path, "job_1", _resumed()))
    assert (history.wall_s, history.processes_s, history.cpu_s) == (4.5, [1.5, 3.0], 1.0)
    data = _data(render(history))
    figures = dict(data["figures"])
    assert figures["Time"] == "4.50 s in 2 processes (1.50 s, 3.00 s)"
    assert figures["Rate"] == "111 MB/s"
    assert figures["CPU"] == "1.00 s, 2.00 s/GB"
    assert [use["name"] for use in data["uses"]] == ["spill", "spill (process 2)"]
    assert data["resumed_ms"] == [1500]
    lines = "\n".join(shown(history))
    assert "took 4.50 s in 2 processes (1.50 s, 3.00 s)" in lines
    assert "0 attempts failed, 1 killed:" in lines


def test_samples_do_not_bridge_a_resume_nor_pass_the_processors(tmp_path: Path) -> None:
    history = load(write_history(tmp_path, "job_1", _resumed()))
    rates = [(row[0], row[3]) for row in sample_rates(history.samples, history.resumed_ms)]
    assert rates == [(0.0, 2.0), (1.0, 2.0), (2.6, 2.0)]


def test_the_line_of_a_resume_is_drawn(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(render(load(write_history(tmp_path, "job_1", _resumed()))))
    script = """
        const plot = charts.find((one) => one.timed).plot, x = plot.valToPos(1.5, 'x', true);
        const {data} = plot.ctx.getImageData(x, plot.bbox.top + plot.bbox.height / 2, 1, 1);
        say([document.getElementById('resumed-caption').textContent, data[3]]);
    """
    caption, opaque = browser.act(page, script)
    assert "another resumed the job (at 1.50 s)" in caption
    assert opaque == 255


def test_a_failed_job_says_what_it_has_read(tmp_path: Path) -> None:
    begun = {"event": "attempt_started", "attempt": 0, "phase": "map"}
    ended = {"event": "attempt_finished", "attempt": 0}
    plan = {"mode": "runs", "reason": "", "input_bytes": 36_600_000}
    done = {"outcome": "succeeded", "bytes": 20_000_000}
    report = {"wall_s": 1.0, "error": {"message": "it broke"}, "records": 0, "input_bytes": 0}
    events = [
        submitted("job_1"),
        {"t_ms": 0, "event": "job_planned", "plan": plan},
        {"t_ms": 0, "event": "phase_started", "name": "map", "tasks": 2, "bytes": 7},
        {**begun, "t_ms": 0, "task": 0},
        {**begun, "t_ms": 0, "task": 1},
        {**ended, "t_ms": 5, "task": 0, **done, "counters": {"MAP_INPUT_RECORDS": 356_342}},
        {**ended, "t_ms": 9, "task": 1, "outcome": "failed", "bytes": 1_700_000, "error": "no"},
        {"t_ms": 9, "event": "job_finished", "status": "failed", "report": report},
    ]
    history = load(write_history(tmp_path, "job_1", events))
    said = "356,342 records, 21.7 MB of 36.6 MB"
    figures = dict(_data(render(history))["figures"])
    assert figures["Read"] == said
    assert "Rate" not in figures
    assert f"read {said}" in shown(history)


def test_parts_of_a_hash_are_not_in_the_order_of_keys(browser: Browser, tmp_path: Path) -> None:
    sizes = [28_700, 18_700, 35_600, 7_560]
    attempts = [
        Attempt(
            task=task, attempt=0, phase="reduce", start_ms=0, end_ms=9, outcome="succeeded",
            counters={
                "FILE_BYTES_READ": size, "FILE_BYTES_WRITTEN": 31_000, "REDUCE_INPUT_RECORDS": 9,
            },
        )
        for task, size in enumerate(sizes)
    ]  # fmt: skip
    history = JobHistory(job_id="job_1", command="streaming", attempts=attempts)
    data = _data(render(history))
    assert data["parts"] == [
        ["bytes read", "bytes", sizes],
        ["bytes written", "bytes", [31_000] * 4],
        ["records read", "records", [9] * 4],
    ]
    caption = data["parts_caption"]
    assert "a hash of the key" in caption
    assert "order of the keys" not in caption
    assert "bytes read: the largest is 1.5 times the median" in caption
    history.plan = {"buckets": 4}
    assert "in the order of the keys" in _data(render(history))["parts_caption"]
    page = tmp_path / "page.html"
    page.write_text(render(history))
    script = "say([...document.querySelectorAll('#parts .uplot')].map((e) => e.innerText))"
    drawn = browser.act(page, script)
    assert ["bytes written" in text for text in drawn] == [True, False]
    assert "records read" in drawn[1]
