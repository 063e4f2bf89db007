"""`gristmill doctor`: what is planted is found, what is fine takes a line, and nothing is left."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from tests.optional import missing, or_missing

from gristmill.cli.doctor.findings import of_cluster
from gristmill.cli.doctor.shared import Seen, shared
from gristmill.cluster import node_probe
from gristmill.cluster.node_checks import HERE, Cluster, Node, NodeCheckRequest

from . import http_server
from .agents import one_agent, wait_until_gone
from .conftest import Mount
from .harness import Done, end, failure, run, start
from .ray_cluster import RayCluster, joined
from .s3_server import Bucket
from .servers import free_port

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")

ILL = "127.0.0.2"
"""The address of the node with faults."""

PLANT = """
mount --bind "$1/other" "$1/shared"
mount -t tmpfs -o size=64k tmpfs "$1/spill"
head -c 65536 /dev/zero > "$1/spill/full"
shift
exec env LD_PRELOAD="$1" FAKETIME=+1h "${@:2}"
"""
"""In a mount namespace: another directory, a full disk, and clocks that are ahead.

Both clocks: Python sleeps by the monotonic one, and libfaketime corrects that in any case.
"""

Check = dict[str, Any]


def checks_of(done: Done) -> list[Check]:
    return json.loads(done.stdout)


def of(checks: list[Check], check: str) -> list[Check]:
    return [one for one in checks if one["check"] == check]


def verdicts(checks: list[Check]) -> set[str]:
    return {one["verdict"] for one in checks}


# --- this machine ---


def test_this_machine(tmp_path: Path) -> None:
    done = run("doctor", tmp_path, "--spill-dir", tmp_path)
    assert "checks, all ok" in done.stdout or "warning" in done.stdout
    assert "What to do" not in done.stdout or "warning" in done.stdout
    checks = checks_of(run("doctor", "--json", cwd=tmp_path))
    assert [list(one) for one in checks] == [
        ["check", "node", "verdict", "found", "expected", "advice"]
    ] * len(checks)
    names = ["versions", "CPUs", "memory", "open files", f"path {tmp_path}", "parts"]
    assert [one["check"] for one in checks] == names
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_and_a_directory_that_is_not_there(tmp_path: Path, mount: Mount) -> None:
    disk = mount("size=64k")
    (disk / "file").write_bytes(bytes(65_536))
    nothing = tmp_path / "nothing"
    done = run("doctor", nothing, "--spill-dir", disk, status=1)
    assert "full: 0 B free, tmpfs" in done.stdout
    assert "no such file or directory" in done.stdout
    assert f"What to do:\n  spill {disk}, on this machine: remove what is not" in done.stdout
    assert [path.name for path in disk.iterdir()] == ["file"]


def test_a_store_that_answers_and_one_that_does_not(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = of(checks_of(run("doctor", bucket.url("in"), "--json")), f"path {bucket.url('in')}")
    assert [one["found"] for one in answered] == ["the store answers; nothing is there"]
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    refused = checks_of(run("doctor", bucket.url("in"), "--json", status=1))
    assert verdicts(of(refused, f"path {bucket.url('in')}")) == {"wrong"}
    assert all(one["advice"] for one in refused if one["verdict"] != "ok")


def test_wrong_command_lines() -> None:
    assert "'mars'" in failure("doctor", "--on", "mars", status=2)
    assert "a path is empty" in failure("doctor", "", status=2)


# --- a cluster ---


@pytest.fixture
def on_ray(ray: RayCluster, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    for name, value in ray.environment.items():
        monkeypatch.setenv(name, value)
    return ("doctor", "--on", "ray")


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A directory that all nodes share, and one for runs."""
    for name in ("shared", "spill", "other"):
        (tmp_path / name).mkdir()
    return tmp_path / "shared", tmp_path / "spill"


@pytest.fixture
def ill(ray: RayCluster, folders: tuple[Path, Path], tmp_path: Path) -> Iterator[None]:
    """A third node with three faults."""
    what = "NODES WITH FAULTS"
    if not FAKETIME.exists():
        missing(f"NOT TESTED: {what}", "no libfaketime: install faketime")
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        missing(f"NOT TESTED: {what}", "no mount namespaces: they need root")
    words = ["unshare", "-m", "bash", "-ec", PLANT, "plant", str(folders[0].parent), str(FAKETIME)]
    with or_missing(what), joined(ray, ILL, words, tmp_path):
        yield


