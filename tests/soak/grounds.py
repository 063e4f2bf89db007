"""Where outputs of a campaign go: a folder, a bucket of S3, a directory of HDFS."""

import hashlib
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from unittest.mock import patch

from tests.cli import hdfs_server, s3_server

from gristmill import _core

from .injuries import left_of

AS_ANYBODY = {"HADOOP_USER_NAME": "anybody"}
"""Whose all files in HDFS are."""


class Ground(Protocol):
    """A place in which all users make outputs."""

    @property
    def environment(self) -> dict[str, str]:
        """What programs have in their environment that write there."""
        ...

    @property
    def shared(self) -> list[Path]:
        """Where the system asks who may read files of jobs: not on the mount, nor in stores."""
        ...

    def location(self, name: str) -> str:
        """The output of this name, as a command has it."""
        ...

    def found(self, name: str) -> str:
        """A sum of all bytes of an output, but for its proof, which names the job."""
        ...

    def remove(self, name: str) -> None:
        """Remove an output."""
        ...

    def left(self, uid: int) -> list[object]:
        """What is there of a user's jobs that is no output."""
        ...


@dataclass(frozen=True)
class Folder:
    """A folder, on a disk or a mount."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])
    shared: list[Path] = field(default_factory=list[Path])

    def location(self, name: str) -> str:
        return str(self.folder / name)

    def found(self, name: str) -> str:
        out = self.folder / name
        files = [out] if out.is_file() else sorted(out.glob("[!_.]*"))
        return _sum([file.read_bytes() for file in files])

    def remove(self, name: str) -> None:
        out = self.folder / name
        shutil.rmtree(out, ignore_errors=True)
        with suppress(FileNotFoundError):
            out.unlink()

    def left(self, uid: int) -> list[object]:
        return [*left_of(uid, self.folder)]


class Bucket(Folder):
    """A bucket, which is a folder of the server's."""

    def location(self, name: str) -> str:
        return f"s3://{self.folder.name}/{name}"

    def left(self, uid: int) -> list[object]:
        uploads = s3_server.Bucket(self.folder.name, self.folder).uploads()
        return [*uploads, *super().left(uid)]


@contextmanager
def bucket_in(folder: Path) -> Generator[Bucket]:
    """Start a server of S3 with a bucket."""
    bucket = folder / "bucket"
    bucket.mkdir(parents=True)
    with s3_server.serving(folder) as server:
        yield Bucket(bucket, server.environment)


@dataclass(frozen=True)
class Hdfs:
    """A directory of HDFS."""

    url: str
    environment: dict[str, str] = field(default_factory=lambda: AS_ANYBODY)
    shared: list[Path] = field(default_factory=list[Path])

    def location(self, name: str) -> str:
        return f"{self.url}/{name}"

    def found(self, name: str) -> str:
        files = sorted(hdfs_server.files(self.location(name)).items())
        return _sum([data for part, data in files if part[:1] not in "_."])

    def remove(self, name: str) -> None:
        _core.remove_whole(self.location(name))

    def left(self, uid: int) -> list[object]:
        del uid
        return [] if hdfs_server.nothing_staged(self.url) else ["staged files"]


@contextmanager
def directory_of_hdfs(folder: Path) -> Generator[Hdfs]:
    """Start HDFS with a directory for all."""
    data = folder / "data"
    data.mkdir(parents=True)
    # This process, too: it removes what jobs made.
    with hdfs_server.serving(data) as cluster, patch.dict(os.environ, AS_ANYBODY):
        url = cluster.url("faults")
        _core.make_directory(url)
        yield Hdfs(url)


def _sum(files: list[bytes]) -> str:
    return "\n".join(f"{len(data)} {hashlib.sha256(data).hexdigest()}" for data in files)
