"""`sample` and `shuf` against the random keys that the guide describes; `split` against its names.

seed ──SHA-256, 8 bytes──▶ seed of XXH3; number of the file, offset ──XXH3──▶ 128 bits
"""

import hashlib
import random
from functools import partial

from tests.fuzz.answers import answered
from tests.fuzz.campaign import Case, Outcome
from tests.fuzz.groups import NO_COLUMNS, by_words, groups_of
from tests.fuzz.inputs import Input, Record, input_of, one_in, run_options

__all__ = ["pieces_case", "sample_case", "shuf_case", "split_case"]

MASK = (1 << 64) - 1
PRIME_32, PRIME_1, PRIME_2 = 2246822519, 11400714785074694791, 14029467366897019727
SECRET = bytes.fromhex("cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c")


def little(data: bytes) -> int:
    return int.from_bytes(data, "little")


def avalanche(hashed: int) -> int:
    hashed ^= hashed >> 37
    hashed = hashed * 0x165667919E3779F9 & MASK
    return hashed ^ hashed >> 32


def xxh3_of_16(data: bytes, seed: int) -> int:
    """XXH3 of 128 bits of sixteen bytes: github.com/Cyan4973/xxHash, XXH3_len_9to16_128b."""
    secret = [little(SECRET[at : at + 8]) for at in (0, 8, 16, 24)]
    low, high = little(data[:8]), little(data[8:])
    product = (low ^ high ^ ((secret[0] ^ secret[1]) - seed & MASK)) * PRIME_1
    low_64, high_64 = (product & MASK) + (15 << 54) & MASK, product >> 64
    high ^= (secret[2] ^ secret[3]) + seed & MASK
    high_64 = high_64 + high + (high & 0xFFFFFFFF) * (PRIME_32 - 1) & MASK
    low_64 ^= little(high_64.to_bytes(8, "big"))
    product = low_64 * PRIME_2
    high_64 = (product >> 64) + high_64 * PRIME_2 & MASK
    return avalanche(high_64) << 64 | avalanche(product & MASK)


def random_key(seed: int, record: Record) -> int:
    place = record.file << 64 | record.offset
    return xxh3_of_16(place.to_bytes(16, "big"), seed)


def drawn_input(chosen: random.Random) -> Input:
    kinds = [chosen.choice(["word", "few", "text"]) for _ in range(chosen.randrange(1, 4))]
    return input_of(chosen, kinds, large=one_in(chosen, 150))


def drawn_seed(chosen: random.Random) -> tuple[list[str], int]:
    given = chosen.choice(["", "", "1", "today", "é", "x" * 70])
    digest = hashlib.sha256((given or "0").encode()).digest()
    return (["--seed", given] if given else []), int.from_bytes(digest[:8], "big")


def shuf_case(chosen: random.Random) -> Case:
    made = whole_lines(drawn_input(chosen))
    options, seed = drawn_seed(chosen)
    records = sorted(made.records, key=partial(random_key, seed))
    return answered(chosen, ["shuf", *options], [made], made.header, [one.whole for one in records])


def whole_lines(made: Input) -> Input:
    """The same without a separator, which lines that are taken whole do not have."""
    if not made.is_table:
        made.options = []
    return made


def sample_case(chosen: random.Random) -> Case:
    made = drawn_input(chosen)
    options, seed = drawn_seed(chosen)
    by = by_words(chosen, made) if one_in(chosen, 2) else NO_COLUMNS
    if not by[0]:
        made = whole_lines(made)
    if one_in(chosen, 2):
        rate = chosen.choice(["0.5", "0.01", "1", "0.9", "1e-3", ".25"])
        border = int(float(rate) * (1 << 64))
        drawn = [record for record in made.records if random_key(seed, record) >> 64 < border]
        options += ["--rate", rate]
    else:
        number = chosen.choice([1, 2, 5, 50, 5000])
        options += ["-n", f"{number}"]
        drawn = [
            record
            for _, records in groups_of(made, by[1])
            for record in of_group(records, number, seed)
        ]
    command = ["sample", *options, *by[0]]
    return answered(chosen, command, [made], made.header, [one.whole for one in drawn], parts=False)


