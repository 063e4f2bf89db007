"""`gristmill sort -c`: what it finds in order, and the first record that is not."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .sorting import (
    begin,
    end,
    endless,
    nothing_of_ours_stays,
    refusal,
    try_sort,
)


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test does: in its folders, in TMPDIR and where it runs, nothing of ours stays."""
    with nothing_of_ours_stays(tmp_path, monkeypatch):
        yield


def disorder(*arguments: str | Path, stdin: bytes = b"") -> str:
    """Check what is not in order; returns what is said about it, without the command."""
    return refusal("-c", *arguments, stdin=stdin)


def in_order(*arguments: str | Path, stdin: bytes = b"") -> None:
    done = try_sort("-c", *arguments, stdin=stdin)
    assert (done.status, done.stdout, done.stderr) == (0, b"", "")


def numbers(says: str, *without: str) -> list[str]:
    """The numbers in a message, but those in some names."""
    for name in without:
        says = says.replace(name, "")
    return re.findall(r"\d+", says)


def test_check_what_is_in_order() -> None:
    for text in (b"", b"\n", b"a", b"a\n\xff\n", b"a\na\nb", b"a\0\na\0\0\n"):
        Path("a").write_bytes(text)
        in_order("a")
        in_order("-s", "-", stdin=text)
    in_order("-r", stdin=b"b\nb\na\n")
    in_order("-u", stdin=b"a\nab\nb\n")
    in_order("-ur", stdin=b"b\nab\na\n")
    in_order("--check", "--memory", "20M", "--workers", "1", stdin=b"a\nb\n")


@pytest.mark.parametrize(
    ("flags", "text", "line"),
    [
        ([], b"a\nc\nb\na\n", 3),
        ([], b"b\na", 2),
        ([], b"a\n\n", 2),
        ([], b"a\0b\na\0a\n", 2),
        ([], b"\xff\na\n", 2),
        ([], b"a\r\na\n", 2),
        (["-r"], b"b\na\na\nc\n", 4),
        (["-u"], b"a\nb\nb\n", 3),
        (["-u"], b"\n\n", 2),
        (["-u", "-r"], b"c\nb\na\na\n", 4),
        (["-s"], b"a\n" * 4000 + b"0\n", 4001),
    ],
)
def test_check_what_is_not(flags: list[str], text: bytes, line: int) -> None:
    Path("some.text").write_bytes(text)
    says = disorder(*flags, "some.text")
    assert "some.text" in says
    assert str(line) in numbers(says.replace(",", ""))
    says = disorder(*flags, stdin=text)
    assert str(line) in numbers(says.replace(",", ""))


@pytest.mark.parametrize(
    ("shape", "flags", "data", "record"),
    [
        ("fixed:2", [], b"aaab\n\n\xff\xff", 3),
        ("fixed:2", ["-r"], b"bbaaab", 3),
        ("fixed:2", ["-u"], b"aaabab", 3),
        ("fixed:2:1", ["-u"], b"aaabba", 2),
        ("fixed:2:1", [], b"abaa", 2),
        ("fixed:2:1", ["-r"], b"aaab", 2),
        ("fixed:2:1", ["-s"], b"abaabaaz", 4),
    ],
)
def test_check_records_that_are_not(shape: str, flags: list[str], data: bytes, record: int) -> None:
    Path("some.data").write_bytes(data)
    says = disorder("--format", shape, *flags, "some.data")
    assert "some.data" in says
    assert str(record) in numbers(says)


def test_check_records_with_equal_keys() -> None:
    in_order("--format", "fixed:2:1", "-s", stdin=b"abaaba")
    in_order("--format", "fixed:2:1", stdin=b"aaabba")
    in_order("--format", "fixed:2:1", "-r", stdin=b"baabaa")
    in_order("--format", "fixed:2:1", "-u", stdin=b"abba")


def test_check_much(much_text_sorted: Path, tmp_path: Path) -> None:
    in_order("--memory", "20M", much_text_sorted)
    lines = much_text_sorted.read_bytes().count(b"\n")
    almost = tmp_path / "almost"
    almost.write_bytes(much_text_sorted.read_bytes() + b"\n")
    assert str(lines + 1) in numbers(disorder("--memory", "20M", almost).replace(",", ""))


def test_check_takes_one_input() -> None:
    Path("a").write_text("a\n")
    refusal("-c", "a", "a", status=2)
    refusal("-c", "a", "-", status=2)


def test_check_ends_at_the_first_disorder() -> None:
    """Of an input without end, too."""
    with endless() as stdin, begin("-c", "-u", stdin=stdin) as process:
        done = end(process, timeout_s=5)
    assert done.status == 1
    assert done.stderr.count("\n") == 1
