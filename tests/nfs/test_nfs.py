"""Jobs on NFS, from two machines: what one writes, the other one validates.

`make test-nfs` runs these tests; `make test` does not, as they boot two emulated machines.
"""

import hashlib
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.harness import run
from tests.nfs.guests import SQUASHED, Guest, command_of, guests
from tests.optional import or_missing

pytestmark = pytest.mark.timeout(600)

#: So little memory that 30 MB make runs.
RUNS = ("--memory", "24M", "--workers", "1")

Two = tuple[Path, Guest, Guest]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    with or_missing("NFS"), guests(tmp_path_factory.mktemp("nfs")) as found:
        yield found


def digest(folder: Path) -> dict[str, str]:
    """What an output holds, but for its proof, as the server's disk has it."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.name != "_SUCCESS"
    }


@pytest.fixture(scope="module")
def wanted(two: Two, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Records in the shared directory, and what a terasort on a disk makes of them."""
    run("teragen", "300k", two[0] / "in", "--files", "2", "--skew")
    folder = tmp_path_factory.mktemp("wanted")
    run("terasort", two[0] / "in", folder / "out", "--partitions", "2", *RUNS)
    return digest(folder / "out")


def sort_to(output: str, *more: str) -> str:
    return command_of("terasort", "/tmp/nfs/in", output, "--partitions", "2", *RUNS, *more)


def wait_for(path: Path, pattern: str, limit_s: float = 120.0) -> Path:
    """Wait until a file of this pattern is on the server's disk."""
    deadline_s = time.monotonic() + limit_s
    while not (found := sorted(path.glob(pattern))):
        assert time.monotonic() < deadline_s, f"no {pattern}"
        time.sleep(0.05)
    return found[0]


def test_one_sorts_and_the_other_validates(two: Two, wanted: dict[str, str]) -> None:
    data, one, other = two
    assert "nfs4" in one.run("grep ' /tmp/nfs ' /proc/mounts").said
    done = one.run(sort_to("/tmp/nfs/out"))
    assert "mount" not in done.said  # runs are in /tmp/work
    assert digest(data / "out") == wanted
    said = other.run(command_of("teravalidate", "/tmp/nfs/out", "--against", "/tmp/nfs/in")).said
    assert "in order: 300,000 records" in said
    other.run(sort_to("/tmp/nfs/out", "--overwrite", "--no-sync", "--memory", "200M"))
    assert digest(data / "out") == wanted
    said = one.run(command_of("teravalidate", "/tmp/nfs/out", "--against", "/tmp/nfs/in")).said
    assert "in order: 300,000 records" in said
    assert sorted(path.name for path in data.iterdir()) == ["in", "out"]
    shutil.rmtree(data / "out")


def test_runs_on_the_mount_are_told_and_go_with_the_job(two: Two, wanted: dict[str, str]) -> None:
    data, one, _ = two
    said = one.run(sort_to("/tmp/nfs/told", "--spill-dir", "/tmp/nfs")).said
    assert "runs go to /tmp/nfs, on a mount that several machines share (nfs4)" in said
    assert digest(data / "told") == wanted
    assert sorted(path.name for path in data.iterdir()) == ["in", "told"]
    shutil.rmtree(data / "told")


def test_a_job_is_left_alone_by_the_other_machine_and_resumed_after_a_kill(
    two: Two, wanted: dict[str, str]
) -> None:
    data, one, other = two
    one.run(f"{sort_to('/tmp/nfs/killed', '--history')} > said 2>&1 & echo $! > number")
    wait_for(data, ".killed.gristmill-*/lock")
    one.run("kill -STOP $(cat number)")
    said = other.run(sort_to("/tmp/nfs/killed"), status=1).said
    assert "another job is writing this output now" in said
    one.run("kill -KILL $(cat number); rm -f number")
    assert not (data / "killed").exists()
    one.run(command_of("resume", "last"))
    assert digest(data / "killed") == wanted
    assert sorted(path.name for path in data.iterdir()) == ["in", "killed"]
    shutil.rmtree(data / "killed")


def test_a_file_that_is_replaced_on_the_server_fails_the_job_by_name(two: Two) -> None:
    data, one, _ = two
    run("teragen", "3m", data / "large", "--no-sync")
    job = one.begin(command_of("teravalidate", "/tmp/nfs/large", "--split-size", "1M"))
    (part, *_) = sorted((data / "large").glob("part-*"))
    time.sleep(4)
    new = part.with_name("new")
    new.write_bytes(part.read_bytes()[:-100])
    new.rename(part)
    done = one.end(job)
    assert done.status == 1
    assert part.name in done.said
    assert re.search("it changed|became shorter|replaced it", done.said)
    shutil.rmtree(data / "large")


def test_where_all_have_one_owner_a_user_sweeps_what_is_his_alone(
    two: Two, wanted: dict[str, str]
) -> None:
    data, one, other = two  # two users: each has a home of his own
    squashed = data.with_name(SQUASHED)
    runs = ("--spill-dir", "/tmp/squashed")
    one.run(f"{sort_to('/tmp/squashed/one', *runs)} > said 2>&1 & echo $! > number")
    left = wait_for(squashed, ".gristmill-spill-*/run-*").parent
    one.run("kill -KILL $(cat number); rm -f number")
    assert left.stat().st_uid not in (0, squashed.stat().st_uid)
    other.run(sort_to("/tmp/squashed/two", *runs))
    assert digest(squashed / "two") == wanted
    assert left.is_dir()
    one.run(sort_to("/tmp/squashed/one", *runs))
    assert digest(squashed / "one") == wanted
    assert sorted(path.name for path in squashed.iterdir()) == ["one", "two"]
