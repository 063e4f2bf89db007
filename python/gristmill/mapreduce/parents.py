"""The directories above an output, made before the job begins, as Hadoop makes them.

    out/2026/counts/     out/ and out/2026/ are made; if the job fails, they go

What is not empty then stays. Of a location in a store there is nothing to make.
"""

from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

from gristmill.locations import absolute, is_remote

__all__ = ["with_parents"]


@contextmanager
def with_parents(folders: Iterable[str]) -> Generator[None]:
    """Make the directories above these outputs; what makes that fail, the job says better.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with with_parents([f"{folder}/a/b/out"]):
        ...         print(Path(folder, "a/b").is_dir())
        True
    """
    made: list[Path] = []
    for folder in folders:
        if not is_remote(folder):
            parents = Path(absolute(folder)).parents
            missing = [parent for parent in parents if not parent.exists()]
            with suppress(OSError):
                parents[0].mkdir(parents=True, exist_ok=True)
            made = [*missing, *made]  # a directory before the one that it is in
    try:
        yield
    except BaseException:
        for parent in made:
            with suppress(OSError):
                parent.rmdir()
        raise
