"""Files of stores that tasks have in their working directory: copied to this machine first.

    GRISTMILL_HOME/shipped/LOCATION-AND-VERSION/NAME

A copy stays, for a job that is resumed. One that no job has asked for in 30 days goes when another
is made.
"""

import hashlib
import os
import shutil
import tempfile
import time
from pathlib import Path

from gristmill import _core
from gristmill.history.home import jobs_folder
from gristmill.locations import open_read
from gristmill.streaming.parse import WrongCommandError

__all__ = ["copied_here"]

_KEPT_S = 30 * 24 * 3600


def copied_here(name: str, option: str) -> Path:
    """Return a copy, on this machine, of a file in a store.

    Raises:
        WrongCommandError: It is not there, or it is a directory.
        OSError: It cannot be read.
    """
    found = _core.stat(name)
    if found is None:
        raise WrongCommandError(f"{option} {name}: there is no such file")
    is_folder, size, changed_s, _ = found
    if is_folder:
        raise WrongCommandError(
            f"{option} {name}: it is a directory in a store: name its files, or make an archive"
        )
    home = jobs_folder().parent / "shipped"
    version = hashlib.sha256(os.fsencode(f"{name} {size} {changed_s}")).hexdigest()[:24]
    copy = home / version / name.rpartition("/")[2]
    if not copy.is_file():
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_old(home)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=copy.parent, delete=False) as new:
            with open_read(name) as file:
                shutil.copyfileobj(file, new)
            Path(new.name).chmod(0o755)  # scripts are run; what others may read, the store says
            Path(new.name).rename(copy)
    os.utime(copy.parent)
    return copy


def _remove_old(home: Path) -> None:
    for folder in home.iterdir():
        if time.time() - folder.stat().st_mtime > _KEPT_S:
            shutil.rmtree(folder, ignore_errors=True)
