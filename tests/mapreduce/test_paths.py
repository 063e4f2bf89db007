"""Which files a job reads."""

from pathlib import Path

import pytest

import gristmill as gm
from gristmill.mapreduce.paths import find_files


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "a.txt",
        "b.log",
        "_hid",
        ".hid",
        "x/c.txt",
        "x/y/d.txt",
        "x/_t/e.txt",
        "x/y/[f].txt",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["a.txt"], ["a.txt"]),
        (["_hid"], ["_hid"]),
        (["x/y"], ["x/y/[f].txt", "x/y/d.txt"]),
        (["x/*"], ["x/c.txt", "x/y/[f].txt", "x/y/d.txt"]),
        (["*.txt"], ["a.txt"]),
        (["**/*.txt"], ["a.txt", "x/c.txt", "x/y/[f].txt", "x/y/d.txt"]),
        (["**/*"], ["a.txt", "b.log", "x/c.txt", "x/y/[f].txt", "x/y/d.txt"]),
        (["x/**"], ["x/c.txt", "x/y/[f].txt", "x/y/d.txt"]),
        (["x/_t/*"], ["x/_t/e.txt"]),
        (["x/y/[f].txt"], ["x/y/[f].txt"]),
        (["b.log", "a.txt", "b.log"], ["b.log", "a.txt", "b.log"]),
    ],
)
def test_what_is_found(tree: Path, given: list[str], found: list[str]) -> None:
    files = find_files([f"{tree}/{path}" for path in given])
    assert [str(Path(file).relative_to(tree)) for file in files] == found


@pytest.mark.parametrize(
    ("given", "inside"), [("", "x"), ("x", "x/y"), ("*", "x/y"), ("*/", "x/y")]
)
def test_a_directory_inside_an_input_is_named(tree: Path, given: str, inside: str) -> None:
    with pytest.raises(
        ValueError, match=rf"{tree}/{inside} is a directory inside .*/\*\* to read all"
    ):
        find_files([f"{tree}/{given}"])


@pytest.mark.parametrize("missing", ["none.txt", "*.csv", "empty"])
def test_what_matches_nothing_is_named(tree: Path, missing: str) -> None:
    (tree / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=missing.replace("*", r"\*")):
        gm.Job(gm.text(tree / missing), map=len, output=gm.text(tree / "out")).run()
    assert not (tree / "out").exists()


def test_the_parts_of_an_output(tree: Path) -> None:
    """Further outputs of a job are no input of the next one, unless they are named."""
    for name in ("_SUCCESS", "part-r-00000.tsv", "errors-r-00000.tsv"):
        (tree / "x" / name).write_text("")
    assert find_files([str(tree / "x")]) == [f"{tree}/x/part-r-00000.tsv"]
    assert find_files([str(tree / "x/errors*")]) == [f"{tree}/x/errors-r-00000.tsv"]
