"""What a chain of jobs that died left: the outputs that its first jobs kept for the later ones.

    parent/.out.job_20261122183452_5f3c09d1e2a7b648-0    beside the output of the last job

No lock says whether a chain lives, but its process had the locks of its jobs: of a dead job's
process, by the random bits in their names and its host, all that it had begun is dead too. Older
names have the number of the process in their place: what another process with the same number made
later is told by the time in its name.
"""

import json
import os
import re
from pathlib import Path

from gristmill.history.model import JobHistory

__all__ = ["kept_for_chain"]

_NAME = r"job_(?P<begun>\d{14})_(?P<process>\d{20}|\d{1,15})(?:_\d+)?"
_KEPT = re.compile(rf"\.(?P<output>.+)\.{_NAME}-\d+", re.DOTALL)
_JOB = re.compile(_NAME)
_SUCCESS_MAX_BYTES = 64_000_000


def kept_for_chain(history: JobHistory) -> list[Path]:
    """Return the hidden outputs that the process of a dead job had kept for its chain.

    Nothing but whole outputs of jobs of that process counts, each by its `_SUCCESS`: the paths in a
    history are not trusted.
    """
    job = _JOB.fullmatch(history.job_id)
    if job is None or history.state != "dead" or history.host != os.uname().nodename:
        return []
    named = [Path(history.cwd, name) for name in (*history.inputs, history.output) if name]
    chained = [(path.parent, kept) for path in named if (kept := _KEPT.fullmatch(path.name))]
    found: set[Path] = set()
    for parent, kept in chained:
        for path in parent.glob(f".*.job_*_{job['process']}*-*"):
            other = _KEPT.fullmatch(path.name)
            if other and other["output"] == kept["output"] and _is_of(path, other, job):
                found.add(path)
    return sorted(found)


def _is_of(path: Path, kept: re.Match[str], job: re.Match[str]) -> bool:
    """Whether a folder holds the output of a job of the same process, which began no later."""
    if kept["process"] != job["process"] or kept["begun"] > job["begun"] or path.is_symlink():
        return False
    try:
        with (path / "_SUCCESS").open("rb") as file:
            maker = _JOB.fullmatch(json.loads(file.read(_SUCCESS_MAX_BYTES))["job_id"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if maker is None or maker["process"] != job["process"]:
        return False
    return maker["begun"] <= job["begun"]
