"""Where files of the driver's machine are on this node, to which they went along with the job."""

import os
from functools import cache
from pathlib import Path

from gristmill.names import from_json

__all__ = ["path_on_node"]

_VARIABLE = "GRISTMILL_MOVED"
"""Set by the engine: the paths that moved, and where they are here."""


def path_on_node(name: str) -> Path:
    """Return where a file is that went along with the job.

    Example:
        >>> path_on_node("words.txt")
        PosixPath('words.txt')
    """
    path = Path(name)
    for there, copy in _moved(os.environ.get(_VARIABLE, "{}")).items():
        if path.is_relative_to(there):
            return copy / path.relative_to(there)
    return path


@cache
def _moved(text: str) -> dict[Path, Path]:
    """The longest first, as one may lie in another."""
    pairs: dict[str, str] = from_json(text)
    longest = sorted(pairs.items(), key=lambda pair: -len(pair[0]))
    return {Path(there): Path(copy) for there, copy in longest}