@pytest.mark.usefixtures("ill")
def test_planted_faults_are_found(on_ray: tuple[str, ...], folders: tuple[Path, Path]) -> None:
    shared_dir, spill = folders
    asked = (*on_ray, shared_dir, "--spill-dir", spill)
    checks = checks_of(run(*asked, "--json", status=1))
    wrong = {
        (one["check"], one["node"]): one["found"] for one in checks if one["verdict"] == "wrong"
    }
    assert set(wrong) == {("clock", ILL), (f"spill {spill}", ILL), (f"path {shared_dir}", ILL)}
    assert wrong["clock", ILL].startswith(("3600 s ahead", "3601 s ahead"))
    assert wrong[f"spill {spill}", ILL] == "full: 0 B free, tmpfs"
    assert wrong[f"path {shared_dir}", ILL].startswith("another directory than on ")
    assert all(one["advice"] for one in checks if one["verdict"] != "ok")
    # All the rest of that node was looked at, and all others are well.
    for name in ("versions", "CPUs", "memory", "open files", "reach"):
        assert ILL in [one["node"] for one in of(checks, name)]
        assert verdicts(of(checks, name)) <= {"ok", "warning"}
    assert [one["verdict"] for one in of(checks, "reach")] == ["ok"] * 4
    wait_until_gone(spill)
    assert list(shared_dir.iterdir()) == []
    assert list((shared_dir.parent / "other").iterdir()) == []


def test_a_cluster_that_is_well(
    on_ray: tuple[str, ...], folders: tuple[Path, Path], bucket: Bucket
) -> None:
    """Nodes ask S3 with the keys of the command, though Ray was started without."""
    shared_dir, spill = folders
    done = run(*on_ray, shared_dir, bucket.url("in"), "--spill-dir", spill)
    assert ": 2 nodes\n" in done.stdout
    lines = done.stdout.splitlines()
    in_s3 = f"path {bucket.url('in')}"
    for name in ("versions", "clock", "CPUs", f"spill {spill}", in_s3, "reach"):
        of_name = [line for line in lines if line.startswith(f"{name}  ")]
        assert len(of_name) == 1, done.stdout
    assert "2 agents, in 0.0" in done.stdout
    assert "the store answers; nothing is there" in done.stdout
    wait_until_gone(spill)
    assert list(shared_dir.iterdir()) == []


def test_ctrl_c_leaves_nothing(on_ray: tuple[str, ...], folders: tuple[Path, Path]) -> None:
    shared_dir, spill = folders
    process = start(*on_ray, shared_dir, "--spill-dir", spill)
    deadline_s = time.monotonic() + 30
    while not list(shared_dir.iterdir()):
        assert process.poll() is None
        assert time.monotonic() < deadline_s
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    assert end(process).status == 128 + signal.SIGINT
    assert list(shared_dir.iterdir()) == []
    wait_until_gone(spill)


def test_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{free_port()}")
    done = run("doctor", "--on", "ray", "--json", status=1)
    assert [(one["check"], one["verdict"]) for one in checks_of(done)] == [("cluster", "wrong")]
    assert "nothing answers at 127.0.0.1" in done.stdout
    assert "ray start --head" in done.stdout


# --- nodes that do not answer, and agents that do not begin ---


def of_sick(**sick: object) -> dict[str, list[tuple[str, str]]]:
    """What is said of a cluster of which one node is sick: nodes and verdicts, by the check."""
    machine = {
        "python": "3.11.7",
        "ray": "2.60.0",
        "open_files": 65_536,
        "total_bytes": 64_000_000_000,
        "engine": {"version": "1.0", "cpus": 4, "available_bytes": 60_000_000_000},
    }
    spill = {"path": "/spill", "free_bytes": 700_000_000_000, "kind": "ext4"}
    fine = {"machine": machine, "clock": (0.001, 0.0), "spill": [spill], "reach": {"a": 0.001}}
    nodes = [
        Node("a", 4, answers=fine | {"agent": {"hello": "{}"}}),
        Node("b", 4, **cast("dict[str, Any]", sick)),
    ]
    here = Node(HERE, answers={"machine": machine, "reach": {"a": 0.001}})
    found: dict[str, list[tuple[str, str]]] = {}
    for check in of_cluster(Cluster("here:6379", nodes, here, []), NodeCheckRequest((), (), ())):
        found.setdefault(check.check, []).append((check.node, check.verdict))
    return found


