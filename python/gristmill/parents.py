"""The directories above an output, made before its job begins, as Hadoop makes them.

    out/2026/counts/     out/ and out/2026/ are made; if the job fails, they go

Of a location in a store there is nothing to make. GNU `sort -o` fails where the directory is
missing; no command here does (docs/guide/gnu-options.md).
"""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from gristmill.errors import ours
from gristmill.locations import absolute, is_remote
from gristmill.names import show_path

__all__ = ["made_above", "parents_made"]


def made_above(output: str) -> list[Path]:
    """Make the directories above an output; return those that were missing, the lowest first.

    Raises:
        NotADirectoryError: A file has the name of one of them.
    """
    if is_remote(output):
        return []
    parents = Path(absolute(output)).parents
    missing = [parent for parent in parents if not parent.exists()]
    file = next((parent for parent in parents if parent.exists() and not parent.is_dir()), None)
    if file is not None:
        what = f"{show_path(file)} is a file, and the output {show_path(output)} would be in it"
        advice = "name another output, or remove that file"
        raise ours(
            NotADirectoryError(f"cannot write the output: {what}. What to do: {advice}."), "io"
        )
    with suppress(OSError):  # the job says better what is wrong
        parents[0].mkdir(parents=True, exist_ok=True)
    return missing


@contextmanager
def parents_made(output: object) -> Generator[None]:
    """Make the directories above an output; those that are empty at the end go.

    Raises:
        NotADirectoryError: A file has the name of one of them.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with parents_made(f"{folder}/a/b/out"):
        ...         was_there = Path(folder, "a/b").is_dir()
        ...     was_there, Path(folder, "a").exists()
        (True, False)
    """
    made = made_above(output) if isinstance(output, str) and output not in ("", "-") else []
    try:
        yield
    finally:
        for parent in made:
            with suppress(OSError):
                parent.rmdir()
