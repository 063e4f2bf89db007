"""Inputs of jobs over records, drawn at random; of each record an oracle knows what it says.

    columns, cells ──▶ rows as they stand: quotes, ends ──▶ files, compressed or not

Nothing here reads a table: what a row says is known before it is written. So an oracle needs no
parser, which might err as the program does.
"""

import gzip
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

__all__ = ["Cells", "Column", "Input", "Record", "input_of", "one_in", "run_options"]

Cells = tuple[bytes, ...]

MARK = b"\xef\xbb\xbf"

TEXTS = [
    *(
        b"",
        b"",
        b"a",
        b"b",
        b"A",
        b"B",
        b"aa",
        b" a",
        b"a ",
        b'"',
        b'""',
        b'a"b',
        b",",
        b";",
        b"\t",
    ),
    *(b"\n", b"x\r\ny", b"a\rb", b"\xff", b"\xc3\xa4", b"\0", b"\x01", b",\n", b'","', b"0", b"~"),
]
WORDS = [b"", b"a", b"b", b"A", b"B", b"ab", b"a b", b"\xc3\x84", b"\xff", b"1", b"1.0", b"01"]
NUMBERS = [
    *(
        b"0",
        b"-0",
        b"1",
        b"01",
        b"+1",
        b"1.0",
        b" 1",
        b"1 ",
        b"-1",
        b"2",
        b"10",
        b"9",
        b"1e1",
        b".5",
    ),
    *(b"0.5", b"-.5", b"5.", b"1E2", b"1e-2", b"100", b"-2.50", b"9007199254740993", b"", b""),
    *(b"18446744073709551616", b"-18446744073709551617", b"123456789012345678901234567890"),
]
WHOLES = [cell for cell in NUMBERS if not set(cell) & set(b".eE")]
NAMES = ["id", "city", "b c", "x,y", 'q"q', "n=1", "é", "name", "2", "A", "Ä\t", "a:num"]


def one_in(chosen: random.Random, times: int) -> bool:
    return chosen.randrange(times) == 0


@dataclass(frozen=True)
class Record:
    """A row or a line."""

    raw: bytes
    """As it stands, without its end."""
    end: bytes
    """Its end; where the file ends without one, that which it gets."""
    cells: Cells
    """What its fields say."""
    file: int
    """The number of its file in the order of the input."""
    offset: int
    """Where it begins, in what the file has decompressed."""

    @property
    def whole(self) -> bytes:
        return self.raw + self.end


@dataclass(frozen=True)
class Column:
    """A column, and the words that mean it in an option."""

    name: bytes
    number: int
    word: str


@dataclass
class Input:
    """Files, the words that name them, and what they say."""

    options: list[str]
    columns: list[Column] = field(default_factory=list[Column])
    header: bytes = b""
    """The first row, with its end; empty where there is none."""
    end: bytes = b"\n"
    """The end of rows that are made anew."""
    is_table: bool = False
    separator: bytes = b","
    records: list[Record] = field(default_factory=list[Record])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    words: list[str] = field(default_factory=list[str])
    is_wrong: bool = False
    """Whether something in it is an error."""
    begun: bool = False
    """Whether a row was written, whose end is that of rows without one."""

    def has_names(self) -> bool:
        return self.is_table and "--no-header" not in self.options

    def row(self, cells: list[bytes]) -> bytes:
        """A row or a line as a job writes it that is made of cells, with its end."""
        if not self.is_table:
            return self.separator.join(cells) + b"\n"
        fields = [quoted(cell) if needs_quotes(cell, self.separator) else cell for cell in cells]
        return (b'""' if fields == [b""] else self.separator.join(fields)) + self.end


def needs_quotes(cell: bytes, separator: bytes) -> bool:
    return any(byte in cell for byte in (b'"', b"\n", b"\r", separator))


def quoted(cell: bytes) -> bytes:
    return b'"' + cell.replace(b'"', b'""') + b'"'


# --- rows as they stand ---


