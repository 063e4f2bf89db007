"""All errors in one table, found by reading the sources: to be read as a whole, for one voice.

    python tools/errors.py

A line is `kind | operation | message | advice`. The user reads "cannot OPERATION: MESSAGE. What to
do: ADVICE." A line without a kind is a part of an error. Holes (`{path}`, `…`) stand for what is
known only when it happens. tests/test_errors.py holds each line to the rules.
"""

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from errors_python import python_rows
from errors_row import Row
from errors_rust import RustErrors

TOP = Path(__file__).parent.parent
CRATES = {
    "base": "crates/base/src",
    "storage": "crates/storage/src",
    "tasks": "crates/tasks/src",
    "engine": "crates/engine/src",
    "extension": "crates/python/src",
    "gnu-keys": "crates/gnu-keys/src",
    "grep": "crates/grep/src",
}
"""Tables of Rust: their names, and the sources."""


def tables() -> dict[str, list[tuple[str, Row]]]:
    """The tables by their names: rows, each with its file."""
    found: dict[str, list[tuple[str, Row]]] = {name: [] for name in (*CRATES, "python")}
    by_folder = {folder: name for name, folder in CRATES.items()}
    for path, row in RustErrors([TOP / folder for folder in by_folder]).rows():
        shown = path.relative_to(TOP).as_posix()
        found[by_folder["/".join(shown.split("/")[:3])]].append((shown, row))
    for path, row in python_rows(TOP / "python/gristmill"):
        found["python"].append((path.relative_to(TOP).as_posix(), row))
    return {
        name: [row for row in dict.fromkeys(rows) if row[1].is_known]
        for name, rows in found.items()
    }


def shown(rows: Iterable[tuple[str, Row]]) -> str:
    """A table as text, a heading for each file.

    >>> print(shown([("a.py", Row("io", "read", "it is gone"))]))
    ## a.py
    io | read | it is gone | -
    """
    parts: list[str] = []
    for path, each in groupby(rows, key=lambda row: row[0]):
        parts.append("\n".join([f"## {path}", *(f"{row}" for _, row in each)]))
    return "\n\n".join(parts)


if __name__ == "__main__":
    for rows in tables().values():
        print(shown(rows), end="\n\n")
