"""`gristmill grep`: the lines of files that match, on all cores, with GNU grep's options.

    options ──▶ _core.grep ──▶ lines on stdout, straight from the engine
                           ──▶ what cannot be read, what is binary: stderr
    exit code: 0 a line was selected, 1 none was, 2 trouble, a defect of Gristmill among it

`grep --counts` is a job of its own, with an output directory: the command `matchcount`.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import click

from gristmill import _core
from gristmill.cli.failures import DONE, FAILED, WRONG, Refused, conclude, fail
from gristmill.cli.groups import PlainCommand
from gristmill.terminal import console, signals

__all__ = ["grep"]

_HERE = ""
"""The current folder, whose name does not stand before those of its files."""

_MOST_WORKERS = 1024
"""As of jobs."""

_HUGE = 2**63 - 1
"""A count of lines that no file has: the engine takes no larger one."""

_EXAMPLE = "gristmill grep -n 'time(d )?out' logs/ s3://bucket/logs/"

_INSTEAD = {
    "--include": "write --glob GLOB",
    "--exclude": "write --glob '!GLOB'",
    "--exclude-dir": "write --glob '!**/NAME/**'",
    **dict.fromkeys(("-P", "--perl-regexp"), "leave it out: \\d, \\w and \\b are known without it"),
    **dict.fromkeys(("-G", "--basic-regexp"), "write the pattern as for grep -E"),
    **dict.fromkeys(("-z", "--null-data"), "search lines that end at LF"),
    **dict.fromkeys(("-Z", "--null"), "leave it out: a colon or LF stands behind a name"),
    **dict.fromkeys(("--color", "--colour"), "leave it out: matches are not coloured"),
    **dict.fromkeys(("-I", "--binary-files"), "pass files over with --glob '!GLOB'"),
}
"""What to do without options of GNU grep."""

_COUNTS_HELP = "Count matches, and do not print lines."


class _Grep(PlainCommand):
    """A command that becomes a job where it counts."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 - click's own values
    ) -> click.Context:
        """Take the command line apart: with `--counts` that of a job."""
        if not self._counts(args):
            return super().make_context(info_name, args, parent, **extra)
        return _job().make_context(info_name, args, parent, **extra)

    def _counts(self, args: list[str]) -> bool:
        """Whether `--counts` stands among the options, not as the value of one."""
        return any(args[at] == "--counts" for at in self._words(args))

    def _words(self, args: list[str]) -> Iterator[int]:
        """Where words before `--` stand that are not values of options."""
        takes = {
            name
            for option in self.params
            if isinstance(option, click.Option) and not option.is_flag
            for name in option.opts
        }
        places = iter(range(len(args)))
        for at in places:
            if args[at] == "--":
                return
            yield at
            if _awaits_value(args[at], takes):
                next(places, None)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the command line apart; of GNU grep's options that are not here say what to do."""
        plain = {at for at in self._words(args) if args[at] in ("--color=never", "--colour=never")}
        try:
            return super().parse_args(ctx, [arg for at, arg in enumerate(args) if at not in plain])
        except click.NoSuchOption as error:
            name = error.option_name
            advice = "write -C NUM" if name[1:].isdigit() else _INSTEAD.get(name)
            if advice is None:
                raise
            raise Refused(f"{name} is not here", advice, ctx) from None

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's own values
        """Search; what fails in an unforeseen way must not look as if no line was selected."""
        try:
            return super().invoke(ctx)
        except Exception as error:  # noqa: BLE001 - concluded as at the edge, but for the exit code
            code = conclude(error)
            return WRONG if code == FAILED else code

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example before the options."""
        with formatter.section("Example"):
            formatter.write(f"  {_EXAMPLE}\n")
        super().format_options(ctx, formatter)


def _awaits_value(word: str, takes: set[str]) -> bool:
    """Whether the next word is the value of this one: `--file`, `-f`, also as the end of `-nf`."""
    if word.startswith("--") or not word.startswith("-"):
        return word in takes
    first = next((at for at, letter in enumerate(word[1:]) if f"-{letter}" in takes), None)
    return first is not None and first == len(word) - 2


def _job() -> click.Command:
    """The command `matchcount` as an option of this one: its output is an option, too."""
    from gristmill.cli.generated import command_of, files
    from gristmill.options import commands

    job = command_of(commands()["matchcount"])
    job.params = [
        click.Option(["--counts"], is_flag=True, expose_value=False, help=_COUNTS_HELP),
        click.Option(
            ["-o", "--output", "output"],
            metavar="OUT",
            callback=_output,
            shell_complete=files,
            help="The directory to make.",
        ),
        *(one for one in job.params if one.name != "output"),
    ]
    job.options_metavar = "--counts -o OUT [OPTIONS]"
    job.example = "gristmill grep --counts 'ERROR [A-Z]+' logs/ -o counts/"
    job.arguments = job.arguments[:-1]
    return job


def _output(ctx: click.Context, _: click.Parameter, value: str | None) -> str | None:
    if value is None and not ctx.resilient_parsing:
        raise Refused("--counts makes a directory, which is not named", "name it with -o OUT", ctx)
    return value


def _flag(*names: str, help: str) -> Callable[[Any], Any]:  # noqa: A002 - click's word
    return click.option(*names, is_flag=True, help=help)


def _one_of(name: str, value: str, *names: str, help: str) -> Callable[[Any], Any]:  # noqa: A002
    """A flag that contradicts the others of its name: the last one counts."""
    return click.option(*names, name, flag_value=value, help=help)


def _number(*names: str, metavar: str, help: str) -> Callable[[Any], Any]:  # noqa: A002
    return click.option(*names, type=click.IntRange(0), metavar=metavar, help=help)


@click.command(
    cls=_Grep,
    context_settings={"help_option_names": ["--help"]},
    short_help="Print the lines of files that match a pattern",
)
@click.argument("words", nargs=-1, metavar="[PATTERN] [IN]...")
@click.option(
    "-e", "--regexp", "patterns", multiple=True, metavar="PATTERN", help="A pattern; repeatable."
)
@click.option(
    "-f",
    "--file",
    "pattern_files",
    multiple=True,
    metavar="FILE",
    help="A file with a pattern on each line; repeatable.",
)
@_flag("-F", "--fixed-strings", "fixed", help="Patterns are text, not regular expressions.")
@_flag("-E", "--extended-regexp", "extended", help="Accepted without effect.")
@_flag("-i", "-y", "--ignore-case", help="Upper and lower case are the same.")
@_flag("-v", "--invert-match", "invert", help="Select the lines that do not match.")
@_flag("-w", "--word-regexp", "word", help="A match must be a whole word.")
@_flag("-x", "--line-regexp", "whole_line", help="A match must be a whole line.")
@_flag("--crlf", help="A CR before the LF is not part of the line.")
@_flag("-c", "--count", help="Print how many lines are selected, for each file.")
@_flag("-o", "--only-matching", "matches", help="Print only the matches, each on its line.")
@_one_of("listed", "names", "-l", "--files-with-matches", help="Print names of files with a match.")
@_one_of(
    "listed",
    "names_without",
    "-L",
    "--files-without-match",
    help="Print names of files without a match.",
)
@_flag("-q", "--quiet", "--silent", "quiet", help="Print nothing, and stop at the first match.")
@_number("-m", "--max-count", "most", metavar="N", help="Stop in a file after N selected lines.")
@_flag("-n", "--line-number", "numbers", help="Print each line's number in front of it.")
@_flag(
    "-b", "--byte-offset", "offsets", help="Print each line's offset in the file in front of it."
)
@_one_of("named", "yes", "-H", "--with-filename", help="Print the file's name before each line.")
@_one_of("named", "no", "-h", "--no-filename", help="Do not print names of files before lines.")
@_number("-A", "--after-context", "after", metavar="N", help="Print N lines after each, too.")
@_number("-B", "--before-context", "before", metavar="N", help="Print N lines before each, too.")
@_number("-C", "--context", "around", metavar="N", help="Print N lines before and after, too.")
@_flag("-a", "--text", help="Search binary files as if they were text.")
@_flag("-s", "--no-messages", "silent", help="Do not say which files cannot be read.")
@_flag(
    "-r",
    "-R",
    "--recursive",
    "recursive",
    help="Search the current folder if IN is missing. Folders in IN are searched with or"
    " without -r.",
)
@_flag("-U", "--binary", "--line-buffered", "habit", help="Accepted without effect.")
@click.option(
    "-g",
    "--glob",
    "globs",
    multiple=True,
    metavar="GLOB",
    help="In folders, search only files whose names match; `!GLOB` passes them over. Repeatable.",
)
@_flag("--hidden", help="In folders, search also files whose names begin with . or _.")
@click.option(
    "--workers",
    type=click.IntRange(1, _MOST_WORKERS),
    metavar="N",
    envvar="GRISTMILL_WORKERS",
    help="How many threads search.  [default: one for each core] [env: GRISTMILL_WORKERS]",
)
@_flag("--json", "as_json", help="Print a summary as one JSON object on stderr at the end.")
@_flag("--counts", help="Count how often each match occurs, into -o OUT: see --counts --help.")
def grep(words: tuple[str, ...], **given: Any) -> int:  # noqa: ANN401 - click's own values
    """Print the lines of files that match PATTERN, as grep does, searched on all cores.

    IN is a file, a folder, a location in a store, or `-`. Folders are searched in the order of
    names. Without IN, standard input is searched. Compressed files are decoded. With -e or -f
    there is no PATTERN. Patterns are those of Rust's regex crate, as in ripgrep.
    """
    patterns = _patterns(given["patterns"], given["pattern_files"])
    if patterns is None:
        if not words:
            raise Refused("there is no PATTERN", "name one, and the files to search")
        patterns, words = [os.fsencode(words[0])], words[1:]
    if "" in words:
        raise Refused("a path of IN is empty", "name a file or a directory")
    inputs = list(words) or ([_HERE] if given["recursive"] else ["-"])
    began = time.monotonic()
    try:
        files, size, lines, troubles = _core.grep(patterns, inputs, _options(given), _noting(given))
    except BrokenPipeError:
        return signals.exit_code(signal.SIGPIPE)  # quietly, as others do that write to a pipe
    except (ValueError, OSError) as error:
        fail("grep", str(error))
        return WRONG
    if given["as_json"]:
        seconds = round(time.monotonic() - began, 3)
        summary = {"files": files, "bytes": size, "lines": lines, "unreadable": troubles}
        console.note(json.dumps({**summary, "seconds": seconds}))
    if troubles and not (given["quiet"] and lines):
        return WRONG
    return DONE if lines else FAILED


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

_AS_GIVEN = ("fixed", "ignore_case", "word", "whole_line", "crlf", "invert", "numbers", "offsets")

_COUNTS = ("around", "before", "after", "most")


def _options(given: dict[str, Any]) -> str:
    """The options as the engine takes them."""
    lines = {name: None if given[name] is None else min(given[name], _HUGE) for name in _COUNTS}
    around = lines["around"]
    return json.dumps(
        {
            **{name: given[name] for name in _AS_GIVEN},
            "show": _shown(given),
            "names": _NAMED[given["named"]],
            "before": around if lines["before"] is None else lines["before"],
            "after": around if lines["after"] is None else lines["after"],
            "max": lines["most"],
            "text": given["text"],
            "globs": [_glob(glob) for glob in given["globs"]],
            "hidden": given["hidden"],
            "workers": given["workers"] or _core.default_workers(),
        }
    )


def _shown(given: dict[str, Any]) -> str:
    """What is printed: of several options the first here decides, as in GNU grep."""
    if given["quiet"]:
        return "quiet"
    if given["listed"]:
        return given["listed"]
    return next((name for name in ("count", "matches") if given[name]), "lines")


def _glob(glob: str) -> str:
    """A pattern of names; the engine's are of Unicode letters."""
    if any("\udc80" <= letter <= "\udcff" for letter in glob):
        shown = console.printable(glob)
        raise Refused(f"--glob {shown} is not UTF-8", "write ? for a letter or * for several")
    return glob


def _noting(given: dict[str, Any]) -> Callable[[str, bytes], None]:
    def note(kind: str, text: bytes) -> None:
        shown = console.printable(os.fsdecode(text))
        if kind == "binary":
            console.note(f"gristmill grep: {shown}: binary file matches")
        elif not given["silent"]:
            fail("grep", shown)

    return note
