"""A Ray cluster of two nodes on this machine, for all tests: a head and a second raylet.

Where a mount namespace may be made, the second node has Ray and no Gristmill, as nodes of users,
and sees nothing of the folder `of_head`.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from tests.cli.network import Network
from tests.cli.servers import ServerMissing, free_port

import gristmill

_START_S = 90.0
_CPUS = 2
_NO_RAY = "no Ray: pip install gristmill[ray]"
_PACKAGE = Path(gristmill.__file__).parent.parent
_TEMPORARY = "/tmp"
"""Names of sockets below it must be short."""

CONNECT = "import sys, ray\nray.init(logging_level='ERROR', log_to_driver=False)\n"
"""What a program begins with that asks the cluster of RAY_ADDRESS."""

_OF_NODES = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1",
    "RAY_raylet_start_wait_time_s": str(int(_START_S) - 5),  # other tests keep the machine busy
    "RAY_local_fs_capacity_threshold": "1",  # a disk that others have nearly filled is no test
}
"""What is in the environment of each node."""

_LOG = "started.log"
"""In the folder of the cluster: what its processes say."""

_BIND = 'mount --bind "$1" "$2" && mount -t tmpfs none "$3" && shift 3 && exec "$@"'
"""Gives a command a folder of its own in the place of another one, and hides a third."""


@dataclass(frozen=True)
class RayCluster:
    """A cluster: where it is, and how a command is told of it."""

    address: str
    of_head: Path
    """A folder that only the head has; the second node has an empty one of that name."""
    is_apart: bool
    """Whether that is so: mount namespaces may be forbidden."""
    tls: Mapping[str, str] = field(default_factory=dict[str, str])
    """Ray's variables of TLS, where it uses that, or of its token."""
    head: str = ""
    """Where programs connect to a cluster whose address is that of a dashboard."""

    @property
    def environment(self) -> dict[str, str]:
        """What is in the environment of a command that runs on the cluster."""
        return {"RAY_ADDRESS": self.address, **self.tls}


@dataclass
class _Starting:
    """The processes of a cluster that starts, the head first, and the folder that they share."""

    folder: str
    address: str
    processes: list["subprocess.Popen[bytes]"] = field(
        default_factory=list["subprocess.Popen[bytes]"]
    )

    def begin(self, command: list[str], more: Mapping[str, str] | None = None) -> None:
        """Begin one more, and wait until it is in the cluster."""
        self.processes.append(_begin(command, self.folder, more))
        try:
            _await(self.address, self.processes, len(self.processes), more)
        except ServerMissing as problem:
            log = Path(self.folder, _LOG).read_text(encoding="utf-8", errors="replace")
            raise ServerMissing(f"{problem}\n{log[-2000:]}") from problem

    def begin_head(
        self,
        *,
        cpus: int = _CPUS,
        more: Mapping[str, str] | None = None,
        before: Sequence[str] = (),
        dashboard: int | None = None,
    ) -> None:
        """Begin the head, by a command that begins with these words; with a dashboard at a port."""
        host, _, port = self.address.rpartition(":")
        words = ["--head", f"--port={port}", f"--temp-dir={self.folder}"]
        if dashboard is None:
            words += ["--include-dashboard=false"]
        else:
            words += ["--include-dashboard=true", f"--dashboard-port={dashboard}"]
        self.begin([*before, *_start(host, cpus=cpus), *words], more)


@contextmanager
def _starting(host: str = "127.0.0.1") -> Generator[_Starting]:
    """Give a folder and a port to a cluster, and end all that is begun."""
    if find_spec("ray") is None:
        raise ServerMissing(_NO_RAY)
    made = tempfile.TemporaryDirectory(
        prefix="ray-",
        dir=_TEMPORARY,
        ignore_cleanup_errors=True,  # a process of Ray that ends late may still write
    )
    with made as folder:
        starting = _Starting(folder, f"{host}:{free_port()}")
        try:
            yield starting
        finally:
            for process in reversed(starting.processes):
                _end(process)


@contextmanager
def serving() -> Generator[RayCluster]:
    """Start a cluster of two nodes with two CPUs each, and end it."""
    with _starting() as starting:
        starting.begin_head()
        of_head = Path(starting.folder, "of-head")
        of_head.mkdir()
        apart = _without(_PACKAGE, of_head)
        starting.begin([*apart, *_start(), f"--address={starting.address}"])
        yield RayCluster(starting.address, of_head, bool(apart))


@contextmanager
def with_dashboard(hidden: Path, token: str) -> Generator[RayCluster]:
    """Start a cluster of one node with a dashboard that asks for a token.

    Where that may be, the node has Ray and no Gristmill, and sees nothing of the folder `hidden`.
    """
    if find_spec("aiohttp_cors") is None:
        raise ServerMissing("no dashboard: pip install 'ray[default]'")
    more = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}
    with _starting() as starting:
        port = free_port()
        apart = _without(_PACKAGE, hidden)
        starting.begin_head(more=more, before=apart, dashboard=port)
        address = f"http://127.0.0.1:{port}"
        folder = Path(starting.folder)
        yield RayCluster(address, folder, bool(apart), tls=more, head=starting.address)


@contextmanager
def with_tls(tls: Mapping[str, str]) -> Generator[RayCluster]:
    """Start a cluster of one node that uses TLS, as these variables say."""
    with _starting() as starting:
        starting.begin_head(more=tls)
        yield RayCluster(starting.address, Path(starting.folder), is_apart=False, tls=tls)


