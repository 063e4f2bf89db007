"""Nodes that do not see the same files: said before the first task. Two agents, without Ray."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.optional import missing

from gristmill import _core
from gristmill.job import begin, new_job_id

from .agents import WITHOUT, some_agents, wait_until_gone
from .harness import run
from .resuming import tree

ADVICE = (
    "What to do: name a directory that all nodes share under the same path, or a place in s3://"
)


@pytest.fixture
def spill(tmp_path: Path) -> Path:
    """The spill directory of the nodes."""
    folder = tmp_path / "spill"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that a node may not see; it takes mount namespaces."""
    folder = tmp_path_factory.mktemp("apart")
    done = subprocess.run([*WITHOUT, folder, "true"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        missing("NOT TESTED: nodes with disks of their own", done.stderr)
    return folder


def on_agents(command: str, cluster: _core.Cluster, **values: Any) -> _core.Job:  # noqa: ANN401 - options
    """Run a job on these agents to its end."""
    options = {"on": "ray", "memory": 64_000_000, "workers": 2} | values
    job = begin(command, options, new_job_id(), cluster=cluster)
    while not job.wait(0.1):
        pass
    return job


def test_an_output_that_a_node_does_not_see_is_refused(
    spill: Path, apart: Path, data: Path
) -> None:
    out = apart / "out"
    with some_agents(spill, without=apart) as cluster:
        job = on_agents("terasort", cluster, inputs=[str(data)], output=str(out))
        with pytest.raises(FileNotFoundError) as error:
            job.raise_failure()
    said = str(error.value)
    assert said.startswith("cannot write the output: a node does not see the directory")
    assert f"file {out}, node 127.0.0.1:" in said
    assert ADVICE in said
    assert not list(apart.iterdir())
    assert json.loads(job.report())["counters"].get("TOTAL_LAUNCHED_MAPS", 0) == 0
    wait_until_gone(spill)


def test_an_input_that_a_node_does_not_see_is_named(
    spill: Path, apart: Path, data: Path, tmp_path: Path
) -> None:
    there = apart / "in.dat"
    there.write_bytes(next(data.iterdir()).read_bytes())
    with some_agents(spill, without=apart) as cluster:
        out = tmp_path / "out"
        job = on_agents("terasort", cluster, inputs=[str(there)], output=str(out))
        with pytest.raises(FileNotFoundError) as error:
            job.raise_failure()
    said = str(error.value)
    assert said.startswith("cannot read the input: a node does not see it")
    assert f"file {there}, node 127.0.0.1:" in said
    assert ADVICE in said
    assert not out.exists()


def test_nodes_that_see_the_same_files_run_the_job(
    spill: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by relative paths: agents begin elsewhere, and paths are absolute before that."""
    run("terasort", data, tmp_path / "wanted")
    with some_agents(spill) as cluster:
        monkeypatch.chdir(tmp_path)
        on_agents("terasort", cluster, inputs=[str(data)], output="out").raise_failure()
    assert tree(tmp_path / "out") == tree(tmp_path / "wanted")
    assert not list(tmp_path.glob("out/.*"))
