"""What a job is: its input, its functions, its output; nothing happens yet.

Spec ─ fields ─▶ checks, planning, launching        Job (job.py) adds `run` and `explain`
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from gristmill.amounts import parse_bytes
from gristmill.mapreduce.aggregates import Aggregate
from gristmill.mapreduce.formats.format import Format, Input, Output
from gristmill.mapreduce.formats.inputs import as_input, with_files
from gristmill.mapreduce.formats.paths import StrPath, as_paths
from gristmill.mapreduce.formats.plan import NO_MAX
from gristmill.mapreduce.functions import name_of
from gristmill.mapreduce.partitioners import Partitioner

__all__ = ["Spec"]

Function = Callable[..., Any]


@dataclass(frozen=True, eq=False, repr=False)
class Spec:
    """The fields of a job; `gm.Job` says what each is."""

    input: "Input | Spec | Sequence[Input]"
    map: Function | None = field(default=None, kw_only=True)
    map_batches: Function | None = field(default=None, kw_only=True)
    setup: Function | None = field(default=None, kw_only=True)
    teardown: Function | None = field(default=None, kw_only=True)
    combine: Function | None = field(default=None, kw_only=True)
    reduce: Function | Aggregate | None = field(default=None, kw_only=True)
    reduce_batches: Function | None = field(default=None, kw_only=True)
    sort_by: Function | None = field(default=None, kw_only=True)
    group_by: Function | None = field(default=None, kw_only=True)
    partition_by: Partitioner = field(default="hash", kw_only=True)
    parts: int | None = field(default=None, kw_only=True)
    output: Output | None = field(default=None, kw_only=True)
    outputs: Mapping[str, Output] = field(default_factory=dict[str, Output], kw_only=True)
    files: Iterable[StrPath] = field(default=(), kw_only=True)
    skip_bad: int = field(default=0, kw_only=True)
    split_min: int | str | None = field(default=None, kw_only=True)
    split_max: int | str | None = field(default=None, kw_only=True)
    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "input", as_input(self.input))
        object.__setattr__(self, "files", as_paths(self.files, "files"))

    def __repr__(self) -> str:
        source = self.input.name if isinstance(self.input, Spec) else str(self.input)
        target = "nowhere" if self.output is None else str(self.output)
        return f"<Job {self.name}: {source} to {target}>"

    def with_input(self, paths: StrPath | Iterable[StrPath]) -> Self:
        """Return the same job with other files to read; of several inputs, `TAG=PATH` each.

        Raises:
            TypeError: Its input does not read files.
            ValueError: A path does not name one of several inputs.
        """
        if isinstance(self.input, Spec):
            return replace(self, input=self.input.with_input(paths))
        assert isinstance(self.input, Input)  # a list was made one
        return replace(self, input=with_files(self.input, as_paths(paths)))

    def with_output(self, path: StrPath) -> Self:
        """Return the same job with another directory to write.

        Raises:
            TypeError: It has no output.
        """
        if not isinstance(self.output, Format):
            raise TypeError("cannot name another output: the job has none, so no format either.")
        return replace(self, output=self.output.at(path))

    def with_skip_bad(self, skip_bad: int) -> Self:
        """Return the same job with another number of bad records that may be left out.

        Those that it reads from get the same number.
        """
        source = self.input
        if isinstance(source, Spec):
            source = source.with_skip_bad(skip_bad)
        return replace(self, input=source, skip_bad=skip_bad)

    def chain(self) -> list["Spec"]:
        """Return the jobs that must run, in order; the last is this one."""
        before = self.input.chain() if isinstance(self.input, Spec) else []
        return [*before, self]

    @property
    def reduces(self) -> bool:
        """Whether there is anything to shuffle."""
        return self.reduce is not None or self.reduce_batches is not None

    def split_sizes(self) -> tuple[int, int]:
        """Return the least and the most bytes of a split."""
        least, most = self.split_min, self.split_max
        return (
            0 if least is None else parse_bytes(least, "split_min"),
            NO_MAX if most is None else parse_bytes(most, "split_max"),
        )

    def _named(self) -> str:
        return ", ".join(self._names()) or "job"

    def _names(self) -> Iterator[str]:
        for function in (self.map, self.map_batches, self.reduce, self.reduce_batches):
            if isinstance(function, Aggregate):
                yield repr(function)
            elif function is not None:
                yield name_of(function)
