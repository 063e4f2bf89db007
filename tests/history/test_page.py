"""The report of a job, in a real browser."""

import os
import random
from pathlib import Path

import pytest
from tests.cli.harness import run

from gristmill.history import load
from gristmill.history.page import render

from .harness import Browser, Event, Shown, submitted, write_history

DOCS = Path(__file__).parents[2] / "docs"

HOSTILE = """</script><img src=x onerror="document.title='owned'"><!--<b>&amp;\u2028{{7*7}}"""


def shown(browser: Browser, tmp_path: Path, events: list[Event]) -> Shown:
    page = tmp_path / "page.html"
    page.write_text(render(load(write_history(tmp_path, "job_1", events))))
    return browser.show(page)


def test_a_report_shows_what_the_job_did(browser: Browser, tmp_path: Path) -> None:
    where = {"GRISTMILL_HOME": str(tmp_path / "home")}
    run("teragen", "200k", tmp_path / "in", **where)
    run("terasort", tmp_path / "in", tmp_path / "out", "--memory", "20M", "--history", **where)
    done = run("report", "last", "-o", tmp_path / "page.html", **where)
    assert done.stdout == f"{tmp_path / 'page.html'}\n"
    page = (tmp_path / "page.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org", "")
    found = browser.show(tmp_path / "page.html")
    assert found.body.get("data-drawn") == "yes"
    assert found.tags.count("canvas") == 6
    for expected in ("in order, checksum", "spill", "merge", "MAP_INPUT_RECORDS", "200,000"):
        assert expected in found.text
    assert run("report", "last", "-o", "-", **where).stdout == page + "\n"


def test_the_picture_is_no_blank(browser: Browser, tmp_path: Path) -> None:
    """`UPDATE_PICTURES=1 pytest -k picture` makes the one in docs/, of a job of a gigabyte."""
    update = bool(os.environ.get("UPDATE_PICTURES"))
    where = {"GRISTMILL_HOME": str(tmp_path / "home")}
    rows, memory = ("10m", "400M") if update else ("100k", "20M")
    run("teragen", rows, tmp_path / "in", **where)
    run("terasort", tmp_path / "in", tmp_path / "out", "--memory", memory, "--history", **where)
    run("report", "last", "-o", tmp_path / "page.html", **where)
    picture = DOCS / "report.png" if update else tmp_path / "page.png"
    browser.picture(tmp_path / "page.html", picture, width=1000, height=1720)
    assert picture.stat().st_size > 30_000


def test_hostile_names_are_text(browser: Browser, tmp_path: Path) -> None:
    events: list[Event] = [
        submitted(HOSTILE, command=HOSTILE, spec={HOSTILE: {HOSTILE: [HOSTILE]}}),
        {"t_ms": 1, "event": "job_planned", "plan": {"mode": "runs", "reason": HOSTILE}},
        {"t_ms": 1, "event": "phase_started", "name": HOSTILE, "tasks": 1, "bytes": 1},
        {"t_ms": 1, "event": "attempt_started", "task": 0, "attempt": 0, "phase": HOSTILE},
        {
            "t_ms": 9,
            "event": "attempt_finished",
            "task": 0,
            "attempt": 0,
            "outcome": "failed",
            "error": HOSTILE,
            "counters": {HOSTILE: 1},
        },
    ]
    found = shown(browser, tmp_path, events)
    assert found.body.get("data-drawn") == "yes"
    assert found.title == f"{HOSTILE} {HOSTILE} - Gristmill"
    assert not {"img", "b"} & set(found.tags)
    assert found.text.count("document.title='owned'") >= 5


@pytest.mark.parametrize("events", [[], [submitted("job_1")]], ids=["none", "begun"])
def test_a_job_that_has_hardly_begun(browser: Browser, tmp_path: Path, events: list[Event]) -> None:
    assert shown(browser, tmp_path, events).body.get("data-drawn") == "yes"


def test_a_hundred_thousand_tasks(browser: Browser, tmp_path: Path) -> None:
    numbers = random.Random(1)
    events: list[Event] = [submitted("job_1")]
    events.append({"t_ms": 0, "event": "phase_started", "name": "map", "tasks": 10**5, "bytes": 1})
    for task in range(100_000):
        begun = task * 10
        name = {"task": task, "attempt": 0}
        events.append({"t_ms": begun, "event": "attempt_started", "phase": "map", **name})
        ended = begun + numbers.randrange(200)
        outcome = "failed" if task % 1000 == 7 else "succeeded"
        events.append({"t_ms": ended, "event": "attempt_finished", "outcome": outcome, **name})
    events.sort(key=lambda event: event["t_ms"])
    found = shown(browser, tmp_path, events)
    assert found.body.get("data-drawn") == "yes"
    assert "100,000" in found.text
    print(f"drawn after {found.body.get('data-milliseconds')} ms")