def field_of(chosen: random.Random, cell: bytes, separator: bytes) -> bytes:
    """A cell as it stands in a row: with quotes where they are needed, and at times where not."""
    if b"\n" in cell or separator in cell or cell.startswith(b'"'):
        return quoted(cell)
    if cell and b'"' not in cell and one_in(chosen, 30):  # what follows the quotes belongs to it
        at = chosen.randrange(len(cell) + 1)
        return quoted(cell[:at]) + cell[at:]
    return quoted(cell) if one_in(chosen, 6) else cell


def row_of(chosen: random.Random, cells: Cells, separator: bytes) -> bytes:
    return separator.join(field_of(chosen, cell, separator) for cell in cells)


def line_of(chosen: random.Random, cells: Cells, separator: bytes | None) -> tuple[bytes, Cells]:
    """A line with such fields, and the fields that it then has."""
    if separator is not None:
        cells = tuple(cell.replace(b"\n", b"").replace(separator, b"") for cell in cells)
        cells = cells[: chosen.randrange(1, len(cells) + 1)] if one_in(chosen, 6) else cells
        return separator.join(cells), cells
    drop = bytes.maketrans(b"\n\t \r\x0b\x0c", b"xxxxxx")
    words = [cell.translate(drop) for cell in cells]
    words = [word for word in words if word]
    between = [chosen.choice([b" ", b"\t", b"  "]) for _ in words]
    before = chosen.choice([b"", b"", b"", b" ", b"\t "])
    text = before + b"".join(word + blank for word, blank in zip(words, between, strict=True))
    return (text if one_in(chosen, 8) else text.rstrip(b" \t")), tuple(words)


# --- cells ---


def of_numbers(chosen: random.Random) -> bytes:
    if one_in(chosen, 3):
        return b"%d" % chosen.randrange(-(10 ** chosen.randrange(1, 20)), 10**6)
    return chosen.choice(NUMBERS)


KINDS: dict[str, Callable[[random.Random], bytes]] = {
    "text": lambda chosen: chosen.choice(TEXTS),
    "word": lambda chosen: chosen.choice(WORDS),
    "few": lambda chosen: chosen.choice([b"k", b"k", b"k", b"l", b"m", b""]),
    "number": of_numbers,
    "whole": lambda chosen: chosen.choice([*WHOLES, b"%d" % chosen.randrange(-(10**18), 10**9)]),
    "small": lambda chosen: chosen.choice([b"", b"-3", b"07", b"%d" % chosen.randrange(10**6)]),
    "many": lambda chosen: b"%x" % chosen.getrandbits(chosen.choice([4, 8, 40])),
    "long": lambda chosen: b"p" * chosen.randrange(50, 100),
}

ROWS_AT_MOST = [0, 1, 2, 5, 20, 20, 60, 300, 300, 2000]
LARGE_BYTES = 9_000_000


def rows_of_cells(
    chosen: random.Random, kinds: list[str], most: int, *, large: bool
) -> list[Cells]:
    """Rows; a large input repeats some, to have more bytes than a task reads."""
    draws = [KINDS[kind] for kind in kinds]
    most = min(chosen.choice(ROWS_AT_MOST), most)
    count = 300 if large else chosen.randrange(most + 1)
    rows = [tuple(draw(chosen) for draw in draws) for _ in range(count)]
    if large:
        size = sum(len(cell) + 1 for row in rows for cell in row)
        rows *= LARGE_BYTES // size + 1
    return rows


# --- files ---


def input_of(
    chosen: random.Random,
    kinds: list[str],
    *,
    name: str = "in",
    like: Input | None = None,
    most: int = 2000,
    large: bool = False,
) -> Input:
    """An input whose columns are of these kinds: a table, or lines with fields.

    It has so many records at most, or is `large`: it has more bytes than a task reads. One that is
    `like` another is read by the same options, and never has a row that is wrong.
    """
    kinds = [*kinds, "long"] if large else kinds
    made = form(chosen) if like is None else like_of(like)
    made.columns = columns_of(chosen, len(kinds), named=made.has_names())
    made.end = b"\r\n" if made.is_table and one_in(chosen, 5) else b"\n"
    rows = rows_of_cells(chosen, kinds, most, large=large)
    shares = cut(chosen, rows, chosen.choice([1, 1, 1, 2, 3]))
    writer = FileWriter(chosen, made)
    texts = [writer.file(share) for share in shares]
    if like is None and made.is_table and len(made.records) > 1 and one_in(chosen, 25):
        spoiled(chosen, made, texts)
    put_files(chosen, made, texts, name)
    return made


