"""`gristmill jobs`: what it prints and removes."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.harness import GRISTMILL, clean_environment, run

from gristmill.history import load
from gristmill.history.brief import load_brief

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


def test_a_job_whose_reader_went_away_ended_early(home: Path, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("a line\n" * 50_000)
    job = subprocess.Popen(
        [GRISTMILL, "sort", lines, "--history"],
        env=clean_environment(GRISTMILL_HOME=str(home)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert job.stdout is not None
    assert job.stderr is not None
    job.stdout.readline()
    job.stdout.close()
    assert (job.stderr.read(), job.wait()) == ("", 141)
    job.stderr.close()
    where = {"GRISTMILL_HOME": str(home)}
    early, failed = (
        json.loads(run("jobs", "--json", "--state", state, **where).stdout)
        for state in ("ended early", "failed")
    )
    assert ([one["state"] for one in early], failed) == (["ended early"], [])
    assert " ended early " in run("jobs", **where).stdout
    assert run("jobs", "show", "last", **where).stdout.splitlines()[0].endswith(": ended early")


def test_jobs_are_listed_and_chosen(home: Path, tmp_path: Path) -> None:
    where = {"GRISTMILL_HOME": str(home)}
    assert run("jobs", **where).stderr == "no such jobs\n"
    run("teragen", "1k", tmp_path / "in", "--history", **where)
    write_history(home, "job_0", [submitted("job_0"), FINISHED])
    write_history(home, "job_1", [submitted("job_1")])
    write_history(home, "job_2", [submitted("job_2", version=9)])
    listed = run("jobs", **where).stdout.splitlines()
    assert len(listed) == 5
    head = "JOB COMMAND NAME STATE BEGAN TOOK DATA INPUT OUTPUT"
    assert listed[0].split() == head.split()
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


def test_jobs_are_told_apart_by_what_they_do(home: Path) -> None:
    """Names, inputs, output, options and local time: of a job with a name, and of any command."""
    options = {"name": "word\x1bcount", "inputs": ["a", "b", "c"], "output": "/o", "workers": 2}
    first = submitted(
        "job_1", command="mapreduce", spec={"mapreduce": options}, cwd="/w", host="mill", argv=["x"]
    )
    write_history(home, "job_1", [first, FINISHED])
    where = {"GRISTMILL_HOME": str(home), "TZ": "UTC-5"}
    (line,) = run("jobs", **where).stdout.splitlines()[1:]
    began = ["2023-11-15", "03:13:20"]  # 2023-11-14 22:13:20 UTC
    assert line.split()[:6] == ["job_1", "mapreduce", "word\\x1bcount", "cancelled", *began]
    assert line.split()[-5:] == ["a", "and", "2", "more", "/o"]
    shown = run("jobs", "show", "job_1", **where).stdout
    for expected in ("began 2023-11-15 03:13:20", "/w on mill", "a, b, c", "workers 2"):
        assert expected in shown
    (found,) = json.loads(run("jobs", "--json", **where).stdout)
    assert (found["name"], found["inputs"]) == ("word\x1bcount", ["a", "b", "c"])


def test_counters_of_the_jobs_functions_come_last(home: Path) -> None:
    counted = {"log": {"broken\x1b": 1234, "lines": 5}, "other": {"x": 1}}
    report = {"counters": {"MAP_INPUT_RECORDS": 7}, "user_counters": counted}
    write_history(home, "job_1", [submitted("job_1"), {**FINISHED, "report": report}])
    lines = run("jobs", "show", "job_1", GRISTMILL_HOME=str(home)).stdout.splitlines()
    rows = [line.split() for line in lines[-6:]]
    assert rows == [
        ["MAP_INPUT_RECORDS", "7", "0", "7"],
        ["log"],
        ["broken\\x1b", "1,234"],
        ["lines", "5"],
        ["other"],
        ["x", "1"],
    ]
    assert len({len(line) for line in (lines[-6], lines[-4], lines[-1])}) == 1  # a column


def test_a_job_that_cannot_be_resumed_says_why(home: Path) -> None:
    """The reason is no option of the user's."""
    options = {"inputs": ["a"], "output": "/o", "workers": 2, "once": "it is one of a chain"}
    spec = {"mapreduce": options}
    begun = submitted("job_1", command="mapreduce", spec=spec)
    write_history(home, "job_1", [begun, FINISHED])
    shown = run("jobs", "show", "job_1", GRISTMILL_HOME=str(home)).stdout
    assert "  resume     not possible: it is one of a chain\n" in shown
    assert "  options    workers 2\n" in shown
    assert "once" not in shown


