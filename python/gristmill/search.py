"""`gm.grep`: the lines of files that match, for Python; options as the engine takes them.

    gm.grep(...) ──▶ Grep ──iterate──▶ _core.Search ──▶ GrepLine, GrepLine, ...   as they are found
                          ├─ counts() ──────────────▶ {file: lines}
                          └─ files(), any() ────────▶ what the first selected line of a file tells

The search runs in the engine's threads, a little ahead of its reader, and ends with it.
"""

import glob as patterns
import json
import os
import sys
import warnings
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from gristmill import _core
from gristmill.amounts import whole_number
from gristmill.errors import ours
from gristmill.locations import in_home, is_remote
from gristmill.names import StrPath, show_path
from gristmill.signatures import known_options

__all__ = [
    "STANDARD_INPUT",
    "WORKERS_MAX",
    "Condition",
    "Grep",
    "GrepLine",
    "conditions",
    "engine_options",
    "grep",
]

Condition = tuple[str, bool, list[bytes]]
"""What it is called, whether a line must match, and patterns, of which one is enough."""

STANDARD_INPUT = "(standard input)"
"""The name of standard input, as GNU grep has it."""

WORKERS_MAX = 1024
"""The most threads that search."""

_HUGE = 2**63 - 1
"""The largest number that the engine takes: more lines than any file has."""

_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("fixed", "ignore_case", "word", "whole_line", "crlf", "invert"), False),
    **dict.fromkeys(("numbers", "offsets", "text", "skip_binary", "null_data", "hidden"), False),
    **dict.fromkeys(("colour", "null_names"), False),
    **dict.fromkeys(("names", "before", "after", "max"), None),
    **dict.fromkeys(("globs", "files", "folders"), ()),
    "show": "lines",
    "separator": "--",
    "label": STANDARD_INPUT,
}


def engine_options(workers: int | None = None, **given: Any) -> str:  # noqa: ANN401 - JSON's values
    """Return the options of a search as the engine takes them.

    Args:
        workers: How many threads search; by default one for each core.
        given: Options that differ from their defaults.

    Example:
        >>> '"ignore_case": true' in engine_options(ignore_case=True)
        True
    """
    unknown = given.keys() - _DEFAULTS.keys()
    assert not unknown, unknown
    numbers = {
        name: min(given[name], _HUGE)
        for name in ("before", "after", "max")
        if given.get(name) is not None
    }
    threads = workers or _core.default_workers()
    return json.dumps({**_DEFAULTS, **given, **numbers, "workers": threads})


def conditions(
    all_of: list[bytes], none_of: list[bytes], names: tuple[str, str] = ("all_of", "none_of")
) -> list[Condition]:
    """Return what holds for a line besides the pattern, as the engine takes it.

    Args:
        all_of: The line must match each of these.
        none_of: The line must match none of these.
        names: What the caller calls them, for errors.

    Example:
        >>> conditions([b"a", b"b"], [b"c", b"d"])
        [('all_of', True, [b'a']), ('all_of', True, [b'b']), ('none_of', False, [b'c', b'd'])]
    """
    found: list[Condition] = [(names[0], True, [one]) for one in all_of]
    return [*found, (names[1], False, none_of)] if none_of else found


@dataclass(frozen=True, slots=True)
class GrepLine:
    """A line that `gm.grep` found."""

    file: str
    """The name of its file, as the input was named."""
    number: int
    """Its number in the file, from 1."""
    offset: int
    """Where it begins in the file, in bytes; in a compressed file, in its decoded bytes."""
    line: bytes
    """Its bytes, without the line feed."""
    spans: tuple[tuple[int, int], ...] = ()
    """Where the matches of the pattern in it begin and end; empty with `invert_match`."""
    is_context: bool = False
    """Whether it stands before or after a selected line, and is not selected itself."""

    @property
    def text(self) -> str:
        r"""The line as text; bytes that are not UTF-8 are shown as `\xff`."""
        return self.line.decode("utf-8", "backslashreplace")

    @property
    def matches(self) -> tuple[bytes, ...]:
        """What matched in the line."""
        return tuple(self.line[begin:end] for begin, end in self.spans)


