"""`gristmill hadoop distcp`: the command line of Hadoop's DistCp, done by `gristmill cp`.

    distcp [-update | -overwrite] [-delete] [-i] [-p[tp...]] [-bandwidth MB] [-m MAPS]
           [-filters FILE] SOURCE... TO
    distcp ... -f LIST TO

What a source directory means is DistCp's: with -update or -overwrite, and where there is no target
yet, what is in it goes into the target; else the directory itself does. The exit codes are those
that a shell sees of DistCp's: 0 done, 255 (-1) a wrong command line, 254 (-2) sources that collide,
25 (-999) all else.
"""

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from functools import partial
from typing import Literal, NoReturn

from gristmill.cli.failures import fail
from gristmill.cli.streaming.stored import Place, expanded, place
from gristmill.errors import kind_of, report_of
from gristmill.locations import open_read
from gristmill.report import JobReport
from gristmill.streaming.inputs import location
from gristmill.terminal import console

__all__ = ["WrongDistCpError", "run"]

DONE, WRONG, DUPLICATE, UNKNOWN = 0, 255, 254, 25

#: Of DistCp's messages, how many bytes a MB is there.
_MB = 1 << 20

#: What changes nothing here, with the number of its values, and why.
_NOT_NEEDED = {
    "-v": (0, "--json of gristmill cp says what was done"),
    "-direct": (0, "each file appears whole in every store"),
    "-skipcrccheck": (0, "files are compared in any case"),
    "-useiterator": (0, "names are copied while others are listed"),
    "-append": (0, "a file that differs is copied whole"),
    "-log": (1, "gristmill jobs show tells what a job did"),
    "-strategy": (1, "workers take what is next"),
    "-blocksperchunk": (1, "long files are cut in any case"),
    "-tmp": (1, "an atomic copy is made beside its target"),
    "-copybuffersize": (1, "--memory of gristmill cp says how much is read ahead"),
    "-numListstatusThreads": (1, "names are listed while others are copied"),
}

#: What is not there, and what to do.
_NOT_HERE = {
    "-async": "run the command in the background",
    "-diff": "leave it out: -update compares the files",
    "-rdiff": "leave it out: -update compares the files",
    "-xtrack": "write gristmill cp with --dry-run, which names what differs",
}

#: What of -p is kept, and what is not, and has an exit code of its own in DistCp.
_KEPT = {"t", "p"}
_NEVER = {"a": 253, "x": 252}


class WrongDistCpError(Exception):
    """A command line that DistCp would not take, or that asks for what is not here."""

    def __init__(self, message: str, code: int = WRONG) -> None:
        super().__init__(message)
        self.code = code


class _Parser(ArgumentParser):
    """A parser that raises where others end the process."""

    def error(self, message: str) -> NoReturn:
        raise WrongDistCpError(message)


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def _parser() -> _Parser:
    parser = _Parser(prog="distcp", add_help=False, allow_abbrev=False)
    replaces = parser.add_mutually_exclusive_group()
    replaces.add_argument("-update", action="store_true")
    replaces.add_argument("-overwrite", action="store_true")
    replaces.add_argument("-atomic", action="store_true")
    parser.add_argument("-delete", action="store_true")
    parser.add_argument("-i", action="store_true")
    parser.add_argument("-m", type=_positive, default=1)
    parser.add_argument("-bandwidth", type=_positive)
    parser.add_argument("-f")
    parser.add_argument("-filters")
    parser.add_argument("-D", action="append")
    for option, (values, _) in _NOT_NEEDED.items():
        if values:
            parser.add_argument(option)
        else:
            parser.add_argument(option, action="store_true")
    return parser


def _parsed(words: list[str]) -> tuple[Namespace, set[str]]:
    """Return what is asked for, and the letters of -p: in DistCp they stand right behind it."""
    for word in words:
        if word in _NOT_HERE:
            raise WrongDistCpError(f"{word} is not supported. What to do: {_NOT_HERE[word]}")
    is_preserve = re.compile(r"-p[a-z]*").fullmatch
    letters = [word[2:] or "pt" for word in words if is_preserve(word)]
    asked, paths = _parser().parse_known_args([word for word in words if not is_preserve(word)])
    for path in paths:
        if path.startswith("-"):
            raise WrongDistCpError(f"there is no option {path}")
    if "" in [*paths, asked.f, asked.filters]:  # a variable of a script that is not set
        raise WrongDistCpError("a path is empty")
    asked.paths = paths
    if asked.delete and not (asked.update or asked.overwrite):
        raise WrongDistCpError("-delete needs -update or -overwrite")
    if len(paths) < (1 if asked.f else 2):
        raise WrongDistCpError("name a source and a target")
    if asked.f and len(paths) > 1:
        raise WrongDistCpError("with -f the sources stand in the list: name the target alone")
    return asked, set("".join(letters))