def test_a_node_that_does_not_answer_keeps_nobody_from_the_others() -> None:
    found = of_sick(failed=("machine", "no answer within 60 s"))
    assert found["node"] == [("b", "wrong")]
    assert found["versions"] == [("a", "ok")]
    assert found["reach"] == [(HERE, "ok"), ("a", "ok")]


def test_a_spill_directory_that_an_agent_refuses() -> None:
    spill = {"path": "/spill", "free_bytes": 700_000_000_000, "kind": "ext4"}
    agent = {"spill_error": "cannot lock: no locks. What to do: mount it anew.", "hello": "{}"}
    found = of_sick(answers={"spill": [spill], "agent": agent, "reach": {"a": "Timed out"}})
    assert found["spill /spill"] == [("a", "ok"), ("b", "wrong")]
    assert found["reach"] == [(HERE, "ok"), ("a", "ok"), ("b", "wrong")]
    found = of_sick(answers={"agent": {"error": "cannot listen: no such address."}})
    assert found["agent"] == [("b", "wrong")]


# --- what nodes try ---


def test_an_agent_is_reached_with_its_token_only(tmp_path: Path) -> None:
    with one_agent(tmp_path, "secret") as hello:
        url = f"http://{hello['place']['address']}"
        closed = f"http://127.0.0.1:{free_port()}"
        found = node_probe.reach({"it": url, "closed": closed}, "secret")
        assert isinstance(found["it"], float)
        assert found["closed"] == "Connection refused"
        other = node_probe.reach({"it": url}, "other")["it"]
        assert other == "something else answers there (401 Unauthorized)"
    with http_server.serving(tmp_path) as files:
        other = node_probe.reach({"it": files.endpoint}, "secret")["it"]
        assert other == "something else answers there (404 Not Found)"


def test_files_that_are_left_are_seen_and_removed(tmp_path: Path) -> None:
    here, nothing = str(tmp_path), str(tmp_path / "nothing")
    assert node_probe.leave([here, nothing], "a") == {nothing: "No such file or directory"}
    began_s = time.monotonic()
    assert node_probe.see([here], ["a"]) == {here: ["a"]}
    assert time.monotonic() - began_s < 0.5
    assert node_probe.see([here, nothing], ["a", "b"]) == {here: ["a"], nothing: []}
    (tmp_path / "b-trial").touch()  # of a node that was stopped in the middle
    node_probe.clear([here, nothing], ["a", "b"])
    assert list(tmp_path.iterdir()) == []


def test_who_shares_a_directory() -> None:
    there = {"free_bytes": 5_000_000_000, "kind": "nfs4"}

    def verdict(**seen: Seen) -> dict[str, str]:
        return {check.node: check.verdict for check in shared("/data", seen)}

    def node(*sees: str, refused: str | None = None) -> Seen:
        return Seen(there, refused, frozenset(sees))

    # Of two halves that of the first is the one to have.
    halves = verdict(
        here=node("here", "a"), a=node("here", "a"), b=node("b", "c"), c=node("b", "c")
    )
    assert halves == {"here": "ok", "a": "ok", "b": "wrong", "c": "wrong"}
    # A node that may only read sees what the others left.
    assert verdict(a=node("a"), b=node("a", refused="Read-only file system")) == {
        "a": "ok",
        "b": "warning",
    }
    refused = node(refused="Permission denied")
    assert verdict(a=refused, b=refused) == {"a": "warning", "b": "warning"}
    gone = Seen({"error": "No such file or directory"}, "No such file or directory", frozenset())
    assert verdict(a=node("a"), b=gone) == {"a": "ok", "b": "wrong"}
