"""The reader of histories: against what the engine wrote, and against made-up and damaged ones."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import gristmill
import gristmill as gm
from gristmill.history import JobHistory, find_job, is_live, load
from gristmill.history.home import NoSuchJobError

from .harness import submitted, write_history


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRISTMILL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_job_is_read_as_its_report_says(home: Path, tmp_path: Path) -> None:
    gristmill.teragen("100k", tmp_path / "in", files=2)
    report = gristmill.terasort(tmp_path / "in", tmp_path / "out", memory="38M", history=True)
    assert report.history == str(home / "jobs" / report.job_id)
    folder = find_job(report.job_id)
    assert not is_live(folder)
    history = load(folder)
    assert (history.state, history.command) == ("succeeded", "terasort")
    assert history.options["output"] == str(tmp_path / "out")
    assert [phase.name for phase in history.phases] == [phase.name for phase in report.phases]
    tasks = Counter(attempt.phase for attempt in history.attempts)
    assert tasks == {phase.name: phase.tasks for phase in report.phases if phase.tasks}
    assert all(attempt.outcome == "succeeded" for attempt in history.attempts)
    assert len(history.runs) == report.counters["SPILLED_RUNS"] > 1
    assert sum(run["records"] for run in history.runs) == 100_000
    counters = history.counters()
    assert counters["MAP_INPUT_RECORDS"] == (100_000, 0, 100_000)
    assert counters["REDUCE_OUTPUT_RECORDS"] == (0, 100_000, 100_000)
    assert counters["SPILLED_RECORDS"][2] == report.counters["SPILLED_RECORDS"]
    assert_adds_up(history)
    maps = [attempt for attempt in history.attempts if attempt.phase == "spill"]
    assert counters["TOTAL_LAUNCHED_MAPS"] == (len(maps), 0, len(maps))
    assert counters["CPU_MILLISECONDS"][:2] == (None, None)
    assert history.plan["mode"] == "runs"
    assert history.report["checksum"] == report.checksum
    assert [sample.t_ms for sample in history.samples] == sorted(s.t_ms for s in history.samples)


def assert_adds_up(history: JobHistory) -> None:
    """Map and reduce are the total, or are not told; no total is other than the report's."""
    for name, (on_map, on_reduce, total) in history.counters().items():
        assert history.report["counters"].get(name, total) == total
        if on_map is None or on_reduce is None:
            assert (on_map, on_reduce) == (None, None), name
        else:
            assert on_map + on_reduce == total, name


@pytest.mark.parametrize("memory", ["34M", "200M"])
def test_counters_of_sorts_add_up(home: Path, tmp_path: Path, memory: str) -> None:
    made = gristmill.teragen("50k", tmp_path / "in", history=True)
    sorted_ = gristmill.terasort(tmp_path / "in", tmp_path / "out", memory=memory, history=True)
    found = gristmill.teravalidate(tmp_path / "out", history=True)
    for report in (made, sorted_, found):
        assert_adds_up(load(home / "jobs" / report.job_id))
    counters = load(home / "jobs" / sorted_.job_id).counters()
    assert counters["TOTAL_LAUNCHED_REDUCES"][0] == 0
    written = 5_000_000 if memory == "200M" else 10_000_000
    assert counters["FILE_BYTES_WRITTEN"] == (written - 5_000_000, 5_000_000, written)


def test_a_reduce_without_groups_counts_as_a_reduce(home: Path, tmp_path: Path) -> None:
    """Most partitions are empty; in the others all groups are left out, as their values are bad."""

    def bad(key: str, values: Iterable[int]) -> Iterator[tuple[str, int]]:
        for value in values:
            yield key, 1 // value

    job = gm.Job(
        gm.items([("a", 0), ("b", 0)]),
        reduce=bad,
        output=gm.kv(tmp_path / "out"),
        parts=5,
        skip_bad=10,
    )
    report = job.run(history=True).report
    history = load(home / "jobs" / report.job_id)
    assert_adds_up(history)
    sides = {attempt.phase: set[str]() for attempt in history.attempts}
    for attempt in history.attempts:
        sides[attempt.phase] |= {name for name in attempt.counters if "_RECORDS" in name}
    assert sides["map"] == {"MAP_INPUT_RECORDS", "MAP_OUTPUT_RECORDS", "SPILLED_RECORDS"}
    assert sides["reduce"] == {"REDUCE_INPUT_RECORDS", "REDUCE_OUTPUT_RECORDS", "SPILLED_RECORDS"}
    counters = history.counters()
    assert counters["REDUCE_OUTPUT_RECORDS"] == (0, 0, 0)
    assert counters["TOTAL_LAUNCHED_REDUCES"] == (0, 5, 5)


def test_a_short_job_leaves_nothing_unless_asked(home: Path, tmp_path: Path) -> None:
    report = gristmill.teragen(10, tmp_path / "in")
    assert report.history is None
    assert not home.exists()


def test_a_home_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        (tmp_path / "file").write_text("")
        patch.setenv("GRISTMILL_HOME", str(tmp_path / "file"))
        report = gristmill.teragen(10, tmp_path / "in", history=True)
    assert report.status == "succeeded"
    assert report.history is None
    assert "cannot keep the job's history" in report.warnings[0]


def test_a_failed_job_says_why(home: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(bytes(150))
    with pytest.raises(ValueError, match="not a multiple"):
        gristmill.terasort(tmp_path / "in", tmp_path / "out", history=True)
    history = load(find_job("last"))
    assert history.state == "failed"
    assert "not a multiple" in (history.error or "")
    assert home.exists()


def test_a_history_that_breaks_off_is_that_of_a_dead_job(home: Path) -> None:
    started = {"t_ms": 5, "event": "attempt_started", "task": 0, "attempt": 0, "phase": "map"}
    folder = write_history(home, "job_1", [submitted("job_1"), started])
    with (folder / "events.jsonl").open("a") as file:
        file.write('{"t_ms": 9, "event": "job_fin')
    history = load(folder)
    assert (history.state, history.end_ms) == ("dead", 5)
    assert history.attempts[0].end_ms is None


def test_what_a_later_program_wrote(home: Path) -> None:
    unknown = {"t_ms": 1, "event": "node_lost", "node": "a"}
    assert load(write_history(home, "job_1", [submitted("job_1", more=1), unknown])).end_ms == 1
    later = write_history(home, "job_2", [submitted("job_2", version=2)])
    with pytest.raises(ValueError, match="version 2"):
        load(later)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "7",
        "\x00",
        '"\udc80"',
        '{"t_ms": 1}',
        '{"t_ms": "x", "event": "sample"}',
        '{"t_ms": 1, "event": "job_submitted"}',
        '{"t_ms": 1, "event": "phase_started", "name": "map"}',
        '{"t_ms": 1, "event": "attempt_finished", "task": 1}',
    ],
)
def test_a_damaged_line_is_named(home: Path, line: str) -> None:
    folder = write_history(home, "job_1", [submitted("job_1")])
    with (folder / "events.jsonl").open("a", errors="surrogateescape") as file:
        file.write(f"{line}\n")
    with pytest.raises(ValueError, match=r"line 2: .*events\.jsonl"):
        load(folder)


def test_jobs_are_found_by_part_of_their_names(home: Path) -> None:
    first, second = (write_history(home, name, [submitted(name)]) for name in ("job_a1", "job_a2"))
    assert find_job("job_a1") == find_job("a1") == first
    assert find_job("2") == second
    for wrong in ("a", "job", "b", "", "../jobs/job_a1", "."):
        with pytest.raises(NoSuchJobError):
            find_job(wrong)
