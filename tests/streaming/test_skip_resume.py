"""Skip mode in jobs that are killed: what was left out stays so, counted and kept."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

GRISTMILL = os.environ.get("GRISTMILL", str(Path(sys.executable).with_name("gristmill")))

REDUCER = f"""#!{sys.executable} -ES
import os, sys, time
while os.environ["mapreduce_task_partition"] == "2" and not os.path.exists(os.environ["GO"]):
    time.sleep(0.01)
for line in sys.stdin:
    if line.startswith("bad"):
        sys.exit("cannot take " + line)
    sys.stdout.write(line)
"""


def reduces_over(home: Path) -> int:
    (path,) = home.glob("jobs/*/events.jsonl")
    events = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
    started = {
        event["task"]
        for event in events
        if event["event"] == "attempt_started" and event["phase"] == "reduce"
    }
    return sum(event["task"] in started for event in events if "kept" in event and "task" in event)


def run(words: list[str], home: Path) -> dict[str, Any]:
    environment = os.environ | {"GRISTMILL_HOME": str(home)}
    command = [GRISTMILL, *words, "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def contents(folder: Path) -> dict[str, bytes]:
    """The parts, and how many files there are for what was left out: their names have the job's."""
    parts = {path.name: path.read_bytes() for path in folder.glob("part-*")}
    return parts | {"left out": b"x" * len(list(folder.glob("_logs/skip/*_r_*")))}


@pytest.mark.parametrize("outdir", ["", "none"])
def test_groups_that_were_left_out_stay_so(tmp_path: Path, outdir: str) -> None:
    (tmp_path / "reduce.py").write_text(REDUCER)
    (tmp_path / "in.txt").write_text(
        "".join(f"{kind}{number % 60}\tx\n" for number in range(400) for kind in ("good", "bad"))
        .replace("bad1", "bad")
        .replace("bad2", "good")
    )
    words = ["streaming", "-D", "mapreduce.reduce.skip.maxgroups=1"]
    words += ["-D", "mapreduce.job.reduces=3"]
    words += ["-D", f"mapreduce.job.skip.outdir={outdir}"] if outdir else []
    words += ["-files", f"{tmp_path}/reduce.py", "-cmdenv", f"GO={tmp_path}/go", "--workers", "2"]
    words += ["-input", f"{tmp_path}/in.txt", "-mapper", "cat", "-reducer", "reduce.py"]
    (tmp_path / "go").touch()
    expected = run([*words, "-output", f"{tmp_path}/whole"], tmp_path / "home-1")
    (tmp_path / "go").unlink()
    home = tmp_path / "home"
    environment = os.environ | {"GRISTMILL_HOME": str(home)}
    command = [GRISTMILL, *words, "-output", f"{tmp_path}/out", "--history"]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    deadline_s = time.monotonic() + 30
    while not list(home.glob("jobs/*/events.jsonl")) or reduces_over(home) < 2:
        if process.poll() is not None or time.monotonic() > deadline_s:
            break
        time.sleep(0.02)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    (tmp_path / "go").touch()
    found = run(["resume", "last"], home)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    for name in ("REDUCE_SKIPPED_GROUPS", "REDUCE_SKIPPED_RECORDS", "REDUCE_INPUT_RECORDS"):
        assert found["counters"][name] == expected["counters"][name] > 0, name
