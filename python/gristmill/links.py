"""Why a path leads to nothing."""

import errno
import os
from pathlib import Path

__all__ = ["why_missing"]


def why_missing(path: str | Path) -> str:
    """Return why there is nothing at a path, as the rest of a sentence about it.

    Example:
        >>> why_missing("/no/such/file")
        'does not exist'
    """
    link = Path(path)
    try:
        link.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "is a link that leads back to itself"
    if not link.is_symlink():
        return "does not exist"
    return f"is a dangling link: {os.fspath(link.readlink())}, to which it leads, does not exist"
