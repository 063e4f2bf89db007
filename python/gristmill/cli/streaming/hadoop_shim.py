"""`gristmill hadoop`: stands in for the `hadoop` program where scripts of others call it.

    hadoop version
    hadoop jar .../hadoop-streaming.jar ARGUMENTS      as gristmill streaming ARGUMENTS
    hadoop jar .../hadoop-mapreduce-examples.jar ...   examples.py
    hadoop distcp -update SOURCE... TARGET             as gristmill cp (distcp.py)
    hadoop fs -mkdir -put -cat -ls -du -rm -test ...   on local files, and in stores (those that
                                                       print: fs_show.py; that copy: fs_copy.py)

mrjob's Hadoop runner does all of its work with these: `python job.py -r hadoop --hadoop-bin
"gristmill hadoop" --hadoop-streaming-jar hadoop-streaming.jar input`. `hdfs://HOST/...` is a
location in a store, as `s3://...` is; so is `hdfs:///user/me` where Hadoop's configuration has a
name node as its default. Else it lies in the folder `hdfs` beside the histories of jobs.
"""

import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

from gristmill import _core
from gristmill.cli.failures import DONE, WRONG, fail
from gristmill.cli.streaming import distcp, examples, fs_copy, fs_show
from gristmill.cli.streaming.fs_failures import FsFailures
from gristmill.cli.streaming.stored import Place, Stored, place, removed
from gristmill.errors import option_of
from gristmill.store_options import with_store_options
from gristmill.streaming.parse import WrongCommandError
from gristmill.streaming.unnamed_hdfs import hdfs_folder, localized, stands_for_folder
from gristmill.terminal import console
from gristmill.terminal.progress import without_bar

__all__ = ["FILE_COMMANDS", "main"]

_VERSION = "3.4.2"
"""Whose behaviour `gristmill streaming` has."""

_HELP = """\
Usage: gristmill hadoop COMMAND [ARGS]...

  Stand in for the hadoop program where mrjob and other programs call it. Runs
  on this machine, without Hadoop.

Example:
  python job.py -r hadoop --hadoop-bin "gristmill hadoop" \\
      --hadoop-streaming-jar hadoop-streaming.jar input

Commands:
  version
      Print the version of Hadoop that this program behaves like.
  jar .../hadoop-streaming.jar ARGS...
      Run gristmill streaming with these arguments.
  jar hadoop-mapreduce-examples.jar NAME ARGS...
      Run an example of Hadoop's, with its arguments: wordcount, grep, teragen,
      terasort or teravalidate.
  distcp [OPTIONS] SOURCE... TARGET
      Copy files and directories between places, as DistCp does: -update,
      -overwrite, -delete, -i, -ptp, -bandwidth MB, -m MAPS, -f LIST.
  fs COMMAND PATH...
      Work with local files, and in stores (s3://BUCKET/KEY, hdfs://HOST/PATH;
      --store-option KEY=VALUE says how S3 is reached). hdfs:///PATH is in the
      default file system that HADOOP_CONF_DIR names; if it names none, in the
      directory hdfs in Gristmill's home (GRISTMILL_HOME).
      -text decompresses, and prints sequence files as lines of key, TAB, value.
      -setrep and -expunge have no effect here, and say so.
      -cat, -text and -getmerge print nothing of a _SUCCESS that holds a proof.
      The commands are, with their options:"""


_SEE_HELP = "see gristmill hadoop --help"

_ELSEWHERE = {
    "streaming": "write gristmill streaming",
    "job": "see gristmill jobs",
    "application": "see gristmill jobs",
    "logs": "see gristmill jobs show last --logs",
}
"""What does the work of other commands of `hadoop`, `mapred` and `yarn`."""


def main(words: Sequence[str]) -> int:
    """Run a command line of Hadoop's; returns the exit code."""
    match list(words):
        case ["version"]:
            console.say(f"Hadoop {_VERSION}", "(gristmill hadoop, which stands in for it)")
            return DONE
        case ["jar", *rest]:
            return _jar(rest)
        case ["fs" | "dfs", *rest]:
            return _with_options(rest)
        case ["distcp", *rest]:
            return _distcp(rest)
        case [("-help" | "--help" | "-h" | "help"), *_]:
            console.say(*help_text().splitlines())
            return DONE
        case []:
            console.note(*help_text().splitlines())
            return WRONG
        case unknown:
            advice = _ELSEWHERE.get(unknown[0], _SEE_HELP)
            return _refuse(f"there is no command {unknown[0]!r}", advice)


def _jar(words: list[str]) -> int:
    """Run what a jar of Hadoop's does, by its name: the file need not be there."""
    if not words:
        return _refuse("jar needs the name of a jar")
    jar, *rest = words
    name = Path(jar).name
    if not name.endswith(".jar"):
        return _refuse(f"jar {jar}: the name of a jar ends with .jar")
    if "streaming" in name:
        from gristmill.cli.streaming.launch import main as streaming

        return streaming([localized(word) for word in rest], as_hadoop=True)
    if "examples" not in name:
        return _refuse(
            f"{jar} cannot be run: there is no Java here, only Streaming and Hadoop's examples"
        )
    try:
        with without_bar():
            return examples.run(rest)
    except examples.WrongExampleError as error:
        fail("hadoop", str(error))
        return WRONG


