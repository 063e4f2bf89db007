"""What the words of a `gristmill grep` mean: its patterns, its inputs, its options.

    PATTERN, -e, -f, IN ──▶ patterns, inputs      options as click has them ──▶ those of the engine

Where options contradict each other, what GNU grep does decides.
"""

import os
import re
import sys
from typing import Any

import click

from gristmill.cli.failures import Refused
from gristmill.search import engine_options
from gristmill.terminal import console

__all__ = [
    "SHOWN",
    "engine_words",
    "hint_at_basic",
    "literal_in",
    "patterns_and_inputs",
    "selects_nothing",
]

SHOWN = 100
"""The most characters of a wrong word that are told."""


def selects_nothing(patterns: list[bytes], given: dict[str, Any]) -> bool:
    """Return whether no line can be selected: like GNU grep, no file is read, and no 0 printed."""
    if given["listed"] == "names_without":
        return False
    if given["most"] == 0:
        return True
    if not patterns:
        return not given["invert"]
    is_bare = not any(given[name] for name in ("word", "whole_line", "all_of", "none_of"))
    return bool(given["invert"]) and is_bare and all(not one.strip(b"\n") for one in patterns)


def literal_in(patterns: list[bytes]) -> str | None:
    r"""Return the first operator of basic regular expressions that is a plain character here.

    Example:
        >>> literal_in([rb"error\d", rb"ERROR\|WARN"]), literal_in([rb"a\\|b", rb"x\.y"])
        ('\\|', None)
    """
    words = (word for one in patterns for word in re.findall(rb"\\.", one, re.DOTALL))
    return next((word.decode() for word in words if word[1:] in b"|(){}+?"), None)


def hint_at_basic(command: str, nothing: str, patterns: list[bytes]) -> None:
    """Say of patterns that found nothing that one looks like a basic regular expression."""
    escaped = literal_in(patterns)
    if escaped is not None:
        console.note(
            f"gristmill {command}: {nothing}, and {escaped} in the pattern stands for the"
            f" character {escaped[1]}. Patterns are written as for grep -E: {escaped[1]} without"
            " the backslash is the operator."
        )


def patterns_and_inputs(
    words: tuple[str, ...],
    given: tuple[str, ...],
    files: tuple[str, ...],
    ctx: click.Context | None = None,
) -> tuple[list[bytes], tuple[str, ...]]:
    """Return the patterns of -e and -f, or the first word; and what is left."""
    patterns = _patterns(given, files)
    if patterns is not None:
        return patterns, words
    if not words:
        raise Refused("there is no PATTERN", "name one, and the files to search", ctx)
    return [os.fsencode(words[0])], words[1:]


def _patterns(given: tuple[str, ...], files: tuple[str, ...]) -> list[bytes] | None:
    """The patterns of -e and -f; None where there are no such options."""
    if not given and not files:
        return None
    patterns = [os.fsencode(pattern) for pattern in given]
    for name in files:
        try:
            text = _read(name)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise Refused(f"the patterns in {name} cannot be read: {why}", "check it") from None
        patterns += text.removesuffix(b"\n").split(b"\n") if text else []
    return patterns


def _read(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    with open(name, "rb") as file:  # noqa: PTH123 - a name as it was typed
        return file.read()


_NAMED = {None: None, "yes": True, "no": False}

_AS_GIVEN = (
    *("fixed", "word", "whole_line", "crlf", "invert", "numbers", "offsets"),
    *("null_data", "null_names", "hidden"),
)


def engine_words(given: dict[str, Any], files: list[tuple[str, bool]]) -> str:
    """Return the options as the engine takes them."""
    around = given["around"]
    return engine_options(
        **{name: given[name] for name in _AS_GIVEN},
        ignore_case=given["cased"] == "no",
        show=_shown(given),
        names=_NAMED[given["named"]],
        before=around if given["before"] is None else given["before"],
        after=around if given["after"] is None else given["after"],
        max=None if given["most"] is None or given["most"] < 0 else given["most"],
        text=given["binary"] == "text",
        skip_binary=given["binary"] == "without-match",
        colour=_is_coloured(given["colour"]),
        separator=None
        if given["no_separator"]
        else _plain("--group-separator", given["separator"]),
        label=_plain("--label", given["label"]),
        globs=[_plain("--glob", glob) for glob in given["globs"]],
        files=[
            (_plain("--exclude" if passes else "--include", glob), passes) for glob, passes in files
        ],
        folders=[_plain("--exclude-dir", glob.rstrip("/") or glob) for glob in given["folders"]],
        workers=given["workers"],
    )


def _is_coloured(when: str) -> bool:
    """Whether there are colours; a dumb terminal has none, and NO_COLOR forbids them."""
    if when != "auto":
        return when == "always"
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in (None, "", "dumb")
    return not plain and console.is_terminal(sys.stdout)


def _shown(given: dict[str, Any]) -> str:
    """What is printed: of several options the first here decides, as in GNU grep."""
    if given["quiet"]:
        return "quiet"
    if given["listed"]:
        return given["listed"]
    return next((name for name in ("count", "matches") if given[name]), "lines")


def _plain(option: str, text: str) -> str:
    """A value for the engine, whose text is Unicode."""
    if any("\udc80" <= letter <= "\udcff" for letter in text):
        shown = console.printable(text[:SHOWN])
        raise Refused(f"{option} {shown} is not UTF-8", "write ? for a letter or * for several")
    return text
