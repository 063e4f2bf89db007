"""Locations: paths of this machine, and `scheme://...` in a store that the engine reads.

    data/a              a path
    objects:///tmp/o/a  an object, in an object store that is kept in a directory
    file:///data/a      a path

Formats open their inputs here, so that each reads every store. Paths stay as the user typed them:
`pathlib` would take one of the two slashes away.
"""

import io
import os
from pathlib import Path, PurePath
from typing import BinaryIO, cast

from gristmill import _core
from gristmill.names import StrPath, as_name

__all__ = ["absolute", "as_location", "in_home", "is_remote", "open_read", "size_of", "workplace"]


_SLASHES = {"file": "///"} | {
    scheme: "//" if kind["has_authority"] else "///"
    for kind in _core.store_kinds()
    for scheme in kind["schemes"]
}
"""What stands behind `scheme:`. `pathlib` takes one of two slashes away, and two of three."""


def as_location(path: StrPath) -> str:
    """Return a path, or a location, as text.

    Of `file:///a` this is the path; of `Path("s3://b/k")`, which has lost a slash, what was meant.

    Raises:
        TypeError: It is not a path.
        ValueError: No file can have this name.

    Example:
        >>> as_location("file:///a%20b"), as_location(Path("s3://b/k")), as_location("a")
        ('/a b', 's3://b/k', 'a')
    """
    name = as_name(path)
    if isinstance(path, PurePath):
        scheme, _, rest = name.partition(":/")
        if rest and rest[0] != "/" and scheme in _SLASHES:
            name = f"{scheme}:{_SLASHES[scheme]}{rest}"
    return _core.as_location(name) if "://" in name else name


def in_home(path: StrPath) -> str:
    """Return the same of a path that a program gives: of `~/a` that in the user's home.

    A command line needs it not: there the shell has done so, and a quoted `~` is a name.

    Example:
        >>> in_home("~/a") == str(Path.home() / "a"), in_home("a~")
        (True, 'a~')
    """
    name = as_location(path)
    return os.path.expanduser(name) if name.startswith("~") else name  # noqa: PTH111


def is_remote(path: str) -> bool:
    """Whether a location is not a path of this machine.

    Example:
        >>> is_remote("objects:///tmp/o/a"), is_remote("/tmp/a"), is_remote("a:b")
        (True, False, False)
    """
    return _core.is_remote(path)


def absolute(path: str) -> str:
    """Return a location that is the same in every folder; links stay as written.

    But of `link/../a`, where the link leads decides what `..` is, as in the system. Where there is
    no such directory, the two cancel out.

    Example:
        >>> absolute("objects:///tmp/o/a"), absolute("/none/../a")
        ('objects:///tmp/o/a', '/a')
    """
    if is_remote(path):
        return path
    before, up, after = f"{path}/".rpartition("/../")
    if not up:
        return os.path.abspath(path)  # noqa: PTH100 - links stay
    above = os.path.realpath(f"{before}/..")
    return os.path.abspath(Path(above, after.lstrip("/")))  # noqa: PTH100 - links behind it stay


def open_read(path: str) -> BinaryIO:
    """Open a file for reading.

    Raises:
        OSError: It cannot be opened.
    """
    if is_remote(path):
        return cast("BinaryIO", io.BufferedReader(_RemoteFile(path), _BUFFER_BYTES))
    return Path(path).open("rb")


def size_of(path: str) -> int:
    """Return the bytes of a file.

    Raises:
        OSError: It is not there.
    """
    return _core.RangeReader(path).size if is_remote(path) else Path(path).stat().st_size


def workplace(output: str, spill_dirs: list[str]) -> Path:
    """Return a local folder for what a job keeps beside its output while it runs.

    Example:
        >>> workplace("objects:///tmp/o/a", ["/var/tmp"])
        PosixPath('/var/tmp')
    """
    if is_remote(output):
        return Path(spill_dirs[0] if spill_dirs else _core.default_spill_dir(".")).absolute()
    return Path(output).absolute().parent


_BUFFER_BYTES = 1 << 20


class _RemoteFile(io.RawIOBase):
    """A file of a store, as Python reads files."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._file = _core.RangeReader(path)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        data = self._file.read_at(self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def readall(self) -> bytes:
        """Read what is left by one request: Python's own would ask for 8 kB at once."""
        data = self._file.read_at(self._at, self._file.size - self._at)
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._file.size}[whence]
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at