@contextmanager
def with_head_apart(stays_s: int = 60) -> Generator[RayCluster]:
    """Start a head without CPUs, and a node with some, which stays so long without its head."""
    more = {"RAY_gcs_rpc_server_reconnect_timeout_s": str(stays_s)}
    with _starting() as starting:
        starting.begin_head(cpus=0, more=more)
        starting.begin([*_start(), f"--address={starting.address}"], more)
        yield RayCluster(starting.address, Path(starting.folder), is_apart=False)


@contextmanager
def in_network(network: Network) -> Generator[RayCluster]:
    """Start a head without CPUs on this machine, and a node on each machine of a network.

    Nodes have Ray and no Gristmill. Each has a folder `of_head` of its own: runs of one are no
    files for another.
    """
    with _starting(network.address) as starting:
        own = Path(starting.folder, "own")
        own.mkdir()
        starting.begin_head(cpus=0)
        # One after another: they share the folder of the cluster, and name their sockets in it.
        for number, machine in enumerate(network.machines):
            disk = Path(starting.folder, f"disk-{number}")
            disk.mkdir()
            words = [_BIND, "sh", str(disk), str(own), str(_PACKAGE)]
            before = [*machine.host.before, "sh", "-c", *words]
            node = [*_start(machine.host.address), f"--address={starting.address}"]
            starting.begin([*before, *node])
        yield RayCluster(starting.address, own, is_apart=True)


@contextmanager
def joined(
    cluster: RayCluster, host: str, before: list[str], log: Path
) -> Generator["subprocess.Popen[bytes]"]:
    """Start a third node, by a command that begins with these words, and end it."""
    process = _begin([*before, *_start(host), f"--address={cluster.address}"], str(log))
    try:
        _await(cluster.address, [process], 3)
        yield process
    finally:
        _end(process)
        _await(cluster.address, [], 2)


@contextmanager
def holding(resources: Mapping[str, float], nodes: int) -> Generator[None]:
    """Have so much taken of each of some nodes of the cluster of RAY_ADDRESS."""
    code = (
        "from ray.util import placement_group\n"
        f"group = placement_group([{dict(resources)}] * {nodes}, strategy='STRICT_SPREAD')\n"
        "print(group.wait(30), flush=True)\n"
        "sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", CONNECT + code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        try:
            yield
        finally:
            process.kill()


def kill_head(cluster: RayCluster) -> None:
    """Kill what Ray calls the head of a cluster (GCS), and nothing else."""
    port = cluster.address.rpartition(":")[2]
    of_head = f"--gcs_server_port={port}".encode()
    killed = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"/gcs_server") and of_head in words:
                os.kill(int(process.name), signal.SIGKILL)
                killed += 1
    assert killed == 1


def own_address() -> str:
    """Return the address that Ray has of this machine."""
    if find_spec("ray") is None:
        raise ServerMissing(_NO_RAY)
    return import_module("ray.util").get_node_ip_address()


def _without(*folders: Path) -> list[str]:
    """What a command begins with that sees empty folders in the place of these."""
    hide = " && ".join(f'mount -t tmpfs none "${number}"' for number in range(1, len(folders) + 1))
    words = [f'{hide} && shift {len(folders)} && exec "$@"', "sh", *map(str, folders)]
    command = ["unshare", "--mount", "sh", "-c", *words]
    may = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    return command if may else []


def _start(host: str = "127.0.0.1", *, cpus: int = _CPUS) -> list[str]:
    ray = str(Path(sys.executable).with_name("ray"))
    small = ["--object-store-memory=300000000", "--disable-usage-stats"]
    small.append("--include-log-monitor=false")  # no driver asks for logs, and it is never idle
    # Else all nodes of a machine take the same port, also those of other clusters.
    agent = f"--dashboard-agent-listen-port={free_port()}"
    words = [f"--num-cpus={cpus}", f"--node-ip-address={host}", agent, *small]
    return [ray, "start", "--block", *words]


def _begin(
    command: list[str], folder: str, more: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    with Path(folder, _LOG).open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | _OF_NODES | dict(more or {}),
        )


def _await(
    address: str,
    started: list["subprocess.Popen[bytes]"],
    nodes: int,
    more: Mapping[str, str] | None = None,
) -> None:
    """Wait until so many nodes are in the cluster."""
    code = (
        "import ray, sys;"
        "ray.init(address=sys.argv[1], log_to_driver=False, logging_level='ERROR');"
        "print(sum(node['Alive'] for node in ray.nodes()))"
    )
    deadline = time.monotonic() + _START_S
    said = ""
    while (left := deadline - time.monotonic()) > 0:
        ended = [process.returncode for process in started if process.poll() is not None]
        if ended:
            said = f"`ray start` ended with {ended}"
            break
        try:
            asked = subprocess.run(
                [sys.executable, "-c", code, address],
                capture_output=True,
                text=True,
                env=os.environ | dict(more or {}),
                check=False,
                timeout=left,
            )
        except subprocess.TimeoutExpired:
            said = "it does not answer"
            break
        if asked.stdout.strip() == str(nodes):
            return
        said = asked.stdout + asked.stderr[-2000:]
        time.sleep(0.5)
    raise ServerMissing(f"Ray did not start {nodes} nodes at {address}: {said}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()  # it ends its processes; a head whose processes are gone waits for them
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
