"""`make soak`: a node of a Ray cluster is killed at a random moment of each phase, again and again.

A third node joins two, a job begins on all three, and everything of that node gets SIGKILL: its
raylet, its workers, the agent. The output must be the same, byte for byte. How often: KILLS, or 20.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.cli.agents import agents_of
from tests.cli.harness import end, run, start
from tests.cli.own_code import Bench
from tests.cli.ray_cluster import RayCluster, joined
from tests.cli.resuming import Tree, events_of, tree

KILLS = int(os.environ.get("KILLS") or 20)

#: So little memory that 120 MB make runs, which are merged and then reduced.
LITTLE = ("--memory", "48M", "--workers", "6")

#: The phases of a job of records, and of one of functions.
OF_RECORDS, OF_FUNCTIONS = ("sample", "spill", "merge", "commit"), ("map", "reduce")

#: How long a job may take of which a node is killed; most of it is the silence of the agent.
LONGEST_S = 120


class Soak:
    """Jobs of one kind on a cluster, and what they make when nobody disturbs them."""

    def __init__(self, cluster: RayCluster, folder: Path, job: list[str | Path]) -> None:
        self.cluster = cluster
        self.folder = folder
        self.job = job
        self.home = folder / "home"
        self.spill = folder / "spill"
        self.spill.mkdir()
        os.environ["GRISTMILL_HOME"] = str(self.home)
        self.wanted, self.phases, self.usual_s = self._undisturbed()

    def _undisturbed(self) -> tuple[Tree, dict[str, float], float]:
        """The output, how long each phase takes, and how long all of it."""
        out = self.folder / "wanted"
        with joined(self.cluster, "127.0.0.1", [], self.folder):
            began_s = time.monotonic()
            done = end(self._start(out), LONGEST_S)
            usual_s = time.monotonic() - began_s
        assert done.status == 0, done.stderr
        phases = json.loads(done.stdout)["phases"]
        return tree(out), {phase["name"]: phase["wall_s"] for phase in phases}, usual_s

    def _start(self, out: Path) -> "subprocess.Popen[str]":
        options = ("--spill-dir", self.spill, "--history", "--json", "--on", "ray")
        return (
            start(*self.job, "--output", out, *options)
            if self.job[0] == "run"
            else start(*self.job, out, *options)
        )

    def kill_in(self, phase: str) -> str:
        """Kill a node in a phase of a job; what came of it, in a line."""
        out = self.folder / "out"
        shutil.rmtree(self.home, ignore_errors=True)
        with joined(self.cluster, "127.0.0.1", [], self.folder) as node:
            began_s = time.monotonic()
            process = self._start(out)
            while process.poll() is None and not self._has_begun(phase):
                assert time.monotonic() - began_s < LONGEST_S, "the phase did not begin"
                time.sleep(0.001)
            time.sleep(random.uniform(0, self.phases[phase]))
            is_in_time = process.poll() is None
            killed = kill_node(node)
            done = end(process, LONGEST_S)
            took_s = time.monotonic() - began_s
        assert done.status == 0, done.stderr
        report = json.loads(done.stdout)
        assert tree(out) == self.wanted
        shutil.rmtree(out)
        self._clear()
        lost = report["counters"].get("LOST_AGENTS", 0)
        again = report["counters"].get("LOST_TASK_ATTEMPTS", 0)
        outputs = report["counters"].get("LOST_TASK_OUTPUTS", 0)
        when = "in it" if is_in_time else "after the job"
        return (
            f"{phase:<7} killed {killed} processes {when}: {took_s:.1f} s,"
            f" {took_s - self.usual_s:+.1f} s to an undisturbed job, agents lost {lost},"
            f" attempts {again}, outputs {outputs}"
        )

    def _has_begun(self, phase: str) -> bool:
        if not list(self.home.glob("jobs/*/events.jsonl")):
            return False
        return any(
            event["event"] == "phase_started" and event["name"] == phase
            for event in events_of(self.home)
        )

    def _clear(self) -> None:
        """Remove what the killed agent has left, once no agent is there."""
        deadline_s = time.monotonic() + LONGEST_S
        while agents_of(self.spill):
            assert time.monotonic() < deadline_s, agents_of(self.spill)
            time.sleep(0.1)
        for folder in self.spill.iterdir():
            shutil.rmtree(folder, ignore_errors=True)


def kill_node(node: "subprocess.Popen[bytes]") -> int:
    """Kill all processes of a node at once, as if its machine had no power any more."""
    groups = {node.pid}
    members = [process for process in processes() if group_of(process) in groups]
    marks = {f"RAY_RAYLET_PID={process}".encode() for process in members}
    found = [
        process
        for process in processes()
        if group_of(process) in groups or marks.intersection(variables_of(process))
    ]
    for process in found:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return len(found)


def processes() -> list[int]:
    """All processes."""
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def group_of(process: int) -> int:
    """The process group of a process; that of none if it has ended."""
    with suppress(ProcessLookupError, PermissionError):
        return os.getpgid(process)
    return 0


def variables_of(process: int) -> list[bytes]:
    """The variables that a process was started with."""
    with suppress(OSError):
        return Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    return []


@pytest.fixture(scope="module", autouse=True)
def environment(ray: RayCluster) -> Iterator[None]:
    """What commands need to run on the cluster."""
    before = dict(os.environ)
    os.environ.update(ray.environment)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module")
def of_records(ray: RayCluster, tmp_path_factory: pytest.TempPathFactory) -> Soak:
    """A sort of 2.4 million records, with more merges than workers: a node always has some."""
    folder = tmp_path_factory.mktemp("records")
    run("teragen", "2400k", folder / "in", "--files", "6", "--skew", "--no-sync")
    return Soak(ray, folder, ["terasort", *LITTLE, "--partitions", "48", folder / "in"])


@pytest.fixture(scope="module")
def of_functions(ray: RayCluster, tmp_path_factory: pytest.TempPathFactory) -> Soak:
    """Words that Python counts."""
    folder = tmp_path_factory.mktemp("words")
    bench = Bench.made(folder / "data", 6_000_000)
    command = bench.command("function", Path("unused"))
    at = command.index("--output")
    return Soak(
        ray, folder, [*command[:at], *command[at + 2 :], "--memory", "200M", "--workers", "6"]
    )


@pytest.mark.timeout(KILLS * 2 * LONGEST_S)
@pytest.mark.parametrize("phase", OF_RECORDS)
def test_a_node_is_killed_while_records_are_sorted(phase: str, of_records: Soak) -> None:
    soak(of_records, phase)


@pytest.mark.timeout(KILLS * 2 * LONGEST_S)
@pytest.mark.parametrize("phase", OF_FUNCTIONS)
def test_a_node_is_killed_while_functions_run(phase: str, of_functions: Soak) -> None:
    soak(of_functions, phase)


def soak(jobs: Soak, phase: str) -> None:
    """Kill a node in as many jobs as are wanted, and say of each what came of it."""
    assert phase in jobs.phases, jobs.phases
    for _ in range(KILLS):
        print(jobs.kill_in(phase), file=sys.stderr, flush=True)
