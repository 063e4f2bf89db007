"""What the jobs of the table read, made once: small, and of every form."""

import bz2
import gzip
import lzma
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import gristmill

RECORD_BYTES = 100

WORDS = ["to", "be", "or", "not", "that", "is", "the", "question", "whether", "nobler", "mind"]


def make_inputs(folder: Path) -> Path:
    """Write all inputs into a folder."""
    made = random.Random(7)
    _records(folder, made)
    _texts(folder, made)
    _tables(folder, made)
    (folder / "stop.txt").write_text("to or")
    (folder / "numbers.txt").write_bytes(b"1\n0\n2\nx\n\xff\n4\n")
    for name, code in (("mapper.py", MAPPER), ("reducer.py", REDUCER)):
        (folder / name).write_text(code)
        (folder / name).chmod(0o755)
    return folder


def _records(folder: Path, made: random.Random) -> None:
    """Records of 100 bytes, in some order and of some keys."""
    for name, rows, files, skew in (
        ("tera", 3_000, 2, False),
        ("skew", 3_000, 3, True),
        ("one", 1, 1, False),
        ("empty", 0, 1, False),
        ("large", 300_000, 2, False),
    ):
        gristmill.teragen(rows, folder / name, files=files, skew=skew, no_sync=True)
    text = b"".join(part.read_bytes() for part in sorted((folder / "tera").glob("part-*")))
    records = [text[at : at + RECORD_BYTES] for at in range(0, len(text), RECORD_BYTES)]
    keys = [record[:10] for record in records[:20]]
    for name, ordered in (
        ("ordered", sorted(records)),
        ("reversed", sorted(records, reverse=True)),
        ("tied", [made.choice(keys) + record[10:] for record in records]),
        ("twice", [*records, *records]),
    ):
        (folder / name).mkdir()
        half = len(ordered) // 2
        for number, part in enumerate((ordered[:half], ordered[half:])):
            (folder / name / f"part-r-{number:05}").write_bytes(b"".join(part))


def _texts(folder: Path, made: random.Random) -> None:
    """Lines of words; one file is empty, one ends without a newline."""
    for name in ("text", "packed"):
        (folder / name).mkdir()
    texts: list[bytes] = []
    for number in range(3):
        lines = (" ".join(made.choices(WORDS, k=made.randrange(9))) for _ in range(900))
        texts.append("\n".join(lines).encode() + b"\n" * (number % 2))
    for number, text in enumerate([*texts, b""]):
        (folder / "text" / f"{number}.txt").write_bytes(text)
    packers: dict[str, Callable[[bytes], bytes]] = {
        "0.gz": gzip.compress,
        "1.bz2": bz2.compress,
        "2.xz": lzma.compress,
    }
    for (name, compress), text in zip(packers.items(), texts, strict=True):
        (folder / "packed" / name).write_bytes(compress(text))
    keys = [f"{made.getrandbits(made.choice((4, 30, 300))):x}" for _ in range(4_000)]
    (folder / "lines").write_text("\n".join(keys))
    (folder / "in-order").write_text("\n".join(sorted(keys)) + "\n")
    (folder / "zeros").write_text("\0".join(keys))
    (folder / "nothing").touch()


def _tables(folder: Path, made: random.Random) -> None:
    users = "".join(f"{user},name {user}\n" for user in range(40))
    (folder / "users.csv").write_text("id,name\n" + users)
    (folder / "notes").mkdir()
    notes = [
        f'{number},"to be\n{made.choice(WORDS)}, ""or""",{number % 7}\n' for number in range(500)
    ]
    text = "id,note,of\n" + "".join(notes)
    (folder / "notes/0.csv").write_text(text)
    (folder / "notes/1.csv.gz").write_bytes(gzip.compress(f"{text}bad\n".encode()))
    sales = [(made.randrange(40), made.randrange(100)) for _ in range(500)]
    (folder / "sales.jsonl").write_text(
        "".join(f'{{"user": {user}, "amount": {amount}}}\n' for user, amount in sales)
    )
    rows = [(made.choice(WORDS), made.randrange(1000)) for _ in range(2_000)]
    (folder / "rows.tsv").write_text("".join(f"{word}\t{n}\n" for word, n in rows))
    table = pa.table({
        "word": [word for word, _ in rows],
        "n": [n for _, n in rows],
        "unread": [word * 2 for word, _ in rows],
    })  # fmt: skip
    pq.write_table(table, folder / "rows.parquet", row_group_size=500)


MAPPER = """#!/usr/bin/env python3
import sys

lines = 0
for line in sys.stdin:
    lines += 1
    for word in line.split():
        print(word + "\\t1")
sys.stderr.write(f"reporter:counter:words,lines,{lines}\\n")
"""

REDUCER = """#!/usr/bin/env python3
import sys
from collections import Counter

counts = Counter()
for line in sys.stdin:
    word, _, number = line.rstrip("\\n").partition("\\t")
    counts[word] += int(number)
for word in sorted(counts):
    print(f"{word}\\t{counts[word]}")
"""
