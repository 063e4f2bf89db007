"""Where runs go that have no place beside the output: where the job was begun, TMPDIR, /tmp.

A directory that cannot be written is no reason to fail, unless the user named it.
"""

import hashlib
import random
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.optional import missing

from .conftest import Mount
from .harness import GRISTMILL, names, run
from .servers import ServerMissing
from .two_users import TwoUsers, two_users

SPILLS = ("--memory", "40M", "--workers", "1")


@pytest.fixture(scope="module")
def users() -> Iterator[TwoUsers]:
    try:
        with two_users() as both:
            yield both
    except ServerMissing as problem:
        missing("NOT TESTED: DIRECTORIES OF OTHER USERS", str(problem))


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """40 MB of lines, which any user may read."""
    numbers = random.Random(1)
    folder = tmp_path_factory.mktemp("spilled")
    lines = [f"{numbers.getrandbits(200):060x}\n" for _ in range(700_000)]
    file = folder / "text"
    file.write_text("".join(lines))
    (folder / "sorted").write_text("".join(sorted(lines)))
    yield file
    file.unlink()


def test_runs_go_to_the_temporary_directory_where_nothing_can_be_made(
    text: Path, tmp_path: Path
) -> None:
    """In /proc even root can make nothing."""
    done = run("sort", *SPILLS, text, cwd=Path("/proc"), TMPDIR=str(tmp_path))
    assert done.stdout == text.with_name("sorted").read_text()
    assert done.stderr == ""
    assert names(tmp_path) == []
    done = run("sort", *SPILLS, text, cwd=Path("/proc"), TMPDIR="/proc")
    assert done.stdout == text.with_name("sorted").read_text()


def test_runs_of_a_pipe_and_of_an_ordinary_user(text: Path, users: TwoUsers) -> None:
    """As cron does: in /, as a user who may not write there."""
    alice = users.alice
    source = alice.home / "text"
    source.write_bytes(text.read_bytes())
    sort = shlex.join([str(GRISTMILL), "sort", *SPILLS])
    found = alice.shell(f"cd / && cat {source} | {sort} | sha256sum")
    wanted = hashlib.sha256(text.with_name("sorted").read_bytes()).hexdigest()
    assert found.split() == [wanted, "-"]
    assert [name for name in names(alice.home) if name.startswith(".gristmill")] == []


def test_a_memory_disk_is_named(text: Path, mount: Mount) -> None:
    disk = mount("size=200m")
    here = Path("/proc")
    done = run("sort", *SPILLS, text, cwd=here, TMPDIR=str(disk))
    assert done.stdout == text.with_name("sorted").read_text()
    assert done.stderr.count("\n") == 1
    assert f"sorted runs go to {disk}, which is memory (tmpfs)" in done.stderr
    assert names(disk) == []
    explained = run("explain", "sort", *SPILLS, text, cwd=here, TMPDIR=str(disk)).stdout
    assert f"{disk}" in explained


def test_room_is_looked_for_where_runs_go(text: Path, mount: Mount) -> None:
    disk = mount("size=5m")
    done = run("sort", *SPILLS, text, status=1, cwd=Path("/proc"), TMPDIR=str(disk))
    assert "runs need" in done.stderr
    assert f"(file {disk}/" in done.stderr


@pytest.mark.parametrize("command", ["sort", "terasort"])
def test_a_directory_that_was_named_is_not_replaced(
    command: str, text: Path, tmp_path: Path
) -> None:
    arguments = [text, *(["-o"] if command == "sort" else []), tmp_path / "out"]
    done = run(command, *SPILLS, "--spill-dir", "/proc", *arguments, status=1)
    assert done.stderr == (
        f"gristmill {command}: cannot use a spill directory: its file system takes no files"
        " (file /proc). What to do: give --spill-dir a directory that can be written to, on a"
        " file system with room.\n"
    )
    assert names(tmp_path) == []


def test_jobs_to_a_store_keep_what_is_theirs_in_the_temporary_directory(
    text: Path, tmp_path: Path
) -> None:
    """The folder of an output whose files appear one by one is on a local disk."""
    temporary, bucket = tmp_path / "temporary", tmp_path / "bucket"
    temporary.mkdir()
    bucket.mkdir()
    lines = tmp_path / "lines"
    lines.write_text("a b\nb\n")
    target = f"objects://{bucket}/"
    jobs = [
        ("sort", *SPILLS, text, "-o", target + "sorted"),
        ("wordcount", lines, target + "words"),
        ("grep", "--counts", "b", lines, "-o", target + "counts"),
        (
            *("streaming", "-input", str(lines), "-output", target + "streamed"),
            *("-mapper", "cat", "-reducer", "cat"),
        ),
    ]
    for job in jobs:
        run(*job, cwd=Path("/proc"), TMPDIR=str(temporary))
    assert names(bucket)[1:] == ["counts", "sorted", "streamed", "words"]  # behind its uploads
    assert (bucket / "sorted").read_text() == text.with_name("sorted").read_text()
    assert names(temporary) == []


def test_python_jobs_to_a_store(tmp_path: Path) -> None:
    temporary, bucket = tmp_path / "temporary", tmp_path / "bucket"
    temporary.mkdir()
    bucket.mkdir()
    program = tmp_path / "job.py"
    program.write_text(
        "import gristmill as gm\n"
        "job = gm.Job(gm.items(['a', 'b', 'a']), map=lambda word: [(word, 1)], reduce=gm.sum(),\n"
        f"    output=gm.tsv('objects://{bucket}/out'), partition_by=gm.sampled_ranges(), parts=2)\n"
    )
    run("run", program, cwd=Path("/proc"), TMPDIR=str(temporary))
    found = "".join(path.read_text() for path in sorted((bucket / "out").glob("part-*")))
    assert found == "a\t2\nb\t1\n"
    assert names(temporary) == []
