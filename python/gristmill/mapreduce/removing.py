"""Folders that go at the end, however this process ends: then another process removes them."""

import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress

__all__ = ["passing_folder"]

_REMOVE = "import shutil, sys; sys.stdin.read(1); shutil.rmtree(sys.argv[1], ignore_errors=True)"
"""What removes a folder once its standard input ends, or has a byte."""


@contextmanager
def passing_folder(prefix: str, within: str | None = None) -> Generator[str]:
    """A new folder for this user alone, which goes even if this process is killed.

    Args:
        prefix: How its name begins.
        within: The folder that it is in; by default that of temporary files.

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
        start_new_session=True,  # Ctrl-C is not for it
    ) as remover:  # fmt: skip
        try:
            yield folder
        finally:
            assert remover.stdin is not None
            with suppress(OSError):
                remover.stdin.write(b".")  # what user code has forked may hold the pipe open
