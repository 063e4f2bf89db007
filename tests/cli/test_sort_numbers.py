"""`gristmill sort --csv --key id:num`: numbers of any length, in the order of `Fraction`."""

import csv
import io
import random
from fractions import Fraction
from pathlib import Path

import pytest

import gristmill as gm

from .sorting import sort

SPECIAL = ["abc", "NaN", "-inf", "-2", "3", "0x10", "1e2", "inf"]
"""In the order of `sort -g`, apart from numbers."""

FAR = [
    "1e400",
    "1e-400",
    "-1e400",
    "18446744073709551617e0",
    "1e5000",
    "1e-5000",
    "-0",
    "+0.0",
    "0",
]


def digits(drawn: random.Random) -> str:
    """Return digits, of which many others have the same beginning."""
    known = drawn.choice(["18446744073709551616", "9007199254740992", "1", "0.1", "3" * 40, ""])
    return known + "".join(drawn.choice("0019") for _ in range(drawn.choice([0, 1, 2, 3, 30, 200])))


def number(drawn: random.Random) -> str:
    """Return a number as people and programs write it."""
    made = digits(drawn) or "7"
    if "." not in made and drawn.randrange(2):
        made += "." + digits(drawn).replace(".", "")
    sign = drawn.choice(["", "", "", "-", "+"])
    zeros = drawn.choice(["", "", "0", "000"])
    exponent = drawn.choice(
        ["", "", "", f"e{drawn.randrange(-30, 30)}", f"E+{drawn.randrange(400)}"]
    )
    return sign + zeros + made + exponent


def value(text: str) -> Fraction:
    """Return what a number says; what has no digits before its point is read, too."""
    return Fraction(text)


def table(numbers: list[str]) -> bytes:
    """Return a table of numbers, with the place of each."""
    return ("id,at\n" + "".join(f"{text},{at}\n" for at, text in enumerate(numbers))).encode()


def sorted_rows(numbers: list[str], key: str = "id:num", *options: str) -> list[str]:
    """Return the numbers, sorted, with the places that they came from."""
    made = sort("--csv", "--key", key, *options, stdin=table(numbers))
    assert isinstance(made, bytes)
    return [",".join(row) for row in csv.reader(io.StringIO(made.decode()))][1:]


@pytest.mark.parametrize("seed", range(6))
def test_numbers_are_in_the_order_of_their_exact_values(seed: int) -> None:
    drawn = random.Random(seed)
    numbers = [number(drawn) for _ in range(600)] + FAR
    numbers += [f"-{text}" for text in FAR if text[0] not in "+-"]
    drawn.shuffle(numbers)
    want = sorted(enumerate(numbers), key=lambda pair: value(pair[1]))
    assert sorted_rows(numbers) == [f"{text},{at}" for at, text in want]
    backwards = sorted(enumerate(numbers), key=lambda pair: value(pair[1]), reverse=True)
    assert sorted_rows(numbers, "id:num:desc") == [f"{text},{at}" for at, text in backwards]
    first: dict[Fraction, str] = {}
    for at, text in enumerate(numbers):
        first.setdefault(value(text), f"{text},{at}")
    assert sorted_rows(numbers, "id:num", "-u") == [first[one] for one in sorted(first)]


def test_what_is_no_decimal_number_keeps_the_order_of_g() -> None:
    shuffled = random.Random(3).sample(SPECIAL, len(SPECIAL))
    rows = [row.partition(",")[0] for row in sorted_rows(shuffled)]
    assert rows == SPECIAL
    lines = sort("-g", "-s", stdin="\n".join([*shuffled, ""]).encode())
    assert isinstance(lines, bytes)
    assert lines.decode().split() == SPECIAL


def test_ids_beyond_64_bits_are_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "ids.tsv"
    path.write_text(
        "id\tw\n18446744073709551617\ta\n18446744073709551616\tb\n1e2000\tc\n1e2000\td\n"
    )
    gm.sort(path, output=path, tsv=True, key=["id:num"], unique=True)
    assert path.read_text().split()[2:] == [
        "18446744073709551616", "b", "18446744073709551617", "a", "1e2000", "c",
    ]  # fmt: skip
    # GNU's letter keeps GNU's contract: numbers of 80 bits.
    report = gm.sort(
        path, output=path, tsv=True, key=["id"], general_numeric_sort=True, unique=True
    )
    assert report.records == 2
