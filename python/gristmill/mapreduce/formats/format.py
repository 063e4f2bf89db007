"""What all inputs and outputs are: a format, and the paths it is read from or written to.

    as an input    plan ──▶ splits ──JSON──▶ open, in the worker ──▶ Reader ──▶ records
    as an output   writer, in the worker ──▶ Writer ◀── records        open_file ──▶ records again

Most formats are both, so that what one job has written the next one reads. A reader knows at any
time where it is: file, offset, number of the record and of the line, which is what a failure names.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, Self

from gristmill.mapreduce.formats.paths import StrPath, as_paths, find_files
from gristmill.mapreduce.formats.plan import NO_MAX, Plan

__all__ = ["CODECS", "BadRecord", "Format", "Input", "Output", "Reader", "Where", "Writer"]

Where = tuple[str, int, int, int]
"""File, byte offset (in tables: row), number of the record in the split, line (0: not known)."""

CODECS = {
    "gzip": ".gz",
    "bzip2": ".bz2",
    "zstd": ".zst",
    "lz4": ".lz4",
    "xz": ".xz",
    "snappy": ".snappy",
}
"""Compressions by name, and what they add to the name of a file."""


class BadRecord(ValueError):
    """A record that is not what its format says, or that a format cannot hold."""

    gristmill_kind = "bad_input"

    def __init__(self, what: str, advice: str = "") -> None:
        super().__init__(f"{what}. What to do: {advice}." if advice else what)
        self.what = what
        """What is wrong with it."""
        self.advice = advice
        """What to do about it, if there is something."""


class Reader(Protocol):
    """The records of a split."""

    def __iter__(self) -> Iterator[Any]:
        """Return the records; after an error the next one can be asked for."""
        ...

    def where(self) -> Where:
        """Return where the record that came last begins."""
        ...

    def raw(self) -> object:
        """Return the record that came last as it stands in the file."""
        ...

    def bytes_read(self) -> int:
        """Return how many bytes of the split are read."""
        ...

    def records_read(self) -> int:
        """Return how many records have come."""
        ...


class Writer(Protocol):
    """A file of output."""

    def write(self, record: Any) -> None:  # noqa: ANN401 - whatever the format takes
        """Write a record; a tuple of two is a key and its value."""
        ...

    def close(self) -> int:
        """Finish the file; returns how many bytes it has."""
        ...


class Input(ABC):
    """Where records come from."""

    CAN_SKIP: ClassVar[bool] = False
    """Whether a reader can go on with the next record after a bad one."""

    @abstractmethod
    def plan(self, split_min: int, split_max: int) -> Plan:
        """Cut the input into splits of `split_min` to `split_max` bytes, where it can be cut."""

    @abstractmethod
    def open(self, what: dict[str, Any], *, tolerant: bool = False) -> Reader:
        """Open a split; a `tolerant` reader passes over a bad record, if the format allows."""

    def open_batches(self, what: dict[str, Any]) -> Reader:
        """Open a split, for `map_batches`."""
        del what
        raise ValueError(
            f"cannot read {self} in batches: map_batches takes lines of text, parquet and arrow."
            " What to do: give the job map= in place of map_batches=."
        )

    def tag_of(self, what: dict[str, Any]) -> str:
        """Return what the user calls the input that a split is from; see `context.tag`."""
        del what
        return ""

    @property
    def keyed(self) -> bool:
        """Whether its records are pairs of key and value, which a job may take without a map."""
        return False

    @property
    def batched(self) -> bool:
        """Whether `map_batches` can read it."""
        return False

    def can_skip(self, what: dict[str, Any]) -> bool:
        """Return whether a tolerant reader of this split goes on after a bad record."""
        del what
        return self.CAN_SKIP


class Output(ABC):
    """Where records go."""

    @property
    @abstractmethod
    def folder(self) -> str:
        """The directory to write to."""

    @property
    @abstractmethod
    def suffix(self) -> str:
        """The end of its files' names."""

    @abstractmethod
    def writer(self, path: str) -> Writer:
        """Make a file, in the worker."""

    @abstractmethod
    def open_file(self, path: str) -> Iterator[Any]:
        """Read a file that `writer` has made."""

    def as_written(self) -> Self:
        """Return what reads the files of `writer` exactly as they were given to it."""
        return self

    def narrower(self, paths: Sequence[str]) -> Iterator[tuple[int, Callable[[str], int]]]:
        """Yield the parts that lack columns of others, or hold them in a narrower type.

        Each is its number, and a function that writes it to another path with the columns of all
        parts, and returns its bytes.

        Raises:
            BadRecord: The parts have no columns in common that hold all records.
        """
        del paths
        return iter(())

    @property
    def has_schema(self) -> bool:
        """Whether parts have columns, so that some may be `narrower`."""
        return type(self).narrower is not Output.narrower

    @property
    def written(self) -> bool:
        """Whether it can be written; some formats are inputs only."""
        return True


@dataclass(frozen=True)
class Format(Input, Output):
    """A format with its paths: an input, an output, or both."""

    NAME: ClassVar[str]
    """The function that makes it."""
    SUFFIX: ClassVar[str]
    """The end of its files' names, where they are not compressed."""

    paths: tuple[str, ...]
    """Files, directories and patterns; as an output, one directory."""
    codec: str | None = None
    """How its output is compressed; inputs tell by themselves."""
    tag: str = field(default="", kw_only=True)
    """What the user calls it, where a job has several inputs."""

    def __post_init__(self) -> None:
        if self.codec is not None and self.codec not in CODECS:
            raise ValueError(
                f"cannot read the options: gm.{self.NAME} has no codec {self.codec!r}."
                f" What to do: take one of {', '.join(CODECS)}."
            )

    def __str__(self) -> str:
        tag = [f"tag={self.tag!r}"] if self.tag else []
        return f"gm.{self.NAME}({', '.join([*map(repr, self.paths), *tag])})"

    def tag_of(self, what: dict[str, Any]) -> str:
        """Return its tag."""
        del what
        return self.tag

    def at(self, paths: StrPath | tuple[StrPath, ...]) -> Self:
        """Return the same format with other paths."""
        return replace(self, paths=as_paths(paths))

    @property
    def folder(self) -> str:
        """The directory to write to."""
        if len(self.paths) != 1:
            raise ValueError(
                f"cannot write to {self}: an output is one directory. What to do: name one."
            )
        return self.paths[0].rstrip("/") or "/"

    @property
    def suffix(self) -> str:
        """The end of its files' names."""
        return self.SUFFIX + (CODECS[self.codec] if self.codec else "")

    def files(self) -> list[str]:
        """Return the files that its paths stand for."""
        return find_files(self.paths)

    def open_file(self, path: str) -> Iterator[Any]:
        """Read a file that `writer` has made."""
        own = self.as_written().at(path)
        for split in own.plan(0, NO_MAX).splits:
            yield from own.open(split.what)

    @property
    def written(self) -> bool:
        """Whether it has a writer."""
        return type(self).writer is not Format.writer

    def writer(self, path: str) -> Writer:
        """Make a file, in the worker."""
        del path
        raise ValueError(
            f"cannot write to {self}: gm.{self.NAME} is an input only. What to do: take for example"
            " gm.tsv or gm.kv."
        )
