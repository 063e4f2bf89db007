"""`gristmill sort -o`: where the output goes, and what it replaces."""

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from .harness import names
from .sorting import (
    clear,
    nothing_of_ours_stays,
    same,
    shell,
    sort,
    try_sort,
)


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test does: in its folders, in TMPDIR and where it runs, nothing of ours stays."""
    with nothing_of_ours_stays(tmp_path, monkeypatch):
        yield


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o440])
def test_in_place_with_its_permissions(mode: int) -> None:
    file = Path("a")
    file.write_bytes(b"b\nc\na")
    file.chmod(mode)
    sort("a", "-o", "a")
    assert file.read_bytes() == b"a\nb\nc\n"
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert names(Path()) == ["a", "temporary"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_does_not_take_a_file_for_itself() -> None:
    """Least of all one that runs as its owner: its content is somebody else's."""
    file = Path("a")
    file.write_bytes(b"b\na\n")
    os.chown(file, 1234, 4321)
    file.chmod(0o4755)
    sort("a", "-o", "a")
    found = file.stat()
    assert (found.st_uid, found.st_gid) == (1234, 4321) or not found.st_mode & stat.S_ISUID


def test_in_place_more_than_memory(much_text: Path, much_text_sorted: Path) -> None:
    file = Path("a")
    file.write_bytes(much_text.read_bytes())
    sort("--memory", "20M", "--no-sync", "-o", "a", "a")
    same(file, much_text_sorted)


def test_in_place_among_other_inputs() -> None:
    Path("a").write_text("c\n")
    Path("b").write_text("a\n")
    sort("b", "a", "-", "-o", "a", stdin=b"b\n")
    assert Path("a").read_text() == "a\nb\nc\n"
    sort("-o", "b", "b", "b")
    assert Path("b").read_text() == "a\na\n"


def test_an_output_in_a_directory_that_is_input() -> None:
    folder = clear(Path("folder"))
    (folder / "a").write_text("b\n")
    (folder / "out").write_text("a\n")
    sort("folder", "-o", "folder/out")
    assert (folder / "out").read_text() == "a\nb\n"
    assert names(folder) == ["a", "out"]


def test_a_new_output_has_the_mode_of_any_new_file() -> None:
    done = shell('umask 027; echo a | "$gristmill" sort -o out', Path())
    assert done.status == 0, done.stderr
    assert stat.S_IMODE(Path("out").stat().st_mode) == 0o640


def test_an_empty_output_replaces_a_full_one() -> None:
    Path("out").write_text("old")
    sort("-o", "out", stdin=b"")
    assert Path("out").read_bytes() == b""


def test_an_output_whose_name_is_odd(tmp_path: Path) -> None:
    for name in ("./-", " ", "é\n", "-r", ".hidden"):
        sort("--output", name, stdin=b"b\na\n")
        assert (tmp_path / name).read_bytes() == b"a\nb\n"
        (tmp_path / name).unlink()


def test_an_output_whose_name_is_as_long_as_can_be(tmp_path: Path) -> None:
    sort("--output", "x" * 255, stdin=b"b\na\n")
    assert (tmp_path / ("x" * 255)).read_bytes() == b"a\nb\n"


def test_a_symbolic_link_stays_one() -> None:
    """The file that it leads to is replaced, as with GNU sort."""
    folder = clear(Path("folder"))
    (folder / "target").write_text("b\na\n")
    link = Path("link")
    link.symlink_to("folder/target")
    sort("-o", "link", "link")
    assert link.is_symlink()
    assert (folder / "target").read_text() == "a\nb\n"
    assert names(folder) == ["target"]


def test_a_symbolic_link_to_what_is_not_there_yet() -> None:
    folder = clear(Path("folder"))
    link = Path("link")
    link.symlink_to("folder/target")
    sort("-o", "link", stdin=b"b\na\n")
    assert link.is_symlink()
    assert (folder / "target").read_text() == "a\nb\n"
    assert names(folder) == ["target"]


def test_an_output_that_is_no_regular_file_stays_what_it_is() -> None:
    """A pipe is written to, or refused; a file in its place would be the end of /dev/null."""
    pipe = Path("pipe")
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        done = try_sort("-o", "pipe", stdin=b"b\na\n")
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert done.status == 1 or os.read(held, 100) == b"a\nb\n"
    finally:
        os.close(held)


def test_whoever_looks_sees_a_whole_output(much_text: Path, much_text_sorted: Path) -> None:
    """The old one or the new one, at every moment."""
    out, over, sizes = Path("out"), threading.Event(), set[int]()
    out.write_text("old")

    def look() -> None:
        while not over.is_set():
            sizes.add(out.stat().st_size)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        sort("--memory", "20M", "-o", "out", much_text)
    finally:
        over.set()
        watcher.join()
    assert sizes <= {3, much_text_sorted.stat().st_size}
    assert 3 in sizes


@pytest.mark.parametrize("name", ["out.gz", "out.txt.zst", "OUT.BZ2"])
def test_an_output_that_is_not_compressed_but_called_so_is_told(name: str) -> None:
    done = try_sort("-o", name, stdin=b"b\na\n")
    assert (done.status, Path(name).read_bytes()) == (0, b"a\nb\n")
    assert done.stderr == (
        f"gristmill: {name} is not compressed, whatever its name says: --compress (in Python"
        " compress=) compresses the output\n"
    )
    for options in (["-o", name, "--compress", "gzip"], ["-o", "out"], ["-o", "p.gz", "--parts=1"]):
        assert try_sort(*options, "/dev/null").stderr == ""
