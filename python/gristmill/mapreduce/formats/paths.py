"""Which files a job reads: names, patterns and directories become a list of files, in order.

    "books/**/*.txt*"   a pattern: what it matches, in the order of the names; `**` is any depth.
                        Of a directory it takes what the next line says; `*` and `**`, too
    "books"             a directory: the files in it, but those of a job's named outputs, which the
                        job's `_SUCCESS` lists. Directories in it are an error: `books/**` names
                        all files below
    "books/emma.txt"    a file, whatever its name
    "s3://b/2026-*"     a pattern in a store, by the engine's rules, which know `{a,b}`, too

Names that begin with `_` or `.` are passed over in directories and patterns, as Hadoop does: that
is where jobs keep what is no data. What matches nothing is an error, since it is a mistake nearly
always; the error names it.
"""

import glob
import os
import re
import stat
from collections.abc import Container, Iterable
from functools import cache
from pathlib import Path
from typing import Any, cast

from gristmill import _core
from gristmill.links import why_missing
from gristmill.locations import in_home, is_remote
from gristmill.names import StrPath, from_json, show_path

__all__ = [
    "StrPath",
    "as_paths",
    "descriptor_of",
    "find_files",
    "is_stream",
    "named_places",
    "set_aside",
]


_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,9})")


def as_paths(given: Any, name: str = "the path") -> tuple[str, ...]:  # noqa: ANN401 - checked here
    """Return one path, or several, as a tuple of texts; `name` is what they were given as.

    Raises:
        TypeError: They are not paths.
        ValueError: No file can have one of these names, or one is empty.

    Example:
        >>> as_paths("a"), as_paths(["a", Path("b")])
        (('a',), ('a', 'b'))
    """
    texts: list[str] = []
    shown = repr(given)
    try:
        if isinstance(given, (str, bytes, os.PathLike)):
            texts = [in_home(cast("StrPath", given))]
        else:
            texts = [in_home(path) for path in given]
    except TypeError:
        raise TypeError(_no_path(name, shown)) from None
    if "" in texts:
        raise ValueError(_no_path(name, shown))
    return tuple(texts)


def _no_path(name: str, shown: str) -> str:
    advice = "give a path as text or pathlib.Path, or a list of them"
    return f"cannot make the job: {name} is {shown}. What to do: {advice}."


def descriptor_of(path: str) -> int | None:
    """Return the number of the open file of this process that a path stands for.

    Example:
        >>> descriptor_of("-"), descriptor_of("/dev/fd/63"), descriptor_of("a.txt")
        (0, 63, None)
    """
    if path in ("-", "/dev/stdin"):
        return 0
    found = _DESCRIPTOR.fullmatch(path)
    return None if found is None else int(found[1])


def is_stream(path: str) -> bool:
    """Whether a path is no file, but what can only be read once, such as `-`, a FIFO, a terminal.

    Example:
        >>> is_stream("-"), is_stream("/dev/fd/63"), is_stream("a.txt")
        (True, True, False)
    """
    if descriptor_of(path) is not None:
        return True
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def find_files(paths: Iterable[str], *, far: bool = True) -> list[str]:
    """Return the files that `paths` stand for; those of each path in the order of their names.

    Args:
        paths: Files, directories, patterns; locations.
        far: Whether stores are asked what locations stand for, which stay as they are otherwise.

    Raises:
        FileNotFoundError: A path does not exist, or a pattern or directory holds no file.
        ValueError: There are no paths, or a directory holds another one.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("b.txt", "a.txt", "_logs", ".hidden"):
        ...         _ = Path(folder, name).write_text("")
        ...     [Path(file).name for file in find_files([folder])]
        ['a.txt', 'b.txt']
    """
    found: list[str] = []
    for path in paths:
        if is_remote(path):
            found.extend(_core.find_files(path) if far else [path])
            continue
        files = _pattern(path) if _is_pattern(path) else _plain(path)
        found.extend(files)
    if not found:
        raise ValueError("cannot plan the job: it has no input. What to do: name a file.")
    return found


