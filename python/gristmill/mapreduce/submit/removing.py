"""Temporary folders that are removed even if this process is killed.

A second process waits at a pipe from this one. Once the pipe has a byte or ends, it removes the
folder.
"""

import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress

__all__ = ["passing_folder"]

_REMOVE = "import shutil, sys; sys.stdin.read(1); shutil.rmtree(sys.argv[1], ignore_errors=True)"
"""The program that removes a folder once its standard input has a byte, or ends."""


@contextmanager
def passing_folder(prefix: str, within: str | None = None) -> Generator[str]:
    """Make a folder for this user alone; it is removed at the end, even if this process is killed.

    Args:
        prefix: How its name begins.
        within: The folder to make it in; by default the system's folder of temporary files.

    Raises:
        OSError: It cannot be made.

    Example:
        >>> from pathlib import Path
        >>> with passing_folder("example-") as folder:
        ...     Path(folder).is_dir()
        True
    """
    folder = tempfile.mkdtemp(prefix=prefix, dir=within)
    with subprocess.Popen(
        [sys.executable, "-ISc", _REMOVE, folder],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C must not end it
    ) as remover:  # fmt: skip
        try:
            yield folder
        finally:
            assert remover.stdin is not None
            with suppress(OSError):
                remover.stdin.write(b".")  # the pipe may not end: a fork of user code may hold it
