"""The report of a job, in a real browser."""

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
    assert found.tags.count("canvas") == 7
    for expected in ("in order, checksum", "spill", "merge", "MAP_INPUT_RECORDS", "200,000"):
        assert expected in found.text
    assert run("report", "last", "-o", "-", **where).stdout == page + "\n"
    failed = run("report", "last", "-o", tmp_path / "no/page.html", status=1, **where)
    assert f"the directory {tmp_path / 'no'} does not exist. What to do: make it" in failed.stderr
    said = browser.act(tmp_path / "page.html", _WIDTHS, width=420)
    assert said == [420, []]
    facts = browser.act(tmp_path / "page.html", "say(document.getElementById('facts').innerText)")
    for expected in ("gristmill terasort", "--memory 20M", str(Path.cwd()), str(tmp_path / "out")):
        assert expected in facts
    inputs = browser.act(tmp_path / "page.html", "say(attempts.map((a) => [a.input, a.bytes]))")
    assert all(name and size for name, size in inputs[1:])


def _on_two_nodes() -> list[Event]:
    """A job of four tasks on two nodes, of which one was lost."""
    events = [
        submitted("job_1"),
        {"t_ms": 0, "event": "phase_started", "name": "map", "tasks": 4, "bytes": 7},
    ]
    for task in range(4):
        begun = {
            "task": task,
            "attempt": 0,
            "phase": "map",
            "node": ("10.0.0.2", HOSTILE)[task % 2],
        }
        events.append({"t_ms": 100, "event": "attempt_started", **begun})
    for task in range(4):
        ended: Event = {"task": task, "attempt": 0, "outcome": "succeeded", "bytes": 5_000_000}
        if task == 3:
            ended |= {"outcome": "killed", "error": "it was lost: node x is silent"}
        events.append({"t_ms": 2000, "event": "attempt_finished", **ended})
    for second in range(4):
        moved = {"disk_read_bytes": second * 10**8, "sent_bytes": second * 10**7}
        nodes = [
            {"node": "10.0.0.2", "user_s": second * 1.5, "later_field": 1, **moved},
            {"node": HOSTILE, "user_s": second * 0.5, "is_lost": second == 3},
        ]
        events.append({"t_ms": second * 1000, "event": "sample", "nodes": nodes})
    between = {"received_bytes": 30_000_000, "file_bytes": 2_000_000}
    read = [{"by": HOSTILE, "kept_by": "10.0.0.2", **between}]
    events.append({"t_ms": 4000, "event": "runs_read", "read": read})
    counters = {"LOST_AGENTS": 1}
    done = {"status": "succeeded", "report": {"counters": counters}}
    return [*events, {"t_ms": 4000, "event": "job_finished", **done}]


def test_a_job_on_a_cluster_has_its_nodes_on_the_page(browser: Browser, tmp_path: Path) -> None:
    found = shown(browser, tmp_path, _on_two_nodes())
    assert "img" not in found.tags
    assert found.tags.count("canvas") == 2 + 3 + 4
    page = tmp_path / "page.html"
    lanes = browser.act(page, "say(lanes().map((lane) => lane.title || lane.map((a) => a.task)))")
    assert lanes == ["10.0.0.2", [0], [2], HOSTILE.replace("\u2028", "\u2028"), [1], [3]]
    table = browser.act(
        page, "say([...$('reads').rows].map((row) => [...row.cells].at(1).innerText))"
    )
    assert table == ["10.0.0.2", "", "32.0 MB"]
    totals = browser.act(page, "say([...$('node-totals').rows].map((row) => row.innerText))")
    assert "(lost)" in totals[2]
    assert "1, 5.00 MB" in totals[2]
    assert browser.act(page, _WIDTHS, width=420) == [420, []]


def test_a_page_of_one_machine_has_no_nodes(browser: Browser, tmp_path: Path) -> None:
    shown(browser, tmp_path, _long_job())
    page = tmp_path / "page.html"
    hidden = "say([$('nodes').hidden, [...$('attempts').rows[0].cells].map((c) => c.innerText)])"
    is_hidden, columns = browser.act(page, hidden)
    assert is_hidden
    assert "Node" not in columns
    assert "Phase" in columns


_WIDTHS = """
const wide = [...document.querySelectorAll("body *")].filter(
  (e) => e.getBoundingClientRect().right > innerWidth && !e.closest(".wide, pre"));
say([document.documentElement.scrollWidth, wide.map((e) => e.id || e.className)]);"""
"""How wide the page is, and what reaches beyond its edge but scrolls in no box of its own."""

