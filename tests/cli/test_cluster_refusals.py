"""Agents that refuse orders, hang or are silent: the job says so, and goes on or ends."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.optional import missing, or_missing

import gristmill as gm
from gristmill import _core
from gristmill.job import begin, new_job_id
from gristmill.mapreduce.run_options import Options
from gristmill.mapreduce.submit import submitting
from gristmill.mapreduce.submit.preparing import prepare

from .agents import agents_of, one_agent, wait_until_gone
from .harness import end, run, start
from .mount_server import Mounts, mounted
from .ray_cluster import RayCluster, joined
from .resuming import Tree, tree
from .test_cluster_changes import THIRD, cluster_of, sums, sums_of

#: A mount namespace of its own.
APART = ["unshare", "-rm"]

#: The same, with a folder in the place of another one.
OTHER = [*APART, "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"']

#: A job that is cancelled waits for no agent longer than five seconds; the machine may be busy.
CANCELLED_S = 9.0


@pytest.fixture
def spill(tmp_path: Path) -> Path:
    folder = tmp_path / "spill"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def mounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounts]:
    folder = tmp_path_factory.mktemp("hangs")
    with or_missing("SHARED MOUNTS"), mounted(folder) as there:
        yield there


def need_namespaces() -> None:
    may = subprocess.run([*APART, "true"], capture_output=True, check=False)
    if may.returncode != 0:
        missing("NOT TESTED: agents that refuse or hang", "no mount namespaces (root)")


def refuse(spill: Path, number: int, blocks: Path) -> None:
    """From now on an agent cannot write down what it hears of others: its file is in use."""
    blocks.touch()
    for pid, folder in agents_of(spill).items():
        if folder.name.endswith(f"-{number}"):
            table = folder / "agents.new"
            table.touch()
            inside = ["nsenter", f"--target={pid}", "--user", "--mount", "--preserve-credentials"]
            subprocess.run([*inside, "mount", "--bind", str(blocks), str(table)], check=True)
            return
    raise AssertionError(agents_of(spill))


def sums_job(spill: Path, output: Path, cluster: _core.Cluster) -> _core.Job:
    """A job with user code, whose processes read the table of their agent."""
    job = gm.Job(
        gm.items(range(20_000)),
        map=lambda n: [(n % 7, n)],
        reduce=gm.sum(),
        parts=4,
        split_max=30_000,
        output=gm.tsv(output),
    )
    prepared = prepare(job, Options(given={"on": "ray", "workers": 2, "spill_dir": [str(spill)]}))
    return submitting.begin(prepared, new_job_id(), cluster)


def waited(native: _core.Job, timeout_s: float = 60) -> list[str]:
    """Wait for a job; what it said meanwhile."""
    deadline_s = time.monotonic() + timeout_s
    said: list[str] = []
    while not native.wait(0.05):
        assert time.monotonic() < deadline_s, said
        said += native.notices()
    return said + native.notices()


def cancelled(native: _core.Job) -> None:
    """Cancel a job, which must end soon."""
    began_s = time.monotonic()
    native.cancel()
    waited(native, 60)
    assert time.monotonic() - began_s < CANCELLED_S
    assert json.loads(native.report())["status"] == "cancelled"


@contextmanager
def stopped(pid: int) -> Generator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_an_agent_that_cannot_do_what_it_is_told_is_given_up(spill: Path, tmp_path: Path) -> None:
    need_namespaces()
    with one_agent(spill) as first, one_agent(spill, number=1, before=APART) as second:
        refuse(spill, 1, tmp_path / "blocks")
        native = sums_job(spill, tmp_path / "out", cluster_of(first, second))
        said = [line for line in waited(native) if "given up" in line]
        native.raise_failure()
    assert sums(tmp_path / "out") == sums_of(20_000)
    assert len(said) == 1, said
    assert said[0].startswith("node 127.0.0.1 (2) is given up: "), said
    assert "agents.new" in said[0], said


def test_the_job_fails_with_the_reason_where_no_other_agent_is_left(
    spill: Path, tmp_path: Path
) -> None:
    need_namespaces()
    with one_agent(spill, before=APART) as only:
        refuse(spill, 0, tmp_path / "blocks")
        native = sums_job(spill, tmp_path / "out", cluster_of(only))
        waited(native)
        with pytest.raises(OSError, match=r"agents\.new") as failed:
            native.raise_failure()
    assert "node 127.0.0.1 cannot do what it is told" in str(failed.value)


def test_native_tasks_do_without_the_file_of_the_table(
    records: Path, wanted: Tree, spill: Path, tmp_path: Path
) -> None:
    need_namespaces()
    with one_agent(spill, before=APART) as only:
        refuse(spill, 0, tmp_path / "blocks")
        options = {"inputs": [str(records)], "output": str(tmp_path / "out")}
        options |= {"on": "ray", "memory": 22_000_000}
        native = begin("terasort", options, new_job_id(), cluster=cluster_of(only))
        waited(native)
        native.raise_failure()
    assert tree(tmp_path / "out") == wanted


def test_a_cancelled_job_does_not_wait_for_an_agent_that_is_silent(
    spill: Path, tmp_path: Path
) -> None:
    with one_agent(spill) as first, one_agent(spill, number=1) as second:
        job = gm.Job(
            gm.items(range(4)),
            map=sleeps,
            reduce=gm.sum(),
            split_max=1,
            output=gm.tsv(tmp_path / "out"),
        )
        given = {"on": "ray", "workers": 2, "spill_dir": [str(spill)]}
        native = submitting.begin(
            prepare(job, Options(given=given)), new_job_id(), cluster_of(first, second)
        )
        wait_for_tasks(native, 2)
        (silent,) = (pid for pid, at in agents_of(spill).items() if at.name.endswith("-1"))
        with stopped(silent):
            cancelled(native)


def sleeps(number: int) -> list[tuple[int, int]]:
    time.sleep(60)
    return [(number, number)]


def wait_for_tasks(native: _core.Job, count: int) -> None:
    deadline_s = time.monotonic() + 30
    while native.nodes()[1] < count:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def test_a_job_says_which_file_on_which_node_it_waits_for(
    records: Path, spill: Path, tmp_path: Path, mounts: Mounts
) -> None:
    need_namespaces()
    read = mounts.data / "in"
    shutil.copytree(records, read, dirs_exist_ok=True)
    before = [*OTHER, str(mounts.b), str(mounts.data)]
    with one_agent(spill) as first, one_agent(spill, number=1, before=before) as second:
        options: dict[str, Any] = {"inputs": [str(read)], "output": str(tmp_path / "out")}
        options |= {"on": "ray", "memory": 22_000_000}
        with stopped(mounts.pids[1]):
            native = begin("terasort", options, new_job_id(), cluster=cluster_of(first, second))
            wait_for_notice(native, lambda line: line.startswith("waiting 1"), str(read))
            cancelled(native)


def wait_for_notice(native: _core.Job, is_it: Callable[[str], bool], file: str) -> None:
    deadline_s = time.monotonic() + 30
    said: list[str] = []
    while not any(map(is_it, said)):
        assert not native.wait(0.1), native.report()
        assert time.monotonic() < deadline_s, said
        said += native.notices()
    (line,) = filter(is_it, said)
    assert file in line, said
    assert line.endswith(" on node 127.0.0.1 (2)"), said


# --- a cluster ---


def test_a_node_of_ray_whose_mount_hangs_is_named_and_ctrl_c_ends_the_job(
    ray: RayCluster,
    mounts: Mounts,
    spill: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    need_namespaces()
    for name, value in ray.environment.items():
        monkeypatch.setenv(name, value)
    read = mounts.data / "lines"
    run("teragen", "1k", read, "--no-sync")
    before = [*OTHER, str(mounts.b), str(mounts.data)]
    with joined(ray, THIRD, before, tmp_path):
        with stopped(mounts.pids[1]):
            words = ["--on", "ray", "--spill-dir", str(spill)]
            process = start("terasort", read, tmp_path / "out", *words)
            assert process.stderr is not None
            line = next(line for line in process.stderr if "waiting 1" in line)
            assert str(read) in line, line
            assert line.endswith(f" on node {THIRD}\n"), line
            began_s = time.monotonic()
            process.send_signal(signal.SIGINT)
            end(process)
            assert time.monotonic() - began_s < CANCELLED_S + 3  # and Ray ends its agents
        wait_until_gone(spill)
