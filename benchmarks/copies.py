"""`gristmill cp` against GNU cp, on the disk, paired: both end when the disk has it.

    long    a file of 5 GB           against cp, and fsync of the copy
    short   100,000 files of 4 kB    against cp -r, and a sync of the file system

    python benchmarks/copies.py                                      both, five rounds
    python benchmarks/copies.py short --files 1000 --size 20 --rounds 1   a try

Each program is a process of its own, timed from outside, in turn with the other. Both copies are
compared. The sources are in the page cache. The table goes to benchmarks/results.
"""

import argparse
import random
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from commands import Cell, Command, measured, show, whole
from running import GRISTMILL
from tables import RESULTS, Row, keep

FILE_BYTES = 4096
FILES_A_FOLDER = 1000


def tree(top: Path) -> int:
    """What is in a tree, as one number: of each file its name and its bytes."""
    files = (path for path in top.rglob("*") if path.is_file())
    return sum(
        zlib.crc32(path.read_bytes(), zlib.crc32(str(path.relative_to(top)).encode()))
        for path in files
    )


def long(folder: Path, size: int, _files: int) -> Iterator[Cell]:
    """One file."""
    source, made = folder / "long", random.Random(6)
    with source.open("wb") as file:
        for _ in range(size):
            file.write(made.randbytes(1_000_000))
    ours, theirs = folder / "ours", folder / "theirs"
    programs: dict[str, tuple[Command, Path]] = {
        "gristmill": ([GRISTMILL, "cp", source, ours], ours),
        "gnu-cp": (["cp", source, theirs], theirs),
    }
    yield Cell("cp, a long file", programs, whole)
    source.unlink()


def short(folder: Path, _size: int, files: int) -> Iterator[Cell]:
    """Many files."""
    source, made = folder / "short", random.Random(7)
    for number in range(files):
        inside = source / str(number // FILES_A_FOLDER)
        inside.mkdir(parents=True, exist_ok=True)
        (inside / str(number)).write_bytes(made.randbytes(FILE_BYTES))
    ours, theirs = folder / "ours", folder / "theirs"
    synced = 'cp -r "$0" "$1"; sync -f "$1"'
    programs: dict[str, tuple[Command, Path]] = {
        "gristmill": ([GRISTMILL, "cp", f"{source}/", ours], ours),
        "gnu-cp": (["sh", "-ec", synced, source, theirs], theirs),
    }
    yield Cell("cp, short files", programs, tree)


CELLS = {"long": long, "short": short}


def main() -> None:
    parser = argparse.ArgumentParser(description="Copies beside those of GNU cp")
    parser.add_argument("cells", nargs="*", default=[*CELLS], help=", ".join(CELLS))
    parser.add_argument("--size", type=int, default=5000, help="MB of the long file (5000)")
    parser.add_argument("--files", type=int, default=100_000, help="short files (100,000)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (5)")
    parser.add_argument("--dir", type=Path, default=Path(), help="where the data go (.)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the table goes")
    given = parser.parse_args()
    if unknown := [name for name in given.cells if name not in CELLS]:
        parser.error(f"there is no {unknown[0]!r}; take some of {', '.join(CELLS)}")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="gristmill-bench-", dir=given.dir.absolute()) as name:
        for chosen in given.cells:
            for cell in CELLS[chosen](Path(name), given.size, given.files):
                found = measured(cell, given.rounds)
                show(found)
                rows += found
    keep("copies", rows, given.results)


if __name__ == "__main__":
    main()
