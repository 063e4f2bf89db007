"""The lines that Hadoop's client logs while a job runs and when it is over.

    2026-11-28 03:15:57 INFO mapreduce.Job: Running job: job_2026112803155700000000000000000001_0001
    2026-11-28 03:15:58 INFO mapreduce.Job:  map 60% reduce 0%
    2026-11-28 03:15:59 INFO mapreduce.Job: Job job_..._0001 completed successfully

Programs read them: mrjob runs `hadoop jar` on a terminal and takes the job's name and its counters
from there. So there is never a bar, and whatever else is said is a record of its own. `PlainLog`
says the same of `gristmill streaming`, to people: there a bar shows how far the job is.
"""

import time
from collections.abc import Callable

__all__ = ["ClientLog", "PlainLog", "log_line"]

_STATES = {"cancelled": "KILLED"}


def log_line(message: str, *, logger: str = "mapreduce.Job", level: str = "INFO") -> str:
    """Return a line of a log of Hadoop's.

    Example:
        >>> log_line(" map 60% reduce 0%")[19:]
        ' INFO mapreduce.Job:  map 60% reduce 0%'
    """
    return f"{time.strftime('%Y-%m-%d %H:%M:%S')} {level} {logger}: {message}"


class PlainLog:
    """What is said of one job to people; `say` takes each line."""

    timed = True
    """Whether to say how long the job took."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def warn(self, text: str) -> None:
        """Say what the user is to be told."""
        self._say(f"gristmill: {text}")

    def succeeded(self, left_out: str) -> None:
        """Say what a job that is done has left out, if anything."""
        if left_out:
            self._say(left_out)

    def failed(self, status: str, reason: str) -> None:  # noqa: ARG002 - as of ClientLog
        """Say why the job has not succeeded."""
        self._say(f"gristmill streaming: {reason}")

    def close(self) -> None:
        """Say nothing more of a job that has not succeeded."""


class ClientLog(PlainLog):
    """What is said of one job as Hadoop says it."""

    timed = False

    def __init__(self, say: Callable[[str], None], job_id: str, *, reduces: bool) -> None:
        super().__init__(say)
        self._job_id = job_id
        self._reduces = reduces
        self._at = (-1, -1)

    def begin(self) -> None:
        """Say which job it is."""
        self._say(log_line(f"Running job: {self._job_id}"))
        self._show(0, 0)

    def show(self, stage: str, done_bytes: int, bytes_in_all: int) -> None:
        """Say how far the job is, if that is news; no number goes down.

        Example:
            >>> lines = []
            >>> log = ClientLog(lines.append, "job_1_0001", reduces=True)
            >>> log.show("map", 30, 50), log.show("map", 30, 50), log.show("reduce", 1, 4)
            (None, None, None)
            >>> [line.split(": ")[1] for line in lines]
            [' map 60% reduce 0%', ' map 100% reduce 25%']
        """
        share = min(100 * done_bytes // bytes_in_all, 100) if bytes_in_all else 0
        if stage == "map":
            self._show(share, 0)
        elif stage == "reduce":
            self._show(100, share)

    def _show(self, maps: int, reduces: int) -> None:
        at = max(maps, self._at[0]), max(reduces, self._at[1])
        if at != self._at:
            self._at = at
            self._say(log_line(f" map {at[0]}% reduce {at[1]}%"))

    def warn(self, text: str) -> None:
        """Say what the user is to be told."""
        self._say(log_line(text, level="WARN"))

    def succeeded(self, left_out: str) -> None:
        """Say that the job is done, and what it has left out."""
        if left_out:
            self.warn(left_out)
        self._show(100, 100 if self._reduces else 0)
        self._say(log_line(f"Job {self._job_id} completed successfully"))

    def failed(self, status: str, reason: str) -> None:
        """Say that the job has not succeeded, and why."""
        state = _STATES.get(status, "FAILED")
        self._say(log_line(f"Job {self._job_id} failed with state {state} due to: {reason}"))

    def close(self) -> None:
        """Say last that the job has not succeeded, as Streaming does."""
        self._say(log_line("Job not successful!", logger="streaming.StreamJob", level="ERROR"))
        self._say("Streaming Command Failed!")