@dataclass(slots=True)
class Grep:
    r"""A search for lines. Iterate over it to get `GrepLine`s: each iteration searches anew.

    Example:
        >>> import tempfile, gristmill as gm
        >>> from pathlib import Path
        >>> folder = tempfile.TemporaryDirectory()
        >>> _ = Path(folder.name, "a").write_text("one fish\ntwo fish\n")
        >>> found = gm.grep("fish", folder.name)
        >>> [line.number for line in found], sum(found.counts().values()), found.any()
        ([1, 2], 2, True)
        >>> folder.cleanup()
    """

    _patterns: list[bytes]
    _conditions: list[Condition]
    _inputs: list[str]
    _options: dict[str, Any]
    _skips: bool
    unreadable: dict[str, str] = field(default_factory=dict[str, str])
    """With `skip_unreadable`: files that the last search could not read, each with the reason."""
    binary: list[str] = field(default_factory=list[str])
    """Binary files with a selected line of which the last iteration did not give all lines (see
    `text`); a warning names each. `counts`, `files` and `any` leave this as it is."""

    def __iter__(self) -> Iterator[GrepLine]:
        """Search, and yield the lines in the order of the files and of their lines."""
        binary: list[str] = []
        self.binary = binary
        file = given = ""
        for item in self._found("lines", numbers=True, offsets=True):
            if item[0] == "file":
                file = os.fsdecode(item[1])
            elif item[0] == "line":
                _, is_selected, number, offset, spans, line = item
                given = file
                yield GrepLine(file, number, offset, line, spans, not is_selected)
            elif item[0] == "binary":
                name = os.fsdecode(item[1])
                binary.append(name)
                warnings.warn(_cut_short(name, is_begun=given == name), stacklevel=2)

    def counts(self) -> dict[str, int]:
        """Search, and return how many lines are selected in each file, 0 included."""
        counts: dict[str, int] = {}
        for file, lines in self._ends("count"):
            counts[file] = counts.get(file, 0) + lines
        return counts

    def files(self) -> Iterator[str]:
        """Search each file up to its first selected line, and yield the names of files with one."""
        return (file for file, lines in self._ends("names") if lines)

    def files_without_match(self) -> Iterator[str]:
        """Search, and yield the names of files without a selected line."""
        return (file for file, lines in self._ends("names_without") if not lines)

    def any(self) -> bool:
        """Search up to the first selected line, and return whether there is one."""
        return any(lines for _, lines in self._ends("quiet"))

    def _ends(self, show: str) -> Generator[tuple[str, int]]:
        """Each file with its count."""
        file = ""
        for item in self._found(show):
            if item[0] == "file":
                file = os.fsdecode(item[1])
            elif item[0] == "end":
                yield file, item[1]

    def _found(self, show: str, **more: bool) -> Generator[tuple[Any, ...]]:
        """What the engine finds, but for files that cannot be read."""
        unreadable: dict[str, str] = {}
        self.unreadable = unreadable
        options: dict[str, Any] = {**self._options, **more, "show": show}
        inputs = list(_expanded(self._inputs, hidden=options["hidden"]))
        search = _core.Search(self._patterns, self._conditions, inputs, engine_options(**options))
        try:
            while (items := search.take()) is not None:
                for item in items:
                    if item[0] == "suspected":
                        _, name, encoding = item
                        shown = show_path(os.fsdecode(name))
                        warnings.warn(f"gm.grep: {shown}: {looks_like(encoding)}", stacklevel=4)
                        continue
                    if item[0] != "trouble":
                        yield item
                        continue
                    _, name, kind, message = item
                    if not self._skips:
                        raise _raised(kind, message)
                    unreadable[os.fsdecode(name)] = message
        finally:
            search.close()


def _expanded(inputs: list[str], *, hidden: bool) -> Iterator[str]:
    """The inputs, and in the place of each pattern what it matches.

    Raises:
        FileNotFoundError: A pattern matches nothing.
    """
    for one in inputs:
        if is_remote(one) or not patterns.has_magic(one) or os.path.lexists(one):
            yield one  # stores expand patterns of theirs
            continue
        matches = _matches(one, hidden=hidden)
        if not matches:
            message = (
                f"cannot find the input: the pattern {show_path(one)} matches nothing."
                " What to do: check it (** stands for folders of any depth)."
            )
            raise _raised("not_found", message)
        yield from matches