def _kept(letters: set[str]) -> Literal["times", "mode", "times,mode"] | None:
    """Return what is preserved, in the words of `gristmill cp`."""
    for letter in sorted(letters):
        if letter in _NEVER:
            what = f"-p{letter} is not supported: no place here keeps that"
            raise WrongDistCpError(what, _NEVER[letter])
        if letter not in "rbugpct":
            raise WrongDistCpError(f"-p{letter} is none of -prbugpcaxt")
    lost = "".join(sorted(letters - _KEPT))
    if lost:
        console.note(f"distcp: -p{lost} has no effect here: it is not kept")
    match ("t" in letters, "p" in letters):
        case (True, True):
            return "times,mode"
        case (True, False):
            return "times"
        case (False, True):
            return "mode"
        case _:
            return None


def _say_what_has_no_effect(asked: Namespace) -> None:
    for option, (_, why) in _NOT_NEEDED.items():
        if getattr(asked, option[1:]):
            console.note(f"distcp: {option} has no effect here: {why}")


def _lines(named: str, option: str) -> list[str]:
    """Return the lines of a file that an option names, without blank ones."""
    with open_read(location(named, option)) as file:
        lines = file.read().decode("utf-8", "surrogateescape").splitlines()
    return [line.strip() for line in lines if line.strip()]


def _sources(asked: Namespace) -> list[Place]:
    texts: list[str] = asked.paths[:-1]
    if asked.f:
        texts = _lines(asked.f, "-f")
    if not texts:
        raise WrongDistCpError("the list names no source")
    return expanded(texts)


def _named(sources: list[Place], target: Place, *, contents: bool) -> list[str]:
    """The sources as `gristmill cp` takes them: a slash means what is in a directory."""
    of_contents = contents or (len(sources) == 1 and not target.exists())
    return [f"{one}/" if of_contents and one.is_dir() else f"{one}" for one in sources]


def run(words: list[str]) -> int:
    """Copy what a command line of DistCp's asks for; returns the exit code.

    Raises:
        WrongDistCpError: DistCp would not take it, or it asks for what is not here.
    """
    asked, letters = _parsed(words)
    kept = _kept(letters)
    sources, target = _sources(asked), place(asked.paths[-1])
    excluded = _lines(asked.filters, "-filters") if asked.filters else []
    _say_what_has_no_effect(asked)
    from gristmill.functions import cp

    contents = asked.update or asked.overwrite

    def copy() -> JobReport:
        act = partial(cp, preserve=kept) if kept else cp
        return act(
            _named(sources, target, contents=contents),
            str(target) + ("/" if len(sources) > 1 else ""),
            update=not (asked.overwrite or asked.atomic),
            overwrite=asked.overwrite,
            atomic=asked.atomic,
            delete=asked.delete,
            exclude_regex=excluded,
            ignore_failures=asked.i,
            bandwidth=asked.bandwidth * _MB * asked.m if asked.bandwidth else None,
        )

    return _done(copy)


def _done(copy: Callable[[], JobReport]) -> int:
    try:
        _say(copy())
    except (ValueError, OSError, MemoryError) as error:
        if kind_of(error) is None:
            raise
        report = report_of(error)
        if report is not None:
            _say(report)
        fail("hadoop", f"distcp: {error}")
        text = str(error)
        if kind_of(error) == "bad_option":
            return DUPLICATE if "two sources would make one file" in text else WRONG
        return UNKNOWN
    return DONE


def _say(report: JobReport) -> None:
    """Write the counters as Hadoop's client does."""
    counters = report.counters
    console.note("\tDistCp Counters")
    for name, counter in (
        ("Bytes Copied", "BYTESCOPIED"),
        ("Bytes Skipped", "BYTESSKIPPED"),
        ("DIR_COPY", "DIR_COPY"),
        ("Files Copied", "COPY"),
        ("Files Skipped", "SKIP"),
        ("Files Failed", "FAIL"),
    ):
        console.note(f"\t\t{name}={counters.get(counter, 0)}")
