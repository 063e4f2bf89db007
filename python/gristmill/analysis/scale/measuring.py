"""Runs of one job with each p, interleaved, kept line by line in `runs.jsonl`.

    round 0 (warm-up)   4  1  2      each round has every p once, in another order,
    round 1             2  4  1      so that a machine that slows down slows all p alike
    round 2             1  2  4
    ...

The first line of the file says what is measured; each other line is a run that ended well. A file
that is there is continued: rounds and p that it has are not run again, and a new p, or more
rounds, are added. A run is a process of its own. Its seconds are those that the job reports, or
those of the process where it is another program.

Data and outputs lie in a folder of their own, DIR/gristmill-scale. Only what was made there is
removed: whatever else DIR holds is the user's.
"""

import json
import os
import platform
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

from gristmill import _core
from gristmill.errors import ours
from gristmill.names import quote, show_path, show_text
from gristmill.options import commands

__all__ = ["FILE", "Measuring", "RunFailedError", "Turn", "job_commands"]

FILE = "runs.jsonl"
_MADE = "gristmill-scale"
"""The folder below DIR for data and outputs."""

_FORMAT = 1
_GRACE_S = 60.0
"""How long a job may take to clean up after a signal."""
_LAST_LINES = 3


def job_commands() -> list[str]:
    """Return the commands of gristmill that run a job, and get its number of workers.

    >>> "wordcount" in job_commands(), "grep" in job_commands()
    (True, False)
    """
    return [*(name for name in commands() if name != "resume"), "run", "streaming"]


class RunFailedError(RuntimeError):
    """A run ended with an error; the text is a paragraph."""


