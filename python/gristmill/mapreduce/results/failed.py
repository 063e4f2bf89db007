"""What user code failed at, as it was kept: the task, and the record among those of its split.

    <home>/jobs/<job>/failed/<task>/task      header, pickled definition (by task/user/failed.rs)
    <home>/jobs/<job>/failed/<task>/record    one record, where the input will be gone

It is loaded only where nobody else can have written it.
"""

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gristmill.history import find_job, job_folders, load
from gristmill.mapreduce.definition import Definition, Functions
from gristmill.mapreduce.formats.format import Reader, Where
from gristmill.mapreduce.pickling import dumps, loads
from gristmill.mapreduce.shown import shown
from gristmill.names import from_json

__all__ = ["TASK", "FailedTask", "Say", "failed_task", "keep_record", "record_of"]

Say = Callable[[str], None]
"""What takes a line for the user."""

FORMAT = 1
"""The version of the file; crates/tasks/src/task/user/failed.rs has the same number."""

FAILED = "failed"
"""The folder of what was kept, in that of the job."""

TASK, RECORD = "task", "record"
"""The files in a task's folder; the second where the input is gone."""


@dataclass(frozen=True, slots=True)
class FailedTask:
    """A task that failed, as the engine kept it."""

    header: dict[str, Any]
    """How it is run, and where it failed."""
    definition: bytes
    """The job's pickled `Definition`."""
    folder: Path
    """Where it was kept."""

    @property
    def job_id(self) -> str:
        """The name of the job that it was a task of."""
        return self.folder.parent.parent.name

    @property
    def of_map(self) -> bool:
        """Whether it is a map."""
        return "map" in self.header["spec"]["work"]

    @property
    def of_scripts(self) -> bool:
        """Whether scripts failed, not Python functions."""
        return "scripts" in self.header["how"]


def failed_task(name: str) -> FailedTask:
    """Return what a job failed at.

    Args:
        name: The job's name, a part of it that no other has, or `last`: the latest job of which
            something was kept.

    Raises:
        ValueError: Nothing was kept, or it cannot be used here.
        OSError: It cannot be read.
    """
    folder = (_latest() if name == "last" else None) or find_job(name)
    error: dict[str, Any] = load(folder).report.get("error") or {}
    task = error.get("details", {}).get("retry")
    if task is None:
        raise ValueError(
            f"cannot retry {folder.name}: it did not fail in user code, or kept no record of it."
            f" What to do: see gristmill jobs show {folder.name}."
        )
    kept = folder / FAILED / task
    data = _private(kept / TASK)
    line, _, definition = data.partition(b"\n")
    header: dict[str, Any] = from_json(line)
    if header["format"] != FORMAT:
        raise ValueError(f"cannot retry {folder.name}: another version of Gristmill ran it.")
    failed = FailedTask(header, definition, kept)
    if not failed.of_scripts and not _is_this_python(header["host"]):
        raise ValueError(
            f"cannot retry {folder.name}: its code ran with {header['host']}, and this is Python"
            f" {sys.version} at {sys.executable}. What to do: run gristmill with that Python."
        )
    return failed


def _latest() -> Path | None:
    """The latest job that kept what its user code failed at."""
    kept = [folder for folder in job_folders() if (folder / FAILED).is_dir()]
    return max(kept, key=lambda folder: (folder / FAILED).stat().st_mtime, default=None)


def _is_this_python(host: str) -> bool:
    """Whether the engine named this Python so: the same version from the same folder."""
    version, _, program = host.rpartition(" at ")
    folders = (os.path.realpath(Path(path).parent) for path in (program, sys.executable))
    return version == f"Python {sys.version}" and len(set(folders)) == 1


