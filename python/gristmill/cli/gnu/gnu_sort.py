"""GNU sort's options in `gristmill sort`: each row names the test that compares it with GNU sort.

    -k2,2n        ──▶ the engine's table has it, by the same letter
    -S 1G         ──▶ a second name of --memory
    -S 50%        ──▶ bytes: that part of this machine's memory
    -S 1T         ──▶ bytes: the memory that is available, if the machine has less than that
    --check=quiet ──▶ -C, and so is --check=q
    --num         ──▶ --numeric-sort: a long name may be cut short
    -R            ──▶ refused, with what to do instead
    --header      ──▶ likewise: not GNU's, but often tried
    --wings       ──▶ unknown to GNU sort, too: click's own error

The table is that of GNU coreutils 9; a test compares it with the installed sort.
"""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from gristmill import _core
from gristmill.amounts import parse_bytes
from gristmill.cli.failures import QUIET, Refused
from gristmill.terminal import console

__all__ = [
    "ALIASES",
    "GNU_OPTIONS",
    "INSTEAD",
    "GnuOption",
    "complete",
    "explained",
    "more_options",
    "one_output",
    "translated",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class GnuOption:
    """An option of GNU sort."""

    letter: str = ""
    """Its short name, with the dash; empty where there is none."""
    word: str
    """Its long name, with the dashes."""
    ours: str = ""
    """Its name here where it has another one; or what becomes of it."""
    test: str = ""
    """The differential test that covers it; empty where it is not here."""
    advice: str = ""
    """What to do instead of one that is not here."""

    @property
    def names(self) -> tuple[str, ...]:
        """Both names."""
        return (self.letter, self.word) if self.letter else (self.word,)

    @property
    def shown(self) -> str:
        """Both names, as in an error."""
        return f"{self.letter} ({self.word})" if self.letter else self.word


_ORDERS = "tests/cli/test_gnu_keys.py::test_every_letter"
_KEYS = "tests/cli/test_gnu_keys.py::test_options_drawn_at_random"
_SAME = "tests/cli/test_gnu_keys.py::test_options_that_change_no_byte"
_CHECK = "tests/cli/test_gnu_keys.py::test_a_check_by_keys"

GNU_OPTIONS = (
    GnuOption(letter="-b", word="--ignore-leading-blanks", test=_ORDERS),
    GnuOption(letter="-d", word="--dictionary-order", test=_ORDERS),
    GnuOption(letter="-f", word="--ignore-case", test=_ORDERS),
    GnuOption(letter="-g", word="--general-numeric-sort", test=_ORDERS),
    GnuOption(letter="-h", word="--human-numeric-sort", test=_ORDERS),
    GnuOption(letter="-i", word="--ignore-nonprinting", test=_ORDERS),
    GnuOption(letter="-M", word="--month-sort", test=_ORDERS),
    GnuOption(letter="-n", word="--numeric-sort", test=_ORDERS),
    GnuOption(letter="-r", word="--reverse", test=_ORDERS),
    GnuOption(letter="-V", word="--version-sort", test=_ORDERS),
    GnuOption(word="--sort", test=_ORDERS),
    GnuOption(letter="-k", word="--key", test=_KEYS),
    GnuOption(letter="-t", word="--field-separator", test=_KEYS),
    GnuOption(letter="-s", word="--stable", test=_KEYS),
    GnuOption(letter="-u", word="--unique", test=_KEYS),
    GnuOption(letter="-z", word="--zero-terminated", test=_KEYS),
    GnuOption(letter="-c", word="--check", test=_CHECK),
    GnuOption(letter="-C", word="--check=quiet", test=_CHECK),
    GnuOption(word="--check=silent", ours="-C", test=_CHECK),
    GnuOption(word="--check=diagnose-first", ours="-c", test=_CHECK),
    GnuOption(letter="-m", word="--merge", ours="the same output", test=_SAME),
    GnuOption(letter="-o", word="--output", test=_SAME),
    GnuOption(letter="-S", word="--buffer-size", ours="--memory SIZE", test=_SAME),
    GnuOption(letter="-T", word="--temporary-directory", ours="--spill-dir PATH", test=_SAME),
    GnuOption(word="--parallel", ours="--workers N", test=_SAME),
    GnuOption(word="--batch-size", ours="without effect: --memory decides it", test=_SAME),
    GnuOption(word="--files0-from", test=_SAME),
    GnuOption(
        letter="-R",
        word="--random-sort",
        advice="shuffle lines with gristmill shuf; the order of -R is another one in every run",
    ),
    GnuOption(word="--random-source", advice="leave it out: nothing here is random"),
    GnuOption(word="--compress-program", advice="give --compress-runs lz4 or zstd"),
    GnuOption(word="--debug", advice="see docs/guide/sort.md for what a key is"),
)
"""All of them, but --help and --version."""

INSTEAD = {
    "-y": "leave it out: GNU sort ignores it",
    "--header": "give --csv or --tsv: the header of a table stays first",
}
"""What to do instead of options that are not in GNU sort's help, and not here."""

_OLD_KEYS = "write -k: +1 -3 is -k 2,3"
"""What to do instead of +POS and -POS."""

_OLD_BEGIN = re.compile(r"\+\d+(\.\d+)?[bdfgiMnrV]*")
_OLD_END = re.compile(r"-\d")

ALIASES = {
    "memory": ("-S", "--buffer-size"),
    "spill_dir": ("-T", "--temporary-directory"),
    "workers": ("--parallel",),
}
"""GNU sort's names of options that have another name here."""

_OURS = ("--version", "--help", "--json", "--compress")
"""Names that are whole, and no short ones of GNU sort's options."""

_FILES = "gristmill.files0_from"

_PERCENT = re.compile(r"(\d+)%")

_CHECKS = {"quiet": "-C", "silent": "-C", "diagnose-first": "-c"}
"""The words of --check, which may be cut short."""


def more_options() -> list[click.Option]:
    """Return the options that belong to the command line alone."""
    return [
        click.Option(
            ["-C", "quiet_check"],
            is_flag=True,
            expose_value=False,
            callback=_note_quiet,
            help="As -c, and say nothing: the exit code tells.  [default: off]",
        ),
        click.Option(
            ["--files0-from", "files0_from"],
            metavar="PATH",
            expose_value=False,
            callback=_note_files,
            help="Read the names of the inputs from a file, each ended by NUL; - is standard input."
            "  [default: none]",
        ),
        click.Option(["--batch-size"], type=str, hidden=True, expose_value=False),
    ]


def one_output(_ctx: click.Context, _param: click.Parameter, given: Sequence[str]) -> str | None:
    """Return the output that was named; GNU sort takes the same name twice, and no two names."""
    if len(set(given)) > 1:
        raise Refused(f"-o names {len(set(given))} outputs: {', '.join(given)}", "name one")
    return given[-1] if given else None


def _note_quiet(ctx: click.Context, _: click.Parameter, given: bool) -> None:
    ctx.meta[QUIET] = given


def _note_files(ctx: click.Context, _: click.Parameter, path: str | None) -> None:
    ctx.meta[_FILES] = path


def translated(arguments: list[str]) -> list[str]:
    """Return a command line with GNU sort's spellings as click takes them.

    Args:
        arguments: The command line.

    Example:
        >>> translated(["--check=quiet", "--num", "-k2", "x"])
        ['-C', '--numeric-sort', '-k2', 'x']
        >>> translated(["--check=sil", "--ch=diag", "--compress", "gzip"])
        ['-C', '-c', '--compress', 'gzip']
    """
    words: list[str] = []
    for number, word in enumerate(arguments):
        if word == "--":
            return [*words, *arguments[number:]]
        name, equals, value = word.partition("=")
        if word.startswith("--") and name not in _OURS:
            found = _find(name)
            name = found.word if found is not None else name
        letters = {letter for mode, letter in _CHECKS.items() if value and mode.startswith(value)}
        if name == "--check" and len(letters) == 1:
            words += letters
        elif name == "--check" and equals:
            raise Refused(f"--check takes no word {value!r}", f"give {_or(_CHECKS)}, or none")
        else:
            words.append(f"{name}{equals}{value}")
    return words


def _or(words: Iterable[str]) -> str:
    *some, last = words
    return f"{', '.join(some)} or {last}"


def complete(ctx: click.Context) -> None:
    """Set what follows from options of the command line alone; refuse keys that are none."""
    if ctx.meta.get(QUIET) and ctx.params["check"]:
        raise Refused("-c and -C exclude each other", "give -C to hear nothing, else -c", ctx)
    if ctx.meta.get(QUIET):
        ctx.params["check"] = True
    if "" in ctx.params["key"]:
        table = ctx.params["csv"] or ctx.params["tsv"]
        advice = "give columns, as in price:num,name" if table else "give F[.C][OPTS][,F[.C][OPTS]]"
        raise Refused("a key is empty", advice, ctx)
    ctx.params["memory"] = _sized(ctx.params["memory"], ctx)
    old = [name for name in ctx.params["inputs"] if _OLD_BEGIN.fullmatch(name)]
    if old and not os.path.lexists(old[0]):
        raise Refused(f"there is no file {old[0]}, and a key is not written so", _OLD_KEYS, ctx)
    _read_names(ctx)


def _read_names(ctx: click.Context) -> None:
    """Set the inputs from a file with their names, if one was given."""
    path = ctx.meta.get(_FILES)
    if path is None:
        asks = ctx.resilient_parsing  # a shell, for what could stand where its cursor is
        if not asks and not ctx.params["inputs"] and console.is_terminal(sys.stdin):
            console.note("gristmill sort: reading lines from the terminal; Ctrl-D ends them")
            console.note("For help: gristmill sort --help")
        return
    if ctx.params["inputs"]:
        raise Refused("--files0-from and inputs exclude each other", "give one of them", ctx)
    try:
        names = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}", "check its name", ctx) from None
    inputs = [os.fsdecode(name) for name in names.removesuffix(b"\0").split(b"\0")]
    if not names or "" in inputs:
        raise Refused(f"{path} has an empty name, or none", "end each name with one NUL", ctx)
    if path == "-" and "-" in inputs:
        what = "standard input has the names of the inputs: it cannot be an input, too"
        raise Refused(what, "leave - out; ./- is a file of this name", ctx)
    ctx.params["inputs"] = tuple(inputs)


