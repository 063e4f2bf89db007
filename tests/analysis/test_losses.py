"""What runs lost, and which loss is named as the cause: histories with one fault each."""

from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.analysis.histories import cause_of, losses, runs_of
from gristmill.analysis.histories.losses import straggling_s
from gristmill.history import load
from gristmill.history.model import Attempt, JobHistory, PhaseSpan

from .made import Stage, even, job

Attempts = list[tuple[float, float, str]]
P = (1, 2, 4)


def _work(p: int, *, tasks: int = 24, cpu: bool = True, **more: object) -> Stage:
    seconds = tasks / p / 4
    busy = {"cpu_s": 0.9 * seconds * p} if cpu else {}
    stage = Stage(name="map", seconds=seconds, attempts=even(tasks, p, 0.25), **busy)
    for name, value in more.items():
        setattr(stage, name, value)
    return stage


def _plain(home: Path, p: int, job_id: str) -> Path:
    return job(home, job_id, [_work(p), Stage(name="commit", seconds=0.01)], workers=p)


def _retries(home: Path, p: int, job_id: str) -> Path:
    """At one worker, every third attempt fails."""
    if p > 1:
        return _plain(home, p, job_id)
    attempts: Attempts = []
    for task in range(24):
        start = attempts[-1][0] + attempts[-1][1] if attempts else 0.0
        if task % 3 == 0:
            attempts.append((start, 0.5, "failed"))
            start += 0.5
        attempts.append((start, 0.25, "succeeded"))
    seconds = attempts[-1][0] + attempts[-1][1]
    stage = Stage(name="map", seconds=seconds, attempts=attempts, cpu_s=0.5 * seconds)
    return job(home, job_id, [stage], workers=p)


def _device(home: Path, p: int, job_id: str) -> Path:
    """One disk, which is too slow for one worker."""
    if p > 1:
        return _plain(home, p, job_id)
    stage = _work(p, seconds=10.0, attempts=even(24, 1, 10 / 24), cpu_s=5.0, iowait_s=4.9)
    stage.read_bytes = 10**9
    return job(home, job_id, [stage], workers=p)


def _memory(home: Path, p: int, job_id: str) -> Path:
    """Four workers have memory for all, fewer spill and read it again."""
    moved = 10**9 if p == 4 else 2 * 10**9
    counters = {"FILE_BYTES_READ": moved, "FILE_BYTES_WRITTEN": moved, "SPILLED_RECORDS": p < 4}
    stages = [_work(p)] if p == 4 else [_work(p), _work(p, name="merge")]
    return job(home, job_id, stages, workers=p, counters=counters)


def _serial(home: Path, p: int, job_id: str) -> Path:
    return job(home, job_id, [_work(p), Stage(name="commit", seconds=1.5)], workers=p)


def _straggler(home: Path, p: int, job_id: str) -> Path:
    attempts = even(23, p, 0.25)
    begun = max(start for start, *_ in attempts) + 0.25 if p == 1 else 0.25
    attempts.append((begun, 4.0, "succeeded"))
    stage = Stage(name="map", seconds=max(s + t for s, t, _ in attempts), attempts=attempts)
    return job(home, job_id, [stage], workers=p)


def _segments(home: Path, p: int, job_id: str) -> Path:
    """More workers cut the data into more segments."""
    counters = {"LAUNCHED_REDUCES": 100 * p, "SPILLED_RUNS": 24, "FILE_BYTES_READ": 10**6}
    counters["MAP_OUTPUT_MATERIALIZED_BYTES"] = 10**6
    reduce = Stage(name="reduce", seconds=0.5 * p, attempts=even(8, p, 0.5), cpu_s=0.2 * p * p)
    return job(home, job_id, [_work(p), reduce], workers=p, counters=counters, command="mapreduce")


def _crowded(home: Path, p: int, job_id: str) -> Path:
    """Two processors, however many workers."""
    cores = min(p, 2)
    stage = _work(cores, attempts=even(24, p, 0.25 * p / cores))
    return job(home, job_id, [stage], workers=p, processors=cores)


