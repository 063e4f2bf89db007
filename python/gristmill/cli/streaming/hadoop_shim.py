"""`gristmill hadoop`: stands in for the `hadoop` program where scripts of others call it.

    hadoop version
    hadoop jar .../hadoop-streaming.jar ARGUMENTS      as gristmill streaming ARGUMENTS
    hadoop fs -mkdir -put -cat -ls -du -rm -test ...   on local files, and in stores

mrjob's Hadoop runner does all of its work with these: `python job.py -r hadoop --hadoop-bin
"gristmill hadoop" --hadoop-streaming-jar hadoop-streaming.jar input`. `hdfs://HOST/...` is a
location in a store, as `s3://...` is; so is `hdfs:///user/me` where Hadoop's configuration has a
name node as its default. Else it lies in the folder `hdfs` beside the histories of jobs.
"""

import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from gristmill.cli.failures import DONE, FAILED, WRONG
from gristmill.cli.streaming.stored import Place, Stored, copied, matches, moved, place, printed
from gristmill.errors import option_of
from gristmill.store_options import with_store_options
from gristmill.streaming.inputs import InputMissingError
from gristmill.streaming.parse import WrongCommandError
from gristmill.streaming.unnamed_hdfs import hdfs_folder, localized
from gristmill.terminal import console

__all__ = ["main"]

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
  fs COMMAND PATH...
      Work with local files, and in stores (s3://BUCKET/KEY, hdfs://HOST/PATH;
      --store-option KEY=VALUE says how S3 is reached). hdfs:///PATH is in the
      default file system that HADOOP_CONF_DIR names; if it names none, in the
      folder hdfs in Gristmill's home (GRISTMILL_HOME).
      The commands are:"""


def main(words: Sequence[str]) -> int:
    """Run a command line of Hadoop's; returns the exit code."""
    match [localized(word) for word in words]:
        case ["version"]:
            console.say(f"Hadoop {_VERSION}", "(gristmill hadoop, which stands in for it)")
            return DONE
        case ["jar", jar, *rest] if "streaming" in Path(jar).name:
            from gristmill.cli.streaming.launch import main as streaming

            return streaming(rest)
        case ["jar", jar, *_]:
            return _refuse(f"{jar} cannot be run: there is no Java here, only Streaming")
        case ["fs" | "dfs", *rest]:
            return _with_options(rest)
        case [("-help" | "--help" | "-h" | "help"), *_]:
            console.say(*help_text().splitlines())
            return DONE
        case []:
            console.note(*help_text().splitlines())
            return WRONG
        case unknown:
            return _refuse(f"there is no command {unknown[0]!r}")


def help_text() -> str:
    """Return what `gristmill hadoop --help` prints."""
    commands = "  ".join(_COMMANDS)
    known = textwrap.wrap(commands, 70, initial_indent="      ", subsequent_indent="      ")
    return "\n".join([_HELP, *known])


def _refuse(message: str) -> int:
    console.note(f"gristmill hadoop: {message}. What to do: see gristmill hadoop --help.")
    return WRONG


def _with_options(words: Sequence[str]) -> int:
    """Run a command of `fs` whose stores have options, which stand anywhere among its words."""
    given, rest = list[str](), list[str]()
    following = iter(words)
    for word in following:
        if word == "--store-option":
            given.append(next(following, ""))
        else:
            rest.append(word)
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
    options = [word for word in words if re.fullmatch(r"-[a-zA-Z]+", word)]
    paths = [word for word in words if word not in options]
    if command in ("-help", "--help", "-usage"):
        console.say(*help_text().splitlines())
        return DONE
    act = _COMMANDS.get(command)
    if act is None:
        return _refuse(f"there is no command fs {command!r}")
    wanted = 2 if act in (_put, _get, _cp, _mv) else 1
    if len(paths) < wanted:
        what = "a source and a target" if wanted == 2 else "a path"
        return _refuse(f"fs {command} needs {what}")
    try:
        return act(options, paths)
    except WrongCommandError as error:
        return _refuse(str(error))
    except BrokenPipeError:
        raise  # of -cat: nobody reads on
    except OSError as error:
        # As Hadoop words it, which programs look for: mrjob does.
        what = error.strerror or str(error)
        to = f" to `{error.filename2}'" if error.filename2 else ""
        console.note(f"{command[1:]}: `{error.filename or paths[-1]}'{to}: {what}")
        return FAILED


def _expanded(paths: list[str]) -> list[Place]:
    found = list[Place]()
    for text in paths:
        there = matches(text)
        if not there:
            raise InputMissingError(2, "No such file or directory", text)
        found += there
    return found


def _mkdir(options: list[str], paths: list[str]) -> int:
    for path in map(place, paths):
        path.mkdir(parents="-p" in options, exist_ok="-p" in options)
    return DONE


def _put(options: list[str], paths: list[str]) -> int:
    return _copy(options, [place(text) for text in paths[:-1]], place(paths[-1]))


def _copy(options: list[str], sources: list[Place], target: Place) -> int:
    for source in sources:
        to = _named(source, target)
        if to.exists() and "-f" not in options:
            raise FileExistsError(17, "File exists", str(to))
        if not source.exists():
            raise FileNotFoundError(2, "No such file or directory", str(source))
        if _same(source, to):
            raise OSError(22, "are identical", str(source), None, str(to))
        copied(source, to)
    return DONE