def _matches(pattern: str, *, hidden: bool) -> list[str]:
    """The files and folders that a pattern matches, but for those in a folder that it matches."""
    kept: list[str] = []
    folders: set[Path] = set()
    hidden_parts = [part for part in Path(pattern).parts if _is_hidden(part)]
    found = patterns.glob(pattern, recursive=True, include_hidden=hidden)  # noqa: PTH207
    for match in sorted(found, key=lambda match: Path(match).parts):
        path = Path(match)
        if path in folders or folders.intersection(path.parents):
            continue
        if not hidden and any(
            _is_hidden(part) and not any(fnmatchcase(part, one) for one in hidden_parts)
            for part in path.parts
        ):
            continue
        if path.is_dir():
            folders.add(path)
        if path.is_dir() or path.is_file():
            kept.append(match)
    return kept


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_")) and name != ".."


def _cut_short(name: str, *, is_begun: bool) -> str:
    """The warning of a binary file: `is_begun` where lines of it were given."""
    which = "its lines from the first one with a NUL on" if is_begun else "its lines"
    return (
        f"gm.grep: {show_path(name)}: binary file matches; {which} are not given."
        " What to do: give text=True."
    )


def looks_like(encoding: str) -> str:
    """Return what to say of a file that looks like text in an encoding that is not decoded.

    Example:
        >>> looks_like("UTF-16LE")
        'it looks like UTF-16LE, and is searched as it is. To decode it: iconv -f UTF-16LE -t UTF-8'
    """
    return (
        f"it looks like {encoding}, and is searched as it is. To decode it:"
        f" iconv -f {encoding} -t UTF-8"
    )


def _raised(kind: str, message: str) -> OSError:
    """The exception for a file that cannot be read."""
    of = {"not_found": FileNotFoundError, "permission": PermissionError}.get(kind, OSError)
    if kind == "not_found" and "What to do:" not in message:
        message += " What to do: check the name."
    return ours(of(message), kind)


@known_options
def grep(
    pattern: str | bytes | Iterable[str | bytes],
    inputs: StrPath | Iterable[StrPath],
    *,
    all_of: str | bytes | Iterable[str | bytes] = (),
    none_of: str | bytes | Iterable[str | bytes] = (),
    fixed_strings: bool = False,
    ignore_case: bool = False,
    invert_match: bool = False,
    word_regexp: bool = False,
    line_regexp: bool = False,
    max_count: int | None = None,
    before_context: int = 0,
    after_context: int = 0,
    text: bool = False,
    crlf: bool = False,
    null_data: bool = False,
    glob: str | Iterable[str] = (),
    hidden: bool = False,
    skip_unreadable: bool = False,
    workers: int | None = None,
) -> Grep:
    r"""Search lines that match a pattern, as `gristmill grep` does, on all cores.

    The search begins when you iterate over the result, and stops when you stop. A warning names
    each binary file whose lines are not all given (see `text`). Threads that wait for a FIFO or for
    standard input cannot be stopped: after Ctrl-C, or when a loop is left early, they wait until
    its writer writes or ends. The program goes on meanwhile.

    Args:
        pattern: A regular expression in the syntax of Rust's regex crate, or several of them. A
            line is selected if it matches one.
        inputs: One or several files, directories, patterns such as `"logs/*.gz"`, or locations in
            stores. Directories are searched in the order of names. Compressed files are decoded;
            `"-"` is standard input.
        all_of: One or several patterns. A selected line must also match each of them.
        none_of: One or several patterns. A selected line must match none of them.
        fixed_strings: Patterns are text, not regular expressions.
        ignore_case: Upper and lower case are the same.
        invert_match: Select all other lines: those that do not match, or that `all_of` or
            `none_of` leave out.
        word_regexp: A match must be a whole word.
        line_regexp: A match must be a whole line.
        max_count: Stop in a file after this many selected lines. By default search the whole file.
        before_context: How many lines before each selected line are also given.
        after_context: How many lines after each selected line are also given.
        text: Also give the lines of binary files. Without it, a file with a NUL in its first 96 kB
            gives no lines; in any other file they stop at the first selected line with a NUL.
        crlf: A CR before the LF is not part of the line.
        null_data: Lines end at a NUL, not at LF.
        glob: In directories, search only files whose names match; `!GLOB` passes them over.
        hidden: In directories, also search files whose names begin with `.` or `_`.
        skip_unreadable: Pass over files that cannot be read, and list them in `unreadable`. By
            default the first one raises an exception.
        workers: How many threads search. By default one for each core.

    Returns:
        A `Grep`, to iterate over. Its methods `counts`, `files` and `any` also search.

    Raises:
        TypeError: An option has the wrong type.
        ValueError: A pattern is wrong, which the message shows, or an option makes no sense.
        FileNotFoundError: While iterating: an input does not exist, or a pattern matches nothing.
        OSError: While iterating: an input cannot be read.

    Example:
        >>> import tempfile, gristmill as gm
        >>> from pathlib import Path
        >>> folder = tempfile.TemporaryDirectory()
        >>> book = Path(folder.name, "book.txt")
        >>> _ = book.write_text("one fish\nblue whale\nred fish, blue fish\n")
        >>> for line in gm.grep("[a-z]+ fish", book):
        ...     print(line.number, line.offset, line.text, line.matches)
        1 0 one fish (b'one fish',)
        3 20 red fish, blue fish (b'red fish', b'blue fish')
        >>> list(gm.grep("whale", folder.name).counts().values())
        [1]
        >>> folder.cleanup()
    """
    options: dict[str, Any] = {
        "fixed": _flag("fixed_strings", fixed_strings),
        "ignore_case": _flag("ignore_case", ignore_case),
        "invert": _flag("invert_match", invert_match),
        "word": _flag("word_regexp", word_regexp),
        "whole_line": _flag("line_regexp", line_regexp),
        "max": None if max_count is None else _count("max_count", max_count),
        "before": _count("before_context", before_context) or None,
        "after": _count("after_context", after_context) or None,
        "text": _flag("text", text),
        "crlf": _flag("crlf", crlf),
        "null_data": _flag("null_data", null_data),
        "globs": [_glob(one) for one in _several("glob", glob, str)],
        "hidden": _flag("hidden", hidden),
        "workers": None if workers is None else _count("workers", workers, 1, WORKERS_MAX),
    }
    found = _patterns("pattern", pattern)
    more = conditions(_patterns("all_of", all_of), _patterns("none_of", none_of))
    _core.check_search(found, more, engine_options(**options))
    return Grep(found, more, _named(inputs), options, _flag("skip_unreadable", skip_unreadable))


