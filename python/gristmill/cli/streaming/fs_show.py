"""The commands of `gristmill hadoop fs` that print: what is in files, and what is known of them.

-cat -text -head -tail  bytes, to stdout; of the proof in a `_SUCCESS`, -cat and -text print none
-ls -du -count -stat    a line for each file or directory; paths as they were given
"""

import grp
import os
import pwd
import re
import shutil
import stat as modes
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from gristmill import _core
from gristmill.cli.failures import DONE
from gristmill.cli.streaming.fs_failures import FsFailures
from gristmill.cli.streaming.stored import Place, Stored, StoreStat, below, is_proof, printed
from gristmill.locations import open_read, size_of
from gristmill.streaming.parse import WrongCommandError
from gristmill.streaming.unnamed_hdfs import hdfs_folder
from gristmill.terminal import console

__all__ = ["cat", "count", "du", "head", "ls", "stat", "tail", "text"]

_END_BYTES = 1024
"""What Hadoop's -head and -tail print."""

_SIZES = "KMGTPE"

_HERE = "."
"""What is listed where no path is given: relative paths begin there, in Hadoop at home."""

_PIECE_BYTES = 1 << 20
_SEQUENCE_FILE = b"SEQ"


# --- bytes ---


def cat(_: list[str], paths: list[str], failures: FsFailures) -> None:
    """Print files."""
    _print_each(paths, failures, _print_whole)


def head(_: list[str], paths: list[str], failures: FsFailures) -> None:
    """Print the first 1024 bytes of a file."""
    _print_each(paths, failures, _print_begin)


def tail(_: list[str], paths: list[str], failures: FsFailures) -> None:
    """Print the last 1024 bytes of a file."""
    _print_each(paths, failures, _print_end)


def text(_: list[str], paths: list[str], failures: FsFailures) -> None:
    """Print files as text: decompressed, and of sequence files the keys and values."""

    def print_text(path: Place) -> None:
        if is_proof(path):
            return
        with open_read(str(path)) as file:
            is_sequence_file = file.read(4)[:3] == _SEQUENCE_FILE
        if not is_sequence_file:
            _print_decoded(path)
        elif not _print_sequence_file(path):
            failures.add()

    _print_each(paths, failures, print_text)


def _print_each(paths: list[str], failures: FsFailures, print_one: Callable[[Place], None]) -> None:
    sys.stdout.flush()
    for _, path in failures.expanded(paths):
        with failures.told(str(path)):
            _refuse_directory(path)
            print_one(path)
            sys.stdout.buffer.flush()


def _print_whole(path: Place) -> None:
    if not is_proof(path):
        printed(path)


def _print_begin(path: Place) -> None:
    with open_read(str(path)) as file:
        sys.stdout.buffer.write(file.read(_END_BYTES))


def _print_end(path: Place) -> None:
    begin = max(size_of(str(path)) - _END_BYTES, 0)
    with open_read(str(path)) as file:
        file.seek(begin)
        shutil.copyfileobj(file, sys.stdout.buffer)


def _refuse_directory(path: Place) -> None:
    if path.is_dir():
        raise IsADirectoryError(21, "Is a directory", str(path))


def _print_decoded(path: Place) -> None:
    """Print what a file stands for; its name or its first bytes say whether it is compressed."""
    reader = _core.CompressedReader(str(path))
    while piece := reader.read(_PIECE_BYTES):
        sys.stdout.buffer.write(piece)


def _print_sequence_file(path: Place) -> bool:
    """Print the records of a sequence file, which a job without scripts makes text of."""
    with tempfile.TemporaryDirectory(prefix="gristmill-text-") as folder:
        source = Path(folder, "in")  # a name in which no letter stands for others
        if isinstance(path, Path):
            source.symlink_to(path.absolute())
        else:  # the job would not know its --store-option
            with open_read(str(path)) as file, source.open("wb") as to:
                shutil.copyfileobj(file, to)
        output = Path(folder, "out")
        command = [sys.executable, "-m", "gristmill", "streaming", "-numReduceTasks", "0"]
        command += ["-inputformat", "SequenceFileAsTextInputFormat"]
        command += ["-input", str(source), "-output", str(output)]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != DONE:
            said = done.stderr.replace(str(source), str(path))
            console.note(*said.replace("gristmill streaming:", "text:").splitlines())
            return False
        for part in sorted(output.glob("part-*")):
            printed(part)
    return True


