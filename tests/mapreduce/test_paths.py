"""Which files a job reads."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gristmill as gm
from gristmill.mapreduce.formats.paths import find_files


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


def test_the_parts_of_an_output(tmp_path: Path) -> None:
    """Further outputs of a job are no input of the next one, unless they are named."""

    def split(n: int, context: gm.Context) -> Iterator[str]:
        context.output("errors").write(f"e{n}")
        yield f"p{n}"

    out = tmp_path / "out"
    outputs = {"errors": gm.text()}
    gm.Job(gm.items([1]), map=split, output=gm.text(out), outputs=outputs).run()
    assert find_files([str(out)]) == [f"{out}/part-m-00000.txt"]
    assert find_files([f"{out}/errors*"]) == [f"{out}/errors-m-00000.txt"]
    for pattern in (f"{tmp_path}/o*", f"{out}/*", f"{tmp_path}/**"):
        assert find_files([pattern]) == [f"{out}/part-m-00000.txt"]
    assert find_files([f"{out}/*.txt"]) == [f"{out}/errors-m-00000.txt", f"{out}/part-m-00000.txt"]
    (out / "more.txt").touch()
    assert find_files([str(out)]) == [f"{out}/more.txt", f"{out}/part-m-00000.txt"]
    (out / "sub").mkdir()
    with pytest.raises(ValueError, match="out/sub is a directory inside an input directory"):
        find_files([str(out)])


@pytest.mark.parametrize(
    "success", ["", "{", "[1]", '{"filenames": []}', '{"parts": [{"name": "a"}]}']
)
def test_the_success_of_another_program_leaves_no_file_out(tree: Path, success: str) -> None:
    (tree / "x/y/_SUCCESS").write_text(success)
    assert find_files([str(tree / "x/y")]) == [f"{tree}/x/y/[f].txt", f"{tree}/x/y/d.txt"]
    (tree / "x/_SUCCESS").write_text(success)
    with pytest.raises(ValueError, match="x/y is a directory inside an input directory"):
        find_files([str(tree / "x")])


@pytest.mark.parametrize("form", [gm.text, gm.kv, gm.parquet])
@pytest.mark.parametrize("given", ["", ["a", ""]])
def test_an_empty_name_is_refused(form: Any, given: Any) -> None:
    with pytest.raises(ValueError, match=r"the path is .*''.* What to do: give a path"):
        form(given)
