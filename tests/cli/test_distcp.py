"""`gristmill hadoop distcp`: what DistCp's documentation shows, and its exit codes."""

from pathlib import Path

import pytest

from .harness import run

#: -1 and -2 of DistCp, as a shell sees them.
WRONG, DUPLICATE, UNKNOWN = 255, 254, 25


pytestmark = pytest.mark.usefixtures("sources")


def tree(top: Path) -> dict[str, str]:
    """Return the files below a directory, and what is in them."""
    return {str(one.relative_to(top)): one.read_text() for one in top.rglob("*") if one.is_file()}


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory with the sources of DistCp's documentation, `first` and `second`."""
    monkeypatch.chdir(tmp_path)
    for name in ("first/1", "first/2", "second/10", "second/20"):
        Path("source", name).parent.mkdir(parents=True, exist_ok=True)
        Path("source", name).write_text(f"{name}\n")
    return tmp_path


def distcp(*words: str, status: int = 0) -> str:
    return run("hadoop", "distcp", *words, status=status).stderr


def test_directories_go_below_the_target() -> None:
    said = distcp("source/first", "source/second", "target")
    assert sorted(tree(Path("target"))) == ["first/1", "first/2", "second/10", "second/20"]
    assert "Files Copied=4" in said


@pytest.mark.parametrize("option", ["-update", "-overwrite"])
def test_contents_go_into_the_target(option: str) -> None:
    distcp(option, "source/first", "source/second", "target")
    assert sorted(tree(Path("target"))) == ["1", "10", "2", "20"]


def test_update_copies_what_differs() -> None:
    distcp("-update", "source/first", "source/second", "target")
    Path("target/1").write_text("FIRST/1\n")
    Path("target/10").write_text("longer than it was\n")
    Path("target/extra").write_text("stays\n")
    said = distcp("-update", "source/first", "source/second", "target")
    assert ("Files Copied=2" in said, "Files Skipped=2" in said) == (True, True)
    assert Path("target/1").read_text() == "first/1\n"
    assert Path("target/extra").exists()
    distcp("-update", "-delete", "source/first", "target")
    assert sorted(tree(Path("target"))) == ["1", "2"]


def test_one_directory_and_no_target() -> None:
    distcp("source/first", "target")
    assert sorted(tree(Path("target"))) == ["1", "2"]
    distcp("source/first", "target")
    assert sorted(tree(Path("target"))) == ["1", "2", "first/1", "first/2"]


def test_one_file() -> None:
    distcp("source/first/1", "renamed")
    assert Path("renamed").read_text() == "first/1\n"
    Path("target").mkdir()
    distcp("source/first/1", "target")
    assert tree(Path("target")) == {"1": "first/1\n"}


def test_a_list_of_sources(sources: Path) -> None:
    Path("list").write_text(f"file://{sources}/source/first\nsource/second\n\n")
    distcp("-f", "list", "target")
    assert sorted(tree(Path("target"))) == ["first/1", "first/2", "second/10", "second/20"]


def test_sources_that_collide() -> None:
    Path("source/second/1").write_text("another\n")
    said = distcp("-update", "source/first", "source/second", "target", status=DUPLICATE)
    assert "two sources would make one file" in said
    assert not Path("target").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-update", "-overwrite", "a", "b"], "not allowed with"),
        (["-delete", "a", "b"], "-delete needs -update or -overwrite"),
        (["a"], "name a source and a target"),
        (["-bandwidth", "0", "a", "b"], "-bandwidth"),
        (["-nothing", "a", "b"], "there is no option -nothing"),
        (["-update", "-atomic", "a", "b"], "not allowed with"),
        (["-diff", "s1", "s2", "a", "b"], "-update compares"),
        (["-pz", "a", "b"], "none of"),
    ],
)
def test_a_wrong_command_line(words: list[str], said: str) -> None:
    told = distcp(*words, status=WRONG)
    assert said in told
    assert told.count("\n") == 1


def test_what_has_no_effect_is_said() -> None:
    said = distcp("-m", "20", "-skipcrccheck", "-prbugp", "-Da=b", "source/first", "target")
    assert "-skipcrccheck has no effect" in said
    assert "-pbgru has no effect" in said
    assert sorted(tree(Path("target"))) == ["1", "2"]


def test_an_atomic_copy_is_made_beside_its_target_which_is_new() -> None:
    said = distcp("-atomic", "-tmp", "elsewhere", "source/first", "target")
    assert "-tmp has no effect" in said
    assert sorted(tree(Path("target"))) == ["1", "2"]
    assert "there is something of this name" in distcp(
        "-atomic", "source/first", "target", status=UNKNOWN
    )


def test_a_source_that_is_not_there() -> None:
    said = distcp("source/none", "target", status=UNKNOWN)
    assert "source/none" in said


def test_filters_leave_out_whole_paths() -> None:
    Path("filters").write_text(".*/first/1\n\n.*second.*\n")
    said = distcp("-filters", "filters", "source/first", "source/second", "target")
    assert sorted(tree(Path("target"))) == ["first/2"]
    assert "Files Copied=1" in said
    Path("filters").write_text("(?!a).*\n")
    said = distcp("-filters", "filters", "source/first", "other", status=WRONG)
    assert "is not a regular expression" in said
    assert not Path("other").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["-update", "-delete", "../source/first", ""],
        ["-update", "", "target"],
        ["-f", "", "../source/first", "target"],
        ["-filters", "", "../source/first", "target"],
    ],
)
def test_an_empty_path_is_not_the_current_directory(
    words: list[str], sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable of a script that is not set: `-delete` would remove all that is there."""
    (sources / "here").mkdir()
    (sources / "here/kept").write_text("x")
    monkeypatch.chdir(sources / "here")
    assert "distcp: a path is empty" in distcp(*words, status=WRONG)
    assert tree(Path()) == {"kept": "x"}


def test_a_number_that_is_none_is_named() -> None:
    said = distcp("-m", "many", "source/first", "target", status=WRONG)
    assert "argument -m: 'many' is not a whole number from 1 on" in said
