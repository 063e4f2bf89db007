"""Runs of histories: which jobs are measurements, and what becomes of the others."""

import fcntl
from collections.abc import Iterator
from pathlib import Path

import pytest

from gristmill.analysis.histories import is_history, runs_of

from .made import Stage, even, job


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("GRISTMILL_HOME", str(tmp_path))
    yield tmp_path


def _sort(home: Path, job_id: str, workers: int, **more: object) -> Path:
    spill = Stage(name="spill", seconds=8 / workers, attempts=even(8, workers, 1.0))
    merge = Stage(name="merge", seconds=4 / workers, attempts=even(4, workers, 1.0))
    commit = Stage(name="commit", seconds=0.5)
    return job(home, job_id, [spill, merge, commit], workers=workers, **more)  # type: ignore[arg-type]


def test_runs_of_a_command(home: Path) -> None:
    for workers in (1, 2, 4):
        _sort(home, f"job_{workers}", workers)
    job(home, "job_9", [Stage(name="generate", seconds=1.0)], workers=2, command="teragen")
    runs = runs_of(command="terasort")
    assert [run.p for run in runs] == [1, 2, 4]
    assert [run.seconds for run in runs] == [12.5, 6.5, 3.5]
    assert dict(runs[1].phases) == {"spill": 4.0, "merge": 2.0, "commit": 0.5}
    assert {run.work for run in runs} == {10**9}
    assert runs[0].source == f"job_1, {home / 'jobs/job_1/events.jsonl'}"


def test_a_job_is_named_in_many_ways(home: Path) -> None:
    folder = _sort(home, "job_20260101_1", 2)
    names = ["job_20260101_1", "0101", "last", str(folder), str(folder / "events.jsonl"), str(home)]
    for name in names:
        assert [run.p for run in runs_of([name])] == [2], name
    assert len(runs_of(names)) == 1
    named = _sort(home, "job_20260102_1", 4)
    events = (named / "events.jsonl").read_text()
    (named / "events.jsonl").write_text(events.replace('"inputs"', '"name": "mine", "inputs"', 1))
    assert [run.p for run in runs_of(["mine"])] == [4]


def _resumed(folder: Path) -> None:
    lines = (folder / "events.jsonl").read_text().splitlines(keepends=True)
    lines.insert(1, '{"t_ms": 5, "event": "job_resumed", "unix_ms": 1, "pid": 2}\n')
    (folder / "events.jsonl").write_text("".join(lines))


def _cut(folder: Path) -> None:
    events = (folder / "events.jsonl").read_bytes()
    (folder / "events.jsonl").write_bytes(events[: len(events) * 2 // 3])


def _damaged(folder: Path) -> None:
    events = (folder / "events.jsonl").read_bytes()
    (folder / "events.jsonl").write_bytes(events.replace(b'"phase_started"', b'"phase_st\x00', 1))


def _no_end(folder: Path) -> None:
    lines = (folder / "events.jsonl").read_text().splitlines(keepends=True)
    (folder / "events.jsonl").write_text("".join(lines[:-1]))


def _later(folder: Path) -> None:
    events = (folder / "events.jsonl").read_text()
    (folder / "events.jsonl").write_text(events.replace('"version": 1', '"version": 2', 1))


BROKEN = {
    "resumed": (_resumed, "it was resumed"),
    "cut": (_cut, "its history has no end"),
    "no end": (_no_end, "it was killed"),
    "damaged": (_damaged, "its history cannot be read: cannot read a history: line 2"),
    "later": (_later, "it has version 2; this program reads 1"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_history_is_refused_by_name_and_left_out_of_a_folder(home: Path, how: str) -> None:
    spoil, expected = BROKEN[how]
    _sort(home, "job_1", 1)
    spoil(_sort(home, "job_2", 2))
    with pytest.raises(ValueError, match="cannot take job_2 as a measurement: ") as refused:
        runs_of(["job_1", "job_2"])
    assert expected in str(refused.value)
    assert str(home / "jobs/job_2/events.jsonl") in str(refused.value)
    assert "\n" not in str(refused.value)
    said: list[str] = []
    assert [run.p for run in runs_of([str(home)], note=said.append)] == [1]
    assert [run.p for run in runs_of(command="terasort", note=said.append)] == [1]
    assert len(said) == 2
    assert all(line.startswith("left out: job_2: ") and expected in line for line in said)


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_a_job_that_did_not_succeed_is_refused(home: Path, state: str) -> None:
    _sort(home, "job_1", 1, state=state)
    with pytest.raises(ValueError, match=f"cannot take job_1 as a measurement: it (was )?{state}"):
        runs_of(["job_1"])
    with pytest.raises(ValueError, match=f"1 job of terasort of this user cannot be.*{state}"):
        runs_of(command="terasort")


def test_a_running_job_is_refused(home: Path) -> None:
    folder = _sort(home, "job_1", 1, state=None)
    with (folder / "events.jsonl").open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match="job_1 as a measurement: it is still running"):
            runs_of(["job_1"])


def test_jobs_of_different_commands_make_no_curve(home: Path) -> None:
    _sort(home, "job_1", 1)
    _sort(home, "job_2", 2)
    job(home, "job_3", [Stage(name="map", seconds=1.0)], workers=4, command="grep")
    message = (
        "2 jobs of terasort, 1 job of grep .job_1 is of terasort and job_3 is of grep.*--command"
    )
    with pytest.raises(ValueError, match=message):
        runs_of(["job_1", "job_2", "job_3"])
    with pytest.raises(ValueError, match="of different commands"):
        runs_of([str(home)])
    assert len(runs_of([str(home)], command="terasort")) == 2
    with pytest.raises(
        ValueError, match="job_3 as a measurement: it is a job of grep, not of tera"
    ):
        runs_of(["job_1", "job_3"], command="terasort")


def test_which_words_mean_histories(home: Path) -> None:
    (home / "runs.csv").touch()
    (home / "runs.jsonl").touch()
    for name in ("runs.csv", "runs.jsonl", "data", "gone.csv", "x/gone"):
        assert not is_history(str(home / name)), name
    for name in ("last", "mine", str(home), "x/events.jsonl", "a.jhist"):
        assert is_history(name), name


def test_what_is_not_there(home: Path) -> None:
    with pytest.raises(LookupError, match="no job 'job_7'"):
        runs_of(["job_7"])
    with pytest.raises(LookupError, match=r"cannot read x/events.jsonl: there is no such file"):
        runs_of(["x/events.jsonl"])
    (home / "data").mkdir()
    with pytest.raises(ValueError, match=r"it has no events.jsonl and no .jhist file"):
        runs_of([str(home / "data")])
    (home / "data/runs.txt").touch()
    with pytest.raises(ValueError, match=r"runs.txt: it is not a history by its name"):
        runs_of([str(home / "data/runs.txt")])
    with pytest.raises(ValueError, match="there are no jobs of sort of this user"):
        runs_of(command="sort")


def test_p_may_be_nodes(home: Path) -> None:
    folder = _sort(home, "job_1", 4)
    events = (folder / "events.jsonl").read_text().splitlines(keepends=True)
    seen = 0
    for place, line in enumerate(events):
        if '"attempt_started"' in line:
            events[place] = line.replace('"event"', f'"node": "n{seen % 2}", "event"')
            seen += 1
    (folder / "events.jsonl").write_text("".join(events))
    assert [run.p for run in runs_of(["job_1"], per_node=True)] == [2]
    assert [run.p for run in runs_of(["job_1"])] == [4]
