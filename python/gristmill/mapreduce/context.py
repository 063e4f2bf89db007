"""What user code knows of its task, and can say: counters, status, side files, named outputs.

A function gets it by having a parameter of the name `context`. There is one for each attempt of a
task, which `setup` sees first; `context.state` is the user's own.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

from gristmill.mapreduce.formats import Where

__all__ = ["Context", "NamedOutput"]


class NamedOutput(Protocol):
    """An output beside the main one."""

    def write(self, record: Any) -> None:  # noqa: ANN401 - whatever the format takes
        """Write a record; a tuple of two is a key and its value."""
        ...


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
    """The how manyth try of the task, from 0."""
    partition: int | None = None
    """The partition; `None` in a map."""
    partitions: int = 0
    """How many partitions there are; 0 where nothing is reduced."""
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

    def count(self, group: str, name: str, amount: int = 1) -> None:
        """Add to a counter; the job's result has the sum over all tasks."""
        self.counters[group][name] += amount

    def status(self, text: str) -> None:
        """Say what goes on: shown with the job, and a sign of life where one record takes long."""
        self._status = text
        self._tell(text)

    def file(self, name: str) -> Path:
        """Return the path of a side file, by its name.

        Raises:
            KeyError: The job was not given such a file.
        """
        if name not in self._files:
            raise KeyError(
                f"the job has no side file {name!r}. To go on: give it, as Job(files=[...])."
            )
        return Path(self._files[name])

    def output(self, name: str) -> NamedOutput:
        """Return a named output, to `write` records to.

        Raises:
            KeyError: The job was not given such an output.
        """
        if self._open_output is None:
            raise KeyError(
                f"the job has no output {name!r}. To go on: give it, as Job(outputs={{...}})."
            )
        return self._open_output(name)

    @property
    def input_file(self) -> str:
        """The file that is read; empty where the input is no file, and in a reduce."""
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
