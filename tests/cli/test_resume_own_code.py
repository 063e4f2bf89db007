"""`gristmill resume` of people's own code: killed at any moment, the same bytes and counters."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .harness import clean_environment, end, names, report, run
from .own_code import PYTHON, SCRIPTS, Bench
from .resuming import events_of, kill_when, killed_again_and_again, tree, wait_for_history

#: What another process counts otherwise: itself, and what it did not do again.
_OF_THE_PROCESS = {
    "CPU_MILLISECONDS",
    "DEVICE_BYTES_READ",
    "FAILED_TASK_ATTEMPTS",
    "KEPT_TASKS",
    "TOTAL_LAUNCHED_MAPS",
    "TOTAL_LAUNCHED_REDUCES",
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("words")
    yield Bench.made(folder)
    shutil.rmtree(folder)


def counters(found: dict[str, Any]) -> dict[str, int]:
    return {name: n for name, n in found["counters"].items() if name not in _OF_THE_PROCESS}


def mapped(events: list[dict[str, Any]]) -> bool:
    return done(events, "map") >= 3


def reduced(events: list[dict[str, Any]]) -> bool:
    return done(events, "reduce") >= 1


def done(events: list[dict[str, Any]], phase: str) -> int:
    """How many tasks of a phase are over, with what outlives their process."""
    begun = {
        (event["task"], event["attempt"]): event["phase"]
        for event in events
        if event["event"] == "attempt_started"
    }
    ends = [event for event in events if event["event"] == "attempt_finished" and "kept" in event]
    return sum(begun[event["task"], event["attempt"]] == phase for event in ends)


@pytest.mark.parametrize("job", [*PYTHON, *SCRIPTS])
def test_killed_at_any_moment(job: str, bench: Bench, home: Path, tmp_path: Path) -> None:
    wanted, out = tmp_path / "wanted", tmp_path / "out"
    began_s = time.monotonic()
    before = json.loads(run(*bench.command(job, wanted), "--json").stdout)
    took_s = time.monotonic() - began_s
    shutil.rmtree(home, ignore_errors=True)  # of a run that took long
    killed = killed_again_and_again(bench.command(job, out), home, took_s=took_s, begun="job_began")
    assert tree(out) == tree(wanted)
    assert names(tmp_path) == ["home", "out", "wanted"]
    after = events_of(home)[-1]["report"]
    assert after["user_counters"] == before["user_counters"]
    for name in ("records", "parts", "output_bytes"):
        assert after[name] == before[name]
    if "MAP_INPUT_RECORDS" in after["counters"]:  # not where only the folder was left to remove
        assert counters(after) == counters(before)
    assert killed >= 1, "the job was over before it could be killed"


def test_what_workers_use_counts_when_resumed(bench: Bench, home: Path, tmp_path: Path) -> None:
    whole = json.loads(run(*bench.command("function", tmp_path / "whole"), "--json").stdout)
    shutil.rmtree(home, ignore_errors=True)
    out = bench.command("function", tmp_path / "out")
    kill_when(out, home, lambda events: done(events, "map") >= 1)
    resumed = report("resume", "last")
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")
    # A process without its workers holds a quarter of that.
    assert resumed["peak_anon_bytes"] > whole["peak_anon_bytes"] / 2
    assert resumed["counters"]["CPU_MILLISECONDS"] > whole["counters"]["CPU_MILLISECONDS"] / 3


@pytest.mark.parametrize("job", ["function", "several", "combiner"])
def test_killed_where_names_are_not_utf8(job: str, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    bench, wanted = Bench.made(folder), tmp_path / "wanted"
    run(*bench.command(job, wanted))
    shutil.rmtree(home, ignore_errors=True)
    out = folder / os.fsdecode(b"out\xff")
    kill_when(bench.command(job, out), home, mapped)
    assert [name for name in names(folder) if name.startswith(".out\udcff.gristmill-")]
    run("resume", "last")
    assert tree(out) == tree(wanted)
    assert not [name for name in names(folder) if name.startswith(".")]


@pytest.mark.parametrize("job", ["function", "combiner"])
@pytest.mark.parametrize("when", [mapped, reduced])
def test_what_is_proved_is_not_done_again(
    job: str,
    when: Callable[[list[dict[str, Any]]], bool],
    bench: Bench,
    home: Path,
    tmp_path: Path,
) -> None:
    wanted, out = tmp_path / "wanted", tmp_path / "out"
    run(*bench.command(job, wanted))
    shutil.rmtree(home, ignore_errors=True)
    kill_when(bench.command(job, out), home, when)
    over = done(events_of(home), "map") + done(events_of(home), "reduce")
    (listed,) = json.loads(run("jobs", "--json").stdout)
    assert (listed["state"], listed["resumable"]) == ("dead", True)
    assert report("resume", "last")["counters"]["KEPT_TASKS"] >= over >= 3
    assert tree(out) == tree(wanted)


@pytest.mark.parametrize("harm", ["truncate", "flip", "remove"])
@pytest.mark.parametrize("what", ["run", "part"])
def test_what_is_damaged_is_made_again(
    harm: str, what: str, bench: Bench, home: Path, tmp_path: Path
) -> None:
    """Of runs the index is looked at: what is flipped there is noticed at once."""
    wanted, out = tmp_path / "wanted", tmp_path / "out"
    run(*bench.command("function", wanted))
    shutil.rmtree(home, ignore_errors=True)
    kill_when(bench.command("function", out), home, reduced if what == "part" else mapped)
    pattern = "attempts/*/part-r-*" if what == "part" else "spill/run-*"
    # The largest: what a task had only begun to write does not count anyway.
    harmed = max(tmp_path.glob(f".out.gristmill-*/{pattern}"), key=lambda path: path.stat().st_size)
    if harm == "remove":
        harmed.unlink()
    elif harm == "truncate":
        os.truncate(harmed, harmed.stat().st_size // 2)
    else:
        data = bytearray(harmed.read_bytes())
        data[10] ^= 1
        harmed.write_bytes(data)
    run("resume", "last")
    assert tree(out) == tree(wanted)
    assert names(tmp_path) == ["home", "out", "wanted"]


def test_a_torn_last_line_is_cut_off(bench: Bench, home: Path, tmp_path: Path) -> None:
    wanted, out = tmp_path / "wanted", tmp_path / "out"
    run(*bench.command("aggregate", wanted))
    shutil.rmtree(home, ignore_errors=True)
    kill_when(bench.command("aggregate", out), home, mapped)
    (history,) = home.glob("jobs/*/events.jsonl")
    with history.open("ab") as file:
        file.write(b'{"t_ms":99999,"event":"attempt_fini')
    said = run("resume", "last").stdout
    assert f"of {out}" in said
    assert "words: first letter" in said
    assert tree(out) == tree(wanted)


def test_killed_while_the_output_is_put_together(bench: Bench, home: Path, tmp_path: Path) -> None:
    """Files that were moved to the output already go back to their attempts."""
    wanted, out = tmp_path / "wanted", tmp_path / "out"
    run(*bench.command("map_only", wanted))
    shutil.rmtree(home, ignore_errors=True)
    kill_when(bench.command("map_only", out), home, mapped)
    (folder,) = tmp_path.glob(".out.gristmill-*")
    over = {
        file["name"]: folder / "attempts" / event["kept"]["work"]["folder"] / file["name"]
        for event in events_of(home)
        if "kept" in event and event["event"] == "attempt_finished"
        for file in event["kept"]["work"]["files"]
    }
    for name, path in list(over.items())[:2]:
        path.rename(folder / "output" / name)
    assert report("resume", "last")["counters"]["KEPT_TASKS"] == len(over)
    assert tree(out) == tree(wanted)
    assert names(tmp_path) == ["home", "out", "wanted"]


def test_begun_by_a_script(bench: Bench, home: Path, tmp_path: Path) -> None:
    """Whose functions are in no module: nothing of the script runs again."""
    script, out, wanted = bench.folder / "script.py", tmp_path / "out", tmp_path / "wanted"
    script.write_text(
        "import sys\nfrom pathlib import Path\nimport gristmill as gm\n\n\n"
        "def pairs(line):\n    for word in line.split():\n        yield word, 1\n\n\n"
        'if __name__ == "__main__":\n'
        "    job = gm.Job(gm.text(sys.argv[1]), map=pairs, reduce=gm.sum(), parts=3,\n"
        '                 output=gm.tsv(sys.argv[2]), split_max="1M")\n'
        "    job.run(history=True, workers=2, progress=False)\n"
    )
    text = bench.folder / "in.txt"
    subprocess.run([sys.executable, script, text, wanted], env=clean_environment(), check=True)
    shutil.rmtree(home, ignore_errors=True)
    process = subprocess.Popen(
        [sys.executable, script, text, out],
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    wait_for_history(home, process)
    while process.poll() is None and not mapped(events_of(home)):
        time.sleep(0.002)
    process.kill()
    end(process)
    assert report("resume", "last", cwd=tmp_path)["counters"]["KEPT_TASKS"] >= 3
    assert tree(out) == tree(wanted)


def test_with_the_environment_that_it_began_with(
    bench: Bench, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is kept for its user alone, and not in the history."""
    job, out = bench.folder / "of_environment.py", tmp_path / "out"
    job.write_text(
        "import os\nimport gristmill as gm\n"
        'job = gm.Job(gm.text("x"), map=lambda line: [os.environ["WORD"]],'
        ' output=gm.text("y"), split_max="1M")\n'
    )
    monkeypatch.setenv("WORD", "secret-word")
    text = bench.folder / "in.txt"
    kill_when(["run", job, "--input", text, "--output", out], home, mapped)
    (definition,) = tmp_path.glob(".out.gristmill-*/definition")
    assert definition.stat().st_mode & 0o777 == 0o600
    assert b"secret-word" in definition.read_bytes()
    monkeypatch.setenv("WORD", "another")
    run("resume", "last")
    assert {line for part in out.glob("part-*") for line in part.read_text().split()} == {
        "secret-word"
    }
    (history,) = home.glob("jobs/*/events.jsonl")
    assert "secret-word" not in history.read_text()
