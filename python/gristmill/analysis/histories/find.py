"""The history files that a user means: by a job's name, a file, a folder, or a command.

last, job_2026…, a part of it ──▶ that job in $GRISTMILL_HOME/jobs
the name that `--name` gave ────▶ all jobs of that name
x/events.jsonl, x.jhist ────────▶ that file
a folder ───────────────────────▶ the job in it, or all jobs below it
--command NAME ─────────────────▶ all jobs of that command (without names: of all there are)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gristmill.analysis.runs import Run
from gristmill.errors import ours
from gristmill.history.brief import load_brief
from gristmill.history.home import EVENTS, NoSuchJobError, find_job, job_folders
from gristmill.names import show_path, show_text

__all__ = ["JHIST", "Found", "Read", "all_jobs", "find", "is_history"]

JHIST = ".jhist"
"""How the names of Hadoop's history files end."""


@dataclass(frozen=True, slots=True)
class Found:
    """A history file."""

    path: Path
    """An `events.jsonl`, or a `.jhist` file."""
    is_named: bool
    """Whether the user named this job, not a folder or a command that has it."""

    @property
    def job(self) -> str:
        """What people call the job."""
        path = self.path if self.path.suffix == JHIST else self.path.absolute().parent
        return show_text(path.name)


@dataclass(frozen=True, slots=True)
class Read:
    """A history that was read."""

    found: Found
    """Its file."""
    command: str
    """The command of the job."""
    run: Run | None
    """Its run, if it has one."""
    problem: str = ""
    """Why it has none."""
    cpu_s: float | None = None
    """CPU seconds of the job, where they are known."""


def is_history(name: str) -> bool:
    """Whether a word of a command line means histories: not a file of another kind.

    Example:
        >>> [is_history(name) for name in ("runs.csv", "last", "job_2026", "x.jhist", "/tmp")]
        [False, True, True, True, True]
    """
    path = Path(name)
    if path.suffix == JHIST or path.name == EVENTS or path.is_dir():
        return True
    return not path.exists() and not path.suffix and "/" not in name


def find(name: str) -> list[Found]:
    """Return the history files that a name stands for; never none.

    Raises:
        NoSuchJobError: There is no such job, file or folder.
        ValueError: It is a file of another kind, or a folder without histories.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = (Path(folder) / "job_1.jhist").write_text("Avro-Json")
        ...     [(found.job, found.is_named) for found in find(folder)]
        [('job_1.jhist', False)]
    """
    path = Path(name)
    if name and path.is_dir():
        return _in_folder(path)
    if path.is_file():
        return [_file(path)]
    if "/" in name or path.suffix in (JHIST, ".jsonl"):
        message = (
            f"cannot read {show_text(name)}: there is no such file. What to do: check the name."
        )
        raise NoSuchJobError(message)
    return _by_name(name)


def all_jobs() -> list[Found]:
    """Return the histories of all jobs of this user, oldest first."""
    return [Found(folder / EVENTS, is_named=False) for folder in job_folders()]


def _file(path: Path) -> Found:
    if path.name == EVENTS or path.suffix == JHIST:
        return Found(path, is_named=True)
    message = (
        f"cannot read {show_path(path)}: it is not a history by its name. What to do: name an"
        f" {EVENTS} of Gristmill, a {JHIST} file of Hadoop, a directory with such files, or a job."
    )
    raise ours(ValueError(message), "bad_input")


def _in_folder(folder: Path) -> list[Found]:
    if (folder / EVENTS).is_file():
        return [Found(folder / EVENTS, is_named=True)]
    found = [Found(path, is_named=False) for path in sorted(_below(folder))]
    if not found:
        message = (
            f"cannot read {show_path(folder)}: it has no {EVENTS} and no {JHIST} file,"
            " nor has a directory in it. What to do: name a directory of jobs."
        )
        raise ours(ValueError(message), "bad_input")
    return found


def _below(folder: Path) -> Iterator[Path]:
    yield from folder.rglob(EVENTS)
    yield from (path for path in folder.rglob(f"*{JHIST}") if path.is_file())


def _by_name(name: str) -> list[Found]:
    """The job of that id; if there is none, all jobs that `--name` gave this name."""
    try:
        return [Found(find_job(name) / EVENTS, is_named=True)]
    except NoSuchJobError:
        found = [one for one in all_jobs() if _given_name(one) == name]
        if not found:
            raise
        return found


def _given_name(found: Found) -> str | None:
    try:
        return load_brief(found.path.parent).name
    except (ValueError, OSError):
        return None
