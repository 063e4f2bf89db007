"""Agents use TLS where Ray does: what they send is encrypted, and they prove who they are."""

import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.ray_cluster import RayCluster, own_address, with_tls
from tests.optional import or_missing

from gristmill import _core
from gristmill.cluster import node_probe

from .agents import one_agent, wait_until_gone
from .certificates import Authority, Identity
from .harness import report, run
from .resuming import RUNS, Tree, tree
from .test_nodes import on_agents


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority") / "ours")


@pytest.fixture
def spill(tmp_path: Path) -> Path:
    folder = tmp_path / "spill"
    folder.mkdir()
    return folder


def files_of(identity: Identity, authority: Authority) -> dict[str, str]:
    """What an agent is told."""
    return {
        "certificate": str(identity.certificate),
        "key": str(identity.key),
        "authorities": str(authority.file),
    }


def variables(identity: Identity, authority: Authority) -> dict[str, str]:
    """What Ray is told."""
    return {
        "RAY_USE_TLS": "1",
        "RAY_TLS_SERVER_CERT": str(identity.certificate),
        "RAY_TLS_SERVER_KEY": str(identity.key),
        "RAY_TLS_CA_CERT": str(authority.file),
    }


def test_orders_events_and_runs_go_over_tls(
    authority: Authority, records: Path, wanted: Tree, spill: Path, tmp_path: Path
) -> None:
    tls = files_of(authority.identity("127.0.0.1"), authority)
    out = tmp_path / "out"
    with one_agent(spill, tls=tls) as first, one_agent(spill, tls=tls, number=1) as second:
        told = {"token": "secret", "authorities": tls["authorities"], "agents": [first, second]}
        values = {"inputs": [str(records)], "output": str(out), "memory": 22_000_000}
        job = on_agents("terasort", _core.Cluster(json.dumps(told)), **values)
        job.raise_failure()
        assert json.loads(job.report())["counters"]["SPILLED_RUNS"] > 2
        # Without TLS there is no answer.
        host, _, port = first["place"]["address"].rpartition(":")
        plain = http.client.HTTPConnection(host, int(port), timeout=10)
        plain.request("GET", "/events?after=0", headers={"authorization": "Bearer secret"})
        with pytest.raises((http.client.BadStatusLine, ConnectionError)):
            plain.getresponse()
        plain.close()
    assert tree(out) == wanted
    wait_until_gone(spill)


def test_a_connection_that_says_nothing_keeps_nobody_waiting(
    authority: Authority, spill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = authority.identity("127.0.0.1")
    for name, value in variables(identity, authority).items():
        monkeypatch.setenv(name, value)
    with one_agent(spill, tls=files_of(identity, authority)) as hello:
        host, _, port = hello["place"]["address"].rpartition(":")
        silent = [socket.create_connection((host, int(port))) for _ in range(100)]
        found = node_probe.reach({"it": f"https://{hello['place']['address']}"}, "secret")
        assert isinstance(found["it"], float), found
        for one in silent:
            one.close()


@pytest.mark.parametrize("names", ["127.0.0.2", "another"])
def test_an_agent_that_does_not_prove_its_name_is_told_nothing(
    names: str, authority: Authority, data: Path, spill: Path, tmp_path: Path
) -> None:
    other = Authority(tmp_path / "other")
    by = other if names == "another" else authority
    identity = by.identity("127.0.0.1" if names == "another" else names)
    out = tmp_path / "out"
    with one_agent(spill, tls=files_of(identity, authority)) as hello:
        told = {"token": "secret", "authorities": str(authority.file), "agents": [hello]}
        job = on_agents(
            "terasort", _core.Cluster(json.dumps(told)), inputs=[str(data)], output=str(out)
        )
        with pytest.raises(OSError, match="the server's certificate is not trusted") as error:
            job.raise_failure()
    assert "all its agents are lost" in str(error.value)
    assert "RAY_TLS_CA_CERT" in str(error.value) or "it is for 127.0.0.2" in str(error.value)
    assert not out.exists()


@pytest.fixture(scope="module")
def secured(authority: Authority) -> Iterator[RayCluster]:
    with or_missing("A RAY CLUSTER WITH TLS"):
        # Ray takes an address of the machine in the place of 127.0.0.1.
        identity = authority.identity("127.0.0.1", "localhost", own_address())
        with with_tls(variables(identity, authority)) as cluster:
            yield cluster


def test_a_cluster_with_tls(
    secured: RayCluster,
    records: Path,
    wanted: Tree,
    spill: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in secured.environment.items():
        monkeypatch.setenv(name, value)
    where = ("--on", "ray", "--spill-dir", spill)
    report("terasort", records, tmp_path / "out", *RUNS, *where)
    assert tree(tmp_path / "out") == wanted
    checks = json.loads(run("doctor", *where, "--json").stdout)
    assert {one["verdict"] for one in checks if one["check"] == "reach"} == {"ok"}
