"""The commands of the shell against the programs that people have for it, paired.

    keys     `gristmill sort -n` and `-t, -k2,2n`, 1 GB each  against GNU sort with the same memory
    words    `gristmill wordcount`, 1 GB, in two texts        against DuckDB, ClickHouse, Polars
    grep     `gristmill grep -c`, 1 GB; a regular expression, -i, -c in 5 GB    against ripgrep
    cold     `gristmill grep -c`, 1 GB that is not in the page cache   against the device's reads

    python benchmarks/commands.py                           all of it, 30 minutes (cold needs root)
    python benchmarks/commands.py grep --size 20 --rounds 1   a try: 20 MB instead of 1 GB

Each program is a process of its own, timed from outside, in turn with the others; what it wrote is
compared with ours. The tables go to benchmarks/results.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cells import chosen_of, command_line, keep_all
from external import GNU, drop_caches, natural_text, read_directly
from mapreduce import rare_text
from running import GRISTMILL, STREAMS
from tables import HERE, Row, names, rows_of, span

Command = list[str | Path]

MEMORY, MEMORY_BYTES = "4G", "4000000000"
PEERS_OF_WORDS = ("duckdb", "clickhouse", "polars")


@dataclass(frozen=True)
class Cell:
    """Programs that do the same, ours first, each with the file that it writes."""

    title: str
    programs: dict[str, tuple[Command, Path]]
    #: What of an output must be the same for all.
    told: Callable[[Path], object]
    before: Callable[[], object] = lambda: None


def whole(path: Path) -> bytes:
    """All bytes, by their digest."""
    return subprocess.run(["sha256sum"], stdin=path.open(), capture_output=True, check=True).stdout


def counts(path: Path) -> tuple[int, int]:
    """How many words, and how often in all; what stands between two spaces is none."""
    files = sorted(path.glob("part-*")) if path.is_dir() else [path]
    lines = [line for file in files for line in file.read_bytes().splitlines()]
    found = [line.replace(b",", b"\t").rsplit(b"\t", 1) for line in lines]
    real = [int(count) for word, count in found if word not in (b"", b'""')]
    return len(real), sum(real)


def numbers(path: Path, size: int) -> None:
    """Lines of a whole number of up to ten digits and a word."""
    made = random.Random(3)
    with path.open("w") as file:
        for _ in range(size // 20):
            file.write(f"{made.randrange(-(10**9), 10**10)} {made.randrange(10**8):08x}\n")


def table(path: Path, size: int) -> None:
    """A CSV file of four columns; the second one is a number of up to six digits."""
    made = random.Random(4)
    with path.open("w") as file:
        for at in range(size // 33):
            name, amount = made.randrange(10**9), made.randrange(10**6)
            file.write(f"name{name:09},{amount},{at % 997},{made.randrange(10**7):07}\n")


def keys(folder: Path, size: int, _peers: Path | None) -> Iterator[Cell]:
    """Sorts by keys."""
    cases = {"-n": (numbers, ["-n"]), "-t, -k2,2n": (table, ["-t", ",", "-k2,2n"])}
    for title, (make, options) in cases.items():
        text, ours, theirs = folder / "text", folder / "ours", folder / "theirs"
        make(text, size)
        buffer = [f"-S{MEMORY}", f"--parallel={STREAMS}", "-T", folder]
        yield Cell(
            f"sort {title}",
            {
                "gristmill": (
                    [GRISTMILL, "sort", *options, text, "-o", ours, "--memory", MEMORY],
                    ours,
                ),
                "gnu": (["sort", *options, *buffer, text, "-o", theirs], theirs),
            },
            whole,
        )
        text.unlink()


def words(folder: Path, size: int, peers: Path | None) -> Iterator[Cell]:
    """Word counts."""
    for title, make in {"Zipf": natural_text, "a fifth rare": rare_text}.items():
        text, ours = folder / "text", folder / "ours"
        make(text, size)
        programs: dict[str, tuple[Command, Path]] = {
            "gristmill": ([GRISTMILL, "wordcount", text, ours, "--memory", MEMORY], ours)
        }
        for peer in PEERS_OF_WORDS if peers else ():
            out = folder / peer
            programs[peer] = (
                [peers, HERE / "peers.py", f"{peer}-words", text, out, MEMORY_BYTES],
                out,
            )
        yield Cell(f"wordcount, {title}", programs, counts)
        text.unlink()


def grep(folder: Path, size: int, _peers: Path | None) -> Iterator[Cell]:
    """Searches of one file in the page cache."""
    text, large = folder / "text", folder / "large"
    natural_text(text, size)
    word = text.read_bytes()[: 1 << 16].split()[77].decode()
    with large.open("wb") as file:
        for _ in range(5):
            file.write(text.read_bytes())

    def search(title: str, file: Path, *options: str) -> Cell:
        ours, theirs = folder / "ours", folder / "theirs"
        return Cell(
            f"grep {title}",
            {
                "gristmill": ([GRISTMILL, "grep", *options, file], ours),
                "ripgrep": (["rg", "--no-messages", "--no-line-number", *options, file], theirs),
            },
            whole,
            lambda: whole(file),
        )

    yield search("-c, 1 GB", text, "-c", word)
    yield search("-c, 5 GB", large, "-c", word)
    yield search("regex, 5 GB", large, "[a-f]{3}[x-z]{2}[a-z]* [p-t]")
    yield search("-i, 5 GB", large, "-i", word.upper())
    text.unlink()
    large.unlink()


CELLS = {"keys": keys, "words": words, "grep": grep}


def timed(command: Command, out: Path) -> Row:
    """A program as a process of its own, its output durable; seconds and CPU seconds."""
    before, began = os.times(), time.perf_counter()
    with tempfile.TemporaryFile(dir=out.parent) as told:
        done = subprocess.run(command, stdout=told, env=GNU, check=False)
        if done.returncode > (1 if "-c" in command else 0):  # 1: no line matches
            sys.exit(f"{command} exited with {done.returncode}")
        if out.is_file():
            with out.open("rb") as file:
                os.fsync(file.fileno())
        wall_s, after = time.perf_counter() - began, os.times()
        if not out.exists():
            told.seek(0)
            out.write_bytes(told.read())
    user_s = after.children_user - before.children_user
    return {
        "wall_s": wall_s,
        "user_s": user_s,
        "sys_s": after.children_system - before.children_system,
    }


def measured(cell: Cell, rounds: int) -> list[Row]:
    """The runs of a cell; every other round in the other order. All outputs are the same."""
    found: list[dict[str, Row]] = []
    os.sync()  # what was made for it is not written to the device meanwhile
    cell.before()
    for number in range(rounds):
        order = list(cell.programs.items())
        times: dict[str, Row] = {}
        outputs: dict[str, object] = {}
        for name, (command, out) in order if number % 2 == 0 else order[::-1]:
            times[name] = timed(command, out)
            outputs[name] = cell.told(out) if number == 0 else None
            subprocess.run(["rm", "-rf", out], check=True)
        if len(set(outputs.values())) > 1:
            sys.exit(f"{cell.title}: the outputs are not the same: {outputs}")
        found.append(times)
    return rows_of(found, what=cell.title)


def show(rows: list[Row]) -> None:
    """A line for each program: its time, and how many times ours it is."""
    ours = span(rows, program="gristmill")
    for name in names(rows, "program"):
        wall = span(rows, program=name)
        print(
            f"{rows[0]['what']:24} {name:10} {wall.shown('.3f')} s  {(wall / ours).shown('.2f')} x",
            flush=True,
        )


def cold(folder: Path, size: int, rounds: int) -> list[Row]:
    """A search of what is not in memory, beside reading the same file past the page cache."""
    text, ours = folder / "text", folder / "ours"
    natural_text(text, size)
    command: Command = [GRISTMILL, "grep", "-c", "there is no such line", text]
    found: list[dict[str, Row]] = []
    for _ in range(rounds):
        drop_caches()
        times = {"gristmill": timed(command, ours)}
        ours.unlink()
        began = time.perf_counter()
        read_directly([text])
        times["device"] = {"wall_s": time.perf_counter() - began}
        found.append(times)
    text.unlink()
    return rows_of(found, what="grep -c, cold")


def main() -> None:
    names = [*CELLS, "cold"]
    words = command_line(__doc__.split("\n")[0], names, ("MB of data", 1000), 5)
    words.add_argument("--peers", type=Path, help="a Python with DuckDB, ClickHouse and Polars")
    given = chosen_of(words, names)

    def rows_of(folder: Path) -> Iterator[list[Row]]:
        size, peers = given.size * 1_000_000, given.peers and given.peers.absolute()
        for chosen in given.cells:
            if chosen == "cold":
                cells = iter([cold(folder, size, given.rounds)])
            else:
                made = CELLS[chosen](folder, size, peers)
                cells = (measured(cell, given.rounds) for cell in made)
            for found in cells:
                show(found)
                yield found

    keep_all("commands", given, rows_of)


if __name__ == "__main__":
    main()
