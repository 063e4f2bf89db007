"""Where histories are: `$GRISTMILL_HOME/jobs`, or in the platform's folder for data of programs."""

import os
from pathlib import Path

__all__ = ["EVENTS", "NoSuchJobError", "find_job", "job_folders", "jobs_folder"]

EVENTS = "events.jsonl"
"""The file in a job's folder."""


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
    from platformdirs import user_data_path  # what `--version` does not need

    return user_data_path("gristmill", appauthor=False) / "jobs"


def job_folders() -> list[Path]:
    """Return the folders of all jobs, oldest first."""
    try:
        found = [path for path in jobs_folder().iterdir() if (path / EVENTS).is_file()]
    except FileNotFoundError:
        return []
    return sorted(found, key=lambda path: path.name)


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
