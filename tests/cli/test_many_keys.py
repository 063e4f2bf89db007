"""Listings of more keys than anybody wants in memory."""

import json
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .harness import GRISTMILL, clean_environment, end, start
from .key_server import PAGE, Asked, key, serving
from .s3_server import Server

KEYS = 100_000
FOLDER_KEYS = 1000
MANY_KEYS = 1_000_000


def peak_bytes(*command: str | Path, out: Path, **environment: str) -> int:
    """Run a command line to its end; returns its peak of memory, looked at again and again.

    (What a process is told of a child's peak when it waits for it has its own in it.)
    """
    peak = 0
    with out.open("wb") as stdout:
        process = subprocess.Popen(
            [GRISTMILL, *command], stdout=stdout, env=clean_environment(**environment)
        )
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        if found := re.search(r"VmHWM:\s+(\d+) kB", status):
            peak = int(found[1]) * 1024
        time.sleep(0.01)
    assert process.returncode == 0
    return peak


def test_a_listing_takes_no_memory_for_its_keys(tmp_path: Path) -> None:
    out = tmp_path / "listed"
    with serving(KEYS) as environment:
        peak = peak_bytes("hadoop", "fs", "-ls", "s3://bucket/in", out=out, **environment)
    lines = out.read_text().splitlines()
    assert len(lines) == KEYS
    assert lines[-1].endswith("s3://bucket/in/part-000099-00999.tbl")
    assert "2026-01-02" in lines[0]
    assert 20_000_000 < peak < 80_000_000


def test_pages_of_one_listing_are_asked_for_at_once(tmp_path: Path) -> None:
    out, asked = tmp_path / "listed", Asked()
    with serving(KEYS, asked, latency_s=0.02) as environment:
        peak_bytes("hadoop", "fs", "-ls", "s3://bucket/in", out=out, **environment)
    names = [line.split()[-1] for line in out.read_text().splitlines()]
    assert names == [f"s3://bucket/{key(number)}" for number in range(KEYS)]
    assert asked.pages <= 1.5 * KEYS / PAGE + 4
    assert 3 <= asked.at_once <= 5


def test_a_listing_of_two_pages_is_two_requests(tmp_path: Path) -> None:
    out, asked = tmp_path / "listed", Asked()
    with serving(2 * PAGE, asked) as environment:
        peak_bytes("hadoop", "fs", "-ls", "s3://bucket/in", out=out, **environment)
    assert len(out.read_text().splitlines()) == 2 * PAGE
    assert (asked.pages, asked.at_once) == (3, 1)  # and one that says that it is a directory


@pytest.mark.timeout(300)
def test_a_listing_of_a_real_server(server: Server, tmp_path: Path) -> None:
    bucket = server.folder / "many"
    for folder in range(KEYS // FOLDER_KEYS):
        (bucket / f"in/{folder:03}").mkdir(parents=True)
        for number in range(FOLDER_KEYS):
            (bucket / f"in/{folder:03}/{number:04}").write_bytes(b"a b\n")
    out = tmp_path / "listed"
    try:
        command = ("hadoop", "fs", "-ls", "-R", "s3://many/in")
        peak = peak_bytes(*command, out=out, **server.environment)
    finally:
        shutil.rmtree(bucket)
    lines = [line for line in out.read_text().splitlines() if not line.startswith("d")]
    assert len(lines) == KEYS
    assert lines[-1].endswith("s3://many/in/099/0999")
    assert 20_000_000 < peak < 80_000_000


def test_a_plan_of_many_inputs_takes_little_of_each(tmp_path: Path) -> None:
    command = ("explain", "terasort", "s3://bucket/in", tmp_path / "sorted", "--json")
    with serving(MANY_KEYS) as environment:
        out = tmp_path / "plan"
        peak = peak_bytes(*command, "--memory", "1G", out=out, **environment)
    assert '"files": 1000000' in out.read_text()
    assert 100_000_000 < peak < 200_000_000


def test_a_copy_takes_no_memory_for_its_keys(tmp_path: Path) -> None:
    out = tmp_path / "report"
    with serving(KEYS) as environment:
        command = ("cp", "s3://bucket/in/", tmp_path / "there", "--dry-run", "--json")
        peak = peak_bytes(*command, out=out, **environment)
    assert json.loads(out.read_bytes())["counters"]["COPY"] == KEYS
    assert 20_000_000 < peak < 150_000_000


def test_a_copy_begins_before_all_keys_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked()
    with serving(MANY_KEYS, asked) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        process = start("cp", "s3://bucket/in/", tmp_path / "there")
        while not any(tmp_path.glob("there/part-*")):
            assert process.poll() is None
            time.sleep(0.01)
        assert asked.pages < 100
        process.send_signal(signal.SIGINT)
        assert end(process, 20).status == 130
