"""Jobs in Python on a cluster: several at once, and what is done on the machine of the program."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gristmill as gm
from gristmill.cluster import packing, reserving, watching
from gristmill.cluster.connection import first_line
from gristmill.cluster.user_code import UserCode
from gristmill.mapreduce.run_options import Options
from gristmill.mapreduce.submit.launching import (
    _copies,  # what it is told decides what is looked at here
)

from .harness import run
from .resuming import tree

AT_ONCE = """
import gristmill as gm
import json, sys

def pairs(n):
    yield n % 5, 1

jobs = [
    gm.Job(gm.items(range(1000)), map=pairs, reduce=gm.sum(), output=gm.tsv(f"{out}"), parts=2)
    for out in sys.argv[2:]
]
options = json.loads(sys.argv[1])
print(json.dumps([result.report.workers for result in gm.run_all(jobs, **options)]))
"""

RANGES = """
import gristmill as gm
import sys

job = gm.Job(
    gm.items(range(5000)), map=lambda n: [(n * 7919 % 5000, n)], reduce=gm.sum(),
    partition_by=gm.sampled_ranges(500), parts=4, split_max=4000, output=gm.tsv(sys.argv[1]),
)
job.run(on="ray", spill_dir=sys.argv[2], memory="300M", workers=4)
"""


def script(folder: Path, text: str, *arguments: str | Path) -> str:
    (folder / "program.py").write_text(text)
    words = [sys.executable, "program.py", *map(str, arguments)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("on_ray")
def test_jobs_at_once_share_the_cluster_and_not_this_machine(tmp_path: Path) -> None:
    outs = [tmp_path / "a", tmp_path / "b"]
    said = script(tmp_path, AT_ONCE, json.dumps({"on": "ray"}), *outs)
    assert json.loads(said) == [2, 2]
    assert tree(outs[0]) == tree(outs[1]) != {}


RELATIVE = """
import gristmill as gm

job = gm.Job(
    gm.text("shared/small"),
    map=lambda line, context: [(context.file("words").read_text() + line, 1)],
    reduce=gm.sum(),
    output=gm.tsv("out"),
    files=["side/words"],
)

if __name__ == "__main__":
    job.run(on="ray", overwrite=True)
"""


@pytest.mark.usefixtures("home")
def test_relative_paths_are_those_of_the_directory_where_the_job_begins(
    on_ray: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nodes of the cluster were started elsewhere."""
    for name in ("shared/small", "side"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "shared" / "small" / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "side" / "words").write_text("and ")
    (tmp_path / "rel.py").write_text(RELATIVE)
    monkeypatch.chdir(tmp_path)
    script(tmp_path, RELATIVE)
    wanted = tree(tmp_path / "out")
    run("run", "rel.py", "--output", "a", *on_ray)
    run("run", "rel.py", "--input", "shared/small/*.txt", "--output", "b", *on_ray)
    assert wanted == tree(tmp_path / "a") == tree(tmp_path / "b")
    assert "".join(part.read_text() for part in sorted((tmp_path / "a").glob("part-*"))) == (
        "and one\t1\nand two\t1\n"
    )


@pytest.mark.usefixtures("on_ray")
def test_a_sample_is_taken_here_with_what_is_here(tmp_path: Path, spill: Path) -> None:
    script(tmp_path, RANGES, tmp_path / "out", spill)
    parts = [
        [int(line.split("\t")[0]) for line in part.read_text().splitlines()]
        for part in sorted((tmp_path / "out").glob("part-*"))
    ]
    assert len(parts) == 4
    assert all(parts)
    assert [key for part in parts for key in part] == list(range(5000))


def test_spill_directories_of_nodes_are_not_looked_for_here(tmp_path: Path) -> None:
    spec = gm.Job(gm.items([1]), map=print, output=gm.tsv(tmp_path / "out"))
    nowhere = {"spill_dir": [str(tmp_path / "nowhere")]}
    assert _copies(spec, Options(given=nowhere | {"on": "ray"})).startswith(str(tmp_path))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        _copies(spec, Options(given=nowhere))


def test_odd_things_beside_a_module_stay_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "shared").mkdir()
    for name in ("job.py", "beside.py", "pack/__init__.py", "shared/common.py"):
        (tmp_path / name).write_text("")
    (tmp_path / ".#job.py").symlink_to("somebody@somewhere.1234")
    (tmp_path / "gone.py").symlink_to("nowhere")
    (tmp_path / "checkout.py").mkdir()
    (tmp_path / "pack" / "gone.py").symlink_to("nowhere")
    (tmp_path / "pack" / "linked").symlink_to("../shared")
    monkeypatch.syspath_prepend(tmp_path)
    modules = tuple(str(tmp_path / name) for name in ("job.py", "pack/linked/common.py"))
    packed = packing.packed(UserCode(modules=modules))[-1]
    assert packed["path"] == str(tmp_path)
    assert sorted(packed["files"]) == [
        "beside.py", "job.py", "pack/__init__.py", "pack/linked/common.py",
    ]  # fmt: skip


def test_the_cause_of_an_error_of_ray_is_told() -> None:
    class TaskError(Exception):
        cause = OSError("No space left on device.")

    assert first_line(TaskError("\x1b[36mray::NodeProbe.machine()\x1b[39m (pid=7)")) == (
        "No space left on device"
    )


class Ray:
    """As much of Ray as looking at nodes takes: three nodes of four CPUs."""

    def nodes(self) -> list[dict[str, Any]]:
        return [{"NodeID": name, "Alive": True, "Resources": {"CPU": 4.0}} for name in "abc"]

    def wait(self, refs: list[Any], **_: object) -> tuple[list[Any], list[Any]]:
        return [ref for ref in refs if ref == "over"], [ref for ref in refs if ref != "over"]

    def kill(self, _: object) -> None:
        pass


@pytest.mark.parametrize("asked", [{"workers": 0}, {"workers": None, "most": -1}])
def test_less_than_one_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be at least 1, not (0|-1)"):
        reserving.shares(Ray(), **asked)


def test_an_agent_that_begins_again_has_no_more_than_was_reserved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two workers on each node were asked for; those of two agents are free."""
    monkeypatch.setattr(watching, "_AGAIN_S", 0.0)
    monkeypatch.setattr(watching, "draining", lambda _: set[str]())
    begun = [
        watching.Begun(number, node, 2, None, "hello", ended)
        for number, (node, ended) in enumerate([("a", "over"), ("b", "over"), ("c", "runs")])
    ]
    asked: list[tuple[str, int]] = []

    def begin(number: int, node: dict[str, Any], workers: int) -> watching.Begun:
        asked.append((node["NodeID"], workers))
        if node["NodeID"] == "a":
            raise ValueError("Ray does not want to")
        return watching.Begun(number, node["NodeID"], workers, None, "waits", "runs")

    watch = watching.Watch(Ray(), begun, begin, (6, None), {"a": 2, "b": 2, "c": 2}.get)
    monkeypatch.setattr(watch, "_greet", lambda _: None)
    watch._look(Hears())
    assert asked == [("a", 2), ("b", 2)]
    watch._look(Hears())
    assert asked == [("a", 2), ("b", 2)]


class Hears:
    def joined(self, number: int, hello: str) -> None: ...
    def drained(self, number: int) -> None: ...
