"""The commands over tables and lines against the programs that people have for it, paired.

    distinct   a row of each id; each line            against DuckDB, Polars; GNU sort -u
    group      counts and sums of each city           against DuckDB, Polars
    join       each order with its customer           against DuckDB, Polars
    top        the hundred dearest                    against DuckDB, Polars
    shuf       rows in a random order; lines          against DuckDB, Polars; GNU shuf

    python benchmarks/records.py --peers PYTHON                         all of it
    python benchmarks/records.py join --size 20 --keys 1000 --rounds 1   a try: 20 MB, not 1 GB

The input is a CSV file of orders: an id, of `--keys` different ones, a city, a customer, an amount,
a note, which may have quotes. Each program is a process of its own, timed from outside, in turn
with the others. All outputs must have the same rows where these are defined, else as many. The
tables go to benchmarks/results.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cells import chosen_of, command_line, keep_all
from commands import MEMORY, MEMORY_BYTES, Cell, measured, show, whole
from running import GRISTMILL, STREAMS
from tables import HERE, Row

PEERS = ("duckdb", "polars")
CITIES = 5_000


@dataclass(frozen=True)
class Inputs:
    """What the programs read, and how large it is."""

    folder: Path
    peers: Path | None
    size: int
    keys: int

    @property
    def orders(self) -> Path:
        return self.folder / "orders.csv"

    @property
    def customers(self) -> Path:
        return self.folder / "customers.csv"

    @property
    def lines(self) -> Path:
        return self.folder / "lines"

    def make(self) -> None:
        """Orders of so many bytes, their customers, and the orders as lines without a header."""
        made = random.Random(5)
        notes = ["", "", "paid", '"to ""the"" door"', '"gift, wrapped"', "é"]
        with self.orders.open("w") as file:
            file.write("id,city,customer,amount,note\n")
            written = 0
            while written < self.size:
                city = f"city{int(made.paretovariate(0.5)) % CITIES}"
                row = (
                    f"{made.randrange(self.keys)},{city},c{made.randrange(self.keys // 4 + 1)},"
                    f"{made.randrange(10**12)},{made.choice(notes)}\n"
                )
                written += file.write(row)
        with self.customers.open("w") as file:
            file.write("customer,name\n")
            for number in made.sample(range(self.keys // 4 + 1), self.keys // 4 + 1):
                file.write(f"c{number},name {number}\n")
        with self.orders.open("rb") as file, self.lines.open("wb") as lines:
            next(file)
            lines.writelines(row.split(b",", 1)[0] + b"\n" for row in file)


def rows_in(path: Path) -> int:
    """How many lines there are: no cell has a line end in it."""
    with path.open("rb") as file:
        return sum(1 for _ in file)


def sorted_rows(path: Path) -> bytes:
    """The rows, without regard to their order and to quotes that need not be."""
    return b"".join(sorted(path.read_bytes().replace(b'""', b"").replace(b'"', b"").splitlines()))


def of_table(
    inputs: Inputs, what: str, words: list[str | Path]
) -> dict[str, tuple[list[str | Path], Path]]:
    """Programs that read the table; ours has these words."""
    ours = inputs.folder / "ours"
    command = [GRISTMILL, *words, "-o", ours, "--memory", MEMORY]
    programs = {"gristmill": (command, ours)}
    if inputs.peers is None:
        return programs
    for peer in PEERS:
        out = inputs.folder / peer
        named = [inputs.peers, HERE / "record_peers.py", f"{peer}-{what}"]
        programs[peer] = ([*named, inputs.orders, out, MEMORY_BYTES], out)
    return programs


def of_lines(
    inputs: Inputs, ours: list[str | Path], gnu: list[str | Path]
) -> dict[str, tuple[list[str | Path], Path]]:
    """Ours and GNU's, which read the lines."""
    out, theirs = inputs.folder / "ours", inputs.folder / "theirs"
    command = [GRISTMILL, *ours, inputs.lines, "-o", out, "--memory", MEMORY]
    name, there = f"gnu-{gnu[0]}", ([*gnu, "-o", theirs, inputs.lines], theirs)
    return {"gristmill": (command, out), name: there}


def distinct(inputs: Inputs) -> Iterator[Cell]:
    """One of each."""
    words = ["distinct", "--csv", "--key", "id", inputs.orders]
    yield Cell("distinct, of each id", of_table(inputs, "distinct", words), rows_in)
    buffer = [f"-S{MEMORY}", f"--parallel={STREAMS}", "-T", inputs.folder]
    programs = of_lines(inputs, ["distinct", "--sorted"], ["sort", "-u", *buffer])
    yield Cell("distinct, of each line", programs, whole)


def group(inputs: Inputs) -> Iterator[Cell]:
    """Figures of each city."""
    words = ["group", "--csv", "--by", "city", "--count", "--sum", "amount", inputs.orders]
    yield Cell("group, by city", of_table(inputs, "group", words), sorted_rows)


def join(inputs: Inputs) -> Iterator[Cell]:
    """Each order with its customer."""
    words = ["join", "--csv", "--by", "customer", inputs.orders, inputs.customers]
    yield Cell("join, with customers", of_table(inputs, "join", words), rows_in)


def top(inputs: Inputs) -> Iterator[Cell]:
    """The dearest."""
    words = ["top", "100", "--csv", "--key", "amount:num:desc", inputs.orders]
    yield Cell("top, 100 by amount", of_table(inputs, "top", words), sorted_rows)


def shuf(inputs: Inputs) -> Iterator[Cell]:
    """A random order."""
    words = ["shuf", "--csv", inputs.orders]
    yield Cell("shuf, of a table", of_table(inputs, "shuf", words), rows_in)
    yield Cell("shuf, of lines", of_lines(inputs, ["shuf"], ["shuf"]), rows_in)


CELLS = {"distinct": distinct, "group": group, "join": join, "top": top, "shuf": shuf}


def main() -> None:
    words = command_line("The commands over tables and lines", CELLS, ("MB of orders", 1000), 5)
    words.add_argument("--keys", type=int, default=10_000_000, help="different ids (10,000,000)")
    words.add_argument("--peers", type=Path, help="a Python with DuckDB and Polars")
    given = chosen_of(words, CELLS)

    def rows_of(folder: Path) -> Iterator[list[Row]]:
        peers = given.peers and given.peers.absolute()
        inputs = Inputs(folder, peers, given.size * 1_000_000, given.keys)
        inputs.make()
        for chosen in given.cells:
            for cell in CELLS[chosen](inputs):
                found = measured(cell, given.rounds)
                show(found)
                yield found

    keep_all("records", given, rows_of)


if __name__ == "__main__":
    main()
