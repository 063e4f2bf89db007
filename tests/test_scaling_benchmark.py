"""benchmarks/scaling.py: its device, what it counts of a history, and the page that it fills.

The experiment itself needs control groups, and ten minutes: it is not run here.
"""

import argparse
import doctest
import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import scaling  # noqa: E402 - a benchmark
import scaling_device  # noqa: E402
import scaling_report  # noqa: E402
import scaling_runs  # noqa: E402

from gristmill.history.model import Attempt, JobHistory, PhaseSpan  # noqa: E402
from gristmill.report import Phase  # noqa: E402

PAGE = ROOT / "docs/scaling.md"


@pytest.mark.parametrize(
    "module", [scaling_device, scaling_report, scaling_runs], ids=lambda one: one.__name__
)
def test_its_examples_are_right(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_small_clusters_go_to_disk() -> None:
    work = scaling_runs.Work()
    on_disk = []
    for p in range(1, 9):
        cluster = scaling_device.Cluster(p, work.blocks, work.cache, bytes_per_s=1e6)
        on_disk.append(sum(not cluster.is_cached(block) for block in range(work.blocks)))
    assert on_disk == [39, 30, 21, 12, 3, 0, 0, 0]


def test_the_device_answers() -> None:
    device = subprocess.Popen(
        [sys.executable, scaling_device.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with device:
        assert device.stdout is not None
        port = int(device.stdout.readline())
        setup = json.dumps({"p": 1, "blocks": 1, "cache": 0, "bytes_per_s": 1e9})
        assert asked(port, f"setup {setup}") == b"ok"
        assert asked(port, "ready") == b"go"
        assert asked(port, "read 0") == scaling_device.text_of_block()
        assert json.loads(asked(port, "stats"))["from_disk"] == 1
        assert device.stdin is not None
        device.stdin.close()  # it ends when the benchmark does
        assert device.wait(60) == 0


def asked(port: int, command: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(f"{command}\n".encode())
        file = connection.makefile("rb")
        return file.read(int.from_bytes(file.read(8), "little"))


def history(*attempts: tuple[int, int, int, str]) -> JobHistory:
    """A history with two workers, whose map ended at 5000 ms."""
    used = Phase(
        name="map", tasks=4, wall_s=5.0, user_s=1.0, sys_s=0.0, slots=2, processors=2,
        running_s=9.0, user_code=True,
    )  # fmt: skip
    return JobHistory(
        job_id="job_1",
        phases=[PhaseSpan(name="map", tasks=4, bytes=9, start_ms=0, end_ms=5000, used=used)],
        attempts=[
            Attempt(task=task, attempt=0, phase="map", start_ms=start, end_ms=end, outcome=outcome)
            for task, start, end, outcome in attempts
        ],
        report={"wall_s": 5.5, "workers": 2},
    )


def test_time_counts_from_when_all_workers_are_ready() -> None:
    done, failed = "succeeded", "failed"
    whole = history((0, 0, 990, done), (1, 0, 1000, done), (2, 1000, 3000, failed))
    counted = scaling_runs.without_start(whole, 2)
    assert counted.wall_s == 4.5
    assert [one.task for one in counted.attempts] == [2]
    assert scaling_runs.seconds_of(counted.phases[0]) == 4.0
    assert scaling_runs.losses(counted)["retries"] == 1.0  # 2 s on one of two slots


def test_a_worker_that_is_late_is_a_failed_run() -> None:
    done = "succeeded"
    with pytest.raises(scaling_runs.Failed):
        scaling_runs.without_start(history((0, 0, 9, done), (2, 1, 9, done), (1, 3, 9, done)), 2)


def measured(machine: str, retries: float) -> list[scaling_runs.Measured]:
    """Three rounds of runs that lose time to retries at small p."""
    found = []
    for number in range(3):
        for p in range(1, 9):
            lost = retries * max(0, 48 - 9 * p) / 39 / p * (1 + 0.05 * number)
            wastes = {"retries": lost, "restarts": 0.0, "serial": 0.0}
            run = scaling_runs.Measured(
                machine, p, number, 8 / p * (1 + 0.001 * number) + lost, 0.3, {"map": 1.0}, wastes,
                left_out={}, failed_attempts=round(lost), cpu_s=2.0, device={}, caps={},
            )  # fmt: skip
            found.append(run)
    return found


def test_the_page_is_filled(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text(encoding="utf-8"))
    pictures = tmp_path / "pictures"
    each = [
        scaling_report.tell(name, scaling_report.write_csv(runs, tmp_path / f"{name}.csv"), runs)
        for name, runs in (
            ("plain", measured("plain", 0.0)),
            ("throttled", measured("throttled", 12.0)),
        )
    ]
    scaling_report.draw(each, pictures)
    scaling_report.fill(page, each, ["5 rounds of 6"], pictures, "scaling-DATE")
    text = page.read_text()
    assert "not measured yet" not in text
    assert re.search(r"\| throttled \| 24 \|.*\| superlinear \| retries \|", text)
    assert re.search(r"\| plain \| 24 \|.*\| linear \| none \|", text)
    links = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert len(links) == 4
    assert all((tmp_path / link).stat().st_size < 100_000 for link in links)
    lines = [line for told in each for line in scaling_report.lines_of(told)]
    assert any("cause: retries" in line for line in lines)


class Broken:
    """A bench whose runs with p = 2 fail, and those with p = 1 the first time."""

    def __init__(self) -> None:
        self.tries: list[int] = []

    def run(self, machine: str, p: int, number: int) -> scaling_runs.Measured:
        del number
        self.tries.append(p)
        if p == 2 or self.tries == [1]:
            raise scaling_runs.Failed("no")
        return measured(machine, 0.0)[0]


def test_a_run_that_fails_is_repeated_once_then_left_out() -> None:
    bench = Broken()
    session = scaling.Session(bench, argparse.Namespace())  # type: ignore[arg-type]
    for p in (1, 2):
        session.once("plain", p, 0, 2)
    assert bench.tries == [1, 1, 2, 2]
    assert len(session.runs) == 1
    assert session.notes == ["left out: plain, p = 2, round 0: it failed twice"]


def test_the_page_has_places_for_figures_and_pictures() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in ("figures", "pictures"):
        scaling_report.between(text, name, "")
