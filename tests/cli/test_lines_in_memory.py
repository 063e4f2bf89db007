"""`gristmill sort` of lines that fit in memory: they are sorted where they lie, and no run is made.

Every text here is large enough for that way. What comes out is what GNU sort writes, byte for byte.
"""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .harness import report
from .sorting import HOSTILE, cut, gnu_sort, noise, nothing_of_ours_stays, same, sort

MEGABYTES = 9
SIZE = MEGABYTES << 20


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with nothing_of_ours_stays(tmp_path, monkeypatch):
        yield


def sort_in_memory(*arguments: str | Path) -> dict[str, Any]:
    """Sort, and check that lines were sorted where they lie."""
    found: dict[str, Any] = json.loads(sort("--json", "--no-sync", "-o", "out", *arguments))
    phases = [phase["name"] for phase in found["phases"]]
    assert phases == ["sample", "map", "reduce", "commit"], phases
    assert (found["counters"]["SPILLED_RUNS"], found["counters"]["SPILLED_RECORDS"]) == (0, 0)
    return found


def words(seed: int, distinct: int) -> bytes:
    """Return lines of words of which a few come often, as those of a text do."""
    draw = random.Random(seed)
    known = [draw.randbytes(draw.randrange(1, 9)).hex().encode() for _ in range(distinct)]
    lines: list[bytes] = []
    size = 0
    while size < SIZE:
        some = [known[int(distinct ** draw.random()) - 1] for _ in range(draw.randrange(12))]
        lines.append(b" ".join(some))
        size += len(lines[-1]) + 1
    return b"\n".join(lines) + b"\n"


def numbered(prefix: bytes) -> list[bytes]:
    return [prefix + b"%07d" % number for number in range(SIZE // (len(prefix) + 8))]


def shuffled(lines: list[bytes]) -> bytes:
    random.Random(5).shuffle(lines)
    return b"\n".join(lines) + b"\n"


TEXTS: dict[str, Callable[[], bytes]] = {
    "words": lambda: words(1, 5000),
    "hostile bytes": lambda: noise(SIZE, HOSTILE, 0.1, 2),
    "any bytes": lambda: noise(SIZE, bytes(set(range(256)) - {10}), 0.02, 3),
    "empty lines": lambda: b"\n" * SIZE,
    "many empty lines": lambda: noise(SIZE, b"\0a", 0.7, 4),
    "all equal": lambda: b"the same line, again and again\n" * (SIZE // 30),
    "few distinct": lambda: shuffled([b"line %d" % (at % 7) for at in range(SIZE // 7)]),
    "shared beginnings": lambda: shuffled(numbered(b"the same beginning of ninety bytes " * 3)),
    "sorted": lambda: b"\n".join(numbered(b"line ")) + b"\n",
    "reversed": lambda: b"\n".join(reversed(numbered(b"line "))) + b"\n",
    "lines of megabytes": lambda: (
        b"\n".join(
            part * (1 << 20) * of for part, of in [(b"b", 3), (b"a", 2), (b"ab", 1), (b"a", 3)]
        )
        + b"\n" * 9
    ),
    "one line": lambda: b"x" * SIZE,
    "no last newline": lambda: words(6, 300) + b"and the last line",
}


@pytest.mark.parametrize("flags", [[], ["-r"]], ids=["", "-r"])
@pytest.mark.parametrize("text", TEXTS)
def test_any_text(text: str, flags: list[str]) -> None:
    Path("text").write_bytes(TEXTS[text]())
    sort_in_memory(*flags, "text")
    same(Path("out"), gnu_sort(*flags, "text"))


@pytest.mark.parametrize("workers", ["1", "2", "3"])
def test_many_files_and_workers(workers: str, tmp_path: Path) -> None:
    """Some are mapped, some are read, some are empty; most have no last newline."""
    files = cut(words(7, 20_000), tmp_path, 12, 8)
    empty = tmp_path / "empty"
    empty.touch()
    inputs = [empty, *files, empty, files[3], empty]
    found = sort_in_memory("--workers", workers, *inputs)
    same(Path("out"), gnu_sort(*inputs))
    assert found["records"] == Path("out").read_bytes().count(b"\n")


def test_an_input_is_the_output() -> None:
    Path("out").write_bytes(words(9, 100))
    expected = gnu_sort("out")
    sort_in_memory("out")
    same(Path("out"), expected)


def test_more_lines_than_there_seemed_to_be() -> None:
    """Where it was looked at, the text has long lines: entries have no room, and runs are made."""
    line, stretch = b"y" * 4095 + b"\n", SIZE // 16
    Path("text").write_bytes((line * 2 + b"\n" * (stretch - 2 * len(line))) * 16)
    little = ["--memory", "110M", "--workers", "1"]
    plan = report("explain", "sort", *little, "-o", "out", "text")
    assert [stage["name"] for stage in plan["stages"]] == ["sample", "map", "reduce"]
    found = json.loads(sort("--json", *little, "-o", "out", "text"))
    assert found["counters"]["SPILLED_RUNS"] > 0
    same(Path("out"), gnu_sort("text"))


def test_a_streams_way_stays() -> None:
    """Standard input and output go by runs, which memory holds; so do keys, and `-u`."""
    text = words(11, 1000)
    Path("text").write_bytes(text)
    expected = gnu_sort("text")
    same(sort(stdin=text), expected)
    same(sort("text"), expected)
    found = json.loads(sort("--json", "-u", "-o", "out", "text"))
    assert found["counters"]["SPILLED_RUNS"] > 0
    same(Path("out"), gnu_sort("-u", "text"))
