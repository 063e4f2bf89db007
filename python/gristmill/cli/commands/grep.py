"""`gristmill grep`: the lines of files that match, on all cores, with GNU grep's options.

    options ──▶ _core.grep ──▶ lines on stdout, straight from the engine
                           ──▶ what cannot be read, what is binary: stderr
    exit code: 0 a line was selected, 1 none was, 2 trouble, a defect of Gristmill among it

`grep --counts` is a job of its own, with an output directory: the command `matchcount`.
"""

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import click

from gristmill import _core
from gristmill.cli.failures import DONE, FAILED, WRONG, Refused, conclude, fail
from gristmill.cli.gnu.grep_words import (
    SHOWN,
    engine_words,
    hint_at_basic,
    patterns_and_inputs,
    selects_nothing,
)
from gristmill.cli.groups import PlainCommand
from gristmill.cli.numbers import whole_number
from gristmill.search import STANDARD_INPUT, WORKERS_MAX, conditions, looks_like
from gristmill.terminal import console, signals

__all__ = ["grep"]

_HERE = ""
"""The current folder, whose name does not stand before those of its files."""

_EXAMPLE = "gristmill grep -n 'time(d )?out' logs/ s3://bucket/logs/"

_FILES = "gristmill.grep_files"
"""Where click's context has the patterns of --include and --exclude."""

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
        from gristmill.cli.gnu.gnu_grep import spelled

        names = [name for option in self.params for name in option.opts]
        takes = self._with_values()
        places = iter(range(len(args)))
        for at in places:
            if args[at] == "--":
                return
            yield at
            if _awaits_value(spelled([args[at]], names)[0], takes):
                next(places, None)

    def _with_values(self) -> set[str]:
        """The names of options that take a value."""
        return {
            name
            for option in self.params
            if isinstance(option, click.Option) and not option.is_flag
            for name in option.opts
        }

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the command line apart; of others' options that are not here say what to do."""
        words = self._spelled(args)
        ctx.meta[_FILES] = list(self._files(words))
        try:
            return super().parse_args(ctx, list(words))  # click empties its list
        except click.NoSuchOption as error:
            from gristmill.cli.gnu.gnu_grep import INSTEAD

            name = error.option_name
            if name[1:].isdigit():
                raise self._number_behind_a_letter(name[1:], words, ctx) from None
            advice = INSTEAD.get(name)
            if advice is None:
                raise
            raise Refused(f"{name} is not here", advice, ctx) from None

    def _number_behind_a_letter(
        self, digit: str, words: list[str], ctx: click.Context
    ) -> click.UsageError:
        """What is said of `-n5`, where no option takes the number."""
        takes = "".join(name[1:] for name in self._with_values() if len(name) == 2)
        flags = re.compile(f"-[^-{takes}]*{digit}")
        word = next(words[at] for at in self._words(words) if flags.match(words[at]))
        what = f"the number in {console.printable(word[:SHOWN])} belongs to no option"
        advice = "write -C N for N lines around each line, or -m N for at most N lines"
        return Refused(what, advice, ctx)

    def _spelled(self, args: list[str]) -> list[str]:
        """The command line with GNU grep's spellings as click takes them."""
        from gristmill.cli.gnu.gnu_grep import spelled

        names = [name for option in self.params for name in option.opts]
        at = list(self._words(args))
        changed = dict(zip(at, spelled([args[place] for place in at], names), strict=True))
        return [changed.get(place, word) for place, word in enumerate(args)]

    def _files(self, words: list[str]) -> Iterator[tuple[str, bool]]:
        """The patterns of --include and --exclude in their order, which decides."""
        for at in self._words(words):
            name, equals, glob = words[at].partition("=")
            if name in ("--include", "--exclude"):
                following = words[at + 1] if at + 1 < len(words) else ""
                yield glob if equals else following, name == "--exclude"

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
    from gristmill.cli.generated import JobCommand, command_of, files
    from gristmill.options import commands

    class Counts(JobCommand):
        """The job: its patterns may be options, as those of a search are."""

        def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
            try:
                rest = super().parse_args(ctx, args)
            except click.NoSuchOption as error:
                if not any(error.option_name in one.opts for one in grep.params):
                    raise
                what = f"--counts does not take {error.option_name}"
                raise Refused(what, "see gristmill grep --counts --help", ctx) from None
            words: tuple[str, ...] = ctx.params.pop("words")
            given, named = ctx.params.pop("patterns"), ctx.params.pop("pattern_files")
            if not ctx.resilient_parsing:
                patterns, inputs = patterns_and_inputs(words, given, named, ctx)
                if not inputs:
                    raise Refused("there is no INPUT", "name a file or a directory", ctx)
                ctx.params |= {"pattern": os.fsdecode(b"\n".join(patterns)), "inputs": inputs}
            return rest

    job = command_of(commands()["matchcount"])
    ours = [one for one in grep.params if one.name in ("patterns", "pattern_files")]
    return Counts(
        name=job.name,
        help=job.help,
        short_help=job.short_help,
        params=[
            click.Argument(["words"], nargs=-1, metavar="PATTERN INPUT...", shell_complete=files),
            click.Option(["--counts"], is_flag=True, expose_value=False, help=_COUNTS_HELP),
            click.Option(
                ["-o", "--output", "output"],
                metavar="OUT",
                callback=_output,
                shell_complete=files,
                help="The directory to make.",
            ),
            *ours,
            *(one for one in job.params if one.name not in ("pattern", "inputs", "output")),
        ],
        context_settings=job.context_settings,
        callback=job.callback,
        options_metavar="--counts -o OUT [OPTIONS]",
        example="gristmill grep --counts 'ERROR [A-Z]+' logs/ -o counts/",
        arguments=job.arguments[:-1],
    )


