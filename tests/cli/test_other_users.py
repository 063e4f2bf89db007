"""Two users of one machine: neither reads, blocks or redirects the other's jobs, nor root's.

They share a directory like /tmp. A job that is stopped (SIGSTOP) shows what others can see of it.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.optional import or_missing

from gristmill.cluster import actor

from .harness import run
from .mount_server import mounted_for_all
from .two_users import TwoUsers, User, two_users

LINES = 900_000
"""Lines of the text, in no order, all of which have the word SECRET: 22 MB."""

RUNS = ("--memory", "24M")
"""Memory with which the text makes runs."""


@pytest.fixture(scope="module")
def both() -> Iterator[TwoUsers]:
    with or_missing("TWO USERS"), two_users() as both:
        yield both


@pytest.fixture
def shared(both: TwoUsers) -> Iterator[Path]:
    """The directory that both share, empty before and after."""
    yield both.shared
    for path in both.shared.iterdir():
        path.unlink() if path.is_symlink() or not path.is_dir() else shutil.rmtree(path)


@pytest.fixture(scope="module")
def text(both: TwoUsers) -> Path:
    """A text of alice's that nobody else may read."""
    file = both.alice.home / "text"
    lines = (f"{number * 7919 % LINES:09d} SECRET line\n" for number in range(LINES))
    file.write_text("".join(lines))
    file.chmod(0o600)
    os.chown(file, both.alice.uid, both.alice.uid)
    return file


@contextmanager
def stopped(
    job: "subprocess.Popen[str]", is_far: Callable[[], bool]
) -> Generator["subprocess.Popen[str]"]:
    """A job that is stopped when it is so far, and is killed at the end."""
    try:
        deadline_s = time.monotonic() + 60
        while not is_far():
            assert job.poll() is None, job.communicate()
            assert time.monotonic() < deadline_s, "it never came so far"
            time.sleep(0.002)
        job.send_signal(signal.SIGSTOP)
        yield job
    finally:
        job.kill()
        job.communicate()


def modes(top: Path) -> dict[str, str]:
    """The modes of all in a folder, of the names without their numbers."""
    found = [top, *top.rglob("*")]
    return {
        str(path.relative_to(top.parent)): f"{path.lstat().st_mode & 0o777:o}" for path in found
    }


def readable(by: User, top: Path) -> str:
    """What a user finds of the secret in a folder."""
    found = by.shell(f"grep -rlas SECRET {top}", status=None)
    return found + by.shell(f"cat {top}/.*gristmill*/*/* 2>/dev/null | head -c 100", status=None)


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_nobody_else_reads_what_a_job_spills(
    umask: int, both: TwoUsers, shared: Path, text: Path
) -> None:
    alice, bob = both.alice, both.bob
    file = shared / "f"
    alice.shell(f"cp {text} {file}; chmod 600 {file}")
    job = alice.start("sort", "-o", file, file, *RUNS, cwd=shared, umask=umask)

    def has_runs() -> bool:
        return len(list(shared.glob(".f.gristmill-*/spill/*/run-*"))) > 1

    with stopped(job, has_runs):
        assert readable(bob, shared) == ""
        (folder,) = shared.glob(".f.gristmill-*")
        found = modes(folder)
        spills = [path for path in found if "/run-" in path or path.endswith("/lock")]
        assert len(spills) > 2
        assert {found[path] for path in spills} == {"600"}
        assert found[folder.name] == found[f"{folder.name}/spill"] == "700"
        assert found[f"{folder.name}/output"] == "600", "before it has a byte"
        assert "denied" in bob.shell(f"ls {folder}", status=2)
    alice.run("sort", "-o", file, file, *RUNS, umask=umask)
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in shared.iterdir()] == ["f"]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_what_is_published_has_the_modes_that_the_user_wants(
    umask: int, both: TwoUsers, shared: Path
) -> None:
    alice, text = both.alice, both.alice.home / "small"
    alice.shell(f"seq 1000 > {text}")
    for name, options in (("runs", ("--unique",)), ("memory", ())):
        alice.run("sort", "-o", shared / name, text, *options, umask=umask)
        assert (shared / name).stat().st_mode & 0o777 == 0o666 & ~umask
    alice.run("wordcount", text, shared / "counts", umask=umask)
    assert (shared / "counts").stat().st_mode & 0o777 == 0o777 & ~umask
    for path in (shared / "counts").iterdir():
        assert path.stat().st_mode & 0o777 == 0o666 & ~umask, path
    script = ["-input", text, "-output", shared / "lines", "-mapper", "cat"]
    alice.run("streaming", *script, umask=umask)
    assert (shared / "lines").stat().st_mode & 0o777 == 0o777 & ~umask
    for path in (shared / "lines").iterdir():
        assert path.stat().st_mode & 0o777 == 0o666 & ~umask, path
    # One that is replaced keeps its mode.
    (shared / "runs").chmod(0o640)
    alice.run("sort", "-o", shared / "runs", text, umask=umask)
    assert (shared / "runs").stat().st_mode & 0o777 == 0o640


