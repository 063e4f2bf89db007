"""What goes wrong around S3: networks, the server, rights, room, clocks.

The bytes are the same, or one paragraph says why there are none. The network is toxiproxy's, the
servers are versitygw and, as another implementation, moto; all are on this machine.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import ProxyHandler, Request, build_opener

import pytest
from tests.optional import missing, or_missing

from .conftest import Mount
from .harness import end, failure, run, start
from .resuming import Tree, tree
from .s3_server import Bucket, Server, again, serving
from .servers import HERE, compiled, started
from .toxiproxy import Proxy, proxied

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")


@pytest.fixture
def proxy(bucket: Bucket, server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A network between the jobs of a test and the server."""
    assert not bucket.files()
    log = server.folder.parent / "proxy.log"
    with or_missing("BAD NETWORKS"), proxied(server.endpoint, log) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield proxy


@pytest.fixture(scope="module")
def sorted_here(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """What 200,000 records are when a job on the disk has sorted them."""
    folder = tmp_path_factory.mktemp("here")
    run("teragen", "200k", folder / "in", "--no-sync")
    run("terasort", folder / "in", folder / "out", "--partitions", "3", "--no-sync")
    return tree(folder / "out")


@pytest.mark.parametrize(
    ("kind", "share", "attributes"),
    [
        ("latency", 1.0, {"latency": 20, "jitter": 10}),
        ("bandwidth", 1.0, {"rate": 40_000}),
        ("slow_close", 0.5, {"delay": 200}),
        ("slicer", 0.5, {"average_size": 20_000, "size_variation": 10_000, "delay": 10}),
        ("limit_data", 0.4, {"bytes": 700_000}),  # whatever comes then is cut off
        ("reset_peer", 0.3, {"timeout": 20}),
    ],
)
def test_a_bad_network(
    kind: str,
    share: float,
    attributes: dict[str, int],
    proxy: Proxy,
    bucket: Bucket,
    sorted_here: Tree,
) -> None:
    proxy.worsen(kind, share, **attributes)
    run("teragen", "200k", bucket.url("in"))
    run("terasort", bucket.url("in"), bucket.url("out"), "--partitions", "3")
    assert bucket.objects("out") == sorted_here
    assert bucket.uploads() == []


def test_a_network_that_is_cut_and_heals(proxy: Proxy, bucket: Bucket, sorted_here: Tree) -> None:
    run("teragen", "200k", bucket.url("in"))
    proxy.worsen("bandwidth", rate=15_000)
    job = start("terasort", bucket.url("in"), bucket.url("out"), "--partitions", "3")
    time.sleep(0.7)
    proxy.open(False)
    time.sleep(2)
    assert job.poll() is None
    proxy.mend()
    assert end(job).status == 0
    assert bucket.objects("out") == sorted_here


def test_a_server_that_dies_and_comes_back(
    bucket: Bucket, tmp_path: Path, sorted_here: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets = tmp_path / "buckets"
    mine = Bucket(bucket.name, buckets / bucket.name)
    mine.folder.mkdir(parents=True)
    with again(buckets, "AK0", "secret") as (server, process):
        port = int(server.endpoint.rpartition(":")[2])
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        run("teragen", "200k", mine.url("in"))
        job = start("terasort", mine.url("in"), mine.url("out"), "--partitions", "3")
        while job.poll() is None and not mine.uploads():
            time.sleep(0.002)
        process.kill()
        process.wait()
    time.sleep(7)  # more than ten tries take
    assert job.poll() is None
    with again(buckets, "AK0", "secret", port=port):
        assert end(job).status == 0
    assert mine.objects("out") == sorted_here


def test_a_clock_that_is_wrong(bucket: Bucket) -> None:
    if not FAKETIME.exists():
        missing("NOT TESTED: WRONG CLOCKS", "no libfaketime: install faketime")
    wrong = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": "+1h", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    said = failure("teragen", "1k", bucket.url("out"), **wrong)
    assert "the clock of this machine is more than 15 minutes away from the store's" in said
    assert "What to do: set the clock" in said
    assert bucket.files() == []


def test_no_permission(home: Path, tmp_path: Path) -> None:
    buckets, accounts = tmp_path / "buckets", tmp_path / "accounts"
    for folder in (buckets / "hers", accounts):
        folder.mkdir(parents=True)
    assert not home.exists()
    with serving(buckets, HERE, "--iam-dir", str(accounts)) as server:
        owner = server.environment
        asks = [
            "--access",
            server.key,
            "--secret",
            server.secret,
            "--endpoint-url",
            server.endpoint,
        ]
        made = ["create-user", "--access", "his", "--secret", "other", "--role", "user"]
        subprocess.run(
            [compiled("versitygw", "versitygw"), "admin", *asks, *made],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        run("teragen", "1k", "s3://hers/in", **owner)
        his = {**owner, "AWS_ACCESS_KEY_ID": "his", "AWS_SECRET_ACCESS_KEY": "other"}
        said = failure("teravalidate", "s3://hers/in", **his)
    assert "the store does not permit it" in said
    assert "s3:GetObject" in said


def test_a_full_store(mount: Mount, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not home.exists()
    disk = mount("size=16m")
    (disk / "buckets" / "small").mkdir(parents=True)
    with serving(disk / "buckets") as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        said = failure("teragen", "200k", "s3://small/out")
        assert "the store is full, or the quota is used up" in said
        assert "What to do: free some space there" in said
        assert Bucket("small", disk / "buckets" / "small").files() == []


def test_another_implementation(
    home: Path, tmp_path: Path, sorted_here: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command(address: str, port: int) -> list[str | Path]:
        return [sys.executable, "-m", "moto.server", "-H", address, "-p", str(port)]

    with started(command, tmp_path / "log") as (endpoint, _):
        there = Server(tmp_path, endpoint, "AK0", "secret").environment
        for name, value in there.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        build_opener(ProxyHandler({})).open(Request(f"{endpoint}/bucket", method="PUT")).close()
        run("teragen", "200k", "s3://bucket/in", "--files", "2")
        job = ("terasort", "s3://bucket/in", "s3://bucket/out", "--partitions", "3")
        process = start(*job, "--history")
        time.sleep(0.8)
        process.kill()
        end(process)
        run("jobs", "prune", "--older-than", "0")
        run(*job, "--overwrite", "--memory", "64M")
        run("teravalidate", "s3://bucket/out", "--against", "s3://bucket/in")
        run("hadoop", "fs", "-get", "s3://bucket/out", "out")
    assert tree(Path("out")) == sorted_here
    shutil.rmtree(home, ignore_errors=True)
