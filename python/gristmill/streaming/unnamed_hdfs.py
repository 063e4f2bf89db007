"""`hdfs:///PATH` or `hdfs:/PATH`, which names no name node: what it stands for here.

Hadoop's configuration has a default file system     a location there
it has none                                          a file in the folder `hdfs`, beside the
histories of jobs
"""

import re
from pathlib import Path

from gristmill import _core
from gristmill.history.home import jobs_folder

__all__ = ["hdfs_folder", "localized", "stands_for_folder"]

_UNNAMED = re.compile(r"hdfs:(?://(?=/|$)|(?=/(?:[^/]|$)))")


def hdfs_folder() -> Path:
    """Return the folder that stands for HDFS where nothing says which.

    Example:
        >>> hdfs_folder().name
        'hdfs'
    """
    return jobs_folder().absolute().parent / "hdfs"


def stands_for_folder(text: str) -> bool:
    """Whether a location names no name node, and nothing else does.

    Example:
        >>> stands_for_folder("hdfs://host/x"), stands_for_folder("x")
        (False, False)
    """
    return _UNNAMED.search(text) is not None and _core.default_file_system() is None


def localized(word: str) -> str:
    """Return a word with the folder of this machine in the place of `hdfs://`.

    Where Hadoop's configuration names a default file system in HDFS, `hdfs:///x` is a location
    there.

    Example:
        >>> localized("a,b"), localized("hdfs:///x").endswith("/hdfs/x")
        ('a,b', True)
    """
    if stands_for_folder(word):
        return _UNNAMED.sub(lambda _: str(hdfs_folder()), word)
    return re.sub("hdfs://$", "hdfs:///", _UNNAMED.sub("hdfs://", word))
