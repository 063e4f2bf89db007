"""What jobs did: their histories, found, read and shown.

    home ──▶ folders of jobs ──▶ reader ──▶ JobHistory ──▶ limits (what held phases back)
                                                      └──▶ page (one HTML file)

The engine writes them (crates/engine/src/history, docs/internals/history.md); here nothing is
written but pages.
"""

from typing import TYPE_CHECKING

from gristmill.history.home import find_job, job_folders, jobs_folder

if TYPE_CHECKING:
    from gristmill.history.model import JobHistory
    from gristmill.history.reader import Follower, is_live, load

__all__ = ["Follower", "JobHistory", "find_job", "is_live", "job_folders", "jobs_folder", "load"]

_READ = ("Follower", "JobHistory", "is_live", "load")
"""What `reader` has: every job imports this package, to know where its history goes."""


def __getattr__(name: str) -> object:
    """Import the reader when it is first used (PEP 562)."""
    if name not in _READ:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gristmill.history import reader

    return getattr(reader, name)