def of_group(records: list[Record], number: int, seed: int) -> list[Record]:
    first = sorted(records, key=partial(random_key, seed))[:number]
    return sorted(first, key=lambda record: (record.file, record.offset))


# --- split ---


def split_case(chosen: random.Random) -> Case:
    """A file for each value."""
    made = drawn_input(chosen)
    by, columns = by_words(chosen, made)
    suffix, end = drawn_suffix(chosen, made)
    files: dict[str, bytes] = {}
    for cells, records in groups_of(made, columns):
        name = f"out/{file_name(list(cells))}{end}"
        files[name] = made.header + b"".join(record.whole for record in records)
    return split_into(chosen, made, [*by, *suffix], files)


def pieces_case(chosen: random.Random) -> Case:
    """Files of so many records, or bytes."""
    made = whole_lines(drawn_input(chosen))
    suffix, end = drawn_suffix(chosen, made)
    most = chosen.choice([None, None, 1000, 1_000_000])
    digits = max(len(f"{(most or 100_000) - 1}"), 5)
    total = sum(len(record.whole) for record in made.records)
    limit = max(chosen.randrange(1, 200), total // 900 + len(made.header))
    option = chosen.choice(["--lines", "--bytes"])
    if option == "--lines":
        limit = max(limit, len(made.records) // 900)
    pieces = cut_at(made, limit, by_bytes=option == "--bytes")
    files = {
        f"out/part-{number:0{digits}d}{end}": made.header + b"".join(piece)
        for number, piece in enumerate(pieces)
    }
    words = [option, f"{limit}", *suffix, *(["--max-files", f"{most}"] if most else [])]
    return split_into(chosen, made, words, files)


def cut_at(made: Input, limit: int, *, by_bytes: bool) -> list[list[bytes]]:
    """Records in pieces of so many, or of so many bytes with the header; each has one at least."""
    pieces: list[list[bytes]] = []
    left = 0
    for record in made.records:
        takes = len(record.whole) if by_bytes else 1
        if takes > left:
            pieces.append([])
            left = limit - (len(made.header) if by_bytes else 0)
        pieces[-1].append(record.whole)
        left -= takes
    return pieces


def drawn_suffix(chosen: random.Random, made: Input) -> tuple[list[str], str]:
    """An option, and what names end with."""
    suffix = chosen.choice([None, None, "", ".log", " x"])
    if suffix is not None:
        return ["--suffix", suffix], suffix
    return [], {"--csv": ".csv", "--tsv": ".tsv"}.get("".join(made.options[:1]), ".txt")


def split_into(
    chosen: random.Random, made: Input, words: list[str], files: dict[str, bytes]
) -> Case:
    """A split with these words, which makes these files."""
    options, _, _ = run_options(chosen, parts=False)
    options = options[: options.index("-o")] if "-o" in options else options
    command = ["split", *words, "--no-sync", *made.options, *options, *made.words, "out"]
    wanted = Outcome(1) if made.is_wrong else Outcome(0, b"", files)
    return Case(command, [], made.files, output="out", wanted=wanted, has_report=True)


def file_name(values: list[bytes]) -> str:
    name = ",".join(map(escaped, values))
    if name.startswith("part-"):
        name = "%70" + name[1:]
    if len(name) > 200:
        name = f"{name[:150]}%cut-{hashlib.sha256(name.encode()).hexdigest()[:40]}"
    return name


def escaped(value: bytes) -> str:
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    found = ""
    for at, byte in enumerate(value):
        is_inside = 0 < at < len(value) - 1
        stands = byte in plain or (byte in b"-_" and at > 0) or (byte in b". " and is_inside)
        found += chr(byte) if stands else f"%{byte:02X}"
    return found or "%empty"
