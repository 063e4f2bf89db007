"""What `gristmill resume` refuses: in one paragraph, with nothing touched."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .harness import GRISTMILL, clean_environment, end, failure, run, start
from .resuming import RUNS, Tree, events_of, kill_when, merged, spilled, tree, wait_for_history


def left_in(folder: Path) -> dict[str, tuple[int, int]]:
    """All that is in a folder, with sizes and times."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("change", ["longer", "touched", "gone", "more"])
def test_a_changed_input_is_refused_until_it_is_back(
    change: str, records: Path, wanted: Tree, home: Path, tmp_path: Path
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    shutil.copytree(records, folder)
    kill_when(["terasort", folder, out, *RUNS], home, spilled)
    part, saved = folder / "part-m-00001", tmp_path / "saved"
    times = (part.stat().st_atime_ns, part.stat().st_mtime_ns)
    if change == "longer":
        with part.open("ab") as file:
            file.write(bytes(100))
    elif change == "touched":
        os.utime(part)
    elif change == "gone":
        part.rename(saved)
    else:
        (folder / "part-m-00009").write_bytes(bytes(100))
    before = left_in(tmp_path)
    refusal = failure("resume", "last")
    assert "input" in refusal
    assert left_in(tmp_path) == before
    if change == "touched":  # it says how to tell that a copy is the same
        (stamp,) = re.findall(r"touch -d @[0-9.]+", refusal)
        subprocess.run([*stamp.split(), part], check=True)
        assert part.stat().st_mtime_ns == times[1]
    if change == "longer":
        os.truncate(part, part.stat().st_size - 100)
    elif saved.exists():
        saved.rename(part)
    elif change == "more":
        (folder / "part-m-00009").unlink()
    os.utime(part, ns=times)
    run("resume", "last")
    assert tree(out) == wanted


def test_an_input_restored_with_its_time_is_the_same(
    records: Path, wanted: Tree, home: Path, tmp_path: Path
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    shutil.copytree(records, folder)
    kill_when(["terasort", folder, out, *RUNS], home, spilled)
    part = folder / "part-m-00001"
    part.rename(tmp_path / "saved")
    shutil.copy2(tmp_path / "saved", part)
    run("resume", "last")
    assert tree(out) == wanted


def test_the_last_job_is_the_last_that_can_be_resumed(
    records: Path, wanted: Tree, home: Path, tmp_path: Path
) -> None:
    kill_when(["terasort", records, tmp_path / "out", *RUNS], home, spilled)
    run("teragen", "1k", tmp_path / "made", "--history")
    failure("terasort", records, tmp_path / "made", "--history")
    run("resume", "last")
    assert tree(tmp_path / "out") == wanted
    assert "it is over" in failure("resume", "last")  # there is none any more


def test_a_job_that_is_over_or_alive_or_not_there_is_refused(
    records: Path, home: Path, tmp_path: Path
) -> None:
    assert "no job 'nothing'" in failure("resume", "nothing").replace('"', "'")
    assert "a second is kept with --history" in failure("resume", "last")
    run("terasort", records, tmp_path / "one", "--history")
    refused = failure("resume", "last")
    assert "no job can be resumed. " in refused
    assert " The last one is job_" in refused
    assert "it is over: succeeded" in refused
    failure("terasort", records, tmp_path / "one", "--history")
    assert "it is over: failed" in failure("resume", "last")
    reading, writing = os.pipe()
    shutil.rmtree(home)
    alive = subprocess.Popen(
        [GRISTMILL, "sort", "-o", tmp_path / "two", "--history"],
        env=clean_environment(),
        stdin=reading,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    os.close(reading)
    wait_for_history(home, alive)
    assert "it is alive" in failure("resume", "last")
    os.close(writing)
    _, stderr = alive.communicate(timeout=30)
    assert (alive.returncode, stderr) == (0, "")


def test_two_at_once_are_one_and_a_refusal(
    records: Path, wanted: Tree, home: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    kill_when(["terasort", records, out, *RUNS], home, spilled)
    both = [end(process) for process in [start("resume", "last"), start("resume", "last")]]
    assert sorted(done.status for done in both) == [0, 1]
    (refused,) = (done.stderr for done in both if done.status)
    assert "it is alive" in refused or "it is over" in refused
    assert tree(out) == wanted


def test_what_read_a_pipe_or_wrote_one_is_refused(home: Path, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    for arguments in (["sort", "-o", tmp_path / "out"], ["sort", "-"]):
        process = subprocess.Popen(
            [GRISTMILL, *map(str, arguments), "--history"],
            env=clean_environment(),
            stdin=reading,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        wait_for_history(home, process)
        process.kill()
        end(process)
        assert "pipe is gone" in failure("resume", "last")
        (job,) = json.loads(run("jobs", "--json").stdout)
        assert not job["resumable"]
        shutil.rmtree(home)
    os.close(reading)
    os.close(writing)


def test_an_output_that_someone_else_made_meanwhile(
    records: Path, home: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    kill_when(["terasort", records, out, *RUNS], home, spilled)
    out.mkdir()
    before = left_in(tmp_path)
    assert "the output exists" in failure("resume", "last")
    assert left_in(tmp_path) == before
    out.rmdir()
    run("resume", "last")


# --- hostile histories ---


def rewrite(home: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change every event of the only history."""
    (path,) = home.glob("jobs/*/events.jsonl")
    events = events_of(home)
    for event in events:
        change(event)
    path.write_text("".join(json.dumps(event) + "\n" for event in events))


@pytest.mark.parametrize(
    "name", ["../../precious/run-1", "ABSOLUTE", "..", "lock", "", "run-/../x"]
)
def test_names_that_lead_elsewhere_are_refused(
    name: str, records: Path, home: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "run-1").write_text("mine")
    out = tmp_path / "out"
    kill_when(["terasort", records, out, *RUNS], home, spilled)
    evil = str(precious / "run-1") if name == "ABSOLUTE" else name

    def change(event: dict[str, Any]) -> None:
        if event["event"] == "attempt_finished":
            for of_task in event.get("kept", {}).get("spill", []):
                of_task["name"] = evil

    rewrite(home, change)
    before = left_in(tmp_path)
    assert "does not belong to the job" in failure("resume", "last")
    assert left_in(tmp_path) == before


def test_ranges_of_other_files_are_refused(records: Path, home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kill_when(["terasort", records, out, *RUNS], home, merged)

    def change(event: dict[str, Any]) -> None:
        if event["event"] == "attempt_finished":
            for written in event.get("kept", {}).get("merge", []):
                written["file"] = "../../../etc/passwd"

    rewrite(home, change)
    assert "does not belong to the job" in failure("resume", "last")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("job_id", "../../other", "not written by the job of this directory"),
        ("program", "0.0.1", "began it"),
        ("command", "teragen", "not written by the job of this directory"),
        ("cwd", "relative", "not written by the job of this directory"),
        ("spec", {"terasort": {"inputs": ["in"]}}, "cannot read the options"),
        ("version", 9, "version"),
    ],
)
def test_a_history_of_another_job_is_refused(
    field: str, value: object, words: str, records: Path, home: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    kill_when(["terasort", records, out, *RUNS], home, spilled)

    def change(event: dict[str, Any]) -> None:
        if event["event"] == "job_submitted":
            event[field] = value

    rewrite(home, change)
    before = left_in(tmp_path)
    status = 2 if field == "spec" else 1
    assert words in failure("resume", "last", status=status)
    assert left_in(tmp_path) == before


def test_links_are_not_followed(records: Path, home: Path, tmp_path: Path) -> None:
    out, precious = tmp_path / "out", tmp_path / "precious"
    precious.write_text("mine")
    kill_when(["terasort", records, out, *RUNS], home, spilled)
    (spill,) = tmp_path.glob(".out.gristmill-*/spill")
    (spill / "run-1").symlink_to(precious)
    assert "a link in it" in failure("resume", "last")
    (spill / "run-1").unlink()
    (history,) = home.glob("jobs/*/events.jsonl")
    history.rename(tmp_path / "elsewhere")
    history.symlink_to(tmp_path / "elsewhere")
    assert "symbolic link" in failure("resume", "last")
    assert precious.read_text() == "mine"