def test_nobody_else_reads_what_scripts_work_with(both: TwoUsers, shared: Path, text: Path) -> None:
    alice, bob = both.alice, both.bob
    side = alice.home / "side.tar"
    alice.shell(f"cd {alice.home}; echo SECRET > side; tar cf {side} side; rm side")
    script = ["-mapper", "sh -c 'cat > copy; sleep 60'", "-archives", f"{side}#side"]
    job = alice.start("streaming", *script, "-input", text, "-output", shared / "out", cwd=shared)
    with stopped(job, lambda: bool(list(shared.rglob("copy")))):
        assert readable(bob, shared) == ""
        (folder,) = shared.glob(".out.gristmill-*")
        assert modes(folder)[folder.name] == "700"
        children = subprocess.run(["pkill", "-9", "-P", str(job.pid)], check=False)
        assert children.returncode in {0, 1}


def lock(kind: str) -> str:
    """A script that makes the folder $f as a user may who would block others, or lead them on."""
    return {
        "0600": "mkdir $f; umask 077; touch $f/lock",
        "0666": "mkdir $f; touch $f/lock; chmod 666 $f/lock; chmod 777 $f",
        "directory": "mkdir $f; mkdir $f/lock",
        "FIFO": "mkdir $f; mkfifo -m 666 $f/lock; chmod 777 $f",
        "link": 'mkdir $f; ln -s "$victim" $f/lock; chmod 777 $f',
        "link to nothing": 'mkdir $f; ln -s "$new" $f/lock; chmod 777 $f',
        "closed": "mkdir $f; touch $f/lock; chmod 700 $f",
        "nothing": "mkdir $f",
        "linked folder": 'mkdir -p "$victim.d"; ln -s "$victim.d" $f',
        "FIFO itself": "mkfifo -m 666 $f",
        "file": "touch $f",
        "runs": "mkdir $f; touch $f/lock; mkdir $f/old; echo > $f/run-1; chmod -R a+rwX $f",
    }[kind]


KINDS = (
    *("0600", "0666", "directory", "FIFO", "link", "link to nothing", "closed", "nothing"),
    *("linked folder", "FIFO itself", "file", "runs"),
)


def seen(top: Path) -> list[tuple[str, int, int]]:
    """All that is in a folder."""
    found = ((path, path.lstat()) for path in sorted(top.rglob("*")))
    return [(str(path), stat.st_mode, stat.st_uid) for path, stat in found]


