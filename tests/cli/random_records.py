"""The random keys of `gristmill shuf` and `sample`, computed anew; inputs with known records.

A key is 128 bits of SipHash-2-4 of file number and offset, with 16 bytes of the seed's SHA-256.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from .harness import names

MARK = b"\xef\xbb\xbf"
WORD = (1 << 64) - 1


def random_key(seed: str, file: int, offset: int) -> int:
    """Return the 128 bits that decide where a record goes."""
    digest = hashlib.sha256(seed.encode()).digest()
    first, second = (int.from_bytes(digest[at : at + 8], "little") for at in (0, 8))
    a, b = first ^ 0x736F6D6570736575, second ^ 0x646F72616E646F6D ^ 0xEE
    c, d = first ^ 0x6C7967656E657261, second ^ 0x7465646279746573

    def rotated(word: int, bits: int) -> int:
        return (word << bits | word >> (64 - bits)) & WORD

    def rounds(times: int) -> None:
        nonlocal a, b, c, d
        for _ in range(times):
            a = (a + b) & WORD
            b = rotated(b, 13) ^ a
            a = rotated(a, 32)
            c = (c + d) & WORD
            d = rotated(d, 16) ^ c
            a = (a + d) & WORD
            d = rotated(d, 21) ^ a
            c = (c + b) & WORD
            b = rotated(b, 17) ^ c
            c = rotated(c, 32)

    for word in (file, offset, 16 << 56):
        d ^= word
        rounds(2)
        a ^= word
    c ^= 0xEE
    rounds(4)
    high = a ^ b ^ c ^ d
    b ^= 0xDD
    rounds(4)
    return high << 64 | a ^ b ^ c ^ d


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
    ["--workers", "3", "--runner", "processes"],
)
"""Ways to run a job that must all give the same bytes."""