# --- what is known of files ---


def ls(options: list[str], paths: list[str], failures: FsFailures) -> None:
    """Print a line for each file."""
    size = _size_in(options)
    for given, path in failures.expanded(paths or [_HERE]):
        with failures.told(str(path)):
            if "-d" in options:
                lines = iter([_listed(path, given, size)])
            else:
                lines = _lines(path, given, size, failures if "-R" in options else None)
            for line in lines:
                console.say(line)


def _lines(
    path: Place, given: str, size: Callable[[int], str], deep: FsFailures | None
) -> Iterator[str]:
    """The lines of a directory; with -R at any depth, past directories that cannot be listed."""
    if not path.is_dir():
        yield _listed(path, given, size)
    elif isinstance(path, Stored) and (deep or not _core.has_blocks(str(path))):
        # Object stores list in the order of names, and perhaps more than there is memory for: so
        # the line that says how many there are is left out.
        for child in path.rglob("*") if deep else path.iterdir():
            yield _listed(child, given, size)
    else:
        if isinstance(path, Path):
            within = below(path, deep=True, told=deep.told) if deep else below(path, deep=False)
        else:
            within = path.iterdir()
        lines = list[str]()
        for child in sorted(list[Place](within), key=str):
            with suppress(FileNotFoundError):  # it has vanished meanwhile
                lines.append(_listed(child, given, size))
        if lines and not deep:
            yield f"Found {len(lines)} items"
        yield from lines


def _listed(path: Place, given: str, size: Callable[[int], str]) -> str:
    """A line as `hadoop fs -ls` writes it: mode, copies, owner, group, size, day, time, name."""
    # Of a link that leads nowhere it says what the link itself is.
    found = path.lstat() if isinstance(path, Path) and not path.exists() else path.stat()
    shown_size = size(0 if path.is_dir() else found.st_size)
    # What only names begin with has no time; Hadoop shows the present one, too.
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.st_mtime or None))
    mode = _mode(path, found)
    return f"{mode} {_owners(found)} {shown_size:>10} {when} {shown(path, given)}"


def _mode(path: Place, found: os.stat_result | StoreStat) -> str:
    """Who may do what, and how many copies there are; of stores, what is usual."""
    kind, copies = ("d", "-") if path.is_dir() else ("-", "1")
    return f"{kind}{_rights(path, found)}   {copies}"


def _rights(path: Place, found: os.stat_result | StoreStat) -> str:
    if isinstance(found, os.stat_result):
        return modes.filemode(found.st_mode)[1:]
    return "rwxr-xr-x" if path.is_dir() else "rw-r--r--"


def _octal(rights: str) -> str:
    """Return rights as a number.

    Example:
        >>> _octal("rwxr-x---"), _octal("rwsr-xr-t")
        ('750', '5755')
    """
    bits = int("".join("01"[letter not in "-ST"] for letter in rights), 2)
    special = int("".join("01"[letter in "sStT"] for letter in rights[2::3]), 2)
    return f"{special << 9 | bits:o}"


def _owners(found: os.stat_result | StoreStat) -> str:
    """The owner and the group of a local file; of a store, which does not say, the user twice."""
    if not isinstance(found, os.stat_result):
        user = os.environ.get("USER", "user")
        return f"{user} {user}"
    owner, group = str(found.st_uid), str(found.st_gid)
    with suppress(KeyError):  # nobody has that number
        owner = pwd.getpwuid(found.st_uid).pw_name
    with suppress(KeyError):
        group = grp.getgrgid(found.st_gid).gr_name
    return f"{owner} {group}"


def shown(path: Place, given: str) -> str:
    """Return a path, with the scheme of the word that led to it.

    Example:
        >>> shown(Path("/a/b"), "/a"), shown(Path("/a/b"), "file:///a")
        ('/a/b', 'file:///a/b')
        >>> shown(Stored("s3://bucket/a/b"), "s3a://bucket/a")
        's3a://bucket/a/b'
    """
    scheme, colon, _ = given.partition(":/")
    if isinstance(path, Stored):
        found, _, rest = str(path).partition("://")
        return f"{scheme if colon else found}://{rest}"
    root = hdfs_folder()
    if scheme == "hdfs" and path.is_relative_to(root):
        return f"hdfs:///{path.relative_to(root)}"
    return f"file://{path.absolute()}" if scheme == "file" else str(path)


