"""`gristmill cp` against GNU cp, on the disk, paired: both end when the disk has it.

    long    a file of 5 GB           against cp, and fsync of the copy
    short   100,000 files of 4 kB    against cp -r, and a sync of the file system

    python benchmarks/copies.py                                      both, five rounds
    python benchmarks/copies.py short --files 1000 --size 20 --rounds 1   a try

Each program is a process of its own, timed from outside, in turn with the other. Both copies are
compared. The sources are in the page cache. The table goes to benchmarks/results.
"""

import random
import zlib
from collections.abc import Iterator
from pathlib import Path

from cells import chosen_of, command_line, keep_all
from commands import Cell, Command, measured, show, whole
from running import GRISTMILL
from tables import Row

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
    words = command_line("Copies beside GNU cp", CELLS, ("MB of the long file", 5000), 5)
    words.add_argument("--files", type=int, default=100_000, help="short files (100,000)")
    given = chosen_of(words, CELLS)

    def rows_of(folder: Path) -> Iterator[list[Row]]:
        for chosen in given.cells:
            for cell in CELLS[chosen](folder, given.size, given.files):
                found = measured(cell, given.rounds)
                show(found)
                yield found

    keep_all("copies", given, rows_of)


if __name__ == "__main__":
    main()