def test_only_the_ends_of_a_history_are_read_for_a_list(home: Path) -> None:
    """A gigabyte lies between them, of zeros, which are no events."""
    folder = write_history(home, "job_1", [submitted("job_1")])
    with (folder / "events.jsonl").open("r+b") as file:
        file.seek(10**9)
        file.write(b"\n" + json.dumps(FINISHED).encode() + b"\n")
    write_history(home, "job_0", [submitted("job_0"), FINISHED])
    where = {"GRISTMILL_HOME": str(home)}
    (found,) = json.loads(run("jobs", "--json", "--limit", "1", **where).stdout)
    assert (found["job_id"], found["state"], found["wall_s"]) == ("job_1", "cancelled", 1.2)


def test_what_a_brief_says_is_what_the_whole_history_says(home: Path) -> None:
    long = {**FINISHED, "report": {"error": {"message": "x" * 70_000}}}
    began = {"t_ms": 2, "event": "job_began", "workers": 1, "definition": "a"}
    other = {"t_ms": 3, "event": "tasks_began", "round": 0}
    own = {
        "command": "mapreduce",
        "spec": {"mapreduce": {"inputs": [], "output": "o", "partitions": 0}},
    }
    cases = [[], [submitted("j")], [submitted("j"), long], [submitted("j", **own), began, other]]
    for number, events in enumerate(cases):
        folder = write_history(home, f"job_{number}", events)
        for torn in ("", '{"t_ms": 9, "ev'):
            with (folder / "events.jsonl").open("a") as file:
                file.write(torn)
            brief, whole = load_brief(folder), load(folder)
            for name in ("command", "state", "end_ms", "wall_s", "report", "resumable", "name"):
                assert getattr(brief, name) == getattr(whole, name)
    assert load_brief(folder).resumable


@pytest.mark.parametrize("stopped", ["spill", "merge"])
def test_what_a_dead_job_left_goes_with_its_history(
    home: Path, tmp_path: Path, stopped: str
) -> None:
    """Killed in a phase, a sort leaves hidden folders: they go, and nothing else does."""
    where = {"GRISTMILL_HOME": str(home)}
    run("teragen", "300k", tmp_path / "in", **where)
    (tmp_path / "runs").mkdir()
    command = [GRISTMILL, "terasort", tmp_path / "in", tmp_path / "out", "--memory", "15M"]
    command += ["--history", "--workers", "1", "--spill-dir", tmp_path / "runs"]
    with subprocess.Popen(command, env=clean_environment(**where)) as job:
        while not list(home.glob("jobs/*/events.jsonl")):
            time.sleep(0.005)
        (events,) = home.glob("jobs/*/events.jsonl")
        while f'"event":"phase_started","name":"{stopped}"' not in events.read_text():
            time.sleep(0.005)
        job.send_signal(signal.SIGKILL)
    job_id = events.parent.name
    left = [tmp_path / f".out.gristmill-{job_id}", tmp_path / f"runs/.gristmill-spill-{job_id}"]
    other = tmp_path / ".out.gristmill-job_1"
    other.mkdir()
    assert [folder.is_dir() for folder in left] == [True, True]
    for more in (["--dry-run"], []):
        assert all(folder.is_dir() for folder in left)
        told = run("jobs", "prune", "--older-than", "0", "--json", *more, **where).stdout
        assert json.loads(told)["removed"] == [job_id]
        assert json.loads(told)["folders"] == list(map(str, left))
    assert not any(folder.exists() for folder in left)
    assert not events.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.name, "home", "in", "runs"]


