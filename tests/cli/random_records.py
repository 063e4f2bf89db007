"""The random keys of `gristmill shuf` and `sample`, computed anew; inputs with known records.

A key is 128 bits of XXH3 of file number and offset, with 8 bytes of the seed's SHA-256 as its seed.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from .harness import names

MARK = b"\xef\xbb\xbf"
WORD = (1 << 64) - 1
PRIME_32 = 0x85EBCA77
PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F)
SECRET = bytes.fromhex("cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c")
"""32 bytes of XXH3's secret, from the 32nd on."""


def random_key(seed: str, file: int, offset: int) -> int:
    """Return the 128 bits that decide where a record goes: XXH3's way for 9 to 16 bytes."""
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8])
    secret = [int.from_bytes(SECRET[at : at + 8], "little") for at in range(0, 32, 8)]
    place = file.to_bytes(8) + offset.to_bytes(8)
    first, last = int.from_bytes(place[:8], "little"), int.from_bytes(place[8:], "little")
    low = (secret[0] ^ secret[1]) - number & WORD
    high = (secret[2] ^ secret[3]) + number & WORD
    product = (first ^ last ^ low) * PRIMES[0]
    low, upper = (product & WORD) + (15 << 54) & WORD, product >> 64
    last ^= high
    upper = upper + last + (last & 0xFFFFFFFF) * (PRIME_32 - 1) & WORD
    low ^= int.from_bytes(upper.to_bytes(8), "little")
    product = low * PRIMES[1]
    halves = (product >> 64) + upper * PRIMES[1] & WORD, product & WORD

    def mixed(word: int) -> int:
        word = (word ^ word >> 37) * 0x165667919E3779F9 & WORD
        return word ^ word >> 32

    return mixed(halves[0]) << 64 | mixed(halves[1])


@dataclass(frozen=True, order=True)
class Record:
    """A record, and where it is."""

    file: int
    offset: int
    text: bytes
    """Its bytes, with their end."""
    group: bytes = b""
    """Its first cell, of a table."""

    def key(self, seed: str) -> int:
        """Its random key."""
        return random_key(seed, self.file, self.offset)


def lines_in(texts: Sequence[bytes]) -> list[Record]:
    """The lines of files."""
    found: list[Record] = []
    for file, text in enumerate(texts):
        offset = len(MARK) if text.startswith(MARK) else 0
        lines = text[offset:].split(b"\n")
        for line in lines if lines[-1] else lines[:-1]:
            found.append(Record(file, offset, line + b"\n"))
            offset += len(line) + 1
    return found


def quoted(cell: bytes, always: bool = False) -> bytes:
    """The cell as a table has it."""
    needed = always or any(byte in cell for byte in (b",", b'"', b"\n", b"\r"))
    return b'"' + cell.replace(b'"', b'""') + b'"' if needed else cell


CELLS = st.sampled_from([b"", b"a", b"b", b"b,", b'q"q', b"x\ny", b"\xff", b"z\r\n", b" "])


@dataclass(frozen=True)
class Table:
    """Files of a table."""

    header: bytes
    """As the output has it; empty without one."""
    texts: list[bytes]
    records: list[Record]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Tables of two columns, in several files."""
    end = draw(st.sampled_from([b"\n", b"\r\n"]))
    header = draw(st.sampled_from([b"", b"k,v" + end]))
    texts: list[bytes] = []
    records: list[Record] = []
    marks = draw(st.lists(st.sampled_from([b"", MARK]), min_size=1, max_size=3))
    for file, mark in enumerate(marks):
        text = mark + header
        rows = draw(st.lists(st.tuples(CELLS, CELLS), min_size=not header))
        for cells in rows:
            row = quoted(cells[0], draw(st.booleans())) + b"," + quoted(cells[1]) + end
            records.append(Record(file, len(text), row, cells[0]))
            text += row
        # The end of the first row is that of all rows that have none.
        may_lack = len(rows) + bool(header) > 1
        texts.append(text.removesuffix(end) if may_lack and draw(st.booleans()) else text)
    # The mark of the first file belongs to the header.
    return Table(marks[0] + header if header else b"", texts, records)


def written(folder: Path, texts: Sequence[bytes]) -> Path:
    """A directory of files with these bytes, in this order."""
    (folder / "in").mkdir(parents=True)
    for file, text in enumerate(texts):
        (folder / "in" / f"{file}").write_bytes(text)
    return folder / "in"


def parts_of(out: Path) -> list[bytes]:
    """The parts of an output."""
    return [(out / name).read_bytes() for name in names(out) if name.startswith("part-")]


def joined(out: Path, header: bytes = b"") -> bytes:
    """All records of an output, a file or parts, each of which must begin with the header."""
    parts = parts_of(out) if out.is_dir() else [out.read_bytes()]
    assert all(part.startswith(header) for part in parts)
    return b"".join(part.removeprefix(header) for part in parts)


def large_table() -> bytes:
    """More than 12 MB, with newlines in quotes."""

    def rows() -> Iterator[bytes]:
        yield b"city,number,text\n"
        for number in range(200_000):
            text = b'"a ""quote""\nand more, %d"' % number
            yield b"c%d,%d,%s%s\n" % (number % 7, number, text, b"." * (number % 70))

    return b"".join(rows())


def large_lines() -> bytes:
    """The same as lines."""
    return b"".join(b"c%d\t%d %s\n" % (n % 7, n, b"." * (n % 90)) for n in range(240_000))


EVERYWHERE = (
    ["--workers", "1"],
    ["--workers", "2", "--memory", "30M"],
    ["--workers", "2", "--memory", "30M", "--rounds", "2,3,2"],
    ["--workers", "3", "--runner", "processes"],
)
"""Ways to run a job that must all give the same bytes."""