class Turn(NamedTuple):
    """A run that is due."""

    round: int
    p: int
    warm_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """What is run, with which p, how often, and where it is kept."""

    folder: Path
    command: Sequence[str]
    """Words of a gristmill command, or of a program; `{p}`, `{data}` and `{out}` are filled in."""
    by: str
    """`workers` or `nodes`: the option of a gristmill command that gets p."""
    each_p: Sequence[int]
    repeat: int
    warm_up: int = 1
    rows: str | None = None
    """How many records to make as `{data}`; `None` if the command has its own data."""
    weak: bool = False
    """As many records for each p, not in all."""

    @property
    def is_program(self) -> bool:
        """Whether the command is another program than gristmill."""
        return self.command[0] not in job_commands()

    @property
    def made(self) -> Path:
        """The folder for what is made: data and outputs."""
        return self.folder / _MADE

    def turns(self) -> list[Turn]:
        """Return all runs in their order: the same every time, so that it can be resumed.

        >>> command = ["wordcount", "books/", "{out}"]
        >>> both = Measuring(folder=Path(), command=command, by="workers", each_p=[1, 2], repeat=2)
        >>> sorted(turn.p for turn in both.turns() if turn.round == 1)
        [1, 2]
        """
        found: list[Turn] = []
        for number in range(1 - self.warm_up, self.repeat + 1):
            order = sorted(self.each_p)
            random.Random(number).shuffle(order)  # noqa: S311 - an order, no secret
            found += [Turn(number, p, number < 1) for p in order]
        return found

    def due(self) -> list[Turn]:
        """Return the runs that the file does not have yet.

        Raises:
            ValueError: The file is of another measurement.
        """
        done = self._done()
        turns = [turn for turn in self.turns() if (turn.round, turn.p) not in done]
        measured = {turn.p for turn in turns if not turn.warm_up}
        return [turn for turn in turns if not turn.warm_up or turn.p in measured]

    def run(self, due: Sequence[Turn]) -> Iterator[tuple[Turn, float]]:
        """Run what is due, and yield each run with its seconds once it is in the file.

        Raises:
            RunFailedError: A run failed; those before it are kept.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / FILE
        if not _mended(path):
            _append(path, {"format": _FORMAT, **self._header(), "machine": _machine()})
        for turn in due:
            fields = self._run(turn)
            _append(path, fields)
            yield turn, fields["seconds"]

    def _header(self) -> dict[str, Any]:
        return {
            "by": self.by,
            "command": list(self.command),
            "rows": self.rows,
            "scaling": "weak" if self.weak else "strong",
        }

    def _done(self) -> set[tuple[int, int]]:
        path = self.folder / FILE
        lines = _whole(_bytes(path)).decode(errors="replace").splitlines()
        if not lines:
            return set()
        header = _object(path, 1, lines[0])
        other = [name for name, value in self._header().items() if header.get(name) != value]
        if other:
            shown = ", ".join(f"{name} {header.get(name)!r}" for name in other)
            text = (
                f"cannot continue {show_path(path)}: it is of another measurement ({shown})."
                " What to do: give another --dir, or remove the file."
            )
            raise ours(ValueError(text), "exists")
        runs = [_object(path, at, line) for at, line in enumerate(lines[1:], 2) if line.strip()]
        return {(run["round"], run["p"]) for run in runs if "round" in run and "p" in run}

    def _run(self, turn: Turn) -> dict[str, Any]:
        data = self._data(turn.p)
        out = self.made / "out"
        self.made.mkdir(exist_ok=True)
        _remove(out)
        words = [_filled(word, turn.p, data, out) for word in self.command]
        if not self.is_program:
            more = [f"--{self.by}", str(turn.p), "--json"]
            words = [sys.executable, "-m", "gristmill", *words, *more]
        at, load = datetime.now(UTC), os.getloadavg()[0]
        began_s = time.perf_counter()
        try:
            printed = _output(words, turn)
        except BaseException:  # also a signal: data are for the next try, outputs are not
            self.clear(keep_data=True)
            raise
        seconds = time.perf_counter() - began_s
        _remove(out)
        fields: dict[str, Any] = {
            "p": turn.p,
            "round": turn.round,
            "warm_up": turn.warm_up,
            "seconds": seconds,
            "work": float(turn.p) if self.weak else 1.0,
            "at": at.isoformat(timespec="seconds"),
            "load": round(load, 2),
        }
        return fields if self.is_program else {**fields, **_reported(printed)}

    def _data(self, p: int) -> Path:
        """The generated records for a run, made when the first run needs them."""
        if self.rows is None:
            return self.made / "data"
        of = "".join(letter for letter in self.rows if letter.isalnum())  # other rows, other data
        data = self.made / (f"data-{of}-{p}" if self.weak else f"data-{of}")
        if not (data / "_SUCCESS").exists():
            self.made.mkdir(exist_ok=True)
            _remove(data)
            rows = str(_rows(self.rows) * p) if self.weak else self.rows
            words = [sys.executable, "-m", "gristmill", "teragen", rows, str(data), "--json"]
            _output(words, None)
        return data

    def data_left(self) -> Path | None:
        """Return the folder with generated data, if it has some."""
        has = self.rows is not None and self.made.is_dir() and any(self.made.iterdir())
        return self.made if has else None

    def clear(self, *, keep_data: bool = False) -> None:
        """Remove what a run left, and the generated data; the runs stay."""
        _remove(self.made / "out")
        if not keep_data:
            for path in self.made.glob("data-*"):
                _remove(path)
        if self.made.is_dir() and not any(self.made.iterdir()):
            self.made.rmdir()


def _filled(word: str, p: int, data: Path, out: Path) -> str:
    for name, value in (("{p}", str(p)), ("{data}", str(data)), ("{out}", str(out))):
        word = word.replace(name, value)
    return word


def _rows(text: str) -> int:
    """A number of rows as it is typed.

    >>> _rows("20k")
    20000
    """
    factors = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
    factor = factors.get(text[-1:].lower(), 1)
    digits = text if factor == 1 else text[:-1]
    if not (digits.isascii() and digits.isdigit() and int(digits) > 0):
        what = f"cannot make the data: {text!r} is not a number of rows"
        raise ours(ValueError(f"{what}. What to do: give --rows such as 10m."), "bad_option")
    return int(digits) * factor


def _output(words: Sequence[str], turn: Turn | None) -> str:
    """Run a process to its end and return what it printed; a signal ends it first.

    Raises:
        RunFailedError: It ended with an error, or cannot be started.
    """
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            words, stdout=pipe, stderr=pipe, encoding="utf-8", errors="replace"
        )
    except OSError as error:
        raise _failed(turn, words, f"{error.strerror or error}".lower()) from error
    try:
        printed, complained = process.communicate()
    except BaseException:  # a signal: the job cleans up, and is waited for
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
    if process.returncode != 0:
        last = " ".join(complained.strip().splitlines()[-_LAST_LINES:])
        raise _failed(turn, words, f"exit code {process.returncode}: {last or 'it said nothing'}")
    return printed


def _failed(turn: Turn | None, words: Sequence[str], why: str) -> RunFailedError:
    which = "the data cannot be made" if turn is None else f"the run with p = {turn.p} failed"
    shown = " ".join(quote(word) for word in words)
    return RunFailedError(
        f"cannot measure: {which}: {show_text(why)} ({show_text(shown)}). What to do: run this"
        " command by itself until it works, then give the same scale run again: the runs so far"
        " are kept."
    )


def _reported(printed: str) -> dict[str, Any]:
    """What a job's report says of its time; without one, the seconds of the process stay."""
    try:
        report = json.loads(printed.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return {}
    found = cast("dict[str, Any]", report if isinstance(report, dict) else {})
    if not isinstance(found.get("wall_s"), float):
        return {}
    phases = {str(phase["name"]): float(phase["wall_s"]) for phase in found.get("phases", [])}
    return {"seconds": found["wall_s"], "phases": phases, "job": found.get("job_id")}


def _machine() -> dict[str, Any]:
    return {
        "gristmill": _core.VERSION,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "processors": os.cpu_count(),
    }


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _whole(content: bytes) -> bytes:
    r"""The lines of a file, without a last one that a kill cut short.

    >>> _whole(b'{"p": 1}\n{"p":'), _whole(b'{"p": 1}\n{"p": 2}')
    (b'{"p": 1}\n', b'{"p": 1}\n{"p": 2}\n')
    """
    before, end, last = content.rpartition(b"\n")
    try:
        if last.strip():
            json.loads(last)
            return content + b"\n"
    except (ValueError, RecursionError):
        if end or last.startswith(b'{"format"'):  # else it is no file of ours
            return before + end
    return content


def _mended(path: Path) -> bool:
    """Make the lines of a file whole; returns whether there are any."""
    content = _bytes(path)
    whole = _whole(content)
    if len(whole) < len(content):
        os.truncate(path, len(whole))
    elif whole != content:
        with path.open("ab") as file:
            file.write(b"\n")
    return bool(whole)


def _append(path: Path, fields: Mapping[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(fields) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _object(path: Path, line: int, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        what = f"cannot continue {show_path(path)}: line {line} is not a JSON object"
        text = f"{what}. What to do: remove that line; a kill may have cut it short."
        raise ours(ValueError(text), "bad_input")
    return cast("dict[str, Any]", found)


def _remove(path: Path) -> None:
    import shutil

    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
