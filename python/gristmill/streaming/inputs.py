r"""Which files `-input` names: paths, locations in stores, directories, Hadoop's globs.

*  ?  [a-c]  [^a]  {one,two}  \x       within one part of a path
"""

import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from gristmill import _core
from gristmill.locations import is_remote
from gristmill.streaming.parse import WrongCommandError, split_commas
from gristmill.streaming.unnamed_hdfs import localized

__all__ = [
    "InputMissingError",
    "Listed",
    "expand",
    "local_path",
    "location",
    "look",
    "matching",
    "stored",
]


#: What is known of a file in a store: its bytes, and its version.
Listed = tuple[int, str]

#: As `_core.stat` says it.
_Known = tuple[bool, int, float, str]


class InputMissingError(FileNotFoundError):
    """An input that is not there; Hadoop's exit code for it is 5."""


def local_path(text: str, option: str) -> Path:
    """Return the path of a file, given as such or as a `file:` URI.

    What follows the scheme is the path, `?` and `#` included, as Hadoop takes it: the one is a
    glob's. Escapes such as `%20`, which other programs write, are decoded unless there is a file
    whose name has them.

    Raises:
        WrongCommandError: It names another file system.

    Example:
        >>> str(local_path("file:///data/a%20b", "-input")), str(local_path("data", "-input"))
        ('/data/a b', 'data')
        >>> str(local_path("file:///data/part-0000?", "-input"))
        '/data/part-0000?'
    """
    text = localized(text)
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)(//[^/]*)?", text)
    if found is None:
        return Path(text)
    if found[1].lower() != "file":
        if is_remote(text) and _core.has_store(text):
            raise WrongCommandError(
                f"{option} {text}: this must be a local path: copy the file here first, with"
                " gristmill hadoop fs -get"
            )
        raise WrongCommandError(
            f"{option} {text}: there is no {found[1]} file system here, only local files"
        )
    path = text[found.end() :]
    return Path(path if os.path.lexists(path) else unquote(path))


def location(text: str, option: str) -> str:
    """Return a location in a store, or the path of a file from the root on.

    Raises:
        WrongCommandError: It names another file system.

    Example:
        >>> location("s3://bucket/a", "-input"), location("file:/data/a", "-input")
        ('s3://bucket/a', '/data/a')
    """
    return stored(text) or str(local_path(text, option).absolute())


def stored(text: str) -> str | None:
    """Return a location, if there is a store for it that is not this machine's disk.

    Example:
        >>> stored("s3a://bucket/a"), stored("file:///a"), stored("gopher://a")
        ('s3://bucket/a', None, None)
    """
    spelled = _core.as_location(localized(text))
    return spelled if is_remote(spelled) and _core.has_store(spelled) else None


def expand(specs: list[str], *, recursive: bool = False, ignore_folders: bool = False) -> list[str]:
    """Return the files that some `-input` values name, each value's in order of their names.

    Raises:
        InputMissingError: A path or a glob leads to nothing.
        WrongCommandError: A directory holds directories, and neither property says what to do.
    """
    found = look(specs, recursive=recursive, ignore_folders=ignore_folders)
    return [name for name, _ in found]


def look(
    specs: list[str], *, recursive: bool = False, ignore_folders: bool = False
) -> list[tuple[str, Listed | None]]:
    """Return the same with what their store said of them on the way.

    Raises:
        InputMissingError: A path or a glob leads to nothing.
        WrongCommandError: A directory holds directories, and neither property says what to do.
    """
    files = list[tuple[str, Listed | None]]()
    for spec in specs:
        parts = split_commas(spec)
        if not parts:
            raise WrongCommandError(f"-input `{spec}` names nothing")
        for part in parts:
            name = location(part, "-input")
            if is_remote(name):
                there, of_place = _core.matching(name), _stored
            else:
                there = [(str(path), None) for path in matching(local_path(part, "-input"))]
                of_place = _files
            found = [(path, known) for path, known in there if not _is_hidden(path)]
            if not found:
                what = (
                    "Input Pattern matches 0 files"
                    if _is_glob(part)
                    else "Input path does not exist"
                )
                if there:
                    what += " (names that begin with _ or . are passed over, as in Hadoop)"
                raise InputMissingError(2, what, part)
            for path, known in found:
                files += of_place(path, known, recursive=recursive, ignore_folders=ignore_folders)
    return files


def _stored(
    name: str, known: _Known | None, *, recursive: bool, ignore_folders: bool
) -> Iterator[tuple[str, Listed | None]]:
    """The files of a location in a store: itself, or what lies in it."""
    known = known or _core.stat(name)
    if known is None or not known[0]:
        yield name, known and (known[1], known[3])
        return
    children: dict[str, _Known | None] = {}
    for child, found in _core.Listing(name):
        if not _is_hidden(child):
            children.setdefault(child, found)
    for child in sorted(children):
        found = children[child] or _core.stat(child)
        if found is None or not found[0]:
            yield child, found and (found[1], found[3])
        elif recursive:
            yield from _stored(child, found, recursive=True, ignore_folders=False)
        elif not ignore_folders:
            raise _holds_folder(name, Path(child).name)


def _holds_folder(path: str, child: str) -> WrongCommandError:
    return WrongCommandError(
        f"-input {path} holds a directory, {child}: set"
        " mapreduce.input.fileinputformat.input.dir.recursive=true to read it, or"
        " mapreduce.input.fileinputformat.input.dir.nonrecursive.ignore.subdirs=true not "
        "to"
    )


def _files(
    name: str, _known: _Known | None, *, recursive: bool, ignore_folders: bool
) -> Iterator[tuple[str, None]]:
    path = Path(name)
    if not path.is_dir():
        if not path.is_file() and path.exists() and not path.samefile(os.devnull):
            raise WrongCommandError(
                f"-input {path} is not a regular file, and cannot be cut into splits: write its"
                " data to a file first"
            )
        yield str(path.absolute()), None
        return
    for child in sorted(path.iterdir(), key=os.fsencode):
        if child.name.startswith(("_", ".")):
            continue
        if not child.is_dir():
            yield str(child.absolute()), None
        elif recursive:
            yield from _files(str(child), None, recursive=True, ignore_folders=False)
        elif not ignore_folders:
            raise _holds_folder(name, child.name)


def _is_hidden(path: str) -> bool:
    whole = os.path.abspath(path)  # noqa: PTH100 - it takes `..` away, as Hadoop does
    return Path(whole).name.startswith(("_", "."))


def _is_glob(text: str) -> bool:
    return re.search(r"[*?\[{\\]", text) is not None


def matching(pattern: Path) -> Iterator[Path]:
    """Yield what a path, or a glob, leads to, in order of the names."""
    if not _is_glob(str(pattern)):
        if pattern.exists():
            yield pattern
        return
    found = list[Path]()
    for alternative in _braces(str(pattern)):
        parts = Path(alternative).parts
        start, rest = (
            (Path(parts[0]), parts[1:]) if alternative.startswith("/") else (Path(), parts)
        )
        found += _walk(start, rest)
    yield from sorted(found, key=os.fsencode)


def _walk(folder: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    if not parts:
        yield folder
        return
    first, rest = parts[0], parts[1:]
    if not _is_glob(first):
        path = folder / first
        if path.exists():
            yield from _walk(path, rest)
        return
    regex = _compiled(first)
    if folder.is_dir():
        for child in folder.iterdir():
            # FileInputFormat's filter goes for what globs lead to, not for what lies on the way.
            hidden = not rest and child.name.startswith(("_", "."))
            if regex.fullmatch(child.name) and not hidden and (not rest or child.is_dir()):
                yield from _walk(child, rest)


def _braces(text: str) -> Iterator[str]:
    """The alternatives of `{a,b}` where one holds a `/`; others are a part's own (`_regex`)."""
    for marks in _groups(text):
        start, end = marks[0], marks[-1]
        if "/" in text[start:end]:
            for before, after in pairwise(marks):
                yield from _braces(text[:start] + text[before + 1 : after] + text[end + 1 :])
            return
    yield text


def _groups(text: str) -> Iterator[list[int]]:
    """Of each `{...}` that lies in no other: where it begins, its commas, and where it ends."""
    depth, marks = 0, list[int]()
    for at, letter in enumerate(text):
        if letter == "{":
            depth += 1
            marks = [at] if depth == 1 else marks
        elif letter == "," and depth == 1:
            marks.append(at)
        elif letter == "}" and depth:
            depth -= 1
            if depth == 0:
                yield [*marks, at]


def _compiled(part: str) -> re.Pattern[str]:
    try:
        return re.compile(_regex(part), re.DOTALL)
    except re.error as error:
        raise WrongCommandError(f"-input: `{part}` is not a pattern: {error.msg}") from error


def _regex(part: str) -> str:
    made, at, depth = "", 0, 0
    while at < len(part):
        letter = part[at]
        if letter == "*":
            made += ".*"
        elif letter == "?":
            made += "."
        elif letter == "\\" and at + 1 < len(part):
            at += 1
            made += re.escape(part[at])
        elif letter == "{" and "}" in part[at:]:
            made, depth = made + "(?:", depth + 1
        elif letter == "," and depth:
            made += "|"
        elif letter == "}" and depth:
            made, depth = made + ")", depth - 1
        elif letter == "[" and "]" in part[at + 2 :]:
            end = part.index("]", at + 2)
            inside = re.sub(r"[\\[&~|]", r"\\\g<0>", part[at + 1 : end])
            made += f"[{'^' + inside[1:] if inside[0] in '!^' else inside}]"
            at = end
        else:
            made += re.escape(letter)
        at += 1
    return made
