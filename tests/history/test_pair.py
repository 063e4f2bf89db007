"""Two jobs on one page: what differs, in words and in charts on one time axis."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.cli.harness import run

from gristmill.history import load
from gristmill.history.page.differences import differences
from gristmill.history.page.pair import render_pair

from .harness import Browser, Event, submitted, write_history

HOSTILE = """</script><img src=x onerror="document.title='owned'"><!--<b>&amp;"""

Task = tuple[str, int, int, str]


def _job(tasks: Sequence[Task], *, end_ms: int, memory: str = "64M", **fields: Any) -> list[Event]:  # noqa: ANN401
    """Of tasks: phase, beginning and end in milliseconds, outcome."""
    spec = {"sort": {"inputs": ["in"], "memory": memory}}
    events = [submitted("job_1", **{"spec": spec, **fields})]
    for name in dict.fromkeys(phase for phase, *_ in tasks):
        of = [task for task in tasks if task[0] == name]
        begun = {"name": name, "tasks": len(of), "bytes": 10}
        events.append({"t_ms": min(task[1] for task in of), "event": "phase_started", **begun})
    for number, (phase, start, end, outcome) in enumerate(tasks):
        name: Event = {"task": number, "attempt": 0}
        events.append({"t_ms": start, "event": "attempt_started", **name, "phase": phase})
        events.append({"t_ms": end, "event": "attempt_finished", **name, "outcome": outcome})
    for t_ms in range(0, end_ms + 1, 500):
        moved = {"user_s": t_ms / 1000, "disk_read_bytes": t_ms * 10**5, "anon_bytes": 10**7}
        events.append({"t_ms": t_ms, "event": "sample", **moved})
    report = {"wall_s": end_ms / 1000, "workers": 2, "input_bytes": 10**9, "user_s": end_ms / 1000}
    events.append(
        {"t_ms": end_ms, "event": "job_finished", "status": "succeeded", "report": report}
    )
    return sorted(events, key=lambda event: event["t_ms"])


def test_counters_of_functions_are_compared(tmp_path: Path) -> None:
    a, b = (
        load(write_history(tmp_path / name, "job_1", [submitted("job_1"), ended]))
        for name, ended in (("a", _counting(lines=3)), ("b", _counting(lines=4, other=1)))
    )
    assert differences(a, b).counters == [["Z", 7, 7], ["A: lines", 3, 4], ["A: other", None, 1]]


def _counting(**counters: int) -> Event:
    report = {"counters": {"Z": 7}, "user_counters": {"A": counters}}
    return {"t_ms": 9, "event": "job_finished", "status": "succeeded", "report": report}


SPILLS = _job(
    [
        ("spill", 0, 4000, "succeeded"),
        ("spill", 0, 4000, "failed"),
        ("merge", 4000, 9000, "succeeded"),
    ],
    end_ms=10_000,
)
IN_MEMORY = _job(
    [
        ("map", 0, 2000, "succeeded"),
        ("map", 0, 2500, "succeeded"),
        ("merge", 2500, 4000, "succeeded"),
    ],
    end_ms=5000,
    memory="2G",
)


def _said(tmp_path: Path, a: list[Event], b: list[Event]) -> list[str]:
    of_a, of_b = (
        load(write_history(tmp_path, f"job_{name}", events))
        for name, events in (("a", a), ("b", b))
    )
    return differences(of_a, of_b).sentences


def _page(tmp_path: Path, a: list[Event], b: list[Event]) -> Path:
    page = tmp_path / "page.html"
    of_a, of_b = (
        load(write_history(tmp_path, f"job_{name}", events))
        for name, events in (("a", a), ("b", b))
    )
    page.write_text(render_pair(of_a, of_b))
    return page


def test_what_differs_is_said(tmp_path: Path) -> None:
    assert _said(tmp_path, SPILLS, IN_MEMORY) == [
        "B took 5.00 s, A 10.0 s: B was 2.00 times as fast.",
        "Phases of B against those of A: merge 3.50 s shorter.",
        "Only A has spill (4.00 s).",
        "Only B has map (2.50 s).",
        "Option memory: 64M in A, 2G in B.",
        "Failed or killed: 1 attempt of 4.00 s together in A, none in B.",
        "CPU seconds: 10.0 s in A, 5.00 s in B.",
    ]


def test_times_that_are_near_are_told_as_alike(tmp_path: Path) -> None:
    assert _said(tmp_path, IN_MEMORY, IN_MEMORY) == [
        "B took 5.00 s, A 5.00 s: 0 % apart, as single runs may be by chance."
    ]


@pytest.mark.parametrize(
    ("state", "told"),
    [("failed", "B failed: its 5.00 s are not"), ("cancelled", "B was cancelled: its 5.00 s")],
)
def test_a_job_that_did_not_end_well_is_named(tmp_path: Path, state: str, told: str) -> None:
    broken = [*IN_MEMORY[:-1], {**IN_MEMORY[-1], "status": state}]
    assert _said(tmp_path, SPILLS, broken)[0].startswith(told)


def test_a_job_that_was_killed_and_another_command_are_named(tmp_path: Path) -> None:
    grep = _job([("map", 0, 900, "succeeded")], end_ms=1000, command="grep", spec={"grep": {}})
    said = _said(tmp_path, grep, IN_MEMORY[:-1])
    assert said[0] == "A is a job of grep, B of sort: they do different things."
    assert said[1].startswith("B was killed: its 5.00 s are not those of a whole job")


def test_both_are_drawn_on_one_axis(browser: Browser, tmp_path: Path) -> None:
    page = _page(tmp_path, SPILLS, IN_MEMORY)
    text = page.read_text()
    assert "http://" not in text.replace("http://www.w3.org", "")
    script = """
      const axis = ({plot}) => [plot.scales.x.min, plot.scales.x.max];
      const heights = [0, 1].map((at) => charts[1 + at].plot.scales.y.max);
      const columns = aligned([6]).map((column) => column.length);
      say([charts.map(axis), heights, columns, $("sentences").innerText]);"""
    drawn, heights, columns, sentences = browser.act(page, script)
    assert drawn == [[0, 10]] * 7
    assert heights[0] == heights[1] > 2
    assert len(set(columns)) == 1
    assert "B was 2.00 times as fast" in sentences
    shown = browser.show(page)
    assert shown.body.get("data-drawn") == "yes"
    assert shown.tags.count("canvas") == 7
    for expected in ("only", "spill", "merge", "64M", "2G", "A held back by"):
        assert expected in shown.text.lower() or expected in shown.text


KILLED: list[Task] = [("spill", 0, 4000, "succeeded"), ("merge", 4000, 9000, "killed")]

_WIDTHS = """
const wide = [...document.querySelectorAll("body *")].filter(
  (e) => e.getBoundingClientRect().right > innerWidth && !e.closest(".wide, pre"));