def form(chosen: random.Random) -> Input:
    """The options that say what a record is."""
    if one_in(chosen, 3):
        separator = chosen.choice([b":", b",", b"\t", b"x", None])
        given = [] if separator is None else ["-t", separator.decode().replace("\t", "\\t")]
        return Input(given, separator=separator or b"\t")
    kind = chosen.choice([["--csv"], ["--csv"], ["--tsv"], ["--csv", "-t", ";"]])
    separator = {"--csv": b",", "--tsv": b"\t"}[kind[0]] if len(kind) == 1 else b";"
    options = [*kind, *(["--no-header"] if one_in(chosen, 5) else [])]
    return Input(options, is_table=True, separator=separator)


def like_of(other: Input) -> Input:
    return Input(other.options, is_table=other.is_table, separator=other.separator)


def columns_of(chosen: random.Random, count: int, *, named: bool) -> list[Column]:
    """Columns with names that differ, or with numbers alone."""
    names = chosen.sample(NAMES, count) if named else []
    columns: list[Column] = []
    for number in range(1, count + 1):
        word = f"#{number}" if one_in(chosen, 3) else f"{number}"
        if named and (f"{number}" in names or one_in(chosen, 2)):
            name = names[number - 1]
            plain = not any(char in name for char in ',"=:') and not one_in(chosen, 4)
            word = name if plain else quoted(name.encode()).decode()
        columns.append(Column(names[number - 1].encode() if named else b"", number - 1, word))
    return columns


def cut(chosen: random.Random, rows: list[Cells], count: int) -> list[list[Cells]]:
    """Rows as files, cut anywhere; some may have none."""
    places = sorted(chosen.randrange(len(rows) + 1) for _ in range(count - 1))
    bounds = zip([0, *places], [*places, len(rows)], strict=True)
    return [rows[begin:end] for begin, end in bounds]


class FileWriter:
    """Writes files of an input, and notes in it what they say."""

    def __init__(self, chosen: random.Random, made: Input) -> None:
        self._chosen = chosen
        self._made = made
        self._files = 0
        self._known: dict[Cells, tuple[bytes, Cells]] = {}
        """How rows were written; used where there are many."""

    def file(self, rows: list[Cells]) -> bytes:
        """The text of the next file."""
        chosen, made = self._chosen, self._made
        text = bytearray(MARK if one_in(chosen, 8) else b"")
        if made.has_names() and (rows or one_in(chosen, 2)):
            text += self._header(text)
        mixed, with_empty = one_in(chosen, 10), made.is_table and one_in(chosen, 10)
        many = len(rows) > 5000
        for at, cells in enumerate(rows):
            raw, fields = self._row(without_returns(cells) if at == 0 else cells, many=many)
            end = chosen.choice([b"\n", b"\r\n"]) if mixed and made.begun else made.end
            if with_empty and made.begun and len(cells) > 1 and one_in(chosen, 3):
                text += end  # an empty line is no row of several columns
            made.begun = True
            if not made.is_table and end == b"\r\n":
                raw, fields, end = with_return(raw, fields, made.options)
            made.records.append(Record(raw, end, fields, self._files, len(text)))
            text += raw + end
        self._files += 1
        if rows and one_in(chosen, 4):
            self._cut_end(text, only=len(rows) == 1)
        return bytes(text)

    def _header(self, before: bytearray) -> bytes:
        made = self._made
        names = tuple(column.name for column in made.columns)
        header = row_of(self._chosen, names, made.separator) + made.end
        made.begun = True
        made.header = made.header or bytes(before) + header
        return header

    def _row(self, cells: Cells, *, many: bool) -> tuple[bytes, Cells]:
        if many and cells in self._known:
            return self._known[cells]
        made = self._made
        if made.is_table:
            written = row_of(self._chosen, cells, made.separator), cells
        else:
            written = line_of(self._chosen, cells, made.separator if made.options else None)
        self._known[cells] = written
        return written

    def _cut_end(self, text: bytearray, *, only: bool) -> None:
        """Take the end of the last row away, or its LF alone."""
        made = self._made
        last = made.records[-1]
        if not last.raw:
            return  # without its end it is no record
        if last.end == b"\r\n" and only:
            return  # it may be the row whose end others get
        if last.end == b"\r\n" and one_in(self._chosen, 2):
            del text[-1:]
            return
        del text[-len(last.end) :]
        made.records[-1] = replace(last, end=made.end)


