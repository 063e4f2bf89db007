"""What a chain of jobs keeps while it runs: found again, and believed, after its process died.

    .out.job_20261122183452_5f3c09d1e2a7b648/     beside the last output, or where runs go
        definition    what its jobs are, pickled; mode 0600, locked while its process lives
        begun         a line when a job begins, with its name; one when it ends, with its report
        0/  1/        outputs of jobs without output=

The history of each job names the folder and the SHA-256 of the definition. The folder is taken for
what it says only if that file is this user's alone and has this hash: paths in a history are not
trusted, and to open a definition is to run what is in it.
"""

import fcntl
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gristmill.history.model import JobHistory

__all__ = [
    "BEGUN",
    "DEFINITION",
    "ChainFolder",
    "dead_chain_of",
    "is_chain_folder",
    "locked",
    "named_places",
]

DEFINITION = "definition"
BEGUN = "begun"

_NAME = re.compile(r"\..+\.job_\d{14}_\d+(?:_\d+)?", re.DOTALL)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class ChainFolder:
    """The folder of a chain, as the history of a job of it names it."""

    path: Path
    sha256: str
    """Of its definition."""
    job: int
    """Which job of the chain named it, from 1."""

    @classmethod
    def named_by(cls, history: JobHistory) -> "ChainFolder | None":
        """Return the folder that a history names, whether it is there or not."""
        match history.options.get("chain"):
            case {"folder": str(folder), "sha256": str(sha256), "job": int(job)}:
                path = Path(folder)
                named = path.is_absolute() and is_chain_folder(path)
                return cls(path, sha256, job) if named else None
            case _:
                return None

    def definition(self) -> IO[bytes] | None:
        """Return the file of the definition, open at its beginning, if it is what it was."""
        try:
            file = os.fdopen(os.open(self.path / DEFINITION, os.O_RDONLY | os.O_NOFOLLOW), "rb")
        except OSError:
            return None
        found = os.fstat(file.fileno())
        alone = found.st_uid == os.geteuid() and not found.st_mode & _OTHERS
        if not (alone and stat.S_ISREG(found.st_mode) and _has_hash(file, self.sha256)):
            file.close()
            return None
        return file

    def names(self, place: str) -> str:
        """Return a place as people know it: what a job keeps for the next one has no name.

        Example:
            >>> ChainFolder(Path("/data/.out.job_1"), "", 2).names("/data/.out.job_1/0")
            'job 1 of the chain'
        """
        inner = place.removeprefix(f"{self.path}/")
        return f"job {int(inner) + 1} of the chain" if inner.isdecimal() else place

    def is_there(self) -> bool:
        """Whether the definition is what it was."""
        file = self.definition()
        if file is not None:
            file.close()
        return file is not None

    def is_dead(self) -> bool:
        """Whether the chain was not ended, and no process runs it."""
        file = self.definition()
        if file is None:
            return False
        with file:
            return locked(file)

    def remove(self) -> bool:
        """Remove the folder of a dead chain; false if it is not dead any more."""
        file = self.definition()
        if file is None:
            return False
        with file:
            found = locked(file)
            if found:
                shutil.rmtree(self.path)
        return found


def is_chain_folder(path: Path) -> bool:
    """Whether a path has the name of such a folder."""
    return _NAME.fullmatch(path.name) is not None


def locked(file: IO[bytes]) -> bool:
    """Lock a definition until it is closed; false if another process has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _has_hash(file: IO[bytes], sha256: str) -> bool:
    found = hashlib.sha256(file.read()).hexdigest()
    file.seek(0)
    return found == sha256


def named_places(history: JobHistory, places: Iterable[str]) -> list[str]:
    """Return inputs or outputs of a job as people know them."""
    chain = ChainFolder.named_by(history)
    return [place if chain is None else chain.names(place) for place in places]


def dead_chain_of(history: JobHistory) -> ChainFolder | None:
    """Return the chain of a job that is over or dead, if it can go on."""
    chain = ChainFolder.named_by(history)
    return chain if chain is not None and chain.is_dead() else None
