"""Nodes that join while a job runs, and nodes that are about to go: on agents alone, and on Ray."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.optional import missing

import gristmill as gm
from gristmill import _core
from gristmill.job import begin, new_job_id
from gristmill.mapreduce.run_options import Options
from gristmill.mapreduce.submit import submitting
from gristmill.mapreduce.submit.preparing import prepare

from .agents import agents_of, one_agent, wait_for_agents, wait_until_gone
from .harness import end, start
from .ray_cluster import RayCluster, joined
from .resuming import Tree, tree

#: Where the third node says that it is.
THIRD = "127.0.0.3"


@pytest.fixture
def spill(tmp_path: Path) -> Path:
    """The spill directory of the nodes: here all of them see the same."""
    folder = tmp_path / "spill"
    folder.mkdir()
    return folder


@pytest.fixture
def job(records: Path, tmp_path: Path) -> Callable[[_core.Cluster], _core.Job]:
    """Begins a job that has a few dozen tasks on some agents."""

    def began(cluster: _core.Cluster) -> _core.Job:
        out = str(tmp_path / "out")
        options = {"inputs": [str(records)], "output": out, "on": "ray", "memory": 22_000_000}
        return begin("terasort", options, new_job_id(), cluster=cluster)

    return began


def cluster_of(*hellos: dict[str, Any]) -> _core.Cluster:
    return _core.Cluster(json.dumps({"token": "secret", "agents": hellos}))


def watched(native: _core.Job, spill: Path) -> set[str]:
    """Wait for a job, which must do well; the agents that had runs, by the ends of their names."""
    found: set[str] = set()
    while not native.wait(0.002):
        for path in spill.glob(".gristmill-spill-*/run-*"):
            found.add(path.parent.name.rpartition("-")[2])
    native.raise_failure()
    return found


def test_a_run_that_many_miss_at_once_is_made_again_once(spill: Path, tmp_path: Path) -> None:
    """Each of twelve reduces says that it is gone."""
    job = gm.Job(
        gm.items(range(20_000)),
        map=lambda n: [(n % 7, n)],
        reduce=gm.sum(),
        parts=12,
        split_max=30_000,
        output=gm.tsv(tmp_path / "out"),
    )
    prepared = prepare(job, Options(given={"on": "ray", "workers": 12}))
    with one_agent(spill, workers=12) as agent:
        native = submitting.begin(prepared, new_job_id(), cluster_of(agent))
        while not (runs := list(spill.glob(".gristmill-spill-*/run-*"))):
            assert not native.wait(0.001)
        runs[0].unlink()
        watched(native, spill)
    counters = json.loads(native.report())["counters"]
    assert counters["LOST_TASK_OUTPUTS"] == 1
    assert counters["LOST_TASK_ATTEMPTS"] > 5
    assert sums(tmp_path / "out") == sums_of(20_000)


def test_an_agent_that_joins_runs_tasks(
    job: Callable[[_core.Cluster], _core.Job], wanted: Tree, spill: Path, tmp_path: Path
) -> None:
    with one_agent(spill) as first, one_agent(spill, number=1) as second:
        cluster = cluster_of(first)
        native = job(cluster)
        cluster.joined(1, json.dumps(second))
        assert watched(native, spill) == {"0", "1"}
    assert tree(tmp_path / "out") == wanted
    assert json.loads(native.report())["counters"]["SPILLED_RUNS"] > 2


def test_an_agent_that_joins_with_little_memory_runs_nothing(
    job: Callable[[_core.Cluster], _core.Job], wanted: Tree, spill: Path, tmp_path: Path
) -> None:
    """A worker has what the plan gives each of them."""
    with one_agent(spill) as first, one_agent(spill, number=1) as second:
        cluster = cluster_of(first)
        second["available_bytes"] = second["held_bytes"] + 1_000_000
        native = job(cluster)
        cluster.joined(1, json.dumps(second))
        assert watched(native, spill) == {"0"}
    assert tree(tmp_path / "out") == wanted


def test_an_agent_that_does_not_see_the_files_is_left_out(
    job: Callable[[_core.Cluster], _core.Job],
    wanted: Tree,
    records: Path,
    spill: Path,
    tmp_path: Path,
) -> None:
    unshared = subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False)
    if unshared.returncode != 0:
        missing("NOT TESTED: an agent without the files", "no mount namespaces (root)")
    with one_agent(spill) as first, one_agent(spill, number=1, without=records) as second:
        cluster = cluster_of(first)
        native = job(cluster)
        cluster.joined(1, json.dumps(second))
        assert watched(native, spill) == {"0"}
    assert tree(tmp_path / "out") == wanted


def test_an_agent_of_another_version_does_not_join(spill: Path) -> None:
    with one_agent(spill) as first:
        cluster = cluster_of(first)
        with pytest.raises(ValueError, match=r"0\.0\.7"):
            cluster.joined(1, json.dumps(first | {"version": "0.0.7"}))


def test_a_drained_agent_is_given_nothing_more(
    job: Callable[[_core.Cluster], _core.Job], wanted: Tree, spill: Path, tmp_path: Path
) -> None:
    with one_agent(spill) as first, one_agent(spill, number=1) as second:
        cluster = cluster_of(first, second)
        cluster.drained(1)
        assert watched(job(cluster), spill) <= {"0", "1"}
    assert tree(tmp_path / "out") == wanted


def test_an_agent_that_comes_back_empty_is_another_one(
    job: Callable[[_core.Cluster], _core.Job], wanted: Tree, spill: Path, tmp_path: Path
) -> None:
    """The first agent ends with its runs while the job runs; only the one that joined is left."""
    with one_agent(spill, number=1) as second:
        with killed(spill) as (first, kill):
            cluster = cluster_of(first)
            native = job(cluster)
            while not list(spill.glob(".gristmill-spill-*-0/run-*")):
                assert not native.wait(0.001), native.report()
            cluster.joined(1, json.dumps(second))
            while not list(spill.glob(".gristmill-spill-*-1/run-*")):
                assert not native.wait(0.001), native.report()
            kill()
        watched(native, spill)
    assert tree(tmp_path / "out") == wanted


@contextmanager
def killed(spill: Path) -> Generator[tuple[dict[str, Any], Callable[[], None]]]:
    """An agent, and what kills it at the end."""
    is_killed = False

    def kill() -> None:
        nonlocal is_killed
        is_killed = True
        for pid, folder in agents_of(spill).items():
            if folder.name.endswith("-0"):
                os.kill(pid, signal.SIGKILL)

    try:
        with one_agent(spill) as hello:
            yield hello, kill
    except AssertionError:  # how it ended
        if not is_killed:
            raise


@pytest.fixture
def lines(tmp_path: Path) -> list[str]:
    """Of a file that is one map, so that all tasks from 1 on regroup or reduce."""
    found = [f"{number * 7919 % 65_537}" for number in range(150_000)]
    (tmp_path / "in").write_text("\n".join(found))
    return found


def distinct(cluster: _core.Cluster, tmp_path: Path) -> _core.Job:
    """Begin a job that groups its pairs twice, in twelve tasks each."""
    source, out = str(tmp_path / "in"), str(tmp_path / "out")
    options = {"inputs": [source], "output": out, "parts": 12, "on": "ray"}
    return begin("distinct", options, new_job_id(), cluster=cluster)


def regrouped(spill: Path, agent: str = "*") -> list[Path]:
    runs = spill.glob(f".gristmill-spill-*-{agent}/run-*")
    return [run for run in runs if int(run.name.split("-")[1]) > 0]


def parts(output: Path) -> list[str]:
    return "".join(part.read_text() for part in sorted(output.glob("part-*"))).splitlines()


def test_a_run_that_is_gone_between_two_groupings_is_made_again(
    lines: list[str], spill: Path, tmp_path: Path
) -> None:
    with one_agent(spill) as agent:
        native = distinct(cluster_of(agent), tmp_path)
        while not (runs := regrouped(spill)):
            assert not native.wait(0.001), native.report()
        runs[0].unlink()
        watched(native, spill)
    assert json.loads(native.report())["counters"]["LOST_TASK_OUTPUTS"] == 1
    assert parts(tmp_path / "out") == list(dict.fromkeys(lines))


def test_a_node_that_is_lost_between_two_groupings_is_done_without(
    lines: list[str], spill: Path, tmp_path: Path
) -> None:
    """With it go runs of both: what the map gave, or what was made of that."""
    with one_agent(spill, number=1) as second:
        with killed(spill) as (first, kill):
            cluster = cluster_of(first)
            native = distinct(cluster, tmp_path)
            while not list(spill.glob(".gristmill-spill-*-0/run-*")):
                assert not native.wait(0.001), native.report()
            cluster.joined(1, json.dumps(second))
            while not regrouped(spill, "0"):
                assert not native.wait(0.001), native.report()
            kill()
        watched(native, spill)
    assert json.loads(native.report())["counters"]["LOST_TASK_OUTPUTS"] > 0
    assert parts(tmp_path / "out") == list(dict.fromkeys(lines))


# --- a cluster ---

SLOW = """
import time
import gristmill as gm

