"""Where histories are: `$GRISTMILL_HOME/jobs`, or in the platform's folder for data of programs."""

import json
import os
import sys
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

__all__ = [
    "EVENTS",
    "NoSuchJobError",
    "find_job",
    "job_folders",
    "jobs_folder",
    "newest_first",
    "without_history",
]

_OURS = "gristmill/jobs"

EVENTS = "events.jsonl"
"""The file in a job's folder."""

_SECOND_DIGITS = 14
"""Digits of the second in a job's name."""

_PID_DIGITS_MAX = 10
_HISTORY_BY_S = 3600.0
"""Seconds after which a living job surely has a history: it has one after a second."""


class NoSuchJobError(LookupError):
    """No job has that name, or several have it as a part of theirs."""


def jobs_folder() -> Path:
    """Return the folder that has a folder for each job; it need not exist yet.

    Example:
        >>> import os
        >>> os.environ["GRISTMILL_HOME"] = "/data/gristmill"
        >>> str(jobs_folder())
        '/data/gristmill/jobs'
    """
    home = os.environ.get("GRISTMILL_HOME")
    if home:
        return Path(home).absolute() / "jobs"
    if sys.platform == "linux":  # platformdirs takes 0.9 MB and 13 ms, of every job
        return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / _OURS
    from platformdirs import user_data_path

    return user_data_path("gristmill", appauthor=False) / "jobs"


def job_folders() -> list[Path]:
    """Return the folders of all jobs, oldest first."""
    return list(newest_first())[::-1]


def newest_first() -> Iterator[Path]:
    """Yield the folders of jobs, newest first.

    A job's name begins with the second when it began. Of those of one second, the histories say
    more, and the numbers that jobs of one process have.
    """
    home = jobs_folder()
    try:
        names = sorted((path.name for path in home.iterdir()), reverse=True)
    except FileNotFoundError:
        return
    for _, same in groupby(names, key=lambda name: name[: len("job_") + _SECOND_DIGITS]):
        folders = [path for path in map(home.joinpath, same) if (path / EVENTS).is_file()]
        yield from folders if len(folders) < 2 else sorted(folders, key=_began, reverse=True)


def _began(folder: Path) -> tuple[int, int, str]:
    """When a job began, as well as it can be told, in the order of such jobs."""
    try:
        with (folder / EVENTS).open("rb") as file:
            unix_ms = int(json.loads(file.readline())["unix_ms"])
    except (OSError, ValueError, KeyError, TypeError):  # it is told of where it is read
        unix_ms = 0
    last = folder.name.rpartition("_")[2]
    number = int(last) if len(last) < _PID_DIGITS_MAX and last.isdecimal() else 1
    return unix_ms, number, folder.name


def without_history() -> list[Path]:
    """Return the folders of jobs that have no history, and whose processes are over.

    A job writes what its user code fails at before its history is worth keeping; killed then, it
    leaves that.
    """
    home = jobs_folder()
    try:
        folders = [path for path in home.iterdir() if path.name.startswith("job_")]
    except FileNotFoundError:
        return []
    return sorted(
        path
        for path in folders
        if path.is_dir() and not path.is_symlink() and not (path / EVENTS).exists()
        if not _may_run(path)
    )


def _may_run(folder: Path) -> bool:
    """Whether a job without a history may be alive.

    Its process may be in another container, or on another machine. Older names have its number;
    names in two parts end with that of the job, which has zeros first.
    """
    _, _, process = folder.name.partition("_")[2].partition("_")
    number = process.partition("_")[0]
    if not number.isdecimal() or number[0] == "0" or len(number) > _PID_DIGITS_MAX:
        return time.time() - folder.stat().st_mtime < _HISTORY_BY_S
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def find_job(name: str) -> Path:
    """Return the folder of a job: by its name, a part of it that no other has, or `last`.

    Raises:
        NoSuchJobError: There is no such job, or there are several.
    """
    folders = job_folders()
    if name == "last" and folders:
        return max(folders, key=lambda path: (path / EVENTS).stat().st_mtime)
    found = [path for path in folders if path.name == name]
    found = found or [path for path in folders if name and name in path.name]
    if len(found) == 1:
        return found[0]
    what = f"no job {name!r}" if not found else f"{len(found)} jobs have {name!r} in their names"
    message = f"{what} in {jobs_folder()} (`gristmill jobs` lists them)"
    raise NoSuchJobError(message)
