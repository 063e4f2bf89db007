"""Bad records, left out and put aside, as many as the job allows in all of its tasks.

    places[0]/skipped/<task>   how many this task has left out; the sum over the tasks is the job's

A task writes its number there, 8 bytes in place, whenever it leaves a record out. What the others
wrote it adds up now and then: the nearer the job is to its limit, the sooner again. At its end it
does so once more, so that the last of the tasks has seen them all. An attempt that comes again
writes the same numbers again, for a task meets the same records.
"""

import os
from pathlib import Path

from gristmill.mapreduce.formats.format import Where
from gristmill.mapreduce.worker.failures import sentence
from gristmill.mapreduce.worker.task_files import TaskFiles
from gristmill.units import show_ordinal

__all__ = ["Skipping", "TooManyBad"]


class TooManyBad(ValueError):
    """The job has more bad records than it allows."""


_SHARE = 64
"""Of what may still be left out, a task leaves out one part of so many before it looks again.

A task that looked each time took 5 ms for a record, of which the functions had 0.1 ms.
"""


class Skipping:
    """What a task leaves out."""

    def __init__(self, allowed: int, place: str, task: int, files: TaskFiles) -> None:
        self._allowed = allowed
        self._folder = Path(place) / "skipped"
        self._task = task
        self._files = files
        self._others = 0
        self._look_at = 0
        self.count = 0

    def leave_out(self, where: Where | None, record: object, error: BaseException) -> None:
        """Put a record aside.

        Raises:
            TooManyBad: It is one more than the job allows.
        """
        self.count += 1
        said = sentence(error)
        self._tell()
        if self.count >= self._look_at:
            self._look()
        if self.count + self._others > self._allowed:
            raise TooManyBad(f"{said}{self._many()}") from error
        self._files.put_aside(where, record, said)

    def end(self) -> None:
        """See at the end of the task what the others have left out.

        Raises:
            TooManyBad: The job has left out more records than it allows.
        """
        if self.count:
            self._look()
        if self.count + self._others > self._allowed:
            found = self.count + self._others
            raise TooManyBad(f"the job has {found:,} bad records; skip_bad allows {self._allowed}")

    def _many(self) -> str:
        if not self._allowed:  # a record is tried again alone
            return ""
        return (
            f", the {show_ordinal(self._allowed + 1)} bad record; skip_bad allows {self._allowed}"
        )

    def _tell(self) -> None:
        if self.count == 1:
            self._folder.mkdir(parents=True, exist_ok=True)
        file = os.open(self._folder / str(self._task), os.O_WRONLY | os.O_CREAT, 0o666)
        try:
            os.pwrite(file, self.count.to_bytes(8, "little"), 0)
        finally:
            os.close(file)

    def _look(self) -> None:
        others = (path for path in self._folder.iterdir() if path.name != str(self._task))
        self._others = sum(int.from_bytes(path.read_bytes(), "little") for path in others)
        left = self._allowed - self._others - self.count
        self._look_at = self.count + max(left // _SHARE, 1)
