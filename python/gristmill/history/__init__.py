"""What jobs did: their histories, found, read and shown.

    home ──▶ folders of jobs ──▶ reader ──▶ JobHistory ──▶ limits (what held phases back)
                                                      └──▶ page (one HTML file)

The engine writes them (crates/engine/src/history, docs/internals/history.md); here nothing is
written but pages.
"""

from gristmill.history.home import find_job, job_folders, jobs_folder
from gristmill.history.reader import Follower, JobHistory, is_live, load

__all__ = ["Follower", "JobHistory", "find_job", "is_live", "job_folders", "jobs_folder", "load"]
