"""A server that speaks as S3 does, on this machine: versitygw. Objects are files of its folder."""

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

TOP = Path(__file__).parent.parent.parent

#: Bookkeeping of the server's own: uploads, and files that are being written.
OWN = ".sgwtmp"


class ServerMissing(Exception):
    """There is no server to start, and what to do about it."""


@dataclass(frozen=True)
class Server:
    """A server that runs."""

    folder: Path
    endpoint: str
    key: str
    secret: str = field(repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """What a program that is to use the server has in its environment."""
        return {
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "us-east-1",
            "NO_PROXY": "127.0.0.1",
        }


@dataclass(frozen=True)
class Bucket:
    """A bucket, and the folder that it is."""

    name: str
    folder: Path

    def url(self, key: str) -> str:
        """The location of an object."""
        return f"s3://{self.name}/{key}"

    def objects(self, key: str) -> dict[str, bytes]:
        """The objects below a key, but for the proof; or the one of this name."""
        path = self.folder / key
        if path.is_file():
            return {"": path.read_bytes()}
        return {part.name: part.read_bytes() for part in path.iterdir() if part.name != "_SUCCESS"}

    def files(self) -> list[str]:
        """All objects."""
        found = (path for path in self.folder.rglob("*") if path.is_file())
        names = (str(path.relative_to(self.folder)) for path in found)
        return sorted(name for name in names if not name.startswith(OWN))

    def uploads(self) -> list[Path]:
        """What is there of uploads that are neither completed nor ended."""
        return [path for path in self.folder.glob(f"{OWN}/multipart/**/*") if path.is_file()]


def program() -> Path:
    """The server's program: of the PATH, or as `make s3-server` compiles it."""
    found = shutil.which("versitygw")
    if found is not None:
        return Path(found)
    tools = TOP / os.environ.get("TOOLS", ".tools")
    made = sorted(tools.glob("versitygw-*/bin/versitygw"))
    if not made:
        raise ServerMissing("no versitygw: install Go, then run `make s3-server`")
    return made[-1]


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


@dataclass(frozen=True)
class Host:
    """Where a server runs: its address, and the words before a command that is to run there."""

    address: str = "127.0.0.1"
    before: tuple[str, ...] = ()


def _answers(endpoint: str) -> bool:
    try:
        build_opener(ProxyHandler({})).open(endpoint, timeout=5).close()
    except HTTPError:
        return True  # it refuses whoever signs nothing
    except OSError:
        return False
    return True


@contextmanager
def serving(folder: Path, host: Host = Host()) -> Generator[Server]:
    """Start a server on a port that is free, and end it."""
    command = [*host.before, str(program()), "--quiet", "--keep-alive"]
    key, secret = f"AK{secrets.token_hex(8).upper()}", secrets.token_hex(20)
    environment = {**os.environ, "ROOT_ACCESS_KEY": key, "ROOT_SECRET_KEY": secret}
    told = folder.parent / "server.log"
    for _ in range(5):  # somebody else may take the port before the server does
        address = f"{host.address}:{_free_port()}"
        with told.open("w") as log:
            process = subprocess.Popen(
                [*command, "--port", address, "posix", "--default-etag", "by-hand", str(folder)],
                env=environment,
                stdout=log,
                stderr=log,
            )
        try:
            endpoint, deadline_s = f"http://{address}", time.monotonic() + 30
            while process.poll() is None and time.monotonic() < deadline_s:
                if _answers(endpoint):
                    yield Server(folder, endpoint, key, secret)
                    return
                time.sleep(0.02)
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()
    raise ServerMissing(f"versitygw does not start: {told.read_text()}")
