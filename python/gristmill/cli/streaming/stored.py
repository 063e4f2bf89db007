"""Files of stores for `gristmill hadoop fs`: what its commands ask of a `Path`, asked of a store.

In an object store a directory is the beginning of names: it is there while something is in it, and
none is made.
"""

import os
import re
import shutil
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

from gristmill import _core
from gristmill.locations import open_read
from gristmill.streaming.inputs import InputMissingError, local_path, matching, stored

__all__ = [
    "Place",
    "StoreStat",
    "Stored",
    "below",
    "copied",
    "expanded",
    "is_proof",
    "matches",
    "moved",
    "place",
    "printed",
    "real",
    "removed",
    "whole",
]


class StoreStat(NamedTuple):
    """What a store says of an object."""

    st_size: int
    st_mtime: float


class Stored:
    """A location in a store, and what a listing said of it."""

    def __init__(self, text: str, listed: tuple[bool, int, float, str] | None = None) -> None:
        self._text = text.rstrip("/")
        self._says_directory = text.endswith("/")
        self._listed = listed

    def __str__(self) -> str:
        return self._text

    def __truediv__(self, name: str) -> "Stored":
        return Stored(f"{self._text}/{name}")

    def __lt__(self, other: "Stored") -> bool:
        return str(self) < str(other)

    @property
    def name(self) -> str:
        """The last part of the location."""
        return self._text.rpartition("/")[2]

    def _found(self) -> tuple[bool, int, float, str] | None:
        return self._listed or _core.stat(self._text)

    def exists(self) -> bool:
        """Whether something is there."""
        return self._found() is not None

    def is_dir(self) -> bool:
        """Whether names begin so; a location that ends with a slash says that they will."""
        found = self._found()
        return self._says_directory if found is None else found[0]

    def is_file(self) -> bool:
        """Whether it is an object."""
        found = self._found()
        return found is not None and not found[0]

    def stat(self) -> StoreStat:
        """Its bytes, and when it was written.

        Raises:
            FileNotFoundError: Nothing is there.
        """
        found = self._found()
        if found is None:
            raise FileNotFoundError(2, "No such file or directory", self._text)
        return StoreStat(found[1], found[2])

    def iterdir(self) -> Iterator["Stored"]:
        """Yield what lies right below it, as it is found."""
        return (Stored(name, found) for name, found in _core.Listing(self._text))

    def rglob(self, _every: str) -> Iterator["Stored"]:
        """Yield what lies below it at any depth."""
        for child in self.iterdir():
            yield child
            if child.is_dir():
                yield from child.rglob("*")

    def mkdir(self, *, parents: bool, exist_ok: bool) -> None:
        """Make a directory in HDFS; in an object store it is there with the first object in it.

        Raises:
            FileExistsError: Something is there.
        """
        del parents
        if not exist_ok and self.exists():
            raise FileExistsError(17, "File exists", self._text)
        _core.make_directory(self._text)

    def unlink(self) -> None:
        """Remove an object.

        Raises:
            IsADirectoryError: It is a directory.
        """
        if self.is_dir():
            raise IsADirectoryError(21, "Is a directory", self._text)
        _core.remove_object(self._text)

    def remove_whole(self) -> None:
        """Remove it with all that is in it."""
        _core.remove_whole(self._text)

    def touch(self) -> None:
        """Write an object without bytes, if nothing is there."""
        if not self.exists():
            _core.put_file(os.devnull, self._text)


Place = Path | Stored


def place(text: str) -> Place:
    """Return what `fs` is asked to work with.

    Raises:
        WrongCommandError: There is no store for it.
    """
    found = stored(text)
    if found is None:
        return local_path(text, "fs")
    return Stored(f"{found}/" if text.endswith("/") else found)


def matches(text: str) -> list[Place]:
    """Return what a path, or a glob, leads to."""
    found = stored(text)
    if found is not None:
        return [Stored(name, known) for name, known in _core.matching(found)]
    return list(matching(local_path(text, "fs")))


def expanded(paths: list[str]) -> list[Place]:
    """Return what paths and globs lead to.

    Raises:
        InputMissingError: One of them leads to nothing.
    """
    found = list[Place]()
    for text in paths:
        there = matches(text)
        if not there:
            raise InputMissingError(2, "No such file or directory", text)
        found += there
    return found


def below(
    folder: Path,
    *,
    deep: bool,
    told: Callable[[str], AbstractContextManager[None]] = nullcontext,
) -> Iterator[Path]:
    """Yield what lies right below a directory, or at any depth; links are not followed.

    What vanishes meanwhile is passed over, as Hadoop does. What of `told` takes the error of a
    directory that cannot be listed goes on behind it.
    """
    folders = [folder]  # not by recursion: a tree may be deeper than Python's calls
    while folders:
        listed = folders.pop()
        with told(str(listed)), suppress(FileNotFoundError):
            for child in listed.iterdir():
                yield child
                if deep and child.is_dir() and not child.is_symlink():
                    folders.append(child)