_POINT = """
const point = (chart, kind, share, target) => {
  const over = document.querySelector(`#${chart} .u-over`), box = over.getBoundingClientRect();
  const at = {clientX: box.left + box.width * share, clientY: box.top + 5, movementX: 1};
  const made = kind.startsWith("pointer") ? PointerEvent : MouseEvent;
  (target || over).dispatchEvent(new made(kind, {...at, bubbles: true, button: 0}));
};
"""


def _long_job(*, tasks: int = 2, failing: str = "") -> list[Event]:
    """Of ten seconds, with two lanes, that reserved a hundred times the memory that it used."""
    options = {"name": "my job", "inputs": ["a" * 300], "output": "out"}
    events = [
        submitted("job_1", command="mapreduce", spec={"mapreduce": options}),
        {"t_ms": 0, "event": "phase_started", "name": "map", "tasks": tasks, "bytes": 7},
    ]
    for task in range(tasks):
        fields: Event = {"task": task, "attempt": 0}
        begun = {**fields, "phase": "map", "input": f"in/{'b' * 99}.txt, bytes {task}000 to 9000"}
        ended = {**fields, "outcome": "succeeded", "bytes": 10**6 + task}
        ended["counters"] = {"MAP_INPUT_RECORDS": 1234 + task}
        if failing and task == 1:
            ended |= {"outcome": "failed", "error": failing}
        events.append({"t_ms": 5000 * (task // 2), "event": "attempt_started", **begun})
        events.append({"t_ms": 5000 * (task // 2 + 1), "event": "attempt_finished", **ended})
    for t_ms in range(0, 10_001, 500):
        memory = {"anon_bytes": 10**7 + t_ms, "budget_bytes": 10**9, "mapped_bytes": 10**6}
        events.append({"t_ms": t_ms, "event": "sample", "user_s": t_ms / 2000, **memory})
    return sorted(events, key=lambda event: event["t_ms"])


def _page(tmp_path: Path, events: list[Event]) -> Path:
    page = tmp_path / "page.html"
    page.write_text(render(load(write_history(tmp_path, "job_1", events))))
    return page


@pytest.mark.parametrize("width", [420, 1400])
def test_no_page_is_wider_than_its_window(browser: Browser, tmp_path: Path, width: int) -> None:
    """Nor does a heading break, whatever its table holds."""
    error = {"message": "e" * 400, "details": {"traceback": "t" * 400}}
    end = {"t_ms": 10_000, "event": "job_finished", "status": "failed", "report": {"error": error}}
    page = _page(tmp_path, [*_long_job(failing="f" * 400), end])
    assert browser.act(page, _WIDTHS, width=width) == [width, []]
    heads = "say([...document.querySelectorAll('th')].map((e) => e.getClientRects().length &&"
    heads += " e.offsetHeight).filter((height) => height > 40))"
    assert browser.act(page, heads, width=width) == []


def test_a_failed_job_shows_what_is_known_of_it(browser: Browser, tmp_path: Path) -> None:
    details = {"stderr": "it said\nthis", "traceback": "at line 3", "retry": "0"}
    report = {"error": {"message": "it broke", "details": details}}
    end = {"t_ms": 10_000, "event": "job_finished", "status": "failed", "report": report}
    page = _page(tmp_path, [*_long_job(failing="why " * 100), end])
    script = "say([...document.querySelectorAll('#attempts details')].map((e) => e.textContent))"
    (folded,) = browser.act(page, script)
    assert folded.count("why") == 100 + 30
    failure = browser.act(page, "say(document.getElementById('failure').innerText)")
    shown = [line for line in failure.splitlines() if line]
    assert shown[:3] == ["it broke", "Traceback", "at line 3"]
    assert shown[3:6] == ["The end of its stderr", "it said", "this"]
    assert shown[6] == "To try it again alone"
    assert shown[7].startswith("gristmill retry job_")


def test_a_dead_job_says_that_it_is(browser: Browser, tmp_path: Path) -> None:
    said = browser.act(
        _page(tmp_path, [submitted("job_1", spec={"sort": {"inputs": ["a"], "output": "b"}})]),
        "say([document.getElementById('failure').innerText, charts.length])",
    )
    assert said == ["Its process died. What to do: gristmill resume job_1.", 2]


def test_legends_hold_values_and_axes_fit_them(browser: Browser, tmp_path: Path) -> None:
    page = _page(tmp_path, _long_job(tasks=4))
    said = browser.act(
        page,
        "say([document.querySelector('#chart-memory .u-legend').innerText,"
        " document.querySelector('#chart-running .u-legend').innerText,"
        " charts[3].plot.scales.y.max, charts[0].plot.axes[1]._splits])",
    )
    memory, running, most_bytes, ticks = said
    for expected in ("anonymous", "10.0 MB", "reserved", "1.00 GB"):
        assert expected in memory
    assert "".join(running.split()) == "highest:map2"
    assert 10**7 < most_bytes < 2 * 10**7
    assert all(tick == int(tick) for tick in ticks)


def test_an_attempt_is_told_of_under_the_pointer(browser: Browser, tmp_path: Path) -> None:
    page = _page(tmp_path, _long_job(tasks=4))
    tip = "document.querySelector('.tip')"
    script = f"point('chart-lanes', 'pointermove', 0.75); const shown = {tip}.innerText;"
    script += f"point('chart-lanes', 'pointerleave', 0.75); say([shown, {tip}.hidden]);"
    shown, hidden = browser.act(page, _POINT + script)
    for expected in ("2, attempt 1", "bytes 2,000 to 9,000", "1.00 MB", "1,236", "succeeded"):
        assert expected in shown
    assert hidden


def test_a_part_of_the_time_is_shown_by_all_charts(browser: Browser, tmp_path: Path) -> None:
    page = _page(tmp_path, _long_job(tasks=4))
    views = "charts.filter((c) => c.timed).map((c) => [c.plot.scales.x.min, c.plot.scales.x.max])"
    script = """
      const drag = (chart, from, to) => {
        point(chart, "mousemove", from); point(chart, "mousedown", from);
        point(chart, "mousemove", to); point(chart, "mouseup", to, document);
      };
      const seen = [];
      const look = () => seen.push(VIEWS);
      setTimeout(() => { drag("chart-cpu", 0.2, 0.4); });
      setTimeout(() => { look(); document.getElementById("zoom-out").click(); }, 300);
      setTimeout(() => { look(); document.getElementById("zoom-all").click(); }, 600);
      setTimeout(() => { look(); say(seen); }, 900);"""
    dragged, wider, whole = browser.act(page, _POINT + script.replace("VIEWS", views))
    for views_of_charts in (dragged, wider, whole):
        assert len(views_of_charts) == 5
        assert all(view == views_of_charts[0] for view in views_of_charts)
    assert dragged[0] == pytest.approx([2, 4], abs=0.1)
    assert wider[0] == pytest.approx([1, 5], abs=0.1)
    assert whole[0] == [0, 10]


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


def test_counters_of_the_jobs_functions_are_below_the_others(
    browser: Browser, tmp_path: Path
) -> None:
    counted = {"counters": {"Z": 7}, "user_counters": {"log": {"lines": 1234, HOSTILE: 5}}}
    ended = {"t_ms": 9, "event": "job_finished", "status": "succeeded", "report": counted}
    found = shown(browser, tmp_path, [submitted("job_1"), ended])
    assert found.text.index("log: lines") > found.text.index("Total")
    assert f"log: {HOSTILE}" in found.text
    assert "1,234" in found.text
    assert "img" not in found.tags


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
        works_on = {"phase": "map", "input": f"in/a.txt, bytes {task * 10**6} to {task * 10**7}"}
        events.append({"t_ms": begun, "event": "attempt_started", **works_on, **name})
        ended = begun + numbers.randrange(200)
        outcome = "failed" if task % 1000 == 7 else "succeeded"
        made = {"outcome": outcome, "bytes": 10**6, "counters": {"MAP_INPUT_RECORDS": 10**4}}
        events.append({"t_ms": ended, "event": "attempt_finished", **made, **name})
    events.sort(key=lambda event: event["t_ms"])
    page = _page(tmp_path, events)
    assert page.stat().st_size < 8_000_000
    script = """
      const cells = (row) => row.innerText.split("\\t");
      const rows = () => [...$("attempts").tBodies[0].rows].map(cells);
      const set = (id, value) => { $(id).value = value; $(id).dispatchEvent(new Event("input")); };
      const said = [document.body.dataset.drawn, $("attempts-count").textContent, rows().length];
      $("attempts-after").click();
      said.push(rows()[0][0]);
      const buttons = [...document.querySelectorAll("th button")];
      const took = buttons.find((button) => button.textContent === "Took");
      took.click(); took.click();
      said.push(rows()[0][5], took.parentNode.ariaSort);
      set("attempts-outcome", "failed");
      said.push($("attempts-count").textContent, $("attempts-outcome").selectedOptions[0].text);
      set("attempts-filter", "5007");
      said.push(rows().map((row) => row[0]));
      set("attempts-filter", "in/a.txt 5007 NOT");
      said.push($("attempts-count").textContent, document.body.dataset.milliseconds);
      say(said);"""
    *said, milliseconds = browser.act(page, script)
    assert said == [
        *("yes", "1 to 50 of 100,000", 50, "50", "0.199 s", "descending"),
        *("1 to 50 of 100", "failed (100)", ["5,007"], "no such attempts"),
    ]
    print(f"drawn after {milliseconds} ms, {page.stat().st_size / 1e6:.1f} MB")
