"""`gristmill cp --atomic`: the whole copy, or none."""

import json
import shutil
from pathlib import Path

import pytest

from .harness import failure, names, run, without_privileges
from .resuming import kill_when


@pytest.fixture(autouse=True)
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "source"
    for name in ("a", "b/c", "b/d", "e/f/g"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n" * 1000)
    (folder / "empty").mkdir()
    return folder


def tree(top: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(top)): path.read_bytes() if path.is_file() else None
        for path in top.rglob("*")
    }


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (["source/", "copy"], "copy"),
        (["source", "copy"], "copy/source"),
        (["source/", "copy/"], "copy"),
        (["source/", "./copy/."], "copy"),
    ],
)
def test_the_copy_is_that_of_the_source(words: list[str], made: str, source: Path) -> None:
    run("cp", *words, "--atomic")
    assert tree(Path(made)) == tree(source)
    assert [name for name in names(Path()) if name.startswith(".")] == []


def test_files_and_what_is_named_after_them(tmp_path: Path) -> None:
    run("cp", "source/a", "one", "--atomic", "--manifest", "one.jsonl")
    assert Path("one").read_bytes() == Path("source/a").read_bytes()
    run("cp", "source/a", "source/b/c", "two", "--atomic", "--manifest", "two.jsonl")
    assert names(Path("two")) == ["a", "c"]
    listed = [json.loads(line)["path"] for line in Path("two.jsonl").read_text().splitlines()]
    assert sorted(listed) == ["a", "c"]
    run("cp", "source/", "nothing", "--atomic", "--filter", "no such name")
    assert names(tmp_path) == ["one", "one.jsonl", "source", "two", "two.jsonl"]


def test_a_target_that_is_there_is_left_alone() -> None:
    Path("copy").mkdir()
    Path("dead").symlink_to("nowhere")
    for target in ("copy", "dead", "source"):
        assert "there is something of this name" in failure("cp", "source/a", target, "--atomic")
        assert "of this name" in failure("cp", "source/a", target, "--atomic", "--dry-run")
    assert names(Path("copy")) == []


@pytest.mark.parametrize("more", ["--update", "--overwrite", "--delete"])
def test_options_that_replace_do_not_go_with_it(more: str) -> None:
    said = failure("cp", "source/", "copy", "--atomic", more, status=2)
    assert f"{more}: with --atomic the target is made anew" in said


def test_a_store_gives_names_to_files_alone() -> None:
    said = failure("cp", "source/", f"objects://{Path.cwd()}/x", "--atomic", status=2)
    assert "must be on a disk, a mount, or HDFS" in said


def test_if_a_file_cannot_be_copied_there_is_no_copy(tmp_path: Path) -> None:
    Path("source/b/d").chmod(0)
    said = failure("cp", "source/", "copy", "--atomic", preexec=without_privileges)
    assert "permission denied" in said
    assert names(tmp_path) == ["source"]
    said = failure("cp", "source/", "copy", "--atomic", "--ignore-failures", status=2)
    assert "all files are copied, or none" in said


def test_killed_resumed_and_pruned(home: Path, tmp_path: Path) -> None:
    many = Path("many")
    many.mkdir()
    for number in range(2000):
        (many / str(number)).write_text(f"{number}\n" * 100)
    command: list[str | Path] = ["cp", "many/", "copy", "--atomic", "--workers", "1"]
    kill_when(command, home, lambda _: staged())
    assert not Path("copy").exists()
    run("resume", "last")
    assert tree(Path("copy")) == tree(many)
    shutil.rmtree("copy")
    shutil.rmtree(home)
    kill_when(command, home, lambda _: staged())
    (left,) = (path for path in tmp_path.glob(".copy.gristmill-*"))
    told = json.loads(run("jobs", "prune", "--older-than", "0", "--json").stdout)
    assert told["folders"] == [str(left)]
    assert not left.exists()
    assert names(tmp_path) == ["home", "many", "source"]


def staged() -> bool:
    """Whether some of the files have been copied."""
    return len(list(Path().glob(".copy.gristmill-*/output/*"))) > 100
