"""`gristmill hadoop fs`: on local files, what Hadoop's own does, and in its words if it fails."""

import subprocess
import sys
from pathlib import Path

import pytest


def fs(home: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gristmill", "hadoop", "fs", *map(str, words)]
    return subprocess.run(
        command, cwd=home, capture_output=True, text=True, check=False, timeout=100
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    return tmp_path


def test_uris_of_files_are_paths_in_every_command(home: Path) -> None:
    base = f"file://{home}"
    for words in (
        ("-mkdir", "-p", f"{base}/made/below"),
        ("-put", f"{base}/a.txt", f"{base}/made/below"),
        ("-test", "-s", f"{base}/made/below/a.txt"),
        ("-touchz", f"{base}/made/new"),
        ("-get", f"{base}/made/below/a.txt", f"{base}/got.txt"),
        ("-rm", "-r", f"{base}/made/below"),
    ):
        done = fs(home, *words)
        assert done.returncode == 0, (words, done.stderr)
    assert sorted(path.name for path in home.iterdir()) == [
        "a.txt",
        "empty",
        "folder",
        "got.txt",
        "made",
    ]
    assert [path.name for path in (home / "made").iterdir()] == ["new"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["-rm", "folder"], 1, "rm: `folder': Is a directory"),
        (["-cat", "folder"], 1, "cat: `folder': Is a directory"),
        (["-cat", "not-there"], 1, "cat: `not-there': No such file or directory"),
        (["-mkdir", "folder"], 1, "mkdir: `folder': File exists"),
        (["-mkdir", "a.txt/below"], 1, "mkdir: `a.txt/below': Not a directory"),
        (["-put", "a.txt", "a.txt"], 1, "put: `a.txt': File exists"),
        (["-put", "-f", "a.txt", "a.txt"], 1, "`a.txt' to `a.txt': are identical"),
        (["-put", "a.txt"], 2, "-put needs a source and a target"),
        (["-cat"], 2, "-cat needs a path"),
        (["-ls", "hdfs://127.0.0.1:1/user"], 1, "no answer from 127.0.0.1:1"),
        (["-chown", "me", "a.txt"], 2, "there is no command fs '-chown'"),
        (["-test", "-s", "empty"], 1, ""),
        (["-test", "-z", "a.txt"], 1, ""),
    ],
)
def test_what_fails_is_said_in_hadoops_words(
    home: Path, words: list[str], code: int, said: str
) -> None:
    done = fs(home, *words)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "defect" not in done.stderr
    assert (home / "a.txt").read_text() == "a\n"
