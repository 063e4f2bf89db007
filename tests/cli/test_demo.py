"""The demo, with few records: its steps, its figures, and that it leaves nothing."""

import re
import signal
import time
from pathlib import Path

import pytest

from .harness import end, failure, names, report, run, start


def test_steps_and_figures(tmp_path: Path) -> None:
    shown = run("demo", "--rows", "20k", "--dir", tmp_path)
    assert shown.stderr == ""
    steps, table = shown.stdout.split("\n\n")
    for step in ("made 20,000 records", "page cache", "sorted", "validated", "1 worker", "SHA-256"):
        assert step in steps
    checksum = re.search(r"with checksum (\w+)", steps)
    assert checksum is not None
    for pattern in (
        r"^speed +[\d.]+ GB/s ",
        r"^share of floor +\d+ % ",
        r"^CPU +[\d.]+ s per GB ",
        r"^peak memory +[\d.]+ MB +mapped input apart, ",
        rf"^proof +same records +checksum in = out = {checksum[1]}$",
        r"^ +in order +within and across 1 file, 0 duplicate keys$",
        r"^ +same bytes +with 1 worker, in every file$",
    ):
        assert re.search(pattern, table, re.MULTILINE), f"{pattern}\n{table}"
    assert names(tmp_path) == []


def test_json(tmp_path: Path) -> None:
    found = report("demo", "--rows", "1k", "--dir", tmp_path)
    assert (found["command"], found["status"], found["records"]) == ("demo", "succeeded", 1000)
    assert found["checksum"] == "1f9ffe645ec"
    demo = found["demo"]
    assert demo["same_bytes_with_one_worker"] is True
    assert demo["gb_per_s"] == pytest.approx(100_000 / 1e9 / found["wall_s"])
    floor_s = demo["floor"]["cached_read_s"] + demo["floor"]["direct_write_s"]
    assert demo["share_of_floor"] == pytest.approx(floor_s / found["wall_s"])
    assert demo["steps"]["terasort_with_one_worker"]["workers"] == 1
    assert {step["checksum"] for step in demo["steps"].values()} == {found["checksum"]}


def test_the_current_directory_is_the_default(tmp_path: Path) -> None:
    assert "in gristmill-demo-" in run("demo", "--rows", "1k", cwd=tmp_path).stdout
    assert names(tmp_path) == []


def test_a_disk_without_room(tmp_path: Path) -> None:
    says = failure("demo", "--rows", "1t", "--dir", tmp_path)
    assert re.search(r"it needs 300 TB \(300,000,067,108,864 bytes, .* has .* bytes\) free", says)
    assert report("demo", "--rows", "1t", status=1)["error"]["kind"] == "disk_full"
    assert names(tmp_path) == []


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "no such file or directory" in failure("demo", "--dir", tmp_path / "no")


@pytest.mark.parametrize("rows", ["ten", "0", "-1", "1.5k"])
def test_rows_that_make_no_sense(rows: str, tmp_path: Path) -> None:
    says = failure("demo", f"--rows={rows}", "--dir", tmp_path, status=2)
    assert "rows" in says or "records" in says
    assert report("demo", f"--rows={rows}", "--dir", tmp_path, status=2)["status"] == "failed"
    assert names(tmp_path) == []


@pytest.mark.parametrize("after_s", [0.0, 0.2, 0.5, 0.8])
def test_ctrl_c(after_s: float, tmp_path: Path) -> None:
    process = start("demo", "--rows", "5m", "--dir", tmp_path)
    while not names(tmp_path) and process.poll() is None:
        time.sleep(0.005)
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    done = end(process)
    assert done.status == 130
    assert done.stderr == "gristmill demo: cancelled; the directory is removed.\n"
    assert names(tmp_path) == []
