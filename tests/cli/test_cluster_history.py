"""What a job on a cluster leaves behind: nodes in its history, counters, `jobs show`, `report`."""

import os
import pty
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gristmill.history import load
from gristmill.history.cluster import node_totals, reads_between
from gristmill.history.model import JobHistory
from gristmill.history.page import render

from .harness import clean_environment, end, only_object, report, run
from .own_code import Bench
from .ray_cluster import RayCluster
from .resuming import RUNS, events_of, tree
from .test_cluster import begun, disturbed, kill_one

Event = dict[str, Any]


@pytest.fixture
def on_ray(ray: RayCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[str, ...]:
    """What has a job run on the cluster, with a history."""
    monkeypatch.chdir(tmp_path)
    for name, value in ray.environment.items():
        monkeypatch.setenv(name, value)
    return ("--on", "ray", "--history")


def the_history(home: Path) -> JobHistory:
    """The history of the only job."""
    (folder,) = (home / "jobs").iterdir()
    return load(folder)


def test_attempts_samples_and_phases_say_what_nodes_did(
    on_ray: tuple[str, ...], records: Path, home: Path, tmp_path: Path
) -> None:
    done = report("terasort", records, tmp_path / "out", *RUNS, *on_ray)
    history = the_history(home)
    nodes = Counter(attempt.node for attempt in history.attempts)
    assert len(nodes) == 2, nodes
    assert "" not in nodes
    last = {node.node: node for node in history.samples[-1].nodes}
    assert last.keys() == nodes.keys()
    assert all(node.user_s + node.sys_s > 0 and node.anon_bytes > 10**6 for node in last.values())
    assert sum(node.machine is not None for node in last.values()) == 1  # both are this machine
    cpu_s = sum(node.user_s + node.sys_s for node in last.values())
    of_phases = sum(phase["user_s"] + phase["sys_s"] for phase in done["phases"])
    assert of_phases == pytest.approx(done["user_s"] + done["sys_s"], rel=0.5)
    assert done["user_s"] + done["sys_s"] >= cpu_s
    totals = node_totals(history)
    assert [total.used.node for total in totals] == list(last)
    assert sum(total.attempts for total in totals) == len(history.attempts)


def test_a_job_on_one_machine_knows_no_nodes(records: Path, home: Path, tmp_path: Path) -> None:
    done = report("terasort", records, tmp_path / "out", *RUNS, "--history")
    events = events_of(home)
    assert not any("node" in event or "nodes" in event for event in events)
    assert not [event for event in events if event["event"] == "runs_read"]
    beginnings = ("SHUFFLE", "FAILED_SHUFFLE", "LOST")
    assert not [name for name in done["counters"] if name.startswith(beginnings)]
    history = the_history(home)
    assert node_totals(history) == []
    assert "nodes:" not in run("jobs", "show", "last").stdout


@pytest.mark.parametrize("way", ["http", "files"])
def test_bytes_of_runs_are_counted_where_they_come_from(
    way: str, on_ray: tuple[str, ...], records: Path, home: Path, tmp_path: Path
) -> None:
    job = ("terasort", records, tmp_path / "out", *RUNS, "--partitions", "3", *on_ray, "--json")
    job += ("--shuffle", "immediate")  # of slices, each merge counts the runs of its own
    done = only_object(run(*job, GRISTMILL_SEGMENTS=way).stdout)
    counters, history = done["counters"], the_history(home)
    merged = [int(a.input.split()[0]) for a in history.attempts if a.phase == "merge runs"]
    last = sum(a.phase == "merge" for a in history.attempts)
    left = counters["SPILLED_RUNS"] - sum(merged) + len(merged)
    assert counters["SHUFFLED_MAPS"] == sum(merged) + left * last > 0
    others, received = counters["SHUFFLE_BYTES_OTHER_NODES"], counters["SHUFFLE_BYTES_RECEIVED"]
    assert others > 0
    assert received == (others if way == "http" else 0)
    stored = counters["MAP_OUTPUT_MATERIALIZED_BYTES"]
    read = counters["SHUFFLE_BYTES_SAME_NODE"] + others
    assert stored <= read < stored * 3
    assert counters["FAILED_SHUFFLE"] == 0
    assert not [name for name in counters if name.startswith("LOST")]
    nodes = [total.used.node for total in node_totals(history)]
    matrix = reads_between(history, nodes)
    assert sum(map(sum, matrix)) == read
    assert sum(matrix[at][at] for at in range(2)) == counters["SHUFFLE_BYTES_SAME_NODE"]
    used = [total.used for total in node_totals(history)]
    assert sum(node.sent_bytes for node in used) == sum(node.received_bytes for node in used)
    assert sum(node.received_bytes for node in used) == received
    table = history.counters()
    assert table["SHUFFLED_MAPS"][:2] == (0, counters["SHUFFLED_MAPS"])  # as Hadoop has it


def test_what_workers_with_functions_of_users_read_is_counted(
    on_ray: tuple[str, ...], home: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    bench = Bench.made(tmp_path_factory.mktemp("words"), 1_000_000)
    usual = ("--memory", "64M", "--workers", "2")
    done = report(*bench.command("function", tmp_path / "out"), *usual, *on_ray)
    counters = done["counters"]
    maps = sum(a.phase == "map" for a in the_history(home).attempts)
    assert counters["SHUFFLED_MAPS"] >= maps
    read = counters["SHUFFLE_BYTES_SAME_NODE"] + counters["SHUFFLE_BYTES_OTHER_NODES"]
    assert read >= counters["MAP_OUTPUT_MATERIALIZED_BYTES"] > 0


def test_what_is_lost_with_a_node_is_told(
    on_ray: tuple[str, ...], records: Path, wanted: dict[str, bytes], home: Path, tmp_path: Path
) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()
    job = ["terasort", records, tmp_path / "out", *RUNS, *on_ray]
    done = end(disturbed(job, home, spill, begun("spill"), kill_one))
    assert done.status == 0, done.stderr
    assert tree(tmp_path / "out") == wanted
    history = the_history(home)
    (lost,) = [total for total in node_totals(history) if total.used.is_lost]
    killed = [a for a in history.attempts if a.outcome == "killed"]
    assert {a.node for a in killed} == {lost.used.node}
    # Its processes are gone: it is silent, or an order found nobody.
    assert all(a.error and f"it was lost: node {a.node}" in a.error for a in killed)
    counters = history.report["counters"]
    assert counters["LOST_AGENTS"] == 1
    again = counters["LOST_TASK_ATTEMPTS"] + counters.get("LOST_TASK_OUTPUTS", 0)
    (warning,) = [said for said in history.report["warnings"] if " lost; " in said]
    assert re.fullmatch(
        rf"1 of [23] agents was lost; {again} tasks? (was|were) done again", warning
    )
    assert f"gristmill: {warning}\n" in done.stderr
    assert counters["LOST_TASK_ATTEMPTS"] == len(killed) == lost.wasted > 0
    assert counters.get("LOST_TASK_ATTEMPT_BYTES", 0) == lost.wasted_bytes
    shown = run("jobs", "show", "last").stdout
    assert f"{lost.used.node} (lost)" in shown
    assert "lost: 1 agent, " in shown
    assert f"task {killed[0].task} attempt 1 on {lost.used.node} killed: it was lost" in shown
    page = render(history)
    assert f'"nodes":["{history.attempts[0].node}"' in page


def test_runs_that_cannot_be_read_are_counted(
    on_ray: tuple[str, ...], records: Path, home: Path, tmp_path: Path
) -> None:
    def damage(agents: dict[int, Path]) -> None:
        for folder in agents.values():
            for path in folder.glob("run-*"):
                path.write_bytes(b"damaged" * 1000)

    spill = tmp_path / "spill"
    spill.mkdir()
    job = ["terasort", records, tmp_path / "out", *RUNS, *on_ray]
    done = end(disturbed(job, home, spill, begun("merge"), damage))
    counters = only_object(done.stdout)["counters"]
    failed = [a for a in the_history(home).attempts if a.error and "it was lost" in a.error]
    assert counters["FAILED_SHUFFLE"] >= len(failed) == counters["LOST_TASK_ATTEMPTS"] > 0
    assert counters["LOST_TASK_OUTPUTS"] > 0
    assert "LOST_AGENTS" not in counters


def test_progress_says_nodes_and_tasks(
    on_ray: tuple[str, ...], records: Path, tmp_path: Path
) -> None:
    master, slave = pty.openpty()
    program = (
        "import sys\n"
        "from gristmill.cli import main\n"
        "from gristmill.terminal import progress\n"
        "progress.FIRST_S = progress.EVERY_S = 0\n"
        "sys.exit(main.main())\n"
    )
    words = ["terasort", str(records), str(tmp_path / "out"), *RUNS, *on_ray]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdout=subprocess.DEVNULL,
        stderr=slave,
        env=clean_environment(TERM="xterm", COLUMNS="100"),
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            shown += os.read(master, 4096)
        except OSError:  # EIO: the other side is closed
            break
    os.close(master)
    assert process.wait() == 0, shown
    lines = shown.decode().split("\r")
    assert [line for line in lines if "2 nodes, " in line and " task" in line], lines
