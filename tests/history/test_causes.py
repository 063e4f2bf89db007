"""What held a phase back: the decision, by made-up numbers; the numbers, by real jobs."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.harness import run

from gristmill.history import load
from gristmill.history.causes import Cause, PhaseUse
from gristmill.history.limits import uses

from .harness import Event, submitted, write_history

JOB = """
import time
import gristmill as gm

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def job(kind="burn"):
    def work(line):
        (burn if kind == "burn" else time.sleep)(float(line))
        yield line
    return gm.Job(gm.text("in/*"), map=work, output=gm.text("out"), split_min=1, split_max=4)
"""

#: So long that the start of an interpreter is little beside it, also on a busy machine: what sleeps
#: while others compute is said to wait.
LONG_S = 6.0

SCRIPT = """
import sys, time
for line in sys.stdin:
    end = time.process_time() + float(line)
    while sys.argv[1] == "burn" and time.process_time() < end:
        pass
    if sys.argv[1] == "sleep":
        time.sleep(float(line))
    print(line, end="")
"""


def use(**fields: Any) -> PhaseUse:  # noqa: ANN401
    """Ten seconds with two workers on two processors, of which the job used nothing."""
    idle = {"user_s": 0.0, "sys_s": 0.0, "iowait_s": 0.0, "steal_s": 0.0, "idle_s": 20.0}
    given: dict[str, Any] = {"cpu_s": 0.0, "own_s": 0.0, "running_s": 20.0, **fields}
    machine = {**idle, "user_s": given["cpu_s"], **given.pop("machine", {})}
    return PhaseUse(name="x", seconds=10.0, processors=2, slots=2, machine=machine, **given)


@pytest.mark.parametrize(
    ("used", "cause"),
    [
        (use(cpu_s=19.0, own_s=19.0), "processor"),
        (use(cpu_s=4.0, own_s=4.0), "not_clear"),
        # Processors that are idle most of the time hold nothing back: what keeps them idle does.
        (use(cpu_s=8.2, own_s=8.2, machine={"iowait_s": 7.0}, write_bytes=10**9), "device_writes"),
        (use(cpu_s=8.2, own_s=8.2, machine={"iowait_s": 3.0}, write_bytes=10**9), "not_clear"),
        (use(cpu_s=8.2, own_s=8.2, running_s=13.0), "idle_slots"),
        (use(cpu_s=8.2, own_s=0.2, user_code=True), "user_code_waiting"),
        (use(cpu_s=8.2, own_s=None, user_code=True), "not_clear"),
        # Those that are busy most of the time do, whoever uses them, unless more is lost.
        (use(cpu_s=10.4, own_s=10.4, machine={"iowait_s": 3.0}, write_bytes=10**9), "processor"),
        (use(cpu_s=18.0, own_s=9.0, user_code=True), "user_code_computing"),
        (use(cpu_s=12.0, own_s=7.5, user_code=True, running_s=16.0), "processor"),
        (use(cpu_s=10.2, own_s=10.2, machine={"iowait_s": 9.8}, read_bytes=10**9), "device_reads"),
        (use(cpu_s=16.0, own_s=None, user_code=True, running_s=17.0), "not_clear"),
        (use(cpu_s=19.0, own_s=0.5, user_code=True), "user_code_computing"),
        (use(cpu_s=19.0, own_s=15.0, user_code=True), "processor"),
        (use(cpu_s=0.2, own_s=0.1, user_code=True), "user_code_waiting"),
        # What is written meanwhile is the history: it explains nothing.
        (use(cpu_s=0.2, own_s=0.1, user_code=True, write_bytes=163_000), "user_code_waiting"),
        (use(machine={"iowait_s": 15.0}, write_bytes=163_000), "not_clear"),
        (use(cpu_s=0.2, own_s=0.1, user_code=True, running_s=10.0), "idle_slots"),
        (use(cpu_s=9.8, own_s=0.1, user_code=True, running_s=10.0), "idle_slots"),
        (use(cpu_s=16.0, own_s=0.1, user_code=True, running_s=17.0), "user_code_computing"),
        (use(cpu_s=5.0, own_s=5.0, machine={"iowait_s": 12.0}, read_bytes=10**9), "device_reads"),
        (use(cpu_s=5.0, own_s=5.0, machine={"iowait_s": 12.0}, write_bytes=10**9), "device_writes"),
        (
            use(cpu_s=1.0, user_code=True, machine={"iowait_s": 18.0}, read_bytes=10**8),
            "device_reads",
        ),
        (
            use(cpu_s=8.0, own_s=8.0, machine={"user_s": 19.9, "idle_s": 0.1}),
            "other_programs",
        ),
        (
            use(cpu_s=6.0, user_code=True, machine={"user_s": 19.9, "idle_s": 0.1}),
            "other_programs",
        ),
        # It sleeps, whatever others do.
        (
            use(cpu_s=0.2, user_code=True, machine={"user_s": 19.9, "idle_s": 0.1}),
            "user_code_waiting",
        ),
        # Others take the slots that it leaves idle.
        (
            use(cpu_s=9.8, running_s=10.0, user_code=True, machine={"user_s": 20.0, "idle_s": 0.0}),
            "idle_slots",
        ),
        (use(cpu_s=9.0, own_s=9.0, machine={"steal_s": 11.0, "idle_s": 0.0}), "host"),
        # Of an earlier version: what user code did is not known.
        (use(cpu_s=0.2, own_s=None, user_code=True), "not_clear"),
    ],
)
def test_a_cause_has_a_share_that_explains_the_phase(used: PhaseUse, cause: Cause) -> None:
    assert used.cause == cause, used.shares
    assert all(0.0 <= share <= 1.0 for share in used.shares.values())


def test_what_is_short_or_empty_is_no_error() -> None:
    assert PhaseUse(name="x", seconds=0.01, cpu_s=1.0, own_s=1.0).cause == "too_short"
    assert PhaseUse(name="x", seconds=0.0, cpu_s=0.0, own_s=None).told.startswith("too short")
    assert PhaseUse(name="x", seconds=9.0, cpu_s=0.0, own_s=None, running_s=0.0).busy == 0.0


@dataclass(frozen=True)
class Found:
    """A job that has run: what `--json` printed, and what `jobs show --json` says."""

    report: dict[str, Any]
    shown: dict[str, Any]
    lines: str

    def phase(self, name: str) -> dict[str, Any]:
        return next(phase for phase in self.report["phases"] if phase["name"] == name)


def ran(tmp_path: Path, *command: object) -> Found:
    """Run a command in `tmp_path`, with two workers and a history."""
    where = {"GRISTMILL_HOME": str(tmp_path / "home")}
    done = run(*command, cwd=tmp_path, **where)
    shown = json.loads(run("jobs", "show", "last", "--json", **where).stdout)
    return Found(json.loads(done.stdout), shown, run("jobs", "show", "last", **where).stdout)


def job(tmp_path: Path, kind: str, seconds: list[float], workers: int = 2) -> Found:
    """A job of user functions, with a task for each number."""
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "in").mkdir()
    for number, each in enumerate(seconds):
        (tmp_path / f"in/{number}").write_text(f"{each}\n")
    options = ["--set", f"kind={kind}", "--workers", workers, "--history", "--json", "--no-sync"]
    return ran(tmp_path, "run", "job.py", *options)


def script(tmp_path: Path, kind: str, seconds: float) -> Found:
    """A job of scripts: two maps of so many seconds each."""
    (tmp_path / "work.py").write_text(SCRIPT)
    (tmp_path / "in").mkdir()
    for number in range(2):
        (tmp_path / f"in/{number}").write_text(f"{seconds}\n")
    properties = ["-D", "mapreduce.job.reduces=0", "-workers", "2"]
    files = ["-input", "in", "-output", "out", "-mapper", f"python3 work.py {kind}"]
    return ran(
        tmp_path, "streaming", *properties, *files, "-file", "work.py", "--json", "--history"
    )


def assert_computed(found: Found, burnt_s: float) -> None:
    phase = found.phase("map")
    cpu_s = phase["user_s"] + phase["sys_s"]
    assert burnt_s * 0.95 <= cpu_s - phase["own_s"] <= burnt_s + 2.0
    assert found.report["user_s"] + found.report["sys_s"] >= cpu_s
    samples = found.shown["samples"]
    sampled_s = sum((samples[-1][name] - samples[0][name]) for name in ("user_s", "sys_s"))
    assert sampled_s >= burnt_s * 0.95
    # Other jobs of this machine may have taken the processors.
    busy = phase["machine"]["user_s"] + phase["machine"]["sys_s"]
    if busy - cpu_s < 0.2 * phase["wall_s"]:
        assert phase["cause"] == "user_code_computing", found.shown["uses"]
    assert phase["cause"] in ("user_code_computing", "other_programs", "host")


def assert_waited(found: Found) -> None:
    phase = found.phase("map")
    assert phase["user_s"] + phase["sys_s"] < 3.0
    assert phase["cause"] == "user_code_waiting", found.shown["uses"]
    assert "user code, waiting (asleep, or for the network" in found.lines


def test_a_map_that_computes(tmp_path: Path) -> None:
    found = job(tmp_path, "burn", [1.5, 1.5])
    assert_computed(found, 3.0)
    assert found.phase("map")["tasks"] == 2


def test_a_map_that_sleeps(tmp_path: Path) -> None:
    assert_waited(job(tmp_path, "sleep", [LONG_S, LONG_S]))


def test_a_single_task_of_many_slots(tmp_path: Path) -> None:
    found = job(tmp_path, "burn", [1.0], workers=4)
    assert found.phase("map")["cause"] == "idle_slots", found.shown["uses"]
    assert "idle slots: fewer tasks than slots" in found.lines


def test_a_script_that_computes(tmp_path: Path) -> None:
    assert_computed(script(tmp_path, "burn", 1.5), 3.0)


def test_a_script_that_sleeps(tmp_path: Path) -> None:
    assert_waited(script(tmp_path, "sleep", LONG_S))


def test_all_who_tell_say_the_same(tmp_path: Path) -> None:
    found = job(tmp_path, "sleep", [0.3, 0.3])
    told = {phase["name"]: (phase["cause"], phase["busy"]) for phase in found.report["phases"]}
    shown = {use["name"]: (use["cause"], round(use["busy"], 3)) for use in found.shown["uses"]}
    assert told == shown
    for phase in found.shown["phases"]:
        assert phase["used"]["wall_s"] == pytest.approx(
            (phase["end_ms"] - phase["start_ms"]) / 1000, abs=0.1
        )


def test_a_job_of_user_code_claims_no_order(tmp_path: Path) -> None:
    found = job(tmp_path, "sleep", [0.1])
    assert "checksum" not in found.lines
    assert "proved: all input was read" in found.lines


def test_a_commit_waits_until_the_output_is_on_the_disk() -> None:
    """It moves no bytes itself: they were written in the phases before."""
    machine = {"user_s": 0.1, "sys_s": 0.1, "iowait_s": 0.65, "idle_s": 0.8}
    commit = PhaseUse(name="commit", seconds=0.83, cpu_s=0.02, own_s=0.02, machine=machine)
    assert commit.limit == "waiting until the output is on the disk (fsync)"
    assert replace(commit, name="replay").cause == "not_clear"
    assert replace(commit, machine={**machine, "iowait_s": 0.1}).cause == "not_clear"


def test_a_history_that_does_not_know_workers(tmp_path: Path) -> None:
    """As an earlier version wrote it: samples are of the process alone."""
    machine = {"user_s": 0.0, "sys_s": 0.0, "iowait_s": 0.0, "steal_s": 0.0, "idle_s": 0.0}
    sample: Event = {"t_ms": 0, "event": "sample", "user_s": 0.1, "sys_s": 0.0, "machine": machine}
    name = {"task": 0, "attempt": 0}
    events: list[Event] = [
        submitted("job_1", command="mapreduce", spec={"mapreduce": {}}),
        sample,
        {"t_ms": 0, "event": "phase_started", "name": "map", "tasks": 1, "bytes": 9},
        {"t_ms": 0, "event": "attempt_started", "phase": "map", **name},
        {"t_ms": 4000, "event": "attempt_finished", "outcome": "succeeded", **name},
        {**sample, "t_ms": 4000, "machine": {**machine, "idle_s": 4.0}, "disk_write_bytes": 65_000},
        {"t_ms": 4000, "event": "job_finished", "status": "succeeded", "report": {"workers": 1}},
    ]
    (found,) = uses(load(write_history(tmp_path, "job_1", events)))
    assert (found.cause, found.limit) == ("not_clear", "not clear")