def _output(ctx: click.Context, _: click.Parameter, value: str | None) -> str | None:
    if value is None and not ctx.resilient_parsing:
        raise Refused("--counts makes a directory, which is not named", "name it with -o OUT", ctx)
    return value


def _flag(*names: str, help: str) -> Callable[[Any], Any]:  # noqa: A002 - click's word
    return click.option(*names, is_flag=True, help=help)


def _one_of(name: str, value: str, *names: str, help: str) -> Callable[[Any], Any]:  # noqa: A002
    """A flag that contradicts the others of its name: the last one counts."""
    return click.option(*names, name, flag_value=value, help=help)


def _directories(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value not in (None, "recurse"):
        raise Refused("-d can only be recurse", "name files, not directories", ctx)


def _number(*names: str, help: str, least: int | None = 0) -> Callable[[Any], Any]:  # noqa: A002
    return click.option(*names, type=whole_number(least), metavar="N", help=help)


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
@click.option(
    "--and",
    "all_of",
    multiple=True,
    metavar="PATTERN",
    help="A line must also match this pattern; repeatable: all of them.",
)
@click.option(
    "--not",
    "none_of",
    multiple=True,
    metavar="PATTERN",
    help="A line must not match this pattern; repeatable: none of them.",
)
@_flag("-F", "--fixed-strings", "fixed", help="Patterns are text, not regular expressions.")
@_flag("-E", "--extended-regexp", "extended", help="Accepted without effect.")
@_one_of("cased", "no", "-i", "-y", "--ignore-case", help="Upper and lower case are the same.")
@_one_of("cased", "yes", "--no-ignore-case", help="Case matters, also after -i.")
@_flag(
    "-v",
    "--invert-match",
    "invert",
    help="Select the lines that do not match, or that --and or --not leaves out.",
)
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
@_flag("-Z", "--null", "null_names", help="Print a NUL after names of files, for xargs -0.")
@_flag("-q", "--quiet", "--silent", "quiet", help="Print nothing, and stop at the first match.")
@_number(
    "-m",
    "--max-count",
    "most",
    least=None,
    help="Stop in a file after N selected lines. A negative N sets no limit.",
)
@_flag("-n", "--line-number", "numbers", help="Print each line's number in front of it.")
@_flag(
    "-b", "--byte-offset", "offsets", help="Print each line's offset in the file in front of it."
)
@_one_of("named", "yes", "-H", "--with-filename", help="Print the file's name before each line.")
@_one_of("named", "no", "-h", "--no-filename", help="Do not print names of files before lines.")
@_number("-A", "--after-context", "after", help="Print N lines after each, too.")
@_number("-B", "--before-context", "before", help="Print N lines before each, too.")
@_number("-C", "--context", "around", help="Print N lines before and after, too.")
@click.option(
    "--group-separator",
    "separator",
    default="--",
    metavar="SEP",
    help="Print SEP between groups of lines.  [default: --]",
)
@_flag("--no-group-separator", "no_separator", help="Print nothing between groups of lines.")
@click.option(
    "--color",
    "--colour",
    "colour",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    metavar="[=WHEN]",
    help="When to colour matches, names and numbers: always, never, or auto (on a terminal, if"
    " NO_COLOR is not set).  [default: auto]",
)
@_one_of("binary", "text", "-a", "--text", help="Search binary files as if they were text.")
@_one_of("binary", "without-match", "-I", help="Select no line of binary files.")
@click.option(
    "--binary-files",
    "binary",
    type=click.Choice(["binary", "text", "without-match"]),
    metavar="TYPE",
    help="How binary files are searched: binary (print only that the file matches), text (as -a) or"
    " without-match (as -I).  [default: binary]",
)
@_flag("-z", "--null-data", "null_data", help="Lines end at a NUL, in files and in the output.")
@click.option(
    "--label",
    default=STANDARD_INPUT,
    metavar="NAME",
    help="Call standard input NAME.  [default: (standard input)]",
)
@_flag("-s", "--no-messages", "silent", help="Do not say which files cannot be read.")
@_flag(
    "-r",
    "-R",
    "--recursive",
    "--dereference-recursive",
    "recursive",
    help="Search the current directory if IN is missing. Directories in IN are searched with or"
    " without -r; links in them are not followed.",
)
@_flag("-U", "--binary", "--line-buffered", "habit", help="Accepted without effect.")
@click.option(
    "-g",
    "--glob",
    "globs",
    multiple=True,
    metavar="GLOB",
    help="In directories, search only files whose names match; `!GLOB` passes them over."
    " Repeatable.",
)
@click.option(
    "--include",
    "included",
    multiple=True,
    metavar="GLOB",
    help="Search only files whose names match. If several --include and --exclude match a"
    " name, the last one decides; repeatable.",
)
@click.option(
    "--exclude",
    "excluded",
    multiple=True,
    metavar="GLOB",
    help="Pass over files whose names match; repeatable.",
)
@click.option(
    "--exclude-dir",
    "folders",
    multiple=True,
    metavar="GLOB",
    help="Pass over directories whose names match; repeatable.",
)
@click.option("-d", "--directories", callback=_directories, expose_value=False, hidden=True)
@_flag("--hidden", help="In directories, search also files whose names begin with . or _.")
@click.option(
    "--workers",
    type=whole_number(1, WORKERS_MAX),
    metavar="N",
    envvar="GRISTMILL_WORKERS",
    help="How many threads search.  [default: one for each core] [env: GRISTMILL_WORKERS]",
)
@_flag("--json", "as_json", help="Print a summary as one JSON object on stderr at the end.")
@_flag(
    "--counts",
    help="Count how often each match occurs, into the directory -o OUT: see grep --counts --help.",
)
def grep(words: tuple[str, ...], **given: Any) -> int:  # noqa: ANN401 - click's own values
    """Print the lines of files that match PATTERN, as grep does, searched on all cores.

    IN is a file, a directory, a location in a store, or `-`. Directories are searched in the order
    of names. Without IN, standard input is searched. Compressed files are decompressed. With -e or
    -f there is no PATTERN. Patterns are those of Rust's regex crate, as in ripgrep.
    """
    patterns, words = patterns_and_inputs(words, given["patterns"], given["pattern_files"])
    if "" in words:
        raise Refused("a path of IN is empty", "name a file or a directory")
    inputs = list(words) or ([_HERE] if given["recursive"] else ["-"])
    if selects_nothing(patterns, given):
        inputs = []
    all_of, none_of = ([os.fsencode(one) for one in given[name]] for name in ("all_of", "none_of"))
    more = conditions(all_of, none_of, ("--and", "--not"))
    options = engine_words(given, click.get_current_context().meta[_FILES])
    began = time.monotonic()
    try:
        files, size, lines, troubles = _core.grep(patterns, more, inputs, options, _noting(given))
    except BrokenPipeError:
        return signals.exit_code(signal.SIGPIPE)  # quietly, as others do that write to a pipe
    except (ValueError, OSError) as error:
        fail("grep", str(error))
        return WRONG
    if given["as_json"]:
        seconds = round(time.monotonic() - began, 3)
        summary = {"files": files, "bytes": size, "lines": lines, "unreadable": troubles}
        console.note(json.dumps({**summary, "seconds": seconds}))
    if not lines and not (given["quiet"] or given["silent"] or given["fixed"] or given["invert"]):
        hint_at_basic("grep", "nothing was selected", [*patterns, *all_of])
    if troubles and not (given["quiet"] and lines):
        return WRONG
    return DONE if lines else FAILED


def _noting(given: dict[str, Any]) -> Callable[[str, bytes], None]:
    def note(kind: str, text: bytes) -> None:
        shown = console.printable(os.fsdecode(text))
        if kind == "binary":
            console.note(f"gristmill grep: {shown}: binary file matches")
        elif kind == "suspected":
            encoding, _, name = shown.partition(" ")
            if not (given["silent"] or given["quiet"]):
                console.note(f"gristmill grep: {name}: {looks_like(encoding)}")
        elif kind == "waiting":
            console.note(f"gristmill grep: {shown}")
        elif not given["silent"]:
            fail("grep", shown)

    return note
