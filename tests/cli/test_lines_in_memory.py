"""`gristmill sort` of lines that fit in memory: they are sorted where they lie, and no run is made.

Every text here is large enough for that way. What comes out is what GNU sort writes, byte for byte.
"""

import json
import os
import random
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .harness import end, report, start
from .resuming import events_of, wait_until_time
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


# --- input that changes ---


def overwrite(path: Path, line: bytes) -> None:
    """Write other bytes to the places of a file, whose length stays."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.write((line * (size // len(line) + 1))[:size])


HARMS: dict[str, Callable[[Path], None]] = {
    "half of it": lambda path: os.truncate(path, path.stat().st_size // 2),
    "nothing": lambda path: os.truncate(path, 0),
    "empty lines": lambda path: overwrite(path, b"\n"),
    "one line": lambda path: overwrite(path, b"\0"),
    "other lines": lambda path: overwrite(path, b"lines of another length\n"),
}


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("phase", ["map", "reduce"])
def test_input_that_changes_is_named(phase: str, harm: str, home: Path) -> None:
    """The job stands still meanwhile. If it was over before, or all but over: once more.

    The text is reversed, so that what it becomes has its place among lines that come last.
    """

    def has_begun(events: list[dict[str, Any]]) -> bool:
        began = [at for at, event in enumerate(events) if event.get("name") == phase]
        return bool(began) and any(
            event["event"] == "attempt_finished" for event in events[began[0] :]
        )

    text = TEXTS["reversed"]()
    for _ in range(20):
        Path("text").write_bytes(text)
        Path("out").write_text("what was there before")
        options = ["-o", "out", "--workers", "1", "--no-sync", "--history"]
        process = start("sort", "text", *options)
        wait_until_time(process, home, has_begun)
        process.send_signal(signal.SIGSTOP)
        in_time = process.poll() is None and events_of(home)[-1]["event"] != "job_finished"
        HARMS[harm](Path("text"))
        process.send_signal(signal.SIGCONT)
        done = end(process)
        shutil.rmtree(home)
        if done.status == 1:
            assert in_time
            assert done.stderr.startswith("gristmill sort: "), done.stderr
            assert done.stderr.count("\n") == 1, done.stderr
            assert re.search("it changed while the job ran|it became shorter", done.stderr)
            assert re.search(r"\(file text[,)]", done.stderr)
            assert Path("out").read_text() == "what was there before"
            return
        assert done.status == 0, done
        same(Path("out"), gnu_sort(stdin=text))
    pytest.fail("no attempt was quick enough to change the file under a job")
