"""Runs `gristmill sort` on bytes, makes texts that are hard to sort, and says what must come out.

Two oracles: GNU sort for lines, and for records of fixed length a few lines of Python. Outputs are
compared by `same`, which names the first difference: pytest would show tens of megabytes.
"""

import random
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from .harness import GRISTMILL, clean_environment, names

Preexec = Callable[[], None]

HOSTILE = b"\0\r\xff\x80aab \t"
"""Bytes that programs stumble over, and some that repeat."""


@dataclass(frozen=True)
class Sorted:
    """A run that is over."""

    status: int
    stdout: bytes
    stderr: str


@contextmanager
def nothing_of_ours_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Inside, a test runs in `tmp_path`, with a TMPDIR of its own; nothing of ours stays there."""
    temporary = clear(tmp_path / "temporary")
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.chdir(tmp_path)
    yield
    assert names(temporary) == []
    assert leftovers(tmp_path) == []


def try_sort(
    *arguments: str | Path,
    stdin: bytes | IO[bytes] = b"",
    cwd: Path | None = None,
    preexec: Preexec | None = None,
) -> Sorted:
    """Run `gristmill sort` to its end, whatever its exit status."""
    stdin_bytes = stdin if isinstance(stdin, bytes) else None
    process = subprocess.Popen(
        [GRISTMILL, "sort", *map(str, arguments)],
        stdin=subprocess.PIPE if isinstance(stdin, bytes) else stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=clean_environment(),
        preexec_fn=preexec,  # noqa: PLW1509
    )
    with _ended(process):
        return end(process, stdin=stdin_bytes)


def sort(*arguments: str | Path, stdin: bytes | IO[bytes] = b"", cwd: Path | None = None) -> bytes:
    """Sort what must succeed; returns what is on stdout."""
    done = try_sort(*arguments, stdin=stdin, cwd=cwd)
    assert done.status == 0, (arguments, done.status, done.stderr)
    return done.stdout


def refusal(
    *arguments: str | Path,
    status: int = 1,
    stdin: bytes | IO[bytes] = b"",
    cwd: Path | None = None,
    preexec: Preexec | None = None,
) -> str:
    """Sort what must fail; returns the one paragraph on stderr that says why. Stdout is empty."""
    done = try_sort(*arguments, stdin=stdin, cwd=cwd, preexec=preexec)
    assert done.status == status, (arguments, done.status, done.stderr)
    assert done.stdout == b"", done.stdout[:200]
    assert done.stderr.startswith("gristmill sort: "), done.stderr
    assert done.stderr.endswith("\n"), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.removeprefix("gristmill sort: ")


@contextmanager
def begin(
    *arguments: str | Path,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
) -> Generator[subprocess.Popen[bytes], None, None]:
    """Start a sort that will be met halfway, with Ctrl-C as in a terminal; it ends when left."""
    process = subprocess.Popen(
        [GRISTMILL, "sort", *map(str, arguments)],
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=clean_environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    with _ended(process):
        yield process


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Generator[None, None, None]:
    with process:
        try:
            yield
        finally:
            process.kill()


def end(
    process: subprocess.Popen[bytes], timeout_s: float = 90.0, stdin: bytes | None = None
) -> Sorted:
    """Wait for the end of what was begun."""
    stdout, stderr = process.communicate(stdin, timeout=timeout_s)
    said = stderr.decode(errors="backslashreplace")
    assert "Traceback" not in said, said
    assert "panicked" not in said, said
    return Sorted(process.returncode, stdout or b"", said)


@contextmanager
def endless() -> Generator[IO[bytes], None, None]:
    """Input without end: lines that are all equal."""
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as yes:
        assert yes.stdout is not None
        try:
            yield yes.stdout
        finally:
            yes.kill()


def shell(command: str, cwd: Path, timeout_s: float = 90.0) -> Sorted:
    """Run a line of bash, where `$gristmill` is the program; any command of a pipe may fail it."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        cwd=cwd,
        env=clean_environment(gristmill=str(GRISTMILL), LC_ALL="C"),
        timeout=timeout_s,
        check=False,
    )
    return Sorted(done.returncode, done.stdout, done.stderr.decode(errors="backslashreplace"))


# --- oracles ---


def gnu_sort(*arguments: str | Path, stdin: bytes = b"") -> bytes:
    """Return what GNU sort writes in the C locale."""
    command = ["sort", *map(str, arguments)]
    environment = clean_environment(LC_ALL="C")
    return subprocess.run(
        command, input=stdin, stdout=subprocess.PIPE, env=environment, check=True
    ).stdout


def naive_fixed(data: bytes, length: int, key_length: int | None, flags: set[str]) -> bytes:
    """Return records of fixed length sorted the simple way."""
    key_length = length if key_length is None else key_length
    records = [data[at : at + length] for at in range(0, len(data), length)]
    stable = bool(flags & {"-s", "-u"})
    compared = key_length if stable else length
    records.sort(key=lambda record: record[:compared], reverse="-r" in flags)
    if "-u" in flags:
        firsts: dict[bytes, bytes] = {}
        for record in records:
            firsts.setdefault(record[:key_length], record)
        records = list(firsts.values())
    return b"".join(records)


def same(found: bytes | Path, expected: bytes | Path) -> None:
    """Both are the same bytes; else say where they differ first."""
    found, expected = (
        content if isinstance(content, bytes) else content.read_bytes()
        for content in (found, expected)
    )
    if found == expected:
        return
    at = next(
        (at for at, (one, other) in enumerate(zip(found, expected, strict=False)) if one != other),
        min(len(found), len(expected)),
    )
    near = slice(max(0, at - 40), at + 40)
    raise AssertionError(
        f"{len(found)} bytes, expected {len(expected)}; they differ at {at}:"
        f" {found[near]!r}, expected {expected[near]!r}"
    )


# --- texts ---


def noise(size: int, alphabet: bytes, newline_share: float, seed: int) -> bytes:
    """Return random bytes of a small alphabet, of which so many are newlines: also empty lines."""
    newlines = round(256 * newline_share)
    table = b"\n" * newlines + (alphabet * 256)[: 256 - newlines]
    return random.Random(seed).randbytes(size).translate(table)


def cut(text: bytes, folder: Path, count: int, seed: int) -> list[Path]:
    """Cut a text anywhere into so many files: their last lines may have no newline."""
    places = sorted(random.Random(seed).randrange(len(text) + 1) for _ in range(count - 1))
    files: list[Path] = []
    for number, (start, end) in enumerate(
        zip([0, *places], [*places, len(text)], strict=True), start=1
    ):
        file = folder / f"cut-{number}"
        file.write_bytes(text[start:end])
        files.append(file)
    return files


# --- what is left ---


def leftovers(folder: Path) -> list[str]:
    """Whatever Gristmill has not cleared away, at any depth below a folder."""
    ours = re.compile(r"\.gristmill|\..*\.gristmill")
    return sorted(str(path) for path in _all(folder) if ours.match(path.name))


def _all(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _all(path)


def clear(folder: Path) -> Path:
    """Make a folder anew, empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