def test_what_cannot_be_resumed_is_not_kept_for_it(home: Path, tmp_path: Path) -> None:
    """A sort of a pipe was killed: what it left goes at once, its history when it is old."""
    where = {"GRISTMILL_HOME": str(home)}
    reading, writing = os.pipe()
    command = [GRISTMILL, "sort", "--memory", "16M", "--history", "-o", "out/sorted.txt"]
    (tmp_path / "out").mkdir()
    environment = clean_environment(**where)
    with subprocess.Popen(command, stdin=reading, env=environment, cwd=tmp_path) as job:
        os.close(reading)
        for _ in range(30):
            os.write(writing, b"a line of thirty-two characters\n" * 32_768)
        while not list(home.glob("jobs/*/events.jsonl")) or not hidden(tmp_path):
            time.sleep(0.02)
        pruned = json.loads(run("jobs", "prune", "--json", **where).stdout)
        assert pruned["folders"] == []
        job.send_signal(signal.SIGKILL)
    os.close(writing)
    left = hidden(tmp_path)
    assert left
    (tmp_path / "out" / "sorted.txt").write_text("of another job\n")
    tried = json.loads(run("jobs", "prune", "--json", "--dry-run", **where).stdout)
    assert (tried["removed"], sorted(tried["folders"])) == ([], left)
    assert hidden(tmp_path) == left
    pruned = json.loads(run("jobs", "prune", "--json", **where).stdout)
    assert (pruned["removed"], sorted(pruned["folders"])) == ([], left)
    assert hidden(tmp_path) == []
    assert len(list(home.glob("jobs/*"))) == 1


def hidden(folder: Path) -> list[str]:
    """What jobs keep beside outputs and where they spill."""
    found = {path for path in folder.rglob(".*") if "gristmill" in path.name}
    return sorted(str(path) for path in found if found.isdisjoint(path.parents))


def test_what_a_dead_chain_kept_goes_too(home: Path, tmp_path: Path) -> None:
    """Killed in its third job; what looks like it and is of another process stays."""
    (tmp_path / "in").write_text("a b\n" * 100)
    (tmp_path / "job.py").write_text(
        "import time\nimport gristmill as gm\n"
        "def slow(pair):\n    time.sleep(30)\n"
        "def same(pair):\n    yield pair\n"
        "first = gm.Job(gm.text('in'), map=lambda line: [(line, 1)], reduce=gm.sum())\n"
        "first.then(map=same, reduce=gm.sum()).then(map=slow, output=gm.tsv('out')).run("
        "history=True, workers=1)\n"
    )
    where = {"GRISTMILL_HOME": str(home)}
    command = [sys.executable, tmp_path / "job.py"]
    with subprocess.Popen(command, env=clean_environment(**where), cwd=tmp_path) as job:
        while len(list(home.glob("jobs/*/events.jsonl"))) < 3:
            time.sleep(0.02)
        time.sleep(0.2)
        job.send_signal(signal.SIGKILL)
    (kept,) = (path for path in tmp_path.glob(".out.job_*") if "gristmill" not in path.name)
    assert sorted(path.name for path in kept.iterdir()) == ["0", "1", "begun", "definition"]
    other = tmp_path / f"{kept.name}_2"
    shutil.copytree(kept, other)
    young = json.loads(run("jobs", "prune", "--json", **where).stdout)
    assert (young["removed"], young["folders"]) == ([], [])  # the chain can go on
    dry = run("jobs", "prune", "--older-than", "0", "--dry-run", "--json", **where).stdout
    assert str(kept) in json.loads(dry)["folders"]
    assert kept.exists()
    told = run("jobs", "prune", "--older-than", "0", "--json", **where).stdout
    assert str(kept) in json.loads(told)["folders"]
    assert [path.name for path in tmp_path.glob(".*")] == [other.name]


