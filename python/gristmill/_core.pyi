"""The native part of Gristmill; crates/python implements it and stubtest compares the two."""

from os import PathLike
from typing import Final, final

__all__ = [
    "DEBUG_BUILD",
    "VERSION",
    "Job",
    "beat",
    "commands",
    "device_floor",
    "device_rates",
    "explain",
    "pulse",
    "pulse_open",
]

VERSION: Final[str]
"""The version of the engine, which is that of the package."""

DEBUG_BUILD: Final[bool]
"""Whether this is an unoptimised build, which no measurement should be taken with."""

@final
class Job:
    """A job, begun when it is made, on a native thread.

    Args:
        spec: JSON of one command and its options, such as
            `{"teragen": {"rows": "1k", "output": "data"}}`.
        job_id: The job's name.
        history: The folder in which the job gets one for its history; none without it.
        keep_short: Whether it is kept of a job of less than a second, too.

    Raises:
        ValueError: An option is unknown, missing or makes no sense.
    """

    def __new__(
        cls,
        spec: str,
        job_id: str,
        history: str | PathLike[str] | None = None,
        *,
        keep_short: bool = False,
    ) -> Job: ...
    def wait(self, timeout_s: float) -> bool:
        """Wait until the job is over, at most `timeout_s` seconds; whether it is."""
    def progress(self) -> tuple[str, int, int, int]:
        """Return the stage's name, its number from 1, its bytes done and its bytes in all.

        Where it is not known how many bytes there are, the last is 0.
        """
    def cancel(self) -> None:
        """Ask the job to end; it cleans up and is over soon."""
    def report(self) -> str:
        """Return the report of a job that is over, as JSON.

        Raises:
            ValueError: The job still runs.
        """
    def raise_failure(self) -> None:
        """Raise what made the job fail, as the built-in exception nearest to it.

        Nothing happens if it succeeded.
        """

def commands() -> str:
    """Return the table of commands and their options, as JSON."""

def explain(spec: str) -> str:
    """Return what a job would do, as JSON; nothing is written.

    Raises:
        ValueError: An option makes no sense.
        FileNotFoundError: An input does not exist.
        MemoryError: The memory is too small for any plan.
        OSError: An input cannot be looked at.
    """

def pulse_open(path: str | PathLike[str]) -> None:
    """Open the pulse of this worker, the page in which it tells its driver where it stands.

    Once is enough: the first one stays.

    Raises:
        OSError: There is none.
    """

def pulse(record: int, offset: int, file: int, bytes_done: int) -> None:
    """Say where this worker stands; nothing happens in a process that is none.

    The number of the record in this attempt, where it begins in its file, the index of that file
    in the split, and how many bytes of the split are done.
    """

def beat() -> None:
    """Say that this worker makes progress of some kind; as `pulse` in a process that is none."""

def device_rates(
    folder: str | PathLike[str], size_bytes: int, streams: int
) -> tuple[float, float, float]:
    """Return how fast the device below `folder` is at this moment, in bytes per second.

    Writing past the cache with `streams` streams, made durable; reading likewise; and reading from
    the page cache; from a try with `size_bytes` bytes.

    Raises:
        OSError: The folder cannot be written.
    """

def device_floor(folder: str | PathLike[str], size_bytes: int, streams: int) -> tuple[float, float]:
    """Return what the device below `folder` takes for plain transfers of `size_bytes` bytes.

    The seconds to write them past the cache with `streams` streams, made durable; and the seconds
    to read as many from the page cache.

    Raises:
        OSError: The folder cannot be written.
    """
