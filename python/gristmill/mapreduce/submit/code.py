"""The files that a job's code is in, as far as they are the user's own.

A resumed job runs the functions that it was begun with, but workers import modules anew: so resume
checks that these files are what they were. What is installed is left
out: the version of Python and of Gristmill stand for it.
"""

import os
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

__all__ = ["code_files", "files_below"]

_INSTALLED = ("site-packages", "dist-packages")


def code_files() -> list[str]:
    """Return the files of the modules that are loaded, in order, but for those of packages.

    Example:
        >>> import json
        >>> json.__file__ in code_files()
        False
    """
    paths = sysconfig.get_paths()
    ours = str(Path(__file__).resolve().parents[2])
    folders = (paths["stdlib"], paths["platstdlib"], paths["scripts"], ours)
    roots = tuple(os.path.join(folder, "") for folder in folders)  # noqa: PTH118 - text, for speed
    found: set[str] = set()
    for module in list(sys.modules.values()):
        name = getattr(module, "__file__", None)
        if not isinstance(name, str):
            continue
        path = os.path.abspath(name)  # noqa: PTH100 - links stay as they are
        if not path.startswith(roots) and not any(part in path for part in _INSTALLED):
            found.add(path)
    return sorted(path for path in found if os.path.isfile(path))  # noqa: PTH113 - text


def files_below(paths: Iterable[str | Path]) -> list[str]:
    """Return these files, and those in these folders, in order.

    Example:
        >>> files_below(["no such file"])
        []
    """
    found: set[str] = set()
    for path in map(Path, paths):
        files = path.rglob("*") if path.is_dir() else [path]
        found.update(str(file.absolute()) for file in files if file.is_file())
    return sorted(found)
