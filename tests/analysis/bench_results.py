"""Folders of results whose truth is known: times of a given mean and scatter, drawn from a seed."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from gristmill.analysis.bench import results
from gristmill.analysis.bench.bench_request import BenchRequest, Config
from gristmill.analysis.bench.results import Measured

MACHINE = {
    "processor": "Some Processor",
    "processors": 2,
    "workers": 2,
    "memory_bytes": 16_000_000_000,
    "kernel": "6.1",
    "file_system": "ext4",
}
GB = 1_000_000_000


def measured(step: str, number: int, seconds: float, **more: object) -> Measured:
    """A run of 1 GB."""
    phase = {"name": "map", "wall_s": seconds / 2, "user_s": seconds, "sys_s": 0.1, "own_s": 0.3}
    counters = {"DEVICE_BYTES_READ": 0, "FILE_BYTES_READ": GB, "FILE_BYTES_WRITTEN": GB}
    report = {
        "input_bytes": GB,
        "output_bytes": GB,
        "checksum": "4c4b",
        "durable": True,
        "misorders": 0,
        "phases": [phase],
        "counters": counters,
    }
    given: dict[str, Any] = {
        "config": {},
        "began": "2026-01-02T03:04:05+00:00",
        "user_s": seconds,
        "sys_s": 0.5,
        "own_cpu_s": 0.001,
        "load": {"before": 0.5, "others_s": 0.1, "steal_s": 0.0},
        "device": {"write": 2e9, "read": 2e9, "cached": 1e10},
        **more,
        "report": {**report, **cast("dict[str, Any]", more.get("report", {}))},
    }
    return Measured(round=number, step=step, wall_s=seconds, **given)


def write(folder: Path, runs: Sequence[Measured], **asked: object) -> Path:
    """A folder with these runs."""
    given: dict[str, Any] = {"suite": "sort", "rows": 10_000_000, **asked}
    results.begin(folder, BenchRequest(**given), MACHINE, {"gristmill": "1.0"})
    for run in runs:
        results.append(folder, run)
    return folder


def times(mean: float, relative: float, count: int, seed: int) -> list[float]:
    """Times that scatter by this share of their mean."""
    source = random.Random(seed)
    return [max(source.gauss(mean, mean * relative), mean / 10) for _ in range(count)]


def sorts(seconds: Sequence[float], config: Config | None = None) -> list[Measured]:
    """A run of terasort in each round."""
    return [
        measured("terasort", number, value, config=config or {})
        for number, value in enumerate(seconds, 1)
    ]