FAULTS = {
    "none": (_plain, ""),
    "retries": (_retries, "small p"),
    "device": (_device, "small p"),
    "memory": (_memory, "small p"),
    "serial": (_serial, "large p"),
    "stragglers": (_straggler, "large p"),
    "segments": (_segments, "large p"),
    "processors": (_crowded, "large p"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_cause_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("GRISTMILL_HOME", str(tmp_path))
    make, at = FAULTS[name]
    for p in P:
        for repeat in range(2):
            make(tmp_path, p, f"job_{p}_{repeat}")
    runs = runs_of()
    found = cause_of(runs)
    assert (found.name, found.at) == (name, at), {run.p: run.wastes for run in runs}
    for run in runs:
        assert sum(run.wastes.values()) < run.seconds
        assert all(seconds >= 0 for seconds in run.wastes.values())


def test_seconds_of_losses(tmp_path: Path) -> None:
    serial = losses(load(_serial(tmp_path, 4, "job_s")))
    assert serial["serial"] == pytest.approx(1.5 * 3 / 4)
    retries = losses(load(_retries(tmp_path, 1, "job_r")))
    assert retries["retries"] == pytest.approx(8 * 0.5)
    memory = losses(load(_memory(tmp_path, 2, "job_m")))
    assert memory["memory"] == pytest.approx(3.0, rel=0.01)
    straggling = losses(load(_straggler(tmp_path, 4, "job_t")))
    assert 1.5 < straggling["stragglers"] < 3.0
    assert losses(load(_plain(tmp_path, 1, "job_p")))["serial"] == 0


def test_cpu_seconds_beyond_the_least_are_a_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRISTMILL_HOME", str(tmp_path))
    for p, user_s in ((1, 4.0), (2, 8.0)):
        job(tmp_path, f"job_{p}", [_work(p)], workers=p, user_s=user_s, sys_s=0.0)
    assert [run.wastes["cpu"] for run in runs_of()] == [0.0, 2.0]
    assert cause_of(runs_of()).name == "cpu"


SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=12)


def _attempts(spans: list[tuple[int, int]]) -> list[Attempt]:
    return [
        Attempt(task=n, attempt=0, phase="map", start_ms=start, end_ms=start + took)
        for n, (start, took) in enumerate(spans)
    ]


def _straggling_by_counting(spans: list[tuple[int, int]], slots: int) -> float:
    """The same millisecond by millisecond."""
    if len(spans) < 2 or slots < 2:
        return 0.0
    full, end = min(slots, len(spans)), max(start + took for start, took in spans)
    running = [sum(s <= t < s + took for s, took in spans) for t in range(end)]
    full_until = max((t + 1 for t in range(end) if running[t] >= full), default=None)
    if full_until is None:
        full_until = min(start for start, _ in spans)
    tail = full_until + median(took for _, took in spans)
    idle = (max(0.0, min(1.0, t + 1 - tail)) * (full - running[t]) for t in range(end))
    return sum(idle) / slots / 1000


@given(SPANS, st.integers(1, 5))
def test_straggling_is_what_counting_gives(spans: list[tuple[int, int]], slots: int) -> None:
    found = straggling_s(_attempts(spans), slots)
    assert found == pytest.approx(_straggling_by_counting(spans, slots), abs=1e-9)


@given(SPANS, st.integers(1, 5), st.integers(0, 3))
def test_losses_are_never_more_than_the_time(
    spans: list[tuple[int, int]], slots: int, failed: int
) -> None:
    attempts = _attempts(spans)
    for one in attempts[:failed]:
        one.outcome = "failed"
    end_ms = max(one.end_ms or 0 for one in attempts) + 1
    span = PhaseSpan(name="map", tasks=len(spans), bytes=1, start_ms=0, end_ms=end_ms)
    report = {"wall_s": end_ms / 1000, "workers": slots, "counters": {"LAUNCHED_REDUCES": 9}}
    history = JobHistory(
        job_id="job_1", phases=[span], attempts=attempts, end_ms=end_ms, report=report
    )
    found = losses(history)
    assert all(seconds >= 0 for seconds in found.values())
    assert sum(found.values()) <= end_ms / 1000 + 1e-9
