"""`gristmill hadoop fs`: each path is for itself, and nothing is copied or merged into itself."""

import grp
import os
import pwd
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .hadoop_fs import fs, home

__all__ = ["home"]


@pytest.mark.parametrize(
    ("words", "said", "printed"),
    [
        (["-cat", "a.txt", "none", "folder", "b.txt"], 2, "a\nb\n"),
        (["-text", "a.txt", "not.gz", "b.txt"], 1, "a\nb\n"),
        (["-head", "none", "b.txt"], 1, "b\n"),
        (["-du", "none", "b.txt"], 1, "2  2  b.txt\n"),
        (["-stat", "%n", "none", "b.txt"], 1, "b.txt\n"),
        (["-mkdir", "folder", "made"], 1, ""),
        (["-touchz", "a.txt", "folder", "made"], 2, ""),
        (["-put", "a.txt", "none", "b.txt", "folder"], 2, ""),
        (["-cp", "a.txt", "none", "b.txt", "folder"], 2, ""),
        (["-mv", "a.txt", "none", "b.txt", "folder"], 2, ""),
        (["-moveFromLocal", "a.txt", "none", "b.txt", "folder"], 2, ""),
    ],
)
def test_a_command_goes_on_behind_what_fails(
    home: Path, words: list[str], said: int, printed: str
) -> None:
    """As Hadoop's does: each path is for itself, and the exit code is 1."""
    (home / "b.txt").write_text("b\n")
    (home / "folder" / "a.txt").write_text("other\n")
    done = fs(home, *words)
    assert (done.returncode, done.stdout) == (1, printed)
    assert len(done.stderr.splitlines()) == said
    assert (home / "folder/b.txt").exists() == (words[-1] == "folder")
    assert (home / "made").exists() == (words[-1] == "made")
    assert (home / "a.txt").read_text() == "a\n"  # it is moved nowhere, as its name was taken
    assert (home / "b.txt").exists() == (words[0] not in ("-mv", "-moveFromLocal"))


def test_a_directory_is_not_copied_into_itself_by_another_name(home: Path) -> None:
    (home / "folder/file").write_text("x")
    (home / "other").symlink_to("folder")
    for source, target in (
        ("folder", home / "folder/below"),
        (home / "folder", "folder/below"),
        ("other", "folder/below"),
        (".", "folder/below"),
    ):
        for command in ("-cp", "-put", "-mv")[: 2 if source == "other" else 3]:
            done = fs(home, command, source, target)
            assert done.returncode == 1
            assert "is a subdirectory of itself" in done.stderr
    assert [path.name for path in (home / "folder").iterdir()] == ["file"]
    assert fs(home, "-mv", "other", "folder").returncode == 0  # a link moves itself
    assert (home / "folder/other").readlink() == Path("folder")
    (home / "self").symlink_to("self")
    assert fs(home, "-cp", "folder", "self").stderr.startswith("cp: `self")


def test_a_link_to_a_directory_above_it_is_refused(home: Path) -> None:
    (home / "folder/loop").symlink_to(".")
    done = fs(home, "-cp", "folder", "copy")
    assert "`folder/loop': A link leads to a directory that it or its copy" in done.stderr
    (home / "folder/loop").unlink()
    (home / "folder/to").symlink_to("../other")
    (home / "other").mkdir()
    done = fs(home, "-cp", "folder", "other")
    assert "`folder/to': A link leads to a directory that it or its copy" in done.stderr
    (home / "other/back").symlink_to("../folder")
    done = fs(home, "-cp", "folder", "again")
    assert "`folder/to/back': A link leads to a directory that it or its copy" in done.stderr


def test_a_merge_does_not_read_itself(home: Path) -> None:
    """A file that begins with what `-getmerge` writes would never end."""
    (home / "folder/a").write_bytes(b"x" * 1_000_000)
    assert fs(home, "-getmerge", "folder", "folder/b").returncode == 0
    assert (home / "folder/b").read_bytes() == b"x" * 1_000_000


def test_a_pipe_is_written_to_and_stays(home: Path) -> None:
    os.mkfifo(home / "pipe")
    for words in (("-get", "-f", "a.txt", "pipe"), ("-getmerge", "a.txt", "pipe")):
        reader = subprocess.Popen(["cat", home / "pipe"], stdout=subprocess.PIPE)
        assert fs(home, *words).returncode == 0
        assert reader.communicate(timeout=100)[0] == b"a\n"
    assert (home / "pipe").is_fifo()
    assert fs(home, "-getmerge", "a.txt", "/dev/stdout").stdout == "a\n"


def test_owners_and_rights_are_known(home: Path) -> None:
    (home / "a.txt").chmod(0o640)
    owner = pwd.getpwuid(os.getuid()).pw_name
    group = grp.getgrgid(os.getgid()).gr_name
    done = fs(home, "-stat", "%u %g %a %A %%x", "a.txt")
    assert done.stdout == f"{owner} {group} 640 rw-r----- %x\n"
    done = fs(home, "-stat", "%n %o", "a.txt")
    assert (done.returncode, "fs -stat has no %o here" in done.stderr) == (2, True)


@pytest.fixture
def deep(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """1,200 directories, each in the one before it, in `folder`."""
    monkeypatch.chdir(home / "folder")
    for _ in range(1200):
        Path("d").mkdir()
        os.chdir("d")
    os.chdir(home)
    yield
    subprocess.run(["rm", "-r", "folder"], check=True)  # Python cannot


@pytest.mark.usefixtures("deep")
def test_a_deep_tree_is_listed(home: Path) -> None:
    assert len(fs(home, "-ls", "-R", "folder").stdout.splitlines()) == 1200
    assert fs(home, "-count", "folder").stdout.split() == ["1201", "0", "0", "folder"]


def test_sizes_do_not_end_at_a_dangling_link(home: Path) -> None:
    (home / "folder/dead").symlink_to("none")
    (home / "folder/more").write_text("x")
    assert fs(home, "-du", "folder").stdout == "0  0  folder/dead\n1  1  folder/more\n"