def _named(source: Place, target: Place) -> Place:
    """The name that a source gets: below a target that is a directory, which it does not hold."""
    to = target / source.name if target.is_dir() else target
    if source.is_dir() and str(to).startswith(f"{source}/"):
        raise OSError(22, "is a subdirectory of itself", str(source), None, str(to))
    return to


def _same(source: Place, to: Place) -> bool:
    if isinstance(source, Path) and isinstance(to, Path):
        return to.exists() and to.samefile(source)
    return str(to) == str(source)


def _get(options: list[str], paths: list[str]) -> int:
    return _copy(options, _expanded(paths[:-1]), place(paths[-1]))


def _cp(options: list[str], paths: list[str]) -> int:
    return _copy(options, *_with_target(paths))


def _mv(_: list[str], paths: list[str]) -> int:
    sources, target = _with_target(paths)
    for source in sources:
        to = _named(source, target)
        if to.exists():
            raise FileExistsError(17, "File exists", str(to))
        moved(source, to)
    return DONE


def _with_target(paths: list[str]) -> tuple[list[Place], Place]:
    """What is copied or moved, and where to: several go into a directory only."""
    sources, target = _expanded(paths[:-1]), place(paths[-1])
    if len(sources) > 1 and not target.is_dir():
        what = "Is not a directory" if target.exists() else "No such file or directory"
        raise OSError(20, what, str(target))
    return sources, target


def _cat(_: list[str], paths: list[str]) -> int:
    sys.stdout.flush()
    for path in _expanded(paths):
        printed(path)
    sys.stdout.buffer.flush()
    return DONE


def _rm(options: list[str], paths: list[str]) -> int:
    whole = bool({"-R", "-r"} & set(options))
    for text in paths:
        there = matches(text)
        if not there and "-f" not in options:
            raise InputMissingError(2, "No such file or directory", text)
        for path in there:
            if path.is_dir() and whole:
                _remove_below(path)
            else:
                path.unlink()
    return DONE


def _remove_below(path: Place) -> None:
    if isinstance(path, Path):
        shutil.rmtree(path)
        return
    path.remove_whole()


def _ls(options: list[str], paths: list[str]) -> int:
    deep = "-R" in options
    for path in _expanded(paths):
        children = (path.rglob("*") if deep else path.iterdir()) if path.is_dir() else [path]
        # Stores list in the order of names, and perhaps more than there is memory for.
        for child in children if isinstance(path, Stored) else sorted(children, key=str):
            console.say(_listed(child))
    return DONE


def _lsr(options: list[str], paths: list[str]) -> int:
    return _ls([*options, "-R"], paths)


def _listed(path: Place) -> str:
    """A line as `hadoop fs -ls` writes it: mode, copies, owner, group, size, day, time, name."""
    found = path.stat()
    kind = "drwxr-xr-x   -" if path.is_dir() else "-rw-r--r--   1"
    size = 0 if path.is_dir() else found.st_size
    # What only names begin with has no time; Hadoop shows the present one, too.
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.st_mtime or None))
    owner = os.environ.get("USER", "user")
    return f"{kind} {owner} {owner} {size:10} {when} {_shown(path)}"


def _shown(path: Place) -> str:
    """A path below the stand-in's own folder as HDFS has it, which is from that folder on."""
    if isinstance(path, Stored):
        return str(path)
    root = hdfs_folder()
    return f"/{path.relative_to(root)}" if path.is_relative_to(root) else f"file:{path.absolute()}"


def _du(_: list[str], paths: list[str]) -> int:
    for path in _expanded(paths):
        files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
        total = sum(file.stat().st_size for file in files)
        console.say(f"{total}  {total}  {_shown(path)}")
    return DONE


def _test(options: list[str], paths: list[str]) -> int:
    checks: dict[str, Callable[[Place], bool]] = {
        "-e": lambda path: path.exists(),
        "-d": lambda path: path.is_dir(),
        "-f": lambda path: path.is_file(),
        "-s": lambda path: path.is_file() and path.stat().st_size > 0,
        "-z": lambda path: path.is_file() and path.stat().st_size == 0,
    }
    check = checks.get(options[0] if options else "-e", checks["-e"])
    return DONE if all(check(place(text)) for text in paths) else FAILED


def _touchz(_: list[str], paths: list[str]) -> int:
    for path in map(place, paths):
        path.touch()
    return DONE


_COMMANDS: dict[str, Callable[[list[str], list[str]], int]] = {
    "-mkdir": _mkdir,
    "-put": _put,
    "-copyFromLocal": _put,
    "-get": _get,
    "-copyToLocal": _get,
    "-cp": _cp,
    "-mv": _mv,
    "-cat": _cat,
    "-text": _cat,
    "-rm": _rm,
    "-rmr": lambda options, paths: _rm([*options, "-R"], paths),
    "-ls": _ls,
    "-lsr": _lsr,
    "-du": _du,
    "-test": _test,
    "-touchz": _touchz,
}
