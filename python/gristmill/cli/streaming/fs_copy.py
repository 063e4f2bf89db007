"""The commands of `gristmill hadoop fs` that copy and move: between this machine and stores.

-put -get -cp        a file is there when it is whole; of a directory, each of its files is
-mv                  another name in the same disk or store; nothing is replaced
-moveFromLocal       as -put; what was written is removed here
-getmerge            files one after the other, into one of this machine

They raise the errors of the system, as of `open`; fs_failures.py says them as Hadoop does.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from gristmill.cli.streaming.fs_failures import FsFailures
from gristmill.cli.streaming.stored import (
    Place,
    copied,
    expanded,
    is_proof,
    moved,
    place,
    real,
    removed,
    whole,
)
from gristmill.locations import open_read
from gristmill.streaming.inputs import local_path

__all__ = ["cp", "get", "getmerge", "move_from_local", "mv", "put"]

_STDIN = "-"


def put(options: list[str], paths: list[str], failures: FsFailures) -> None:
    """Write files of this machine, or standard input, to a store or a directory."""
    if paths[:-1] == [_STDIN]:
        _put_stdin(options, place(paths[-1]))
        return
    _copy(options, _given(paths), place(paths[-1]), failures)


def _put_stdin(options: list[str], to: Place) -> None:
    """Write what standard input has; the file is there when it is whole."""
    _check_target([_STDIN], to)
    if to.is_dir():
        raise IsADirectoryError(21, "Is a directory", str(to))
    if to.exists() and "-f" not in options:
        raise FileExistsError(17, "File exists", str(to))
    if isinstance(to, Path):
        with whole(to) as staged, staged.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        return
    with tempfile.NamedTemporaryFile(prefix="gristmill-put-") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.flush()
        copied(Path(file.name), to)


def _given(paths: list[str]) -> list[Place]:
    """The sources of -put: their names, in which no letter stands for others."""
    return [place(text) for text in paths[:-1]]


def _found(paths: list[str], failures: FsFailures) -> list[Place]:
    """The sources that there are, of those that are named."""
    return [path for _, path in failures.expanded(paths[:-1])]


def _copy(options: list[str], sources: list[Place], target: Place, failures: FsFailures) -> None:
    _check_target(sources, target)
    for source in sources:
        with failures.told(str(source)):
            _copy_one(options, source, target)


def _copy_one(options: list[str], source: Place, target: Place) -> None:
    to = _named(source, target)
    _check_apart(source, to)
    if to.exists() and "-f" not in options:
        raise FileExistsError(17, "File exists", str(to))
    if not source.exists():
        raise FileNotFoundError(2, "No such file or directory", str(source))
    if _same(source, to):
        raise OSError(22, "are identical", str(source), None, str(to))
    copied(source, to)


def _named(source: Place, target: Place) -> Place:
    """The name that a source gets: below a target that is a directory."""
    return target / source.name if target.is_dir() else target


def _check_apart(source: Place, to: Place) -> None:
    """A directory does not go into itself."""
    if source.is_dir() and _holds(source, to):
        raise OSError(22, "is a subdirectory of itself", str(source), None, str(to))


def _holds(folder: Place, path: Place) -> bool:
    """Whether a path lies below a directory, whatever both are called."""
    if isinstance(folder, Path) and isinstance(path, Path):
        return real(path).is_relative_to(real(folder)) and not _same(folder, path)
    return str(path).startswith(f"{folder}/")


def _same(source: Place, to: Place) -> bool:
    if isinstance(source, Path) and isinstance(to, Path):
        return to.exists() and to.samefile(source)
    return str(to) == str(source)


def get(options: list[str], paths: list[str], failures: FsFailures) -> None:
    """Copy files to this machine."""
    cp(options, paths, failures)


def cp(options: list[str], paths: list[str], failures: FsFailures) -> None:
    """Copy files, each to below the target if that is a directory."""
    target = place(paths[-1])
    _check_target(paths[:-1], target)
    _copy(options, _found(paths, failures), target, failures)


def mv(_: list[str], paths: list[str], failures: FsFailures) -> None:
    """Move files and directories; nothing is replaced."""
    target = place(paths[-1])
    _check_target(paths[:-1], target)
    sources = _found(paths, failures)
    _check_target(sources, target)
    for source in sources:
        with failures.told(str(source)):
            to = _named(source, target)
            if not (isinstance(source, Path) and source.is_symlink()):  # a link moves itself
                _check_apart(source, to)
            if to.exists():
                raise FileExistsError(17, "File exists", str(to))
            moved(source, to)


def _check_target(sources: Sequence[object], target: Place) -> None:
    """Several sources go into a directory only: into a file, the last one would be left."""
    if len(sources) > 1:
        _check_directory(target)
    elif isinstance(target, Path):
        _check_directory(target.parent)


def _check_directory(path: Place) -> None:
    if not path.is_dir():
        what = "Is not a directory" if path.exists() else "No such file or directory"
        raise OSError(20, what, str(path))


def move_from_local(options: list[str], paths: list[str], failures: FsFailures) -> None:
    """Write files as `put` does, and remove here what was written."""
    sources, target = _given(paths), place(paths[-1])
    _check_target(sources, target)
    for source in sources:
        with failures.told(str(source)):
            _copy_one(options, source, target)
            removed(source)


def getmerge(options: list[str], paths: list[str], _: FsFailures) -> None:
    """Write files one after the other to a file of this machine; of directories, those in them.

    The `_SUCCESS` of a directory is left out: it is empty in Hadoop, and holds the proof here. So
    is a proof that is named.
    """
    target = local_path(paths[-1], "fs -getmerge")
    _check_directory(target.parent)
    sources = list(_merged(paths[:-1]))  # before there is a file that may lie among them
    with whole(target) as staged, staged.open("wb") as to:
        for path in sources:
            if "-skip-empty-file" in options and path.stat().st_size == 0:
                continue
            with open_read(str(path)) as file:
                shutil.copyfileobj(file, to)
            if "-nl" in options:
                to.write(b"\n")


def _merged(paths: list[str]) -> Iterator[Place]:
    for path in expanded(paths):
        if path.is_dir():
            children = list[Place](path.iterdir())
            yield from sorted((one for one in children if _is_merged(one)), key=str)
        elif not is_proof(path):
            yield path


def _is_merged(path: Place) -> bool:
    """Whether it is a file, and neither a proof nor a checksum, which Hadoop hides in listings."""
    is_checksum = path.name.startswith(".") and path.name.endswith(".crc")
    return path.is_file() and path.name != "_SUCCESS" and not is_checksum