def _distcp(words: list[str]) -> int:
    given, rest = _store_options(words)
    try:
        with with_store_options(given):
            return distcp.run(rest)
    except distcp.WrongDistCpError as error:
        fail("hadoop", f"distcp: {error}.")
        return error.code
    except WrongCommandError as error:
        fail("hadoop", f"distcp: {error}.")
        return distcp.WRONG
    except FileNotFoundError as error:
        fail("hadoop", f"distcp: {error.filename}: no such file or directory.")
        return distcp.UNKNOWN


def help_text() -> str:
    """Return what `gristmill hadoop --help` prints."""
    known = list[str]()
    for command in _COMMANDS:
        options = "".join(f" [{option}]" for option in _OPTIONS.get(command, ()))
        known += textwrap.wrap(
            command + options, 76, initial_indent=" " * 6, subsequent_indent=" " * 10
        )
    return "\n".join([_HELP, *known])


def _refuse(message: str, advice: str = _SEE_HELP) -> int:
    fail("hadoop", f"{message}. What to do: {advice}.")
    return WRONG


def _store_options(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Take the options of stores out of a command line."""
    given, rest = list[str](), list[str]()
    following = iter(words)
    for word in following:
        if word == "--store-option":
            given.append(next(following, ""))
        else:
            rest.append(word)
    return given, rest


def _with_options(words: Sequence[str]) -> int:
    """Run a command of `fs` whose stores have options, which stand anywhere among its words."""
    given, rest = _store_options(words)
    if not rest:
        return _refuse("fs needs a command")
    try:
        with with_store_options(given):
            return _file_command(rest[0], rest[1:])
    except ValueError as error:
        if option_of(error) != "store_option":
            raise
        return _refuse(str(error).removesuffix("."))


def _file_command(command: str, words: list[str]) -> int:
    options = [word for word in words if re.fullmatch(r"--?[a-zA-Z][a-zA-Z-]*", word)]
    paths = [word for word in words if word not in options]
    if command in ("-help", "--help", "-usage"):
        console.say(*help_text().splitlines())
        return DONE
    if command in {**_WITHOUT_EFFECT, **_NOT_HERE}:
        return _not_done(command)
    act = _COMMANDS.get(command)
    if act is None:
        with_dash = f"-{command}"
        advice = f"write {with_dash}" if with_dash in _COMMANDS else _SEE_HELP
        return _refuse(f"there is no command fs {command!r}", advice)
    unknown = [option for option in options if option not in _OPTIONS.get(command, ())]
    if unknown:
        return _refuse(_no_option(command, unknown[0]))
    if "" in paths:  # a variable of a script that is not set
        return _refuse("a path is empty")
    wanted = 2 if act in _TWO_PATHS else 0 if act in _NO_PATH else 1
    if len(paths) < wanted:
        what = "a source and a target" if wanted == 2 else "a path"
        return _refuse(f"fs {command} needs {what}")
    if any(map(stands_for_folder, paths)):
        hdfs_folder().mkdir(parents=True, exist_ok=True)
    failures = FsFailures(command)
    try:
        with failures.told((paths or ["."])[-1]):
            act(options, paths, failures)
    except WrongCommandError as error:
        fail("hadoop", f"{error}.")
        return WRONG
    return failures.code


def _no_option(command: str, option: str) -> str:
    known = ", ".join(_OPTIONS.get(command, ()))
    there = f"; it has {known}" if known else ": it takes none"
    return f"fs {command} has no option {option} here{there}"


def _not_done(command: str) -> int:
    """Say of a command of Hadoop's why it does nothing, or why it is refused."""
    why = _WITHOUT_EFFECT.get(command)
    if why is not None:
        console.note(f"{command[1:]}: has no effect here: {why}")
        return DONE
    what_to_do = _NOT_HERE[command]
    fail("hadoop", f"fs {command} is not supported. What to do: {what_to_do}.")
    return WRONG


def _mkdir(options: list[str], paths: list[str], failures: FsFailures) -> None:
    for path in map(place, paths):
        with failures.told(str(path)):
            path.mkdir(parents="-p" in options, exist_ok="-p" in options)


def _rm(options: list[str], paths: list[str], failures: FsFailures) -> None:
    """Remove what can be removed; of all else, say why it stays and go on."""
    for _, path in failures.expanded(paths, missing_ok="-f" in options):
        with failures.told(str(path)):
            if {"-R", "-r"} & set(options):
                removed(path)
            else:
                path.unlink()


def _rmdir(options: list[str], paths: list[str], failures: FsFailures) -> None:
    """Remove directories in which nothing is."""
    for _, path in failures.expanded(paths):
        with failures.told(str(path)):
            if not path.is_dir():
                raise NotADirectoryError(20, "Is not a directory", str(path))
            if next(iter(path.iterdir()), None) is None:
                _remove_empty(path)
            elif "--ignore-fail-on-non-empty" not in options:
                raise OSError(39, "Directory is not empty", str(path))


def _remove_empty(path: Place) -> None:
    if isinstance(path, Stored):
        _core.remove_object(str(path))  # of HDFS, which refuses it if something came in meanwhile
    else:
        path.rmdir()


def _test(options: list[str], paths: list[str], failures: FsFailures) -> None:
    checks: dict[str, Callable[[Place], bool]] = {
        "-e": lambda path: path.exists(),
        "-d": lambda path: path.is_dir(),
        "-f": lambda path: path.is_file(),
        "-s": lambda path: path.is_file() and path.stat().st_size > 0,
        "-z": lambda path: path.is_file() and path.stat().st_size == 0,
    }
    check = checks.get(options[0] if options else "-e", checks["-e"])
    if not all(check(place(text)) for text in paths):
        failures.add()


def _touchz(_: list[str], paths: list[str], failures: FsFailures) -> None:
    for path in map(place, paths):
        with failures.told(str(path)):
            if path.is_dir():
                raise IsADirectoryError(21, "Is a directory", str(path))
            if path.is_file() and path.stat().st_size > 0:
                raise OSError(22, "Not a zero-length file", str(path))
            path.touch()


def _touch(_: list[str], paths: list[str], failures: FsFailures) -> None:
    """Make files without bytes; of those that are there, set when they were changed."""
    for path in map(place, paths):
        with failures.told(str(path)):
            if isinstance(path, Stored) and path.exists():
                raise OSError(95, "A store does not let its times be set", str(path))
            path.touch()


_Command = Callable[[list[str], list[str], FsFailures], None]
"""What a command does with its options and its paths."""

_COMMANDS: dict[str, _Command] = {
    "-mkdir": _mkdir,
    "-put": fs_copy.put,
    "-copyFromLocal": fs_copy.put,
    "-get": fs_copy.get,
    "-copyToLocal": fs_copy.get,
    "-cp": fs_copy.cp,
    "-mv": fs_copy.mv,
    "-moveFromLocal": fs_copy.move_from_local,
    "-getmerge": fs_copy.getmerge,
    "-cat": fs_show.cat,
    "-text": fs_show.text,
    "-head": fs_show.head,
    "-tail": fs_show.tail,
    "-rm": _rm,
    "-rmr": lambda options, paths, failures: _rm([*options, "-R"], paths, failures),
    "-rmdir": _rmdir,
    "-ls": fs_show.ls,
    "-lsr": lambda options, paths, failures: fs_show.ls([*options, "-R"], paths, failures),
    "-du": fs_show.du,
    "-dus": lambda options, paths, failures: fs_show.du([*options, "-s"], paths, failures),
    "-count": fs_show.count,
    "-stat": fs_show.stat,
    "-test": _test,
    "-touch": _touch,
    "-touchz": _touchz,
}
_COPYING = ("-f", "-p", "-l", "-d")
_OPTIONS = {
    "-mkdir": ("-p",),
    **dict.fromkeys(("-put", "-copyFromLocal", "-moveFromLocal", "-cp"), _COPYING),
    **dict.fromkeys(("-get", "-copyToLocal"), ("-f", "-p", "-crc", "-ignoreCrc")),
    **dict.fromkeys(("-cat", "-text"), ("-ignoreCrc",)),
    "-getmerge": ("-nl", "-skip-empty-file"),
    "-rm": ("-r", "-R", "-f", "-skipTrash", "-safely"),
    "-rmr": ("-f", "-skipTrash"),
    "-rmdir": ("--ignore-fail-on-non-empty",),
    "-ls": ("-R", "-d", "-h"),
    "-lsr": ("-d", "-h"),
    "-du": ("-s", "-h"),
    "-dus": ("-h",),
    "-count": ("-h",),
    "-test": ("-e", "-d", "-f", "-s", "-z"),
}
"""Options that commands take. Those that say how Hadoop copies and removes have no effect here."""

_TWO_PATHS = (
    fs_copy.put,
    fs_copy.get,
    fs_copy.cp,
    fs_copy.mv,
    fs_copy.move_from_local,
    fs_copy.getmerge,
)

FILE_COMMANDS = tuple(_COMMANDS)
"""The commands of `hadoop fs`."""

_NO_PATH = tuple(_COMMANDS[name] for name in ("-ls", "-lsr", "-du", "-dus", "-count"))
"""Without a path they are of the folder where they run, where relative paths begin."""

_WITHOUT_EFFECT = {
    "-setrep": "a disk has one copy of a file; for an output in HDFS, give -D dfs.replication",
    "-expunge": "there is no trash: -rm removes at once",
}

_NOT_HERE = {
    "-chmod": "use chmod itself for local files, and the tools of a store for its own",
    "-chown": "use chown itself for local files, and the tools of a store for its own",
    "-chgrp": "use chgrp itself for local files, and the tools of a store for its own",
    "-appendToFile": "files of stores are written whole: use cat a >> b for local files",
    "-moveToLocal": "Hadoop has not got it either: use -get, and then -rm",
}
"""Commands that are refused, each with what to do."""