def _private(path: Path) -> bytes:
    """What is in a file that is this user's alone."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise ValueError(f"cannot read {path}: others may write to it, and it holds code.")
        return file.read()


# --- the record ---


def keep_record(name: str) -> None:
    """Keep the record that a job failed at, as its input will be gone: of a chain, or a stream."""
    failed = failed_task(name)
    if not failed.of_map or failed.of_scripts:
        return
    definition: Definition = loads(failed.definition)
    one = _one_of(failed, definition, definition.functions(), lambda _line: None)
    for record in one or ():
        assert one is not None
        kept = dumps((record, one.where()))
        descriptor = os.open(failed.folder / RECORD, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(kept)


def record_of(
    failed: FailedTask, definition: Definition, functions: Functions, say: Say
) -> Reader | None:
    """Return a reader of the record that a map failed at; `None` if no record is to blame."""
    if (failed.folder / RECORD).exists():
        kept = _KeptRecord(*loads(_private(failed.folder / RECORD)))
        return _OneRecord(kept, 0, False, say)
    return _one_of(failed, definition, functions, say)


def _one_of(
    failed: FailedTask, definition: Definition, functions: Functions, say: Say
) -> "_OneRecord | None":
    header, tolerant = failed.header, definition.skip_bad > 0
    what = header["spec"]["work"]["map"]["what"]

    def opened() -> Reader:
        if functions.map_batches is not None:
            return definition.input.open_batches(what)
        return definition.input.open(what, tolerant=tolerant)

    number = _number(opened(), header["at"], tolerant=tolerant)
    return None if number is None else _OneRecord(opened(), number, tolerant, say)


def _number(reader: Reader, at: dict[str, Any], *, tolerant: bool) -> int | None:
    """The number of the record in its split; `None` where no record is to blame.

    Of a worker that died, the last record that begins where the pulse stood, or before.
    """
    exact, place = at["exact"], at["place"]
    if exact is None and (at["how"] == "raised" or place is None):
        return None
    told = place if exact is None else exact
    file, offset = exact["file"] if exact else at["file"], told["offset"]
    found: int | None = None
    number = -1
    records = iter(reader)
    while True:
        try:
            next(records)
        except StopIteration:
            return found
        except Exception:  # noqa: BLE001 - whatever a reader raises
            if not tolerant:
                return found if exact is None else number + 1
        number += 1
        where = reader.where()
        if exact is not None and where[1:3] == (exact["offset"], exact["record"]):
            return number
        if _is_file(where[0], file) and where[1] <= offset:
            found = number  # of a record that raised: as the code of today cuts the input


def _is_file(given: str, path: str | None) -> bool:
    return path is None or os.path.abspath(given) == os.path.abspath(path)  # noqa: PTH100 - links


@dataclass(frozen=True, slots=True)
class _KeptRecord:
    """A reader of a record that was kept."""

    record: Any
    place: Where

    def __iter__(self) -> Iterator[Any]:
        return iter((self.record,))

    def where(self) -> Where:
        return self.place

    def raw(self) -> object:
        return self.record

    def bytes_read(self) -> int:
        return 0

    def records_read(self) -> int:
        return 1


class _OneRecord:
    """A reader of which only one record counts."""

    def __init__(self, reader: Reader, number: int, tolerant: bool, say: Say) -> None:
        self._reader = reader
        self._number = number
        self._passed_over = (Exception,) if tolerant else ()
        self._say = say

    def __iter__(self) -> Iterator[Any]:
        records = iter(self._reader)
        for _ in range(self._number):
            with suppress(*self._passed_over):
                next(records)
        try:
            record = next(records)
        except StopIteration:
            return
        except Exception:
            self._tell(self._reader.raw())
            raise
        self._tell(record)
        yield record

    def _tell(self, record: object) -> None:
        file, offset, number, _ = self._reader.where()
        place = f" at offset {offset} of {file}" if file else ""
        self._say(f"record {number} of its split{place}: {shown(record)}")

    def where(self) -> Where:
        return self._reader.where()

    def raw(self) -> object:
        return self._reader.raw()

    def bytes_read(self) -> int:
        return self._reader.bytes_read()

    def records_read(self) -> int:
        return self._reader.records_read()
