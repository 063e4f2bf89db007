"""`gristmill jobs`: what it prints and removes."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.cli.harness import GRISTMILL, clean_environment, run

from .harness import submitted, write_history

#: Of a version whose reports have other fields.
FINISHED = {
    "t_ms": 1200,
    "event": "job_finished",
    "status": "cancelled",
    "report": {"more": 1, "error": {}},
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_jobs_are_listed_and_chosen(home: Path, tmp_path: Path) -> None:
    where = {"GRISTMILL_HOME": str(home)}
    assert run("jobs", **where).stderr == "no such jobs\n"
    run("teragen", "1k", tmp_path / "in", "--history", **where)
    write_history(home, "job_0", [submitted("job_0"), FINISHED])
    write_history(home, "job_1", [submitted("job_1")])
    write_history(home, "job_2", [submitted("job_2", version=9)])
    listed = run("jobs", **where).stdout.splitlines()
    assert len(listed) == 5
    assert listed[0].split() == ["JOB", "COMMAND", "STATE", "BEGAN", "(UTC)", "TOOK", "DATA"]
    found = json.loads(run("jobs", "--json", **where).stdout)
    states = {job["job_id"]: job["state"] for job in found}
    made = next(name for name in states if name not in ("job_0", "job_1", "job_2"))
    assert states == {
        "job_0": "cancelled",
        "job_1": "dead",
        "job_2": "unreadable",
        made: "succeeded",
    }
    assert "job_0: cancelled" in run("jobs", "show", "job_0", **where).stdout
    run("report", "job_0", "-o", tmp_path / "page.html", **where)
    chosen = json.loads(run("jobs", "--json", "--command", "teragen", **where).stdout)
    assert [job["job_id"] for job in chosen] == [made]
    chosen = json.loads(run("jobs", "--json", "--state", "dead", **where).stdout)
    assert [job["job_id"] for job in chosen] == ["job_1"]
    assert len(json.loads(run("jobs", "--json", "--limit", "1", **where).stdout)) == 1


def test_a_job_is_shown(home: Path, tmp_path: Path) -> None:
    where = {"GRISTMILL_HOME": str(home)}
    run("teragen", "20k", tmp_path / "in", **where)
    run("terasort", tmp_path / "in", tmp_path / "out", "--history", **where)
    shown = run("jobs", "show", "last", **where).stdout
    assert "terasort job_" in shown
    assert "20,000 records, 2.00 MB" in shown
    row = next(line for line in shown.splitlines() if line.startswith("MAP_INPUT_RECORDS"))
    assert row.split()[1:] == ["20,000", "0", "20,000"]
    fields = json.loads(run("jobs", "show", "last", "--json", **where).stdout)
    assert fields["state"] == "succeeded"
    assert [use["name"] for use in fields["uses"]] == ["sample", "map", "reduce", "commit"]
    done = run("jobs", "watch", "last", **where)
    assert done.stdout.splitlines()[-1].endswith(": succeeded")
    for wrong in (["show", "nothing"], ["watch", "nothing"]):
        failed = run("jobs", *wrong, status=1, **where)
        assert failed.stderr.startswith(f"gristmill jobs {wrong[0]}: no job 'nothing' in")


def test_a_job_is_watched_and_its_death_noticed(home: Path, tmp_path: Path) -> None:
    """A pipe that never ends keeps a job alive until it is killed."""
    environment = clean_environment(GRISTMILL_HOME=str(home))
    reading, writing = os.pipe()
    command = [GRISTMILL, "sort", "-o", tmp_path / "out", "--history"]
    with subprocess.Popen(command, stdin=reading, env=environment) as job:
        os.close(reading)
        while not list(home.glob("jobs/*/events.jsonl")):
            time.sleep(0.02)
        (found,) = json.loads(run("jobs", "--json", GRISTMILL_HOME=str(home)).stdout)
        assert found["state"] == "running"
        pruned = run("jobs", "prune", "--older-than", "0", "--json", GRISTMILL_HOME=str(home))
        assert json.loads(pruned.stdout)["removed"] == []
        watching = [GRISTMILL, "jobs", "watch", "last"]
        with subprocess.Popen(
            watching, env=environment, stdout=subprocess.PIPE, text=True
        ) as watcher:
            assert watcher.stdout is not None
            assert watcher.stdout.readline().split()[-1] == "spill"
            job.send_signal(signal.SIGKILL)
            rest = watcher.stdout.read()
        assert rest.splitlines()[-1].endswith(": dead")
        assert watcher.returncode == 1
    os.close(writing)


def test_old_jobs_are_removed_and_links_are_not_followed(home: Path, tmp_path: Path) -> None:
    where = {"GRISTMILL_HOME": str(home)}
    old = write_history(home, "job_1", [submitted("job_1"), FINISHED])
    write_history(home, "job_2", [submitted("job_2"), FINISHED])
    os.utime(old / "events.jsonl", (0, 0))
    elsewhere = write_history(tmp_path / "other", "mine", [submitted("mine")])
    (home / "jobs/job_3").symlink_to(elsewhere)
    listed = run("jobs", "prune", "--dry-run", **where)
    assert listed.stdout == "job_1\n"
    assert old.exists()
    run("jobs", "prune", **where)
    assert sorted(path.name for path in (home / "jobs").iterdir()) == ["job_2", "job_3"]
    removed = json.loads(run("jobs", "prune", "--older-than", "0", "--json", **where).stdout)
    assert removed["removed"] == ["job_2"]
    assert (elsewhere / "events.jsonl").exists()


@pytest.mark.parametrize(
    "wrong",
    [["--state", "odd"], ["--limit", "0"], ["prune", "--older-than", "x"], ["show"], ["none"]],
)
def test_wrong_command_lines(wrong: list[str]) -> None:
    assert "To go on: see gristmill jobs" in run("jobs", *wrong, status=2).stderr