_PROOF = re.compile(rb'\{\s*"format":\s*\d+,\s*"gristmill":')
"""How docs/internals/success.md begins."""

_PROOF_BEGINS_BYTES = 64


def is_proof(path: Place) -> bool:
    """Whether a file is what Gristmill keeps in an output's `_SUCCESS`: empty in Hadoop."""
    if path.name != "_SUCCESS" or not path.is_file():
        return False
    with open_read(str(path)) as file:
        return _PROOF.match(file.read(_PROOF_BEGINS_BYTES)) is not None


def printed(source: Place) -> None:
    """Write the bytes of a file to stdout."""
    if source.is_dir():
        raise IsADirectoryError(21, "Is a directory", str(source))
    with open_read(str(source)) as file:
        shutil.copyfileobj(file, sys.stdout.buffer)


def copied(source: Place, target: Place, above: tuple[Path, ...] = ()) -> None:
    """Copy a file, or a directory with all in it; a file is there when it is whole.

    Args:
        source: What is copied; links in it are followed.
        target: The name of the copy.
        above: The directories on the way to it: one that is found again is a loop of links.

    Raises:
        OSError: One of them cannot be read or written.
    """
    if source.is_dir():
        if isinstance(source, Path):
            here = real(source)
            if here in above or (isinstance(target, Path) and here in real(target).parents):
                what = "A link leads to a directory that it or its copy lies in"
                raise OSError(40, what, str(source))
            above = (*above, here)
        target.mkdir(parents=False, exist_ok=True)
        for child in list(source.iterdir()) if isinstance(source, Path) else source.iterdir():
            copied(child, target / child.name, above)
    elif isinstance(target, Path):
        with whole(target) as staged:
            with open_read(str(source)) as file, staged.open("wb") as to:
                shutil.copyfileobj(file, to)
            if staged != target and staged.stat().st_size != source.stat().st_size:
                raise OSError(5, "It was changed while it was copied", str(source))
    else:
        _core.put_file(str(source), str(target))


def real(path: Path) -> Path:
    """Return a path without links; of links that lead to each other, what can be said."""
    return Path(os.path.realpath(path))


def _is_stream(target: Path) -> bool:
    """Whether a name is one of a device, a pipe, or an open file, as `/dev/stdout` is."""
    if target.exists() and not target.is_file() and not target.is_dir():
        return True
    folder = real(target.parent)
    return target.is_symlink() and (folder == Path("/dev") or folder.is_relative_to("/proc"))


@contextmanager
def whole(target: Path) -> Generator[Path]:
    """A path to write to, by Hadoop's name for it, that becomes `target` when all is well.

    A device or a pipe is written to itself: a file in its place would be the end of it.

    Raises:
        OSError: It cannot be written; the error names `target`.
    """
    if _is_stream(target):
        yield target
        return
    staged = target.with_name(f"{target.name}._COPYING_")
    try:
        yield staged
        staged.replace(target)
    except OSError as error:
        if error.filename == str(staged):
            error.filename, error.filename2 = str(target), None
        raise
    finally:
        with suppress(OSError):  # it became `target`, or could not be made
            staged.unlink()


def moved(source: Place, target: Place) -> None:
    """Give a file or a directory another name in its file system.

    Where that is done by copying, `target` is whole or not there.

    Raises:
        OSError: They are in two file systems, or one of them cannot be read or written.
    """
    if _file_system(source) != _file_system(target):
        raise OSError(18, "Does not match target filesystem", str(source))
    if isinstance(source, Path):
        shutil.move(source, str(target))
    elif not _core.rename(str(source), str(target)):
        try:
            copied(source, target)
        except BaseException:
            _core.remove_whole(str(target))
            raise
        source.remove_whole()


def removed(path: Place) -> None:
    """Remove a file, or a directory with all in it; not the one in which the command runs."""
    if not path.is_dir() or (isinstance(path, Path) and path.is_symlink()):
        path.unlink()
    elif isinstance(path, Path):
        if Path.cwd().is_relative_to(path.resolve()):
            raise OSError(22, "It holds the current directory", str(path))
        shutil.rmtree(path)
    else:
        path.remove_whole()


def _file_system(place: Place) -> str:
    """What two places have in common between which a rename is possible."""
    return "" if isinstance(place, Path) else "/".join(str(place).split("/", 3)[:3])
