"""HDFS on this machine: Hadoop's MiniDFSCluster, with two data nodes and blocks of 1 MB.

Or its name node on this machine, and a data node on each machine of a network.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Timer
from typing import IO

from gristmill import _core
from gristmill.locations import open_read

from .network import Network
from .servers import ServerMissing

TOP = Path(__file__).parent.parent.parent

_HERE = Path(__file__).parent / "hdfs"
_POM = _HERE / "pom.xml"
_SOURCES = sorted(_HERE.glob("*.java"))
_CACHE = TOP / ".cache" / "hdfs"
_PREPARE_TIMEOUT_S = 540.0
_START_TIMEOUT_S = 120.0
_ANSWER_TIMEOUT_S = 60.0

#: Whoever starts the name node may do all; this is somebody else.
NOBODY = "nobody-in-particular"


@dataclass(frozen=True)
class Cluster:
    """A name node and two data nodes that run."""

    port: int
    folder: Path
    process: subprocess.Popen[str]
    kerberos: str
    """The file for `KRB5_CONFIG`, where it asks for tickets."""
    host: str = "127.0.0.1"

    def url(self, path: str) -> str:
        """The location of a file."""
        return f"hdfs://{self.host}:{self.port}/{path}"

    def tell(self, *words: str) -> list[str]:
        """Have the cluster do something, and wait until it is done; returns what it answered."""
        wanted, said = self.process.stdin, self.process.stdout
        assert wanted is not None
        assert said is not None
        wanted.write(" ".join(words) + "\n")
        wanted.flush()
        told = _line(self.process, said, _ANSWER_TIMEOUT_S)
        done, *answer = told.split() or [""]
        assert done == "ok", (words, told)
        return answer


def _line(process: subprocess.Popen[str], said: IO[str], limit_s: float) -> str:
    """Read a line; a server that says nothing is killed."""
    limit = Timer(limit_s, process.kill)
    limit.start()
    try:
        return said.readline().strip()
    finally:
        limit.cancel()


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise ServerMissing(f"{name} is not on the PATH (a JDK and Maven are needed)")
    return found


def class_path() -> str:
    """The jars, as Maven finds them; once for each list."""
    made = hashlib.sha256(_POM.read_bytes()).hexdigest()[:16]
    listed = _CACHE / f"{made}.txt"
    if listed.is_file():
        jars = listed.read_text(encoding="utf-8").strip()
        if all(Path(jar).is_file() for jar in jars.split(os.pathsep)):
            return jars
    listed.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=listed.parent) as scratch:
        new = Path(scratch) / "new.txt"
        command = [_program("mvn"), "-q", "-B", "-f", str(_POM), "dependency:build-classpath"]
        done = subprocess.run(
            [*command, f"-Dmdep.outputFile={new}"],
            capture_output=True,
            text=True,
            timeout=_PREPARE_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise ServerMissing(f"Maven could not prepare HDFS:\n{done.stdout[-2000:]}")
        new.rename(listed)
    return listed.read_text(encoding="utf-8").strip()


def _classes(jars: str) -> Path:
    """The cluster's program, compiled; once for each text of it."""
    texts = b"".join(source.read_bytes() for source in _SOURCES)
    made = hashlib.sha256(texts + jars.encode()).hexdigest()[:16]
    classes = _CACHE / f"classes-{made}"
    if not classes.is_dir():
        with tempfile.TemporaryDirectory(dir=_CACHE) as scratch:
            new = Path(scratch) / "new"
            command = [_program("javac"), "-nowarn", "-cp", jars, "-d", str(new)]
            sources = map(str, _SOURCES)
            done = subprocess.run([*command, *sources], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            with suppress(FileExistsError, OSError):  # another one was quicker
                new.rename(classes)
    return classes


@contextmanager
def serving(
    folder: Path, *more: str, for_tests: bool = True, program: str = "Hdfs"
) -> Generator[Cluster]:
    """Start a cluster whose files lie in a folder, and end it.

    One for tests starts quickly; any other has a compiler for what runs often.
    """
    told = folder.parent / "hdfs.log"
    with _running([program, str(folder), *more], folder, told, for_tests=for_tests) as process:
        assert process.stdout is not None
        said = _line(process, process.stdout, _START_TIMEOUT_S).split(" ", 2)
        if said[0] != "port":
            process.kill()
            process.wait()
            raise ServerMissing(f"HDFS does not start: {told.read_text()[-2000:]}")
        yield Cluster(int(said[1]), folder, process, "".join(said[2:]))


@contextmanager
def in_network(folder: Path, network: Network) -> Generator[Cluster]:
    """Start a name node on this machine, and a data node on each machine of a network."""
    names = folder / "names"
    names.mkdir()
    with ExitStack() as stack:
        cluster = stack.enter_context(serving(names, "alone"))
        cluster = replace(cluster, host=network.address)
        for number, machine in enumerate(network.machines):
            own = folder / f"data-{number}"
            own.mkdir()
            words = ["DataNodeApart", str(own), cluster.url(""), machine.host.address]
            log = folder / f"data-{number}.log"
            stack.enter_context(_running(words, own, log, before=machine.host.before))
        wanted = [str(len(network.machines))]
        deadline = time.monotonic() + _START_TIMEOUT_S
        while cluster.tell("data-nodes") != wanted:
            if time.monotonic() > deadline:
                raise ServerMissing("HDFS does not start: not all data nodes are there")
            time.sleep(0.1)
        yield cluster


@contextmanager
def _running(
    words: list[str],
    folder: Path,
    told: Path,
    *,
    for_tests: bool = True,
    before: tuple[str, ...] = (),
) -> Generator[subprocess.Popen[str]]:
    """Run a program that ends with its input, in a folder; what it says goes to a file."""
    quick = ("-Xmx768m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    jars = class_path()
    command = [
        *(*before, _program("java"), *(quick if for_tests else ()), "-Xshare:auto"),
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        *(f"-Djava.io.tmpdir={folder}", "-cp", f"{_classes(jars)}{os.pathsep}{jars}"),
        *words,
    ]
    with told.open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            encoding="utf-8",
            env={**os.environ, "HADOOP_USER_NAME": "super"},
        )
    try:
        yield process
    finally:
        assert process.stdin is not None
        with suppress(OSError):
            process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def settings(folder: Path, values: Mapping[str, object] | None = None) -> Path:
    """Write a `core-site.xml` for clients that do not wait long; return its folder."""
    given = {
        "dfs.client.failover.max.attempts": 2,
        "dfs.client.failover.sleep.base.millis": 20,
        "dfs.client.failover.sleep.max.millis": 100,
        "dfs.client.socket-timeout": 5000,
    }
    folder.mkdir(exist_ok=True)
    text = "".join(_property(name, value) for name, value in {**given, **(values or {})}.items())
    (folder / "core-site.xml").write_text(f"<configuration>{text}</configuration>\n")
    return folder


def _property(name: str, value: object) -> str:
    return f"<property><name>{name}</name><value>{value}</value></property>"


def files(location: str) -> dict[str, bytes]:
    """What is in HDFS at a location: of an output, its parts. This process asks."""
    return {path.rpartition("/")[2]: file(path) for path in _core.find_files(location)}


def file(location: str) -> bytes:
    """What is in a file in HDFS."""
    return open_read(location).read()


def is_there(location: str) -> bool:
    """Whether something is there; what is staged does not count, but by its own name."""
    return _core.exists(location)


def nothing_staged(*locations: str) -> bool:
    """Whether no staged file, and no folder for them, is there."""
    names = (".gristmill-staging", ".gristmill-staging-new")
    return not any(is_there(f"{location}/{name}") for location in locations for name in names)


def local(folder: Path) -> dict[str, bytes]:
    """The parts of an output on the disk."""
    return {part.name: part.read_bytes() for part in _parts(folder.iterdir())}


def _parts(paths: Iterable[Path]) -> Iterable[Path]:
    return (path for path in paths if path.name.startswith("part-"))
