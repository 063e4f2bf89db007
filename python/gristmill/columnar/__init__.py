"""Parquet in the place of CSV, for the commands over tables.

    sales.parquet ──a thread──▶ a pipe: CSV with a header ──▶ the command
    the command ──▶ CSV in a folder that goes with the process ──▶ sorted.parquet, in one step

The engine knows rows of text, so a command sees a table as CSV (feeding.py), and what it has
written as CSV is given types again (writing.py). A column of the output that is one of an input's,
by its name, gets that one's type; any other the first of int64, double, decimal and string that
holds its cells without loss. Nothing is published before the job has succeeded.

Decision: docs/decisions/parquet-as-csv.md.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from gristmill.locations import is_remote
from gristmill.options import Command, Value

if TYPE_CHECKING:
    from gristmill.columnar.tables import Tables

__all__ = ["as_csv"]

_SUFFIX = ".parquet"
_MAGIC = b"PAR1"


@contextmanager
def as_csv(
    command: Command, values: Mapping[str, Value], stop: Callable[[], bool] = lambda: False
) -> Generator["Tables | None"]:
    """Have Parquet files read and written by a command over tables, as if they were CSV.

    Args:
        command: The command.
        values: Its options.
        stop: Whether to end before all is read.

    Yields:
        The job over CSV; `None` where no Parquet is named.

    Raises:
        ValueError: An option makes no sense for Parquet, or a file is not what its name says.
        OSError: A file cannot be read.
        ImportError: pyarrow is not installed.
    """
    options = {option.name for option in command.options}
    named = _named(command, values) if "csv" in options else []
    output = values.get("output")
    writes = isinstance(output, (str, Path)) and _is_named(str(output)) and "csv" in options
    if not named and not writes:
        yield None
        return
    from gristmill.columnar.tables import tables

    with tables(command, values, frozenset(named), stop=stop, writes=writes) as found:
        yield found


def _named(command: Command, values: Mapping[str, Value]) -> list[str]:
    """The inputs that are Parquet."""
    # Else names alone say what is a table: a file of a mount that hangs is waited for by the job.
    looks = bool(values.get("csv") or values.get("tsv"))
    found: list[str] = []
    for option in command.options:
        if option.positional and option.kind in ("path", "paths") and option.name != "output":
            value = values.get(option.name)
            paths = value if isinstance(value, (list, tuple)) else (value,)
            texts = (str(path) for path in cast("tuple[object, ...]", paths) if path is not None)
            found += [path for path in texts if _is_parquet(path, looks=looks)]
    return found


def _is_parquet(path: str, *, looks: bool) -> bool:
    """Whether a path names Parquet: by its end; or by how a file begins, or a directory's first."""
    if _is_named(path) or not looks or is_remote(path):
        return _is_named(path)
    where = Path(path)
    if where.is_dir():
        names = (entry.name for entry in where.iterdir() if entry.name[0] not in "._")
        return _is_named(min(names, default=""))
    return where.is_file() and _begins_so(where)


def _begins_so(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:  # the command says why it cannot be read
        return False


def _is_named(path: str) -> bool:
    """Whether a name says Parquet.

    Example:
        >>> _is_named("sales.parquet/"), _is_named("sales.parquet.csv")
        (True, False)
    """
    return path.rstrip("/").endswith(_SUFFIX)
