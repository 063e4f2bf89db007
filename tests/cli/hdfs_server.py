"""HDFS on this machine: Hadoop's MiniDFSCluster, with two data nodes and blocks of 1 MB."""

import getpass
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import IO

TOP = Path(__file__).parent.parent.parent

_HERE = Path(__file__).parent / "hdfs"
_POM = _HERE / "pom.xml"
_SOURCE = _HERE / "Hdfs.java"
_CACHE = TOP / ".cache" / "hdfs"
_PREPARE_TIMEOUT_S = 540.0
_START_TIMEOUT_S = 120.0
_ANSWER_TIMEOUT_S = 60.0

#: Whoever starts the name node may do all; this is somebody else.
NOBODY = "nobody-in-particular"


class HdfsMissing(Exception):
    """There is no HDFS to start, and why."""


@dataclass(frozen=True)
class Cluster:
    """A name node and two data nodes that run."""

    port: int
    folder: Path
    process: subprocess.Popen[str]

    def url(self, path: str) -> str:
        """The location of a file."""
        return f"hdfs://127.0.0.1:{self.port}/{path}"

    def tell(self, *words: str) -> None:
        """Have the cluster do something, and wait until it is done."""
        wanted, said = self.process.stdin, self.process.stdout
        assert wanted is not None
        assert said is not None
        wanted.write(" ".join(words) + "\n")
        wanted.flush()
        assert _line(self.process, said, _ANSWER_TIMEOUT_S) == "ok", words


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
        raise HdfsMissing(f"{name} is not on the PATH (a JDK and Maven are needed)")
    return found


def _class_path() -> str:
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
            raise HdfsMissing(f"Maven could not prepare HDFS:\n{done.stdout[-2000:]}")
        new.rename(listed)
    return listed.read_text(encoding="utf-8").strip()


@contextmanager
def serving(folder: Path) -> Generator[Cluster]:
    """Start a cluster whose files lie in a folder, and end it."""
    command = [
        *(_program("java"), "-Xmx768m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        *(f"-Djava.io.tmpdir={folder}", "-cp", _class_path(), str(_SOURCE), str(folder)),
    ]
    told = folder.parent / "hdfs.log"
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
        assert process.stdout is not None
        name, _, port = _line(process, process.stdout, _START_TIMEOUT_S).partition(" ")
        if name != "port":
            process.kill()
            process.wait()
            raise HdfsMissing(f"HDFS does not start: {told.read_text()[-2000:]}")
        yield Cluster(int(port), folder, process)
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


def settings(folder: Path, **values: object) -> Path:
    """Write a `core-site.xml` for clients that do not wait long; return its folder."""
    given = {"dfs.client.failover.max.attempts": 2, "dfs.client.socket-timeout": 5000}
    named = {name.replace("__", "-").replace("_", "."): value for name, value in values.items()}
    folder.mkdir(exist_ok=True)
    text = "".join(_property(name, value) for name, value in {**given, **named}.items())
    (folder / "core-site.xml").write_text(f"<configuration>{text}</configuration>\n")
    return folder


def _property(name: str, value: object) -> str:
    return f"<property><name>{name}</name><value>{value}</value></property>"


def user() -> str:
    """Who asks where nobody is named."""
    return getpass.getuser()


def local(folder: Path) -> dict[str, bytes]:
    """The parts of an output on the disk."""
    return {part.name: part.read_bytes() for part in _parts(folder.iterdir())}


def _parts(paths: Iterable[Path]) -> Iterable[Path]:
    return (path for path in paths if path.name.startswith("part-"))