def test_prune_says_what_it_removed_of_a_job_whose_history_stays(
    home: Path, tmp_path: Path
) -> None:
    spec = {"inputs": ["in"], "code": [], "splits": [], "partitions": 1, "output": "out"}
    spec |= {"spill_dir": ["runs"], "on": "ray", "once": "it is one of a chain"}
    job = submitted("job_1", command="mapreduce", spec={"mapreduce": spec}, cwd=str(tmp_path))
    write_history(home, "job_1", [job])
    left = tmp_path / "runs" / ".gristmill-spill-job_1-0"
    left.mkdir(parents=True)
    (left / "lock").touch()
    for more, does in ((["--dry-run"], "would go"), ([], "removed")):
        pruned = run("jobs", "prune", *more, GRISTMILL_HOME=str(home))
        said = f"1 hidden directory of a dead job {does}\n"
        assert (pruned.stdout, pruned.stderr) == (f"{left}\n", said)
    assert not left.exists()
    assert run("jobs", "prune", GRISTMILL_HOME=str(home)).stderr == "0 jobs removed\n"


def test_a_history_stays_whose_folder_somebody_uses(home: Path, tmp_path: Path) -> None:
    spec = {"teragen": {"rows": "1", "output": str(tmp_path / "out")}}
    first = submitted("job_1", command="teragen", spec=spec, cwd=str(tmp_path))
    history = write_history(home, "job_1", [first])
    left = tmp_path / ".out.gristmill-job_1"
    left.mkdir()
    with (left / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        pruned = run("jobs", "prune", "--older-than", "0", GRISTMILL_HOME=str(home))
    assert "job_1 stays" in pruned.stderr
    assert history.exists()
    assert left.exists()


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
    assert "What to do: see gristmill jobs" in run("jobs", *wrong, status=2).stderr


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (["--limit", "0"], "'0' is not a whole number from 1 on. What to do: see gristmill jobs"),
        (["--limit"], "requires an argument. What to do: see gristmill jobs --help"),
        (["prune", "--older-than", "x"], "'x' is not a number of days, from 0 on"),
        (["prune", "--older-than", "-1"], "'-1' is not a number of days, from 0 on"),
        (["prune", "--older-than", "nan"], "'nan' is not a number of days, from 0 on"),
        (["prune", "--older-than"], "see gristmill jobs prune --help"),
    ],
)
def test_wrong_values_are_said_plainly(wrong: list[str], says: str) -> None:
    assert says in run("jobs", *wrong, status=2).stderr


def test_what_a_killed_job_failed_at_is_pruned_without_a_history(tmp_path: Path) -> None:
    home = tmp_path / "home"
    process = subprocess.run(
        ["/bin/sh", "-c", "echo $$"], capture_output=True, text=True, check=True
    )
    dead, alive = (
        f"job_20260101120000_{number}" for number in (process.stdout.strip(), os.getpid())
    )
    other = "notes"
    named = ("job_20260101120000_1234567890123456", "job_20260101120000_5f3c09d1e2a7b648_2")
    old, young = (home / "jobs" / name for name in named)
    for name in (dead, alive, other, old.name, young.name):
        (home / "jobs" / name / "failed" / "0").mkdir(parents=True)
    os.utime(old, (time.time() - 4000,) * 2)  # a living job would have a history
    where = {"GRISTMILL_HOME": str(home)}
    told = run("jobs", "prune", "--json", **where).stdout
    assert json.loads(told)["removed"] == []  # too young
    told = run("jobs", "prune", "--older-than", "0", "--dry-run", "--json", **where).stdout
    assert json.loads(told)["removed"] == sorted([dead, old.name])
    assert (home / "jobs" / dead).exists()
    run("jobs", "prune", "--older-than", "0", **where)
    assert sorted(path.name for path in (home / "jobs").iterdir()) == sorted(
        [alive, young.name, other]
    )
