"""A folder of results: what was asked, on which machine, and a line for each run.

    machine.json   {"format": 1, "asked": ..., "machine": ..., "versions": ..., "began": ...}
    runs.jsonl     {"run": ...} a line, appended when the run is over

A run is known by its round, configuration and step. A later line of the same run counts in place of
an earlier one: a turn that was broken off is run again whole. The last line may be cut short, by a
kill or a full disk; then that run is not there. Any other damage is an error with its line.
"""

import fcntl
import json
import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import inf, isinf
from pathlib import Path
from typing import Any, cast

from gristmill.analysis.bench.bench_request import BenchRequest, Config, label
from gristmill.analysis.bench.errors import BenchError

__all__ = ["MACHINE", "Measured", "Results", "append", "begin", "only_session", "read_results"]

_FORMAT = 1
MACHINE, _RUNS = "machine.json", "runs.jsonl"

_NUMBER = (int, float)
_KINDS: dict[str, type | tuple[type, ...]] = {
    "round": int,
    "config": dict,
    "step": str,
    "warm_up": bool,
    "began": str,
    "wall_s": _NUMBER,
    "user_s": _NUMBER,
    "sys_s": _NUMBER,
    "peak_bytes": int,
    "own_cpu_s": _NUMBER,
    "load": dict,
    "device": (dict, type(None)),
    "joules": (*_NUMBER, type(None)),
    "report": dict,
}
"""What the fields of a run are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run of one step."""

    round: int
    config: Config
    step: str
    warm_up: bool = False
    began: str = ""
    """When, in UTC."""
    wall_s: float
    """From the start of the process to its end."""
    user_s: float = 0.0
    sys_s: float = 0.0
    peak_bytes: int = 0
    own_cpu_s: float = 0.0
    """CPU time of the benchmark itself meanwhile."""
    load: dict[str, float] = field(default_factory=dict[str, float])
    """The load of the machine before, and what other programs took of it meanwhile."""
    device: dict[str, float] | None = None
    """Bytes per second of the device, tried before the round."""
    joules: float | None = None
    """Of the processors; no wall power."""
    report: dict[str, Any] = field(default_factory=dict[str, Any])
    """The job's own report, without names of files."""

    @property
    def size_bytes(self) -> int:
        """Bytes of its input or of its output, whichever are more."""
        return max(self.report.get("input_bytes", 0), self.report.get("output_bytes", 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What a folder holds."""

    folder: Path
    asked: BenchRequest
    machine: dict[str, Any]
    versions: dict[str, str]
    began: str
    runs: list[Measured]
    """In the order in which they ran; warm-up, too."""

    def counted(self) -> Iterator[Measured]:
        """Return the runs that are not warm-up."""
        return (run for run in self.runs if not run.warm_up)


def begin(
    folder: Path, asked: BenchRequest, machine: dict[str, Any], versions: dict[str, str]
) -> None:
    """Make a folder of results without runs."""
    from datetime import UTC, datetime

    folder.mkdir(parents=True, exist_ok=True)
    said = {
        "format": _FORMAT,
        "asked": asked.to_json(),
        "machine": machine,
        "versions": versions,
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    new = folder / f".{MACHINE}"
    new.write_text(json.dumps(said, indent=1) + "\n")
    new.replace(folder / MACHINE)


@contextmanager
def only_session(folder: Path) -> Generator[None]:
    """Keep other sessions from a folder: their runs would disturb each other.

    Raises:
        BenchError: Another one is at work there.
    """
    with (folder / _RUNS).open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise BenchError(
                f"cannot run the benchmark: another one is writing to {folder}."
                " What to do: wait for its end, or name another directory with -o."
            ) from error
        yield


def append(folder: Path, run: Measured) -> None:
    """Add a run, on a line of its own also after one that was cut short."""
    with (folder / _RUNS).open("a+b") as file:
        if end := file.seek(0, os.SEEK_END):
            file.seek(end - 1)
            if file.read(1) != b"\n":
                file.truncate(_end_of_lines(folder / _RUNS))
        file.write(json.dumps(asdict(run)).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read_results(folder: Path) -> Results:
    """Return what a folder holds.

    Raises:
        BenchError: It is no folder of results, or is damaged; says where.
    """
    said = _machine(folder / MACHINE)
    try:
        asked = BenchRequest.from_json(said["asked"])
        machine, began = dict(said["machine"]), str(said["began"])
        versions = dict(said["versions"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(folder / MACHINE, f"a field is missing or wrong ({error})") from error
    return Results(
        folder=folder,
        asked=asked,
        machine=machine,
        versions=versions,
        began=began,
        runs=_latest(_runs(folder / _RUNS)),
    )


def _machine(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise BenchError(
            f"cannot read the results: {path}: no such file."
            " What to do: name a directory that `gristmill bench run` wrote."
        ) from error
    try:
        said = _parsed(text)
    except ValueError as error:
        raise _damaged(path, f"it is not JSON ({error})") from error
    if not isinstance(said, dict):
        raise _damaged(path, "it is not an object")
    fields = cast("dict[str, Any]", said)
    if fields.get("format") != _FORMAT:
        raise BenchError(
            f"cannot read the results: {path}: the format is {fields.get('format')!r}, this program"
            f" reads {_FORMAT}. What to do: use the version that wrote them, or run them again."
        )
    return fields


def _runs(path: Path) -> Iterator[Measured]:
    try:
        lines = path.read_bytes().split(b"\n")[:-1]  # what has no end was cut short
    except FileNotFoundError:
        return
    for number, line in enumerate(lines, 1):
        try:
            run = _run_of(_parsed(line))
        except (TypeError, ValueError) as error:
            raise _damaged(path, f"line {number} is not a run ({error})") from error
        yield run


def _parsed(text: bytes) -> Any:  # noqa: ANN401 - as json.loads
    """JSON whose numbers can be computed with.

    Raises:
        ValueError: It is none.
    """
    try:
        return json.loads(text.decode("utf-8"), parse_int=_int, parse_float=_float)
    except RecursionError as error:
        raise ValueError("its lists are nested too deeply") from error


def _int(digits: str) -> int:
    _float(digits)
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if isinf(number):
        raise ValueError("a number in it is too large")
    return number


def _run_of(found: Any) -> Measured:  # noqa: ANN401 - what a line holds
    """A run of its fields; those of later versions are left out."""
    if not isinstance(found, dict):
        raise TypeError("it is not an object")
    given = cast("dict[str, Any]", found)
    run = Measured(**{name: value for name, value in given.items() if name in _KINDS})
    for name, kinds in _KINDS.items():
        value = getattr(run, name)
        if not isinstance(value, kinds):
            raise TypeError(f"{name} is {value!r}")
    if not 0 < run.wall_s < inf:
        raise ValueError(f"wall_s is {run.wall_s}")
    return run


def _latest(runs: Iterable[Measured]) -> list[Measured]:
    """Each run once: its last line, at the place where that stands."""
    found: dict[tuple[int, str, str], Measured] = {}
    for run in runs:
        key = (run.round, label(run.config), run.step)
        found.pop(key, None)
        found[key] = run
    return list(found.values())


def _end_of_lines(path: Path) -> int:
    return path.read_bytes().rfind(b"\n") + 1


def _damaged(path: Path, what: str) -> BenchError:
    return BenchError(
        f"cannot read the results: {path}: {what}."
        " What to do: mend the file, or remove the directory and run the benchmark again."
    )
