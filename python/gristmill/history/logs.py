"""What the tasks of a job printed, as the engine keeps it beside the events (history/logs.rs)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LOGS", "Printed", "printed"]

LOGS = "logs.jsonl"
"""The file in a job's folder; a job that printed nothing has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """What an attempt printed, the end of it."""

    task: int
    """The task's number in the job."""
    attempt: int
    """0 for the first try."""
    stdout: str
    """What it printed."""
    stderr: str
    """What it wrote to stderr."""


def printed(folder: Path) -> Iterator[Printed]:
    """Return what the attempts of a job printed, in the order in which they ended.

    Raises:
        ValueError: A line is damaged.
        OSError: The file cannot be read.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     list(printed(Path(folder)))
        []
    """
    try:
        file = (folder / LOGS).open("rb")
    except FileNotFoundError:
        return
    with file:
        for line in file:
            if not line.endswith(b"\n"):
                return  # it is being written, or its writer died
            found = json.loads(line)
            fields = {name: found[name] for name in Printed.__slots__}
            yield Printed(**fields)