def named_places(paths: Iterable[str]) -> list[str]:
    """Return what paths name: a pattern of this machine names what it matches."""
    return [
        place
        for path in paths
        for place in (
            glob.glob(path, recursive=True)  # noqa: PTH207 - Path's takes no absolute ones
            if not is_remote(path) and _is_pattern(path)
            else [path]
        )
    ]


def _is_pattern(path: str) -> bool:
    """Whether `path` has signs of a pattern; a file of just this name is meant literally."""
    return not Path(path).exists() and glob.has_magic(path)


def _plain(path: str) -> list[str]:
    where = Path(path)
    if where.is_dir():
        return _directory(where)
    if not where.exists():
        raise FileNotFoundError(
            f"cannot plan the job: {show_path(path)} {why_missing(path)}."
            " What to do: check the name."
        )
    return [path]


def _directory(folder: Path) -> list[str]:
    named = _named_outputs(folder)
    files = sorted(file for file in _files_in(folder) if Path(file).name not in named)
    if not files:
        raise FileNotFoundError(
            f"cannot plan the job: the directory {show_path(folder)} holds no files"
            " (names that begin with _ or . do not count). What to do: name the files."
        )
    return files


def _named_outputs(folder: Path) -> set[str]:
    """The files of a job's named outputs, which its `_SUCCESS` lists beside its parts.

    That of others lists none. Where there are no parts, its records say how all files are called.
    """
    success = folder / "_SUCCESS"
    if not success.is_file():
        return set()
    text = success.read_bytes()
    try:
        found = from_json(text)
        names = [part["name"] for part in found["parts"] if found["gristmill"]]
    except (ValueError, LookupError, TypeError):  # of Hadoop, of Spark
        return set()
    named = {name for name in names if not name.startswith("part-")}
    return named if len(named) < len(names) else set()


def _files_in(folder: Path, named: Container[str] = ()) -> list[str]:
    """The files in a directory, but hidden ones; `named` are the directories that may be in it."""
    files: list[str] = []
    for entry in folder.iterdir():
        if _is_hidden(entry.name):
            continue
        if entry.is_file():
            files.append(str(entry))
        elif entry.is_dir() and str(entry) not in named:
            raise ValueError(
                f"cannot plan the job: {show_path(entry)} is a directory inside an input directory."
                f" What to do: give {show_path(folder / '**')} to read all files below, or"
                f" {show_path(folder / '*.*')} for some, or name it with _ in front."
            )
    return files


def _pattern(pattern: str) -> list[str]:
    matches = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - Path's takes no absolute ones
    files: list[str] = []
    names_none = Path(pattern).name in ("*", "**")
    named = cache(_named_outputs)
    for match in matches:
        where = Path(match)
        if _passed_over(match, pattern):
            continue
        if where.is_dir():
            if not pattern.rstrip("/").endswith("**"):  # else its files match themselves
                found = sorted(_files_in(where, matches))
                files.extend(file for file in found if Path(file).name not in named(where))
        elif not is_stream(match) and not (names_none and where.name in named(where.parent)):
            files.append(match)
    files = list(dict.fromkeys(files))  # `**/*` matches a directory and what is in it
    if not files:
        raise FileNotFoundError(
            f"cannot plan the job: the pattern {show_path(pattern)} matches no file."
            " What to do: check it (** stands for directories of any depth; names that begin with"
            " _ or . are skipped, unless you name the file)."
        )
    return files


def _passed_over(match: str, pattern: str) -> bool:
    """Whether a part of `match` is hidden which the pattern does not name itself."""
    literal = set(Path(pattern).parts)
    return any(_is_hidden(part) and part not in literal for part in Path(match).parts)


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", ".")) and name not in (".", "..")


def set_aside(path: str, number: int) -> str:
    """Give a file that is written again a name beside the new one; returns that name."""
    aside = Path(path).with_name(f"aside-{number}-{Path(path).name}")
    Path(path).rename(aside)
    return str(aside)
