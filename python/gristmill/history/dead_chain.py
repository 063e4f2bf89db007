"""Which dead chain of jobs a user means who resumes a job."""

from gristmill.history.brief import load_brief
from gristmill.history.chains import ChainFolder
from gristmill.history.home import NoSuchJobError, find_job, newest_first

__all__ = ["dead_chain"]


def dead_chain(name: str) -> ChainFolder | None:
    """Return the dead chain that a user means who resumes a job.

    Args:
        name: Of a job, a part of it that no other has, or `last`: the last one that can be resumed.
    """
    try:
        folders = newest_first() if name == "last" else [find_job(name)]
    except NoSuchJobError:
        return None
    for folder in folders:
        try:
            history = load_brief(folder)
        except (OSError, ValueError):
            continue
        chain = ChainFolder.named_by(history)
        if chain is not None and (chain.is_dead() or (name != "last" and history.state == "dead")):
            return chain
        if history.resumable:
            return None
    return None
