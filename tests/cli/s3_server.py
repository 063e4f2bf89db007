"""A server that speaks as S3 does, on this machine: versitygw. Objects are files of its folder."""

import os
import secrets
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .servers import HERE, Host, compiled, started

#: Bookkeeping of the server's own: uploads, and files that are being written.
OWN = ".sgwtmp"


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
        folders = os.walk(self.folder / OWN / "multipart")  # of what goes meanwhile it says nothing
        return [Path(folder, name) for folder, _, files in folders for name in files]


@contextmanager
def serving(
    folder: Path,
    host: Host = HERE,
    *more: str,
    port: int | None = None,
    authority: Path | None = None,
) -> Generator[Server]:
    """Start a server, with more words of its command line, and end it.

    One that these give a certificate is known by the `authority` that has signed it.
    """
    key, secret = f"AK{secrets.token_hex(8).upper()}", secrets.token_hex(20)
    with again(folder, key, secret, host, *more, port=port, authority=authority) as (server, _):
        yield server


@contextmanager
def again(
    folder: Path,
    key: str,
    secret: str,
    host: Host = HERE,
    *more: str,
    port: int | None = None,
    authority: Path | None = None,
) -> Generator[tuple[Server, subprocess.Popen[bytes]]]:
    """Start a server whose credentials are known; it can be killed."""
    program = compiled("versitygw", "versitygw")

    def command(address: str, port: int) -> list[str | Path]:
        words = [program, "--quiet", "--keep-alive", *more, "--port", f"{address}:{port}"]
        return [*words, "posix", "--default-etag", "by-hand", folder]

    log, keys = folder.parent / "server.log", {"ROOT_ACCESS_KEY": key, "ROOT_SECRET_KEY": secret}
    with started(command, log, host, port, authority, **keys) as (endpoint, process):
        yield Server(folder, endpoint, key, secret), process
