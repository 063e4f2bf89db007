"""`gristmill sort -o FILE` where FILE may be written, and no new file can take its name.

Its directory belongs to somebody else, or it is a mount point, as are single files in containers.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.optional import missing

from .conftest import Mount
from .harness import Done, end, names, run, start
from .servers import ServerMissing
from .two_users import TwoUsers, two_users

Bind = Callable[[Path, Path], None]


@pytest.fixture(scope="module")
def users() -> Iterator[TwoUsers]:
    try:
        with two_users() as both:
            yield both
    except ServerMissing as problem:
        missing("NOT TESTED: FILES IN DIRECTORIES OF OTHER USERS", str(problem))


@pytest.fixture
def bind() -> Iterator[Bind]:
    """A function that mounts a file at another one."""
    mounted: list[Path] = []

    def bind_at(file: Path, place: Path) -> None:
        place.touch()
        done = subprocess.run(
            ["mount", "--bind", file, place], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            missing("NOT TESTED: FILES THAT ARE MOUNT POINTS", done.stderr)
        mounted.append(place)

    yield bind_at
    for place in mounted:
        subprocess.run(["umount", place], check=True)


def shuffled(path: Path, count: int = 200_000) -> str:
    """Write lines in no order; returns them in order."""
    numbers = random.Random(count)
    lines = [f"{numbers.getrandbits(200):060x}\n" for _ in range(count)]
    path.write_text("".join(lines))
    return "".join(sorted(lines))


def has_warned(done: Done, file: Path, place: Path) -> bool:
    said = done.stderr
    return said.count("\n") == 1 and f"take the name of {file}" in said and f"in {place}:" in said


def test_in_a_directory_of_another_user(users: TwoUsers) -> None:
    """Sorted into itself, in a directory that its user may not write, as in /etc."""
    alice, folder = users.alice, users.alice.home / "others"
    folder.mkdir(mode=0o755)
    file = folder / "file"
    wanted = shuffled(file)
    os.chown(file, -1, alice.uid)
    file.chmod(0o664)
    before = file.stat()
    done = alice.run("sort", file, "-o", file)
    assert file.read_text() == wanted
    after = file.stat()
    assert (after.st_ino, after.st_mode, after.st_uid) == (before.st_ino, before.st_mode, 0)
    assert has_warned(done, file, alice.home)
    assert names(folder) == ["file"]
    assert [name for name in names(alice.home) if name.startswith(".file")] == []
    done = alice.run("sort", file, "-o", folder / "new", status=1)
    assert "permission denied" in done.stderr
    file.chmod(0o644)
    done = alice.run("sort", file, "-o", file, status=1)
    assert "permission denied" in done.stderr
    assert file.read_text() == wanted


def test_in_a_sticky_directory(users: TwoUsers) -> None:
    """There only its owner may replace it."""
    file = users.shared / "file"
    wanted = shuffled(file)
    os.chown(file, users.bob.uid, -1)
    file.chmod(0o666)
    done = users.alice.run("sort", file, "-o", file)
    assert has_warned(done, file, users.alice.home)
    assert file.read_text() == wanted
    assert names(users.shared) == ["file"]
    file.unlink()


def test_a_file_that_is_a_mount_point(bind: Bind, tmp_path: Path) -> None:
    source, file = tmp_path / "source", tmp_path / "file"
    wanted = shuffled(source)
    bind(source, file)
    done = run("sort", source, "-o", file, cwd=tmp_path)
    assert has_warned(done, file, tmp_path)
    assert source.read_text() == wanted
    assert names(tmp_path) == ["file", "source"]
    found = run("explain", "sort", source, "-o", file, cwd=tmp_path).stdout
    assert "in place" in found


def test_a_full_disk_is_found_before_the_file_is_changed(
    bind: Bind, mount: Mount, tmp_path: Path
) -> None:
    source, file = tmp_path / "source", tmp_path / "file"
    wanted = shuffled(source)
    small = mount("size=1m") / "small"
    small.write_text("old\n")
    bind(small, file)
    done = run("sort", source, "-o", file, status=1, cwd=tmp_path)
    assert small.read_text() == "old\n"
    assert "no space left on device" in done.stderr
    (complete,) = tmp_path.glob(".file-*/complete")
    assert f"complete output {complete}" in done.stderr
    assert complete.read_text() == wanted


def test_a_kill_while_the_file_is_written(bind: Bind, tmp_path: Path, home: Path) -> None:
    """Input and output are one file: what is whole is the copy, and the job is finished by it."""
    source, file = tmp_path / "source", tmp_path / "file"
    wanted = shuffled(source, 1_000_000)
    bind(source, file)
    process = start("sort", file, "-o", file, "--history", "--spill-dir", tmp_path)
    deadline_s = time.monotonic() + 60
    while process.poll() is None and not list(tmp_path.glob(".file-*/complete")):
        assert time.monotonic() < deadline_s
        time.sleep(0.0005)
    process.kill()
    assert end(process).status == -signal.SIGKILL
    is_half_written = source.read_text() != wanted
    if is_half_written:
        (complete,) = tmp_path.glob(".file-*/complete")
        done = run("sort", source, "-o", file, "--spill-dir", tmp_path, status=1)
        assert f"complete output {complete}" in done.stderr
        pruned = run("jobs", "prune", "--older-than", "0")
        assert complete.exists(), pruned
    assert home.exists()
    run("resume", "last")
    assert source.read_text() == wanted
    assert names(tmp_path) == ["file", "home", "source"]
