"""Bad records, left out and put aside, as many as the job allows in all of its tasks.

    places[0]/skipped/<task>   how many this task has left out; the sum over the tasks is the job's

A task writes its number there whenever it leaves a record out, and adds up what the others wrote.
An attempt that comes again writes the same number again, for a task meets the same records.
"""

from pathlib import Path

from gristmill.mapreduce.failures import sentence
from gristmill.mapreduce.formats import Where
from gristmill.mapreduce.task_files import TaskFiles
from gristmill.units import show_ordinal

__all__ = ["Skipping", "TooManyBad"]


class TooManyBad(ValueError):
    """The job has more bad records than it allows."""


class Skipping:
    """What a task leaves out."""

    def __init__(self, allowed: int, place: str, task: int, files: TaskFiles) -> None:
        self._allowed = allowed
        self._folder = Path(place) / "skipped"
        self._task = task
        self._files = files
        self.count = 0

    def leave_out(self, where: Where | None, record: object, error: BaseException) -> None:
        """Put a record aside.

        Raises:
            TooManyBad: It is one more than the job allows.
        """
        self.count += 1
        said = sentence(error)
        if self._in_all() > self._allowed:
            raise TooManyBad(f"{said}{self._many()}") from error
        self._files.put_aside(where, record, said)

    def _many(self) -> str:
        if not self._allowed:  # a record is tried again alone
            return ""
        return (
            f", the {show_ordinal(self._allowed + 1)} bad record; skip_bad allows {self._allowed}"
        )

    def _in_all(self) -> int:
        self._folder.mkdir(parents=True, exist_ok=True)
        mine = self._folder / str(self._task)
        staged = mine.with_suffix(".new")
        staged.write_text(str(self.count))
        staged.replace(mine)
        others = (path for path in self._folder.iterdir() if path != mine and not path.suffix)
        return self.count + sum(int(path.read_text()) for path in others)
