"""A job over CSV in the place of one over Parquet: its options, and what is done after it.

Decision: docs/decisions/parquet-as-csv.md.
"""

import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gristmill.columnar.feeding import Feed
from gristmill.columnar.writing import Csv, write_parquet
from gristmill.errors import ours
from gristmill.job import run
from gristmill.locations import is_remote, workplace
from gristmill.mapreduce.submit.removing import passing_folder
from gristmill.mapreduce.submit.stream_copies import check_seen, copied_for_nodes, copied_here
from gristmill.names import show_path
from gristmill.options import Command, Value
from gristmill.report import JobReport

__all__ = ["Tables", "tables"]

Show = Callable[[int, int], None]

_CODECS = {None: "snappy", "none": "snappy", "gzip": "gzip", "zstd": "zstd", "lz4": "lz4"}


@dataclass(frozen=True, slots=True)
class Tables:
    """A job over CSV."""

    values: dict[str, Value]
    """Its options."""
    _given: Mapping[str, Value]
    _feeds: list[Feed]
    _names: dict[str, str]
    """What users know of the names in its options."""
    _folder: Path | None
    """Where the CSV of the output is."""
    _headers: int
    """How many of its files have a header."""
    _stop: Callable[[], bool]
    """Raises what ends the job, if there is something."""

    def check(self) -> None:
        """Raise why not all of an input can be read, if that is so; the job must not end well."""
        for feed in self._feeds:
            if feed.failure is not None:
                raise feed.failure

    def told(self, text: str) -> str:
        """Return an error of the job with the names that the user gave."""
        for name in sorted(self._names, key=len, reverse=True):  # /dev/fd/12 before /dev/fd/1
            text = text.replace(name, self._names[name])
        return text

    def publish(self, report: JobReport, show: Show = lambda _done, _all: None) -> JobReport:
        """Make Parquet of the output, once the job has succeeded, and let it have its name.

        Args:
            report: That of the job.
            show: Called with the bytes that are done, and with all of them.

        Returns:
            The report, with what stands there now.

        Raises:
            ValueError: The output makes no table.
            OSError: It cannot be written.
        """
        if self._folder is None:
            return report
        output = str(self._given["output"])
        try:
            made = self._made(self._folder, show)
            files = list(made.iterdir()) if made.is_dir() else [made]
            size = sum(file.stat().st_size for file in files)
            durable = self._place(made, output.rstrip("/"))
        except OSError as error:
            if error.errno is None:
                raise
            why = os.strerror(error.errno).lower()
            advice = "make room, or name another output"
            text = f"cannot write {show_path(output)}: {why}. What to do: {advice}."
            raise ours(OSError(text), "io") from None
        return replace(report, output_bytes=size, durable=durable)

    def _made(self, folder: Path, show: Show) -> Path:
        """The output as Parquet: a file or a directory."""
        written, made = Path(str(self.values["output"])), folder / "made"
        parts = sorted(written.glob("part-*")) if written.is_dir() else [written]
        made.mkdir()
        targets = [made / f"{part.name.removesuffix('.csv')}.parquet" for part in parts]

        def told(done_bytes: int, all_bytes: int) -> None:
            self._stop()
            show(done_bytes, all_bytes)

        source = Csv(parts, _separator(self._given), self._headers, told)
        write_parquet(source, targets, self._types(), _CODECS[_compress(self._given)])
        for target in targets:
            self._sync(target)
        return made if written.is_dir() else targets[0]

    def _place(self, made: Path, output: str) -> bool:
        """Let it have its name; returns whether it is durable."""
        if is_remote(output):
            inputs = [f"{made}/" if made.is_dir() else str(made)]
            copied = run("cp", {"inputs": inputs, "output": output, "overwrite": True})
            return bool(copied.durable)
        if made.is_dir() and os.path.lexists(output):  # --overwrite
            Path(output).rename(made.parent / "before")
        made.rename(output)
        self._sync(Path(output).absolute().parent)
        return not self._given.get("no_sync")

    def _sync(self, path: Path) -> None:
        """Wait until a file, or what a directory names, is on the disk."""
        if self._given.get("no_sync"):
            return
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)

    def _types(self) -> dict[str, Any]:
        """The types of columns that all inputs with them give alike."""
        found: dict[str, Any] = {}
        for feed in self._feeds:
            for field in feed.schema:
                same = found.setdefault(field.name, field.type) == field.type
                found[field.name] = field.type if same else None
        return {name: kind for name, kind in found.items() if kind is not None}


