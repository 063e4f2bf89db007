"""`gristmill sort --csv` of tables that many tasks read: cut where rows begin, on every way.

The oracle is Python's `sorted`, of rows that are made as text.
"""

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .harness import names, report
from .resuming import kill_when
from .sorting import nothing_of_ours_stays, refusal, same, shell, sort

LARGE = ["--csv", "--key", "value:num:desc"]
RUNS = ["--memory", "24M", "--workers", "2"]
"""So little memory that a large table is read by many tasks."""

HEADER = "n,value,note\n"


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with nothing_of_ours_stays(tmp_path, monkeypatch):
        yield


@pytest.fixture(scope="module")
def large_rows() -> list[str]:
    """400,000 rows, some of which are on several lines: 30 MB."""
    drawn = random.Random(9)
    notes = ["plain", '"two\nlines"', '"a,b"', '5" nails', '"""\n""\n"', "x" * 300]
    return [
        f"{number},{drawn.randrange(10**6)},{drawn.choice(notes)}\n" for number in range(400_000)
    ]


@pytest.fixture(scope="module")
def large_sorted(large_rows: list[str]) -> bytes:
    """What must come out."""
    ordered = sorted(large_rows, key=lambda row: -int(row.split(",")[1]))
    return "".join([HEADER, *ordered]).encode()


@pytest.fixture
def large(large_rows: list[str]) -> Path:
    """The table."""
    path = Path("in.csv")
    path.write_text("".join([HEADER, *large_rows]))
    return path


@pytest.mark.parametrize("memory", ["24M", "500M"])
def test_large_tables_are_cut_where_rows_begin(
    memory: str, large: Path, large_sorted: bytes
) -> None:
    options = [*LARGE, "--memory", memory]
    done = report("sort", *options, large, "-o", "out.csv")
    assert (done["counters"]["SPILLED_RUNS"] > 1, done["records"]) == (True, 400_000)
    same(Path("out.csv"), large_sorted)
    sort(*options, large, "-o", "parts", "--parts", "3")
    parts = sorted(Path("parts").glob("part-r-*"))
    assert [part.name for part in parts] == [f"part-r-{number:05}" for number in range(3)]
    same(b"".join(part.read_bytes() for part in parts), large_sorted)
    assert min(part.stat().st_size for part in parts) > len(large_sorted) // 6


def test_tasks_in_processes_sort_the_same_table(large: Path, large_sorted: bytes) -> None:
    processes = ["--runner", "processes", "--memory", "64M", "--workers", "2"]
    done = report("sort", *LARGE, *processes, large, "-o", "out.csv")
    assert (done["counters"]["SPILLED_RUNS"] > 1, done["records"]) == (True, 400_000)
    same(Path("out.csv"), large_sorted)


def test_a_killed_sort_of_a_table_is_resumed(large: Path, large_sorted: bytes, home: Path) -> None:
    """What a table was before is there until then."""

    def runs_are_there(events: list[dict[str, Any]]) -> bool:
        return sum(event["event"] == "attempt_finished" for event in events) >= 4

    out = Path("out.csv")
    out.write_text("what was there before")
    kill_when(["sort", *LARGE, *RUNS, large, "-o", out], home, runs_are_there)
    assert out.read_text() == "what was there before"
    done = report("resume", "last")
    same(out, large_sorted)
    assert done["records"] == 400_000
    assert names(Path()) == ["home", "in.csv", "out.csv", "temporary"]


def test_a_reader_that_goes_away_ends_the_sort(large: Path, large_sorted: bytes) -> None:
    head = f'"$gristmill" sort {" ".join([*LARGE, *RUNS])} {large} | head -2'
    done = shell(head + "; exit ${PIPESTATUS[0]}", Path())
    assert (done.status, done.stderr) == (128 + signal.SIGPIPE, "")
    same(done.stdout, b"".join(large_sorted.splitlines(keepends=True)[:2]))


def test_a_table_through_a_fifo(large: Path, large_sorted: bytes) -> None:
    os.mkfifo("fifo")
    sorting = f'"$gristmill" sort {" ".join([*LARGE, *RUNS])} fifo -o out.csv'
    done = shell(f"cat {large} > fifo & {sorting}", Path())
    assert (done.status, done.stderr) == (0, "")
    same(Path("out.csv"), large_sorted)


@pytest.mark.parametrize("runner", ["threads", "processes"])
def test_bad_rows_of_all_tasks_count_together(
    runner: str, large_rows: list[str], large_sorted: bytes
) -> None:
    rows = list(large_rows)
    for place in (400_000, 200_000, 0):
        rows.insert(place, "bad\n")
    Path("in.csv").write_text("".join([HEADER, *rows]))
    options = [*LARGE, "--memory", "64M", "--workers", "2", "--runner", runner]
    done = report("sort", *options, "--skip-bad", "3", "in.csv", "-o", "out.csv")
    assert (done["records"], done["counters"]["SKIPPED_RECORDS"]) == (400_000, 3)
    assert done["counters"]["SPILLED_RUNS"] >= 3
    assert "3 rows were left out" in str(done["notices"])
    assert len(done["left_out"]) == 3
    assert all("(file in.csv" in row for row in done["left_out"])
    same(Path("out.csv"), large_sorted)
    said = refusal(*options, "--skip-bad", "2", "in.csv", "-o", "out.csv")
    assert "3 rows have more fields than the header, or fewer" in said
    assert "give --skip-bad 3" in said
    same(Path("out.csv"), large_sorted)


@pytest.mark.parametrize("memory", ["24M", "500M"])
def test_the_first_of_equal_rows_stays_in_parts(
    memory: str, large: Path, large_rows: list[str]
) -> None:
    done = report("sort", *LARGE, "-u", "--memory", memory, large, "-o", "out", "--parts", "3")
    firsts: dict[int, str] = {}
    for row in large_rows:
        firsts.setdefault(int(row.split(",")[1]), row)
    want = "".join([HEADER, *(firsts[key] for key in sorted(firsts, reverse=True))]).encode()
    parts = sorted(Path("out").glob("part-r-*"))
    assert len(parts) == 3
    same(b"".join(part.read_bytes() for part in parts), want)
    assert min(part.stat().st_size for part in parts) > len(want) // 6
    assert (done["records"], done["parts"]) == (len(firsts), 3)
    assert done["duplicate_keys"] == 400_000 - len(firsts)
