"""What user code knows of its task, and can say: counters, status, side files, named outputs.

A function gets it by having a parameter of the name `context`. There is one for each attempt of a
task, which `setup` sees first; `context.state` is the user's own.
"""

from collections import defaultdict
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import index
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

from gristmill.cluster.node_environment import path_on_node
from gristmill.mapreduce.formats.format import Where
from gristmill.mapreduce.pickling import as_it_is

__all__ = ["Context", "NamedOutput", "counted", "plain_text", "whole_record"]


class NamedOutput(Protocol):
    """An output beside the main one."""

    def write(self, record: Any) -> None:  # noqa: ANN401 - whatever the format takes
        """Write a record; a tuple of two is a key and its value."""
        ...


@dataclass(slots=True, frozen=True)
class _OfRecord:
    """A named output that gets what a bad record writes no more than the main one does."""

    _write: Callable[[NamedOutput, Any], None]
    _output: NamedOutput

    def write(self, record: Any) -> None:  # noqa: ANN401 - whatever the format takes
        """Write a record; a tuple of two is a key and its value."""
        self._write(self._output, record)


def _nowhere() -> Where:
    return "", 0, 0, 0


def _quiet(_text: str) -> None:
    """Without a driver there is nobody to tell."""


@dataclass(slots=True, kw_only=True)
class Context:
    """The task of a function, as far as it is the function's business.

    Example:
        >>> context = Context(job_id="job_1", task=0, kind="map")
        >>> context.count("words", "long")
        >>> context.count("words", "long", 2)
        >>> context.counters["words"]["long"]
        3
    """

    job_id: str
    """The job's name."""
    task: int
    """The number of the task in its stage, from 0."""
    kind: str
    """`map` or `reduce`."""
    attempt: int = 0
    """The attempt number of the task, starting at 0."""
    partition: int | None = None
    """The partition; `None` in a map."""
    partitions: int = 0
    """How many partitions there are; 0 where nothing is reduced."""
    tag: str = ""
    """The `tag` of the input that is read, where a job has several; empty in a reduce."""
    state: SimpleNamespace = field(default_factory=SimpleNamespace)
    """For what `setup` prepares: `context.state.model = ...`."""
    counters: defaultdict[str, defaultdict[str, int]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(int))
    )
    """The user's counters: groups, and in them names. Only attempts that succeed count."""
    _files: dict[str, str] = field(default_factory=dict[str, str])
    place: Callable[[], Where] = field(default=_nowhere, repr=False)
    """Where in the input the task is."""
    _open_output: Callable[[str], NamedOutput] | None = None
    _tell: Callable[[str], None] = _quiet
    _status: str = ""
    _of_record: list[tuple[str, str, int]] | None = None
    # What a record has counted that may turn out to be bad.
    _written: list[tuple[NamedOutput, Any]] = field(default_factory=list[tuple[NamedOutput, Any]])
    # What it has written to named outputs, likewise.

    def count(self, group: str, name: str, amount: int = 1) -> None:
        """Add to a counter; the job's result has the sum over all tasks.

        Raises:
            TypeError: The amount is not a whole number.
        """
        if self._of_record is not None:
            self._of_record.append((group, name, index(amount)))
            return
        self.counters[group][name] += index(amount)

    def begin_record(self) -> None:
        """Hold back what is counted and written, until the record is known to be good."""
        self._of_record = []

    def end_record(self, *, good: bool) -> None:
        """Count and write what was held back, if it counts."""
        counted, self._of_record = self._of_record or [], None
        written, self._written = self._written, []
        for output, record in written if good else []:
            output.write(record)
        for group, name, amount in counted if good else []:
            self.counters[group][name] += amount

    def _write(self, output: NamedOutput, record: Any) -> None:  # noqa: ANN401 - as NamedOutput
        """Write to a named output: of a record that may turn out to be bad, once it is good."""
        if self._of_record is None:
            output.write(record)
        else:
            self._written.append((output, as_it_is(record)))

    def status(self, text: str) -> None:
        """Say what the task does now: shown with the job, and a sign of life in long records."""
        self._status = str(text)
        self._tell(self._status)

    def file(self, name: str) -> Path:
        """Return the path of a side file, by its name.

        Raises:
            KeyError: The job was not given such a file.
        """
        if name not in self._files:
            raise KeyError(
                f"the job has no side file {name!r}. What to do: give it, as Job(files=[...])."
            )
        return path_on_node(self._files[name])

    def output(self, name: str) -> NamedOutput:
        """Return a named output, to `write` records to.

        Raises:
            KeyError: The job was not given such an output.
        """
        if self._open_output is None:
            raise KeyError(
                f"the job has no output {name!r}. What to do: give it, as Job(outputs={{...}})."
            )
        return _OfRecord(self._write, self._open_output(name))

    @property
    def input_file(self) -> str:
        """The file that is read; empty where the input is not a file, and in a reduce."""
        return self.place()[0]

    @property
    def offset(self) -> int:
        """Where in the file the record begins: a byte, in tables a row."""
        return self.place()[1]

    @property
    def record(self) -> int:
        """The number of the record in its split, from 0."""
        return self.place()[2]

    @property
    def last_status(self) -> str:
        """What `status` was last given."""
        return self._status


@contextmanager
def whole_record(context: Context | None) -> Generator[None]:
    """Count and write what is counted and written inside only if all of it succeeds.

    Example:
        >>> from contextlib import suppress
        >>> context = Context(job_id="job_1", task=0, kind="map")
        >>> with suppress(ValueError), whole_record(context):
        ...     context.count("lines", "all")
        ...     raise ValueError
        >>> with whole_record(context):
        ...     context.count("lines", "all")
        >>> context.counters["lines"]["all"]
        1
    """
    if context is None:
        yield
        return
    context.begin_record()
    good = False
    try:
        yield
        good = True
    finally:
        context.end_record(good=good)


def counted(counters: Mapping[Any, Mapping[Any, Any]]) -> dict[str, dict[str, int]]:
    """Return counters as a report has them, whatever user code put there.

    Raises:
        TypeError: One is not a whole number.
        OverflowError: One does not fit 64 bits.

    Example:
        >>> counted({"words": {"long": 3, ("a", 1): True}})
        {'words': {'long': 3, "('a', 1)": 1}}
    """
    found: dict[str, dict[str, int]] = {}
    for group, names in counters.items():
        of_group = found.setdefault(plain_text(group), {})
        for name, amount in names.items():
            whole = index(amount)
            if not -(2**63) <= whole < 2**63:
                raise OverflowError(f"the counter {group!r}, {name!r} does not fit 64 bits")
            of_group[plain_text(name)] = whole
    return found


def plain_text(value: object) -> str:
    r"""Return a value as text that every reader of JSON takes: half a surrogate pair is escaped.

    Example:
        >>> plain_text("a\udc80"), plain_text(3)
        ('a\\udc80', '3')
    """
    return str(value).encode("utf-8", "backslashreplace").decode()
