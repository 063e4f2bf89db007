"""Figures of a history agree with each other, in jobs of all kinds."""

from pathlib import Path

from tests.cli.harness import run

from gristmill.history import load

from .harness import submitted, write_history
from .invariants import broken, uneven

WORDS = "".join(f"{(7919 * number) % 59999:06}\n" for number in range(1_200_000))


def test_bytes_of_files_include_merge_passes(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text(WORDS)
    where = {"GRISTMILL_HOME": str(tmp_path / "home")}
    run("wordcount", tmp_path / "words.txt", tmp_path / "out", "--memory", "20M",
        "--workers", "1", "--history", **where)  # fmt: skip
    (folder,) = (tmp_path / "home/jobs").iterdir()
    history = load(folder)
    counters = history.report["counters"]
    assert counters["MERGE_PASSES"] > 0
    assert broken(folder) + uneven(folder) == []
    first = counters["MAP_OUTPUT_MATERIALIZED_BYTES"]
    # What each pass wrote was read again.
    assert counters["FILE_BYTES_READ"] >= len(WORDS) + 2 * first
    assert None not in history.counters()["FILE_BYTES_READ"]


def test_what_does_not_agree_is_found(tmp_path: Path) -> None:
    begun = {"attempt": 0, "phase": "map"}
    events = [
        submitted("job_1"),
        {"t_ms": 900, "event": "phase_started", "name": "map", "tasks": 2, "bytes": 7},
        {"t_ms": 900, "event": "attempt_started", "task": 0, **begun},
        {"t_ms": 900, "event": "attempt_started", "task": 1, **begun},
    ]
    for task in (0, 1):
        ended = {"task": task, "attempt": 0, "outcome": "succeeded"}
        counters = {"FILE_BYTES_WRITTEN": 5}
        events.append({"t_ms": 1000, "event": "attempt_finished", **ended, "counters": counters})
    counters = {"FILE_BYTES_READ": 9, "FILE_BYTES_WRITTEN": 9, "DEVICE_BYTES_READ": 1 << 30}
    report = {"workers": 1, "wall_s": 1.0, "counters": {**counters, "KILLED_TASK_ATTEMPTS": 1}}
    done = {"status": "succeeded", "report": report}
    events.append({"t_ms": 1000, "event": "job_finished", **done})
    folder = write_history(tmp_path, "job_1", events)
    assert broken(folder) == [
        "2 attempts run at once with 1 workers",
        "FILE_BYTES_WRITTEN is 9, and its attempts have 10",
        "0 attempts killed, and the counter is 1",
    ]
    assert uneven(folder) == [
        "0.900 s of 1.000 s belong to no phase",
        "1073741824 bytes were read from devices, 9 from files",
    ]