def slow(number):
    time.sleep(0.2)
    yield number % 7, number

def job(output):
    data = gm.items(list(range(RECORDS)))
    return gm.Job(data, map=slow, reduce=gm.sum(), parts=2, output=gm.tsv(output))
"""


@pytest.fixture
def slow(
    ray: RayCluster, spill: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """A job of 400 records, or of more, each of which takes a fifth of a second."""
    for name, value in ray.environment.items():
        monkeypatch.setenv(name, value)
    write_job(tmp_path, 400)
    words = ["run", tmp_path / "job.py", "--output", tmp_path / "out", "--on", "ray"]
    return [str(word) for word in (*words, "--memory", "400M", "--spill-dir", spill)]


def write_job(folder: Path, records: int) -> None:
    (folder / "job.py").write_text(SLOW.replace("RECORDS", str(records)))


def sums(output: Path) -> dict[int, int]:
    lines = [line for part in output.glob("part-*") for line in part.read_text().splitlines()]
    return {int(key): int(value) for key, value in (line.split("\t") for line in lines)}


def sums_of(records: int) -> dict[int, int]:
    return {key: sum(range(key, records, 7)) for key in range(7)}


def runs_of(spill: Path, agent: int) -> list[str]:
    return sorted(run.name for run in spill.glob(f".gristmill-spill-*-{agent}/run-*"))


def wait_for(what: Callable[[], object], process: "subprocess.Popen[str]") -> None:
    """Wait until something is so, while a job runs."""
    deadline_s = time.monotonic() + 60
    while not what():
        assert process.poll() is None, end(process)
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def test_a_node_that_joins_gets_an_agent(
    ray: RayCluster, slow: list[str], spill: Path, tmp_path: Path
) -> None:
    process = start(*slow)
    wait_for_agents(spill, 2)
    with joined(ray, THIRD, [], tmp_path):
        wait_for(lambda: runs_of(spill, 2), process)
        done = end(process)
        assert done.status == 0, done.stderr
    assert sums(tmp_path / "out") == sums_of(400)
    wait_until_gone(spill)


def test_no_more_workers_than_asked_for_though_a_node_joins(
    ray: RayCluster, slow: list[str], spill: Path, tmp_path: Path
) -> None:
    process = start(*slow, "--workers", "4")
    wait_for_agents(spill, 2)
    with joined(ray, THIRD, [], tmp_path):
        time.sleep(3)
        assert process.poll() is None
        assert len(agents_of(spill)) == 2
        process.send_signal(signal.SIGINT)
        end(process)
    wait_until_gone(spill)


@pytest.mark.usefixtures("ray")
def test_a_node_whose_agent_ended_gets_another_one(
    slow: list[str], spill: Path, tmp_path: Path
) -> None:
    write_job(tmp_path, 900)
    process = start(*slow)
    agents = wait_for_agents(spill, 2)
    wait_for(lambda: runs_of(spill, 0) and runs_of(spill, 1), process)
    os.kill(next(iter(agents)), signal.SIGKILL)
    wait_for(lambda: runs_of(spill, 2), process)
    done = end(process)
    assert done.status == 0, done.stderr
    assert sums(tmp_path / "out") == sums_of(900)
    wait_until_gone(spill, killed=1)


def test_a_node_that_is_drained_gets_no_more_tasks(
    ray: RayCluster, slow: list[str], spill: Path, tmp_path: Path
) -> None:
    with joined(ray, THIRD, [], tmp_path):
        write_job(tmp_path, 900)
        process = start(*slow)
        agents = wait_for_agents(spill, 3)
        number = agent_on(THIRD, agents)
        wait_for(lambda: runs_of(spill, number), process)
        drain(ray, THIRD)
        time.sleep(3)
        assert process.poll() is None
        before = runs_of(spill, number)
        time.sleep(2)
        assert runs_of(spill, number) == before
        done = end(process)
        assert done.status == 0, done.stderr
    assert sums(tmp_path / "out") == sums_of(900)
    wait_until_gone(spill)


def agent_on(host: str, agents: dict[int, Path]) -> int:
    """The number of the agent that listens at this address."""
    for folder in agents.values():
        table = json.loads((folder / "agents").read_text())
        own = table["table"]["agents"][str(table["own"])]
        if own["address"].startswith(f"{host}:"):
            return table["own"]
    raise AssertionError(agents)


def drain(cluster: RayCluster, host: str) -> None:
    """Have Ray drain a node, as where its machine is about to be taken away."""
    code = (
        "import ray, sys;"
        "ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR');"
        "print(*[n['NodeID'] for n in ray.nodes() if n['NodeManagerAddress'] == sys.argv[2]"
        " and n['Alive']])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, cluster.address, host],
        capture_output=True,
        text=True,
        check=True,
    )
    (node,) = found.stdout.split()
    asked = ["--node-id", node, "--reason", "DRAIN_NODE_REASON_PREEMPTION"]
    asked += ["--reason-message", "it goes", "--deadline-remaining-seconds", "600"]
    ray = str(Path(sys.executable).with_name("ray"))
    subprocess.run([ray, "drain-node", "--address", cluster.address, *asked], check=True)
