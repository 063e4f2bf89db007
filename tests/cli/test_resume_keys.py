"""`gristmill resume` of sorts by keys that were killed while they merged: what is written is used.

The output does not hold the codes that lines are sorted by, so they are made again to prove it.
"""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .harness import names, report, run
from .resuming import events_of, kept, kill_when, merged, tree

#: So little memory that there are too many runs to merge them at once.
PASSES = ("--memory", "16M", "--workers", "2")
RUNS = ("--memory", "40M", "--workers", "2")

BY_NUMBER = ("lines", "-t,", "-k2,2n")
TABLE = ("table", "--csv", "--key", "value:num:desc")

SORTS: dict[str, tuple[str, ...]] = {
    "keys": (*BY_NUMBER, *RUNS),
    "passes": (*BY_NUMBER, *PASSES),
    "stable": (*BY_NUMBER, "-s", *RUNS),
    "reverse": (*BY_NUMBER, "-r", *RUNS),
    "unique parts": (*BY_NUMBER, "-u", "--parts", "8", *RUNS),
    "sorted inputs": (*BY_NUMBER, "-m", *RUNS),
    "several inputs": ("table", *BY_NUMBER, *RUNS),
    "zero": ("zeros", "-z", "-k1.3", *RUNS),
    "packed runs": (*BY_NUMBER, "--compress-runs", "lz4", *RUNS),
    "table": (*TABLE, *RUNS),
    "table in parts": (*TABLE, "--parts", "3", *RUNS),
    "unique rows": (*TABLE, "-u", "--parts", "8", *RUNS),
    "two tables": ("more", *TABLE, *RUNS),
    "processes": (*BY_NUMBER, "--runner", "processes", "--memory", "64M", "--workers", "2"),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Lines, rows of which some are on several lines, and lines that end with NUL: 50 MB each."""
    folder, drawn = tmp_path_factory.mktemp("inputs"), random.Random(5)
    notes = ["x" * 70, '"two\nlines"', '"a,b"', '5" nails', f'"""\n""{"y" * 60}"']
    numbers = [drawn.randrange(10**6) for _ in range(800_000)]
    lines = "".join(f"{n:x},{number},{'z' * 50}\n" for n, number in enumerate(numbers))
    rows = "".join(f"{n:x},{number},{notes[number % 5]}\n" for n, number in enumerate(numbers))
    texts = {
        "lines": lines,
        "table": f"name,value,note\n{rows}",
        "more": "name,value,note\na,-5,b\nc,1e7,d\n",
        "zeros": lines.replace("\n", "\0"),
    }
    found = {name: folder / name for name in texts}
    for name, text in texts.items():
        found[name].write_text(text)
    yield found
    shutil.rmtree(folder)


def killed_while_it_merges(
    what: str, inputs: dict[str, Path], home: Path, folder: Path
) -> dict[str, int]:
    """Kill such a sort once a merge is over. How many tasks are."""
    words = [inputs.get(word, word) for word in SORTS[what]]
    run("sort", *words, "-o", folder / "wanted")
    shutil.rmtree(home, ignore_errors=True)  # of a run that took long
    kill_when(["sort", *words, "-o", folder / "out"], home, merged)
    events = events_of(home)
    return {task: kept(events, task) for task in ("spill", "merge_runs", "merge")}


def ranges(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The ranges that merges wrote."""
    ends = (event for event in events if event["event"] == "attempt_finished")
    return [written for event in ends for written in event.get("kept", {}).get("merge", [])]


@pytest.mark.parametrize("what", SORTS)
def test_what_is_merged_is_not_merged_again(
    what: str, inputs: dict[str, Path], home: Path, tmp_path: Path
) -> None:
    over = killed_while_it_merges(what, inputs, home, tmp_path)
    assert over["spill"] >= 2
    assert over["merge_runs"] >= (what == "passes")
    done = report("resume", "last")
    assert done["counters"]["KEPT_TASKS"] == sum(over.values())
    assert done["warnings"] == []
    assert tree(tmp_path / "out") == tree(tmp_path / "wanted")


def test_a_sort_by_keys_in_place_is_resumed(
    inputs: dict[str, Path], home: Path, tmp_path: Path
) -> None:
    wanted, out = tmp_path / "wanted", tmp_path / "out"
    options = ["-t,", "-k2,2n", *RUNS]
    run("sort", inputs["lines"], "-o", wanted, *options)
    shutil.rmtree(home, ignore_errors=True)  # of a run that took long
    shutil.copy(inputs["lines"], out)
    kill_when(["sort", out, "-o", out, *options], home, merged)
    assert out.read_bytes() == inputs["lines"].read_bytes()
    assert report("resume", "last")["counters"]["KEPT_TASKS"] > 0
    assert out.read_bytes() == wanted.read_bytes()
    assert names(tmp_path) == ["home", "out", "wanted"]


@pytest.mark.parametrize("harm", ["flip", "truncate", "remove"])
def test_what_was_written_and_changed_is_sorted_anew(
    harm: str, inputs: dict[str, Path], home: Path, tmp_path: Path
) -> None:
    over = killed_while_it_merges("table in parts", inputs, home, tmp_path)
    written = ranges(events_of(home))[0]
    (part,) = tmp_path.glob(f".out.gristmill-*/output/{written['file']}")
    if harm == "flip":
        with part.open("r+b") as file:
            file.seek(written["offset"] + written["bytes"] // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
    elif harm == "truncate":
        os.truncate(part, part.stat().st_size - 1)
    else:
        part.unlink()
    done = report("resume", "last")
    assert done["counters"]["KEPT_TASKS"] < over["merge"]  # and no run: its space may be given back
    assert tree(tmp_path / "out") == tree(tmp_path / "wanted")
