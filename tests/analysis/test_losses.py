"""What runs lost, and which loss is named as the cause: histories with one fault each."""

from pathlib import Path

import pytest

from gristmill.analysis.histories import cause_of, losses, runs_of
from gristmill.history import load

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