say([document.documentElement.scrollWidth, wide.map((e) => e.id || e.className)]);"""


@pytest.mark.parametrize("width", [420, 1400])
def test_no_page_is_wider_than_its_window(browser: Browser, tmp_path: Path, width: int) -> None:
    spec = {"sort": {"name": "n" * 300, "inputs": ["i" * 300], "temp": "t" * 300}}
    page = _page(tmp_path, _job(KILLED, end_ms=10_000, spec=spec), IN_MEMORY)
    assert browser.act(page, _WIDTHS, width=width) == [width, []]


def test_hostile_names_are_text(browser: Browser, tmp_path: Path) -> None:
    spec = {"sort": {"name": HOSTILE, "inputs": [HOSTILE], "memory": HOSTILE}}
    tasks = [(HOSTILE, 0, 500, "failed")]
    page = _page(tmp_path, _job(tasks, end_ms=1000, command="sort", spec=spec), IN_MEMORY)
    found = browser.show(page)
    assert found.body.get("data-drawn") == "yes"
    assert not {"img", "b"} & set(found.tags)
    assert found.text.count("document.title='owned'") >= 4


@pytest.mark.parametrize("events", [[], [submitted("job_1")]], ids=["none", "begun"])
def test_jobs_that_have_hardly_begun(browser: Browser, tmp_path: Path, events: list[Event]) -> None:
    page = _page(tmp_path, events, IN_MEMORY)
    assert browser.show(page).body.get("data-drawn") == "yes"


def test_the_command_takes_two_jobs(tmp_path: Path) -> None:
    for name, events in (("20260101_1", SPILLS), ("20260102_1", IN_MEMORY)):
        write_history(
            tmp_path, f"job_{name}", [{**events[0], "job_id": f"job_{name}"}, *events[1:]]
        )
    where = {"GRISTMILL_HOME": str(tmp_path)}
    done = run("report", "0101", "last", cwd=tmp_path, **where)
    assert done.stdout == "job_20260101_1-and-job_20260102_1.html\n"
    page = (tmp_path / "job_20260101_1-and-job_20260102_1.html").read_text()
    title = re.search("<title>(.*)</title>", page)
    assert title is not None
    assert title[1] == "job_20260101_1 and job_20260102_1 - Gristmill"
    assert run("report", "0101", "last", "-o", "-", **where).stdout == page + "\n"
    same = run("report", "0101", "job_20260101_1", status=2, **where)
    assert "both names are those of one job: job_20260101_1" in same.stderr
    assert "no job '0103'" in run("report", "0101", "0103", status=1, **where).stderr


def test_what_both_lost_is_a_table(browser: Browser, tmp_path: Path) -> None:
    for name, events in (("20260101_1", SPILLS), ("20260102_1", IN_MEMORY)):
        write_history(tmp_path, f"job_{name}", events)
    page = tmp_path / "page.html"
    run("report", "0101", "0102", "-o", page, GRISTMILL_HOME=str(tmp_path))
    rows = browser.act(page, "say([...$('lost').rows].map((row) => row.innerText.split('\\t')))")
    assert rows[0] == ["Lost to", "A", "B", "B against A"]
    assert ["attempts that failed or were killed, and were done again", "2.00 s"] in [
        row[:2] for row in rows
    ]