def without_returns(cells: Cells) -> Cells:
    """The cells of a first row, which must have no CR outside of quotes."""
    return tuple(cell.replace(b"\r", b"") for cell in cells)


def with_return(raw: bytes, fields: Cells, options: list[str]) -> tuple[bytes, Cells, bytes]:
    """A line with a CR, which is a part of its last field."""
    if options or (fields and raw.endswith(fields[-1])):
        return raw + b"\r", (*fields[:-1], fields[-1] + b"\r"), b"\n"
    return raw + b"\r", (*fields, b"\r"), b"\n"


def spoiled(chosen: random.Random, made: Input, texts: list[bytes]) -> None:
    """Spoil the last row: too many fields or too few, a quote that stays open, another header."""
    last = made.records[-1]
    how = chosen.choice(["more", "more", "fewer", "quote", "header"])
    row = last.raw + made.separator + b"z"
    if how == "quote":
        row = last.raw + made.separator + b'"z'
    elif how == "fewer" and len(last.cells) > 1:
        row = field_of(chosen, last.cells[0] or b"z", made.separator)
    elif how == "header" and made.has_names():
        row = last.raw
        texts.append(b"other" + made.end)
    texts[last.file] = texts[last.file][: last.offset] + row + b"\n"
    made.is_wrong = True
    if how in ("more", "fewer") and one_in(chosen, 2):
        made.is_wrong = False
        made.records.pop()
        made.options = [*made.options, "--skip-bad", f"{chosen.randrange(1, 4)}"]


def put_files(chosen: random.Random, made: Input, texts: list[bytes], name: str) -> None:
    """Give the files names, and say which words name all of them in this order."""
    in_folder = len(texts) > 1 and (name != "in" or one_in(chosen, 2))
    letters = "abcd" if in_folder else chosen.sample("abcd", 4)
    for letter, text in zip(letters, texts, strict=False):
        path = f"{name}/{letter}" if in_folder else f"{name}-{letter}"
        if one_in(chosen, 6):
            path += ".gz"
        made.files[path] = gzip.compress(text, 1, mtime=0) if path.endswith(".gz") else text
        made.words.append(path)
    if in_folder:
        made.words = [name]
        made.files |= {f"{name}/_no": b'no,"', f"{name}/.no": b"no"} if one_in(chosen, 3) else {}


# --- how a job runs ---


def run_options(chosen: random.Random, *, parts: bool = True) -> tuple[list[str], str, bool]:
    """Options that change no record; the output that they name, and whether it has parts."""
    memory, workers = chosen.choice(
        [
            ("", ""),
            ("26M", ""),
            ("24M", "1"),
            ("30M", "2"),
            ("33M", "3"),
            ("64M", ""),
            ("200M", "3"),
        ]
    )
    options = [
        *(["--memory", memory] if memory else []),
        *(["--workers", workers] if workers else []),
    ]
    options += ["--runner", "processes"] if memory in ("", "200M") and one_in(chosen, 50) else []
    if one_in(chosen, 6):
        rounds = ["2,3", "1,2", "4,5,4", "3,1,2,2"]
        plans = [["--shuffle", "two-level"], ["--shuffle", "iterative"]]
        options += chosen.choice([*plans, *(["--rounds", fan_outs] for fan_outs in rounds)])
    if parts and one_in(chosen, 6):
        return (
            [*options, "--parts", f"{chosen.randrange(1, 5)}", "-o", "out", "--no-sync"],
            "out",
            True,
        )
    if one_in(chosen, 3):
        return [*options, "-o", "out", "--no-sync"], "out", False
    return options, "", False