@pytest.mark.parametrize("who", ["alice", "root"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_another_user_puts_there_is_left_alone(
    kind: str, who: str, both: TwoUsers, shared: Path
) -> None:
    alice, bob = both.alice, both.bob
    victim, new = alice.home / "victim", alice.home / "new"
    alice.shell(f"echo precious > {victim}; chmod 600 {victim}; chmod 755 {alice.home}")
    variables = f"victim={victim}; new={new};"
    if kind == "linked folder":
        variables = f"victim={bob.home / 'victim'};"
    for name in (".gristmill-spill-x", ".out.gristmill-x", ".file.gristmill-x"):
        bob.shell(f"set -e; f={shared / name}; {variables} {lock(kind)}")
    before = seen(shared)
    lines = b"b\na\n"

    def job(*arguments: str | Path) -> None:
        if who == "alice":
            alice.run(*arguments)
        else:
            run(*arguments)

    source = shared / "in"
    source.write_bytes(lines)
    job("wordcount", source, shared / "out", "--spill-dir", shared)
    job("sort", source, "-o", shared / "file", "--spill-dir", shared)
    assert (shared / "file").read_bytes() == b"a\nb\n"
    for path in (source, shared / "file"):
        path.unlink()
    shutil.rmtree(shared / "out")
    assert seen(shared) == before
    assert victim.read_text() == "precious\n"
    assert not new.exists()


def test_a_job_of_another_user_is_in_nobodys_way(both: TwoUsers, shared: Path, text: Path) -> None:
    alice, bob = both.alice, both.bob
    spill = ("--spill-dir", shared)
    job = alice.start("sort", text, "-o", alice.home / "sorted", *RUNS, *spill)

    def has_runs() -> bool:
        return bool(list(shared.glob(".gristmill-spill-*/run-*")))

    bob.shell("seq 1000 > lines")
    with stopped(job, has_runs):
        bob.run("sort", "lines", "-o", "sorted", *spill)
        assert readable(bob, shared) == ""
        assert has_runs()
    # It is dead now, and as little in the way.
    bob.run("sort", "lines", "-o", "sorted", *spill)
    assert has_runs()
    run("sort", bob.home / "lines", "-o", bob.home / "by-root", *spill)
    assert has_runs()
    # Its user's next job removes what is left.
    alice.run("sort", bob.home / "lines", "-o", alice.home / "sorted", *spill)
    assert list(shared.iterdir()) == []


def test_two_jobs_of_one_user_to_one_output(both: TwoUsers, shared: Path, text: Path) -> None:
    alice = both.alice
    job = alice.start("sort", text, "-o", shared / "out", *RUNS)
    with stopped(job, lambda: bool(list(shared.glob(".out.gristmill-*/lock")))):
        refused = alice.run("sort", text, "-o", shared / "out", status=1)
        assert "another job is writing this output now" in refused.stderr
    alice.run("sort", text, "-o", shared / "out")
    assert [path.name for path in shared.iterdir()] == ["out"]


@pytest.mark.parametrize("squat", ["mkdir", "mkdir -m 777", "touch", "ln -s /tmp"])
def test_the_folder_of_agents_has_another_name_where_its_own_is_taken(
    squat: str, both: TwoUsers, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    name = shared / f"gristmill-{os.getuid()}"
    both.bob.shell(f"{squat} {name}")
    home = actor._home()
    assert home.name.startswith(f"{name.name}-")
    assert home.stat().st_mode & 0o777 == 0o700
    assert actor._home() == home, "the next agent finds it"
    name.unlink() if not name.is_dir() or name.is_symlink() else name.rmdir()
    assert actor._home() == name


def test_a_mount_on_which_all_users_have_one_owner(both: TwoUsers, text: Path) -> None:
    """Who owns a folder says nothing there: only folders with the user's own mark are swept."""
    alice, bob = both.alice, both.bob
    thesis = alice.home / "thesis.txt"
    alice.shell(f"echo thesis > {thesis}; chmod 600 {thesis}")
    folder = Path(tempfile.mkdtemp(prefix="gristmill-mount-"))
    folder.chmod(0o755)
    spill = ("--memory", "24M", "--spill-dir")
    with or_missing("SHARED MOUNTS OF TWO USERS"), mounted_for_all(folder) as (data, place, _):
        bob.shell(f"cd {place}; mkdir .gristmill-spill-x .gristmill-spill-y; echo {{}} > y")
        bob.shell(
            f"cd {place}; ln -s {thesis} .gristmill-spill-x/lock; mv y .gristmill-spill-y/lock"
        )
        planted = {path: path.lstat().st_ino for path in data.glob(".gristmill-spill-*/lock")}
        assert {path.lstat().st_uid for path in planted} == {os.geteuid()}

        def has_runs() -> bool:
            return len(list(data.glob(".gristmill-spill-job_*/run-*"))) > 1

        with stopped(alice.start("sort", text, "-o", "sorted", *spill, place), has_runs):
            pass  # it is killed
        assert has_runs()
        alice.run("sort", text, "-o", "sorted", *spill, place)
        assert thesis.read_text() == "thesis\n"
        assert {
            path: path.lstat().st_ino for path in data.glob(".gristmill-spill-*/lock")
        } == planted
    shutil.rmtree(folder)