def _sized(memory: str | None, ctx: click.Context) -> str | None:
    """The memory in bytes if it is N% of this machine's, or more than all: what is available.

    A control group may leave less than the machine has.
    """
    is_here = ctx.params["on"] in (None, "local")
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    percent = _PERCENT.fullmatch(memory or "")
    if percent is None:
        if memory is None or not is_here or not _is_more(memory, whole):
            return memory
        return str(_core.available_memory() or whole)
    if not is_here:
        what = f"{memory} is a part of this machine's memory, and the job runs elsewhere"
        raise Refused(what, "give a size, as in 8G", ctx)
    part = whole * int(percent[1]) // 100
    return str(min(part, _core.available_memory() or part))


def _is_more(memory: str, whole: int) -> bool:
    """Whether a size is larger than this machine's memory; the engine refuses what is no size."""
    try:
        return parse_bytes(memory, "memory") > whole
    except (TypeError, ValueError):
        return False


def explained(error: click.UsageError, arguments: list[str]) -> click.UsageError:  # noqa: ARG001
    """Return what to say of a wrong command line of `sort` in place of click's own error.

    Args:
        error: Click's error.
        arguments: The command line.
    """
    if not isinstance(error, (click.NoSuchOption, click.BadOptionUsage)):
        return error
    name = error.option_name
    if name in INSTEAD:
        return Refused(f"no such option {name!r}", INSTEAD[name], error.ctx)
    if _OLD_END.match(name):
        return Refused(f"no such option {name!r}", _OLD_KEYS, error.ctx)
    found = _find(name)
    if found is None or found.test:
        return error
    return Refused(f"{found.shown} of GNU sort is not here", found.advice, error.ctx)


def _find(name: str) -> GnuOption | None:
    """The option that was meant; a long name may be cut short, as GNU has it."""
    exact = [one for one in GNU_OPTIONS if name in one.names]
    if exact or not name.startswith("--"):
        return exact[0] if exact else None
    begun = [one for one in GNU_OPTIONS if one.word.startswith(name) and "=" not in one.word]
    return begun[0] if len(begun) == 1 else None