@contextmanager
def tables(
    command: Command,
    values: Mapping[str, Value],
    named: frozenset[str],
    *,
    stop: Callable[[], bool],
    writes: bool,
) -> Generator[Tables]:
    """Begin to read Parquet, and make a place for the output as CSV; see `as_csv`.

    Args:
        command: The command.
        values: Its options.
        named: The inputs that are Parquet.
        stop: Whether to end before all is read.
        writes: Whether the output is Parquet, too.
    """
    _check(values)
    asked = {**values, "csv": bool(values.get("csv")) or not values.get("tsv")}
    with ExitStack() as held:
        reading = _Reading(values, named, stop, held)
        for option in command.options:
            if option.positional and option.kind in ("path", "paths") and option.name in values:
                asked[option.name] = reading.replaced(asked[option.name])
        folder = _place(held, values) if writes else None
        if folder is not None:
            asked |= {"output": str(folder / "out.csv"), "no_sync": True, **_uncompressed(values)}
            reading.names[str(asked["output"])] = str(values["output"])
        headers = 0 if values.get("no_header") else 1 if command.name == "sort" else sys.maxsize
        yield Tables(asked, values, reading.feeds, reading.names, folder, headers, stop)


class _Reading:
    """The inputs that are Parquet, as they are read."""

    def __init__(
        self,
        values: Mapping[str, Value],
        named: frozenset[str],
        stop: Callable[[], bool],
        held: ExitStack,
    ) -> None:
        self._values = values
        self._named = named
        self._stop = stop
        self._held = held
        self.feeds: list[Feed] = []
        self.names: dict[str, str] = {}

    def replaced(self, value: Value) -> Value:
        """Return what a job over CSV reads in the place of one path, or of several."""
        if isinstance(value, (list, tuple)):
            return [self._read(path) if str(path) in self._named else path for path in value]
        return self._read(value) if str(value) in self._named else value

    def _read(self, path: object) -> str:
        header = not self._values.get("no_header")
        feed = Feed(str(path), _separator(self._values), header=header)
        self._held.callback(feed.close)
        self.feeds.append(feed)
        feed.begin()
        where = self._where(feed)
        self.names[where] = str(path)
        return where

    def _where(self, feed: Feed) -> str:
        """Where the table is read: a file where it is read twice, or from other machines."""
        output = self._values.get("output")
        folder = None if output in (None, "-") else str(output)
        on_nodes = self._values.get("on") == "ray"
        if on_nodes:
            check_seen([feed.path], folder, collect=bool(self._values.get("collect")))
        elif self._values.get("parts") is None:
            return feed.path

        def stopped() -> bool:
            if feed.failure is not None:
                raise feed.failure
            return self._stop()

        beside = str(workplace(folder or "out", [] if on_nodes else _spill_dirs(self._values)))
        copied = copied_for_nodes if on_nodes else copied_here
        return self._held.enter_context(copied(feed.path, beside, stopped, progress=False))


def _check(values: Mapping[str, Value]) -> None:
    for name, why in (
        ("jsonl", "its rows are not JSON"),
        ("comment", "it has no comments"),
        ("zero_terminated", "its rows do not end with NUL"),
    ):
        if values.get(name):
            raise _refused(f"{name} is not for Parquet: {why}", "leave it out")
    if len(_separator(values).encode()) != 1:
        raise _refused(f"field_separator is {_separator(values)!r}", "give one byte, such as ';'")
    if _compress(values) not in _CODECS:
        raise _refused(
            f"{_compress(values)} is not for Parquet: it has no such pages",
            "take gzip, zstd or lz4",
        )


def _refused(what: str, advice: str) -> ValueError:
    text = f"cannot read the options: {what}. What to do: {advice}."
    return ours(ValueError(text), "bad_option")


def _place(held: ExitStack, values: Mapping[str, Value]) -> Path:
    """A folder for the output as CSV, which goes also if this process is killed."""
    output = str(values["output"])
    if is_remote(output) and values.get("on") == "ray":
        raise _refused(
            f"on a cluster {show_path(output)} cannot be Parquet: its table of text would be of"
            " this machine alone",
            "name an output in a directory that all nodes see, and copy it (gristmill cp)",
        )
    in_the_way = "is a directory" if Path(output).is_dir() else None
    if values.get("parts") is not None:
        in_the_way = "exists" if os.path.lexists(output) and not values.get("overwrite") else None
    if in_the_way is not None:
        text = f"cannot write to {show_path(output)}: it {in_the_way}."
        raise ours(FileExistsError(f"{text} What to do: name another output."), "exists")
    beside = workplace(output, _spill_dirs(values))
    return Path(held.enter_context(passing_folder(".gristmill-parquet-", str(beside))))


def _spill_dirs(values: Mapping[str, Value]) -> list[str]:
    given = values.get("spill_dir") or ()
    return [str(path) for path in given] if isinstance(given, (list, tuple)) else [str(given)]


def _separator(values: Mapping[str, Value]) -> str:
    given = values.get("field_separator")
    if given is None:
        return "\t" if values.get("tsv") else ","
    return {"\\t": "\t", "\\0": "\0"}.get(str(given), str(given))


def _compress(values: Mapping[str, Value]) -> str | None:
    given = values.get("compress")
    return None if given is None else str(given)


def _uncompressed(values: Mapping[str, Value]) -> dict[str, Value]:
    """The output as CSV is not compressed: its pages are."""
    return {"compress": "none"} if "compress" in values else {}
