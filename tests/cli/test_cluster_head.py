"""The head of a cluster is killed while a job runs: agents do without it, as long as they live."""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .agents import wait_until_ended, wait_until_gone
from .harness import end, report, run, start
from .ray_cluster import RayCluster, holding, kill_head, with_head_apart
from .resuming import Tree, events_of, kept, tree, wait_for_history

#: Each test starts a cluster of its own, and waits for its end.
pytestmark = pytest.mark.timeout(300)

#: Some maps end at once; the others wait for a file.
JOB = """
import os, time
import gristmill as gm

def words(line, context):
    while int(line.split()[0]) % 3 == 0 and not os.path.exists(GATE):
        time.sleep(0.05)
        context.status("waits")
    for word in line.split():
        yield word, 1

def total(word, counts):
    yield word, sum(counts)

job = gm.Job(
    [gm.text(f"{IN}/{number}") for number in (1, 2, 4, 5, 3, 6)],
    map=words, reduce=total, output=gm.tsv(OUT), parts=2,
)
"""


class Waits:
    """A job that is under way until it is let go."""

    def __init__(self, folder: Path) -> None:
        self.gate, self.out, self.spill = (folder / name for name in ("gate", "out", "spill"))
        self.spill.mkdir()
        (folder / "in").mkdir()
        for number in range(1, 7):
            (folder / f"in/{number}").write_text(f"{number} and some words\n")
        known = {"GATE": self.gate, "IN": folder / "in", "OUT": self.out}
        values = "".join(f"{name} = {str(path)!r}\n" for name, path in known.items())
        (folder / "job.py").write_text(values + JOB)
        self.command = ["run", folder / "job.py", "--memory", "64M"]

    def wanted(self) -> Tree:
        """What it makes on one machine."""
        self.gate.touch()
        run(*self.command, GRISTMILL_HOME=str(self.gate.parent / "home-of-wanted"))
        found = tree(self.out)
        shutil.rmtree(self.out)
        self.gate.unlink()
        return found


@pytest.fixture
def waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Waits]:
    monkeypatch.chdir(tmp_path)
    yield (waits := Waits(tmp_path))
    waits.gate.touch()


def begun(
    waits: Waits, cluster: RayCluster, home: Path, monkeypatch: pytest.MonkeyPatch
) -> "subprocess.Popen[str]":
    """Begin the job on a cluster, and wait until nothing but the gate keeps it."""
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    on_ray = ("--on", "ray", "--spill-dir", waits.spill)
    process = start(*waits.command, *on_ray, "--history", "--json")
    wait_for_history(home, process)
    deadline_s = time.monotonic() + 30
    while kept(events_of(home), "work") < 4:
        assert process.poll() is None, end(process)
        assert time.monotonic() < deadline_s, events_of(home)[-3:]
        time.sleep(0.05)
    return process


def test_without_a_head_a_job_ends_well_if_its_agents_live(
    waits: Waits, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = waits.wanted()
    with with_head_apart() as cluster:
        process = begun(waits, cluster, home, monkeypatch)
        kill_head(cluster)
        time.sleep(5.0)  # the job has noticed
        waits.gate.touch()
        done = end(process, timeout_s=120)
    assert done.status == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "succeeded"
    assert tree(waits.out) == wanted
    wait_until_gone(waits.spill)


def test_a_job_that_waits_for_cpus_ends_by_name_without_a_head(
    waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    with with_head_apart() as cluster:
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)
        with holding({"CPU": 2}, 1):
            process = start(*waits.command, "--on", "ray", "--spill-dir", waits.spill)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(6)
            kill_head(cluster)
            done = end(process, timeout_s=60)
    assert done.status == 1, done.stderr
    assert "waiting for 2 CPUs" in done.stderr
    assert "does not answer" in done.stderr


def test_a_job_whose_head_and_nodes_are_gone_is_resumed_on_another_cluster(
    waits: Waits, ray: RayCluster, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = waits.wanted()
    with with_head_apart(stays_s=5) as cluster:
        process = begun(waits, cluster, home, monkeypatch)
        kill_head(cluster)
        done = end(process, timeout_s=120)
    assert done.status == 1
    port = cluster.address.rpartition(":")[2]  # its host is as Ray names it
    assert re.search(rf"the head of the cluster, [0-9.]+:{port}, does not answer", done.stderr)
    assert "all its agents are lost" in done.stderr
    assert "resume" in done.stderr
    wait_until_ended(waits.spill)
    waits.gate.touch()
    for name, value in ray.environment.items():
        monkeypatch.setenv(name, value)
    again = report("resume", "last")
    assert again["counters"]["KEPT_TASKS"] >= 4
    assert tree(waits.out) == wanted
    wait_until_gone(waits.spill)