def _patterns(name: str, value: str | bytes | Iterable[str | bytes]) -> list[bytes]:
    several = _several(name, value, (str, bytes))
    return [one if isinstance(one, bytes) else os.fsencode(one) for one in several]


def _flag(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise _wrong(TypeError, name, value, "True or False")


def _count(name: str, value: object, least: int = 0, most: int = sys.maxsize) -> int:
    number = whole_number(value)
    if number is None:
        raise _wrong(TypeError, name, value, "a whole number")
    if not least <= number <= most:
        bound = f"from {least} to {most}" if most != sys.maxsize else f"from {least} on"
        raise _wrong(ValueError, name, value, f"a whole number {bound}")
    return number


def _several(name: str, value: Any, one: type | tuple[type, ...]) -> list[Any]:  # noqa: ANN401
    """What was given as one or as several."""
    if isinstance(value, one):
        return [value]
    try:
        found = list(value)
    except TypeError:
        raise _wrong(TypeError, name, value, "text, or several texts") from None
    for each in found:
        if not isinstance(each, one):
            raise _wrong(TypeError, name, each, "text")
    return found


def _glob(glob: str) -> str:
    try:
        glob.encode()
    except UnicodeEncodeError:
        raise _wrong(ValueError, "glob", glob, "a pattern in UTF-8") from None
    return glob


def _wrong(kind: type[Exception], name: str, value: object, wanted: str) -> Exception:
    shown = repr(value)[:100]
    return kind(f"cannot read the options: {name} is {shown}. What to do: give {wanted}.")


def _named(inputs: StrPath | Iterable[StrPath]) -> list[str]:
    """The inputs as the engine takes them."""
    names = [in_home(one) for one in _several("inputs", inputs, (str, bytes, os.PathLike))]
    if not names or "" in names:
        raise ValueError(
            "cannot read the options: inputs: there is no path, or an empty one."
            " What to do: name a file or a directory."
        )
    return names
