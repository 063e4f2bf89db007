"""`--on ray` between machines: addresses, slow links and disks of each machine's own are real.

Two network namespaces with links of 1 Gbit/s. Runs cross them, and links are cut and healed. Blocks
of HDFS lie on either, and maps run where they are.
"""

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.cli import hdfs_server
from tests.cli.hdfs_server import Cluster, files, local
from tests.cli.network import Machine, Network, network
from tests.cli.ray_cluster import RayCluster, in_network
from tests.optional import or_missing

from .harness import GRISTMILL, clean_environment, end, report, run, start
from .resuming import RUNS, Tree, events_of, tree, wait_for_history

#: A silent agent is lost after ten seconds.
SILENCE_S = 10


@dataclass(frozen=True)
class Apart:
    """A cluster of machines that have nothing in common but a directory for data."""

    network: Network
    cluster: RayCluster


@pytest.fixture(scope="module")
def apart() -> Iterator[Apart]:
    with (
        or_missing("A CLUSTER OF MACHINES WITH SLOW LINKS"),
        network(2, gbit=1) as machines,
        in_network(machines) as cluster,
    ):
        yield Apart(machines, cluster)


@pytest.fixture
def on_ray(apart: Apart, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[str, ...]:
    """What has a job run there, with runs on each machine's own disk."""
    monkeypatch.chdir(tmp_path)
    for name, value in apart.cluster.environment.items():
        monkeypatch.setenv(name, value)
    return ("--on", "ray", "--spill-dir", str(apart.cluster.of_head))


def crossed(machines: tuple[Machine, ...]) -> int:
    """Bytes that came to the machines so far."""
    return sum(machine.link_bytes()[0] for machine in machines)


def test_runs_cross_a_slow_link(
    apart: Apart, on_ray: tuple[str, ...], records: Path, wanted: Tree, tmp_path: Path
) -> None:
    machines = apart.network.machines
    # Gristmill, 60 MB, goes to nodes with the first job, and not again.
    run("teragen", "1k", tmp_path / "first", "--on", "ray")
    before = crossed(machines)
    run("teragen", "1k", tmp_path / "second", "--on", "ray")
    assert crossed(machines) - before < 1_000_000
    before = crossed(machines)
    done = report("terasort", records, tmp_path / "out", *RUNS, *on_ray)
    assert tree(tmp_path / "out") == wanted
    # What crosses the links beside runs is headers, orders and events.
    received = done["counters"]["SHUFFLE_BYTES_RECEIVED"]
    assert 1_000_000 < received == done["counters"]["SHUFFLE_BYTES_OTHER_NODES"]
    assert received < crossed(machines) - before < 1.06 * received + 1_000_000


@pytest.fixture(scope="module")
def hdfs(apart: Apart, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """HDFS with a data node on each machine of the cluster."""
    folder = tmp_path_factory.mktemp("hdfs")
    with or_missing("HDFS"), hdfs_server.in_network(folder, apart.network) as cluster:
        yield cluster


def put(machine: Machine, file: Path, location: str) -> None:
    """Have a machine write a file to HDFS: all its blocks come to the data node there."""
    command = [*machine.host.before, GRISTMILL, "hadoop", "fs", "-put", file, location]
    subprocess.run(command, check=True, timeout=60, env=clean_environment())


@pytest.mark.parametrize(
    ("command", "before_output"),
    [(("terasort", "--split-size", "300k", "--partitions", "3"), ()), (("sort",), ("-o",))],
    ids=["terasort", "sort"],
)
def test_maps_run_where_their_blocks_are(
    command: tuple[str, ...],
    before_output: tuple[str, ...],
    apart: Apart,
    hdfs: Cluster,
    on_ray: tuple[str, ...],
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each node has two slots, and the blocks of two maps or more: the first four are near."""
    run("teragen", "52k", "in", "--files", "2", "--no-sync")
    parts = sorted(local(Path("in")))
    inputs = [Path("in", part) for part in parts]
    run(*command, *inputs, *before_output, "wanted", GRISTMILL_HOME=str(tmp_path / "other"))
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody")
    conf = hdfs_server.settings(tmp_path / "conf", {"dfs.replication": 1})
    monkeypatch.setenv("HADOOP_CONF_DIR", str(conf))
    nodes = dict[str, str]()
    for machine, file in zip(apart.network.machines, inputs, strict=True):
        location = hdfs.url(f"{command[0]}-{file.name}")
        put(machine, file, location)
        nodes[location] = machine.host.address
    output = hdfs.url(f"{command[0]}-out")
    done = report(*command, *nodes, *before_output, output, "--history", *on_ray)
    found, wanted = files(output), tree(Path("wanted"))
    assert [found[part] for part in sorted(found)] == [wanted[part] for part in sorted(wanted)]
    near = [
        nodes[event["input"].partition(",")[0]] == event["node"]
        for event in events_of(home)
        if event["event"] == "attempt_started" and event["phase"] == "spill"
    ]
    assert near[:4] == [True] * 4
    assert done["counters"]["DATA_LOCAL_MAPS"] == sum(near)


def cut_during(
    phase: str, arguments: list[str | Path], home: Path, machine: Machine
) -> "subprocess.Popen[str]":
    """Start a job, and cut a machine off when a phase of it begins."""
    process = start(*arguments, "--history", "--json")
    wait_for_history(home, process)
    while process.poll() is None and not any(
        event["event"] == "phase_started" and event["name"] == phase for event in events_of(home)
    ):
        time.sleep(0.002)
    machine.cut()
    return process


@pytest.mark.parametrize("phase", ["spill", "merge"])
def test_a_link_that_comes_back_in_time_costs_nothing_but_time(
    phase: str,
    apart: Apart,
    on_ray: tuple[str, ...],
    records: Path,
    wanted: Tree,
    home: Path,
    tmp_path: Path,
) -> None:
    machine = apart.network.machines[1]
    job = ["terasort", records, tmp_path / "out", *RUNS, *on_ray]
    process = cut_during(phase, job, home, machine)
    time.sleep(2)
    machine.heal()
    done = end(process)
    assert done.status == 0, done.stderr
    assert tree(tmp_path / "out") == wanted


def test_a_machine_that_is_cut_off_is_lost_and_does_no_harm(
    apart: Apart,
    on_ray: tuple[str, ...],
    records: Path,
    wanted: Tree,
    home: Path,
    tmp_path: Path,
) -> None:
    """The last test: Ray takes the machine for dead, too."""
    machine = apart.network.machines[1]
    job = ["terasort", records, tmp_path / "out", *RUNS, *on_ray]
    began_s = time.monotonic()
    process = cut_during("spill", job, home, machine)
    done = end(process)
    took_s = time.monotonic() - began_s
    machine.heal()
    assert done.status == 0, done.stderr
    assert tree(tmp_path / "out") == wanted
    assert SILENCE_S <= took_s < SILENCE_S + 60