def du(options: list[str], paths: list[str], failures: FsFailures) -> None:
    """Print the bytes of files, of directories those of each child; with -s their sum."""
    size = _size_in(options)
    for given, path in failures.expanded(paths or [_HERE]):
        with failures.told(str(path)):
            of_itself = "-s" in options or not path.is_dir()
            for one in [path] if of_itself else sorted(list[Place](path.iterdir()), key=str):
                with failures.told(str(one)):
                    _, _, total = _counted(one)
                    console.say(f"{size(total)}  {size(total)}  {shown(one, given)}")


def count(options: list[str], paths: list[str], failures: FsFailures) -> None:
    """Print how many directories and files there are, and how many bytes they have."""
    size = _size_in(options)
    for given, path in failures.expanded(paths or [_HERE]):
        with failures.told(str(path)):
            folders, files, total = _counted(path)
            counts = f"{size(folders):>12} {size(files):>12} {size(total):>18}"
            console.say(f"{counts} {shown(path, given)}")


def _size_in(options: list[str]) -> Callable[[int], str]:
    return readable if "-h" in options else str


def readable(amount: int) -> str:
    """Return an amount as Hadoop's -h prints it: in powers of 1024, halves rounded up.

    Example:
        >>> readable(1023), readable(2048), readable(1280), readable(1048575)
        ('1023', '2 K', '1.3 K', '1.0 M')
    """
    power = max((amount.bit_length() - 1) // 10, 0)
    if power == 0:
        return str(amount)
    unit = 1 << 10 * power
    if amount % unit == 0:
        return f"{amount // unit} {_SIZES[power - 1]}"
    tenths = (20 * amount + unit) // (2 * unit)
    if tenths >= 10240 and power < len(_SIZES):
        unit <<= 10
        power, tenths = power + 1, (20 * amount + unit) // (2 * unit)
    return f"{tenths // 10}.{tenths % 10} {_SIZES[power - 1]}"


def _counted(path: Place) -> tuple[int, int, int]:
    """Directories, itself included; files; and their bytes. A dangling link is not counted."""
    if isinstance(path, Path) and path.is_symlink() and not path.exists():
        return 0, 0, 0
    if not path.is_dir():
        return 0, 1, path.stat().st_size
    folders, files, total = 1, 0, 0
    for child in below(path, deep=True) if isinstance(path, Path) else path.rglob("*"):
        if child.is_dir():
            folders += 1
        elif child.is_file():
            files += 1
            total += child.stat().st_size
    return folders, files, total


def stat(_: list[str], words: list[str], failures: FsFailures) -> None:
    """Print what a format asks of each file: by default when it was changed.

    Raises:
        WrongCommandError: The format asks for what is not known here.
    """
    form, paths = (words[0], words[1:]) if "%" in words[0] and words[1:] else ("%y", words)
    unknown = re.search("%[oxX]", form.replace("%%", ""))
    if unknown:
        raise WrongCommandError(f"fs -stat has no {unknown[0]} here: leave it out")
    for _given, path in failures.expanded(paths):
        with failures.told(str(path)):
            console.say(_formatted(form, path))


def _formatted(form: str, path: Place) -> str:
    found = path.stat()
    owner, group = _owners(found).split(" ", 1)
    rights = _rights(path, found)
    values = {
        "%A": rights,
        "%a": _octal(rights),
        "%F": "directory" if path.is_dir() else "regular file",
        "%b": str(0 if path.is_dir() else found.st_size),
        "%g": group,
        "%n": path.name,
        "%r": "0" if path.is_dir() else "1",
        "%u": owner,
        "%y": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(found.st_mtime)),
        "%Y": str(int(found.st_mtime * 1000)),
        "%%": "%",
    }
    made, at = "", 0
    while at < len(form):
        mark = form[at : at + 2]
        made += values.get(mark, form[at])
        at += 2 if mark in values else 1
    return made
