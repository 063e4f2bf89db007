"""`gristmill hadoop fs -cp` and `-mv` between disks, S3 and HDFS, as Hadoop's shell means them."""

import random
import subprocess
from pathlib import Path

import pytest

from .harness import GRISTMILL, clean_environment
from .hdfs_server import is_there, nothing_staged
from .s3_server import Bucket

#: More than one request reads, and one part has.
MUCH = random.Random(7).randbytes(11_000_000)


def fs(*words: str, status: int = 0) -> str:
    """Run a command of the shell; returns what it said on stderr."""
    done = subprocess.run(
        [GRISTMILL, "hadoop", "fs", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env=clean_environment(),
    )
    assert done.returncode == status, f"{words}: {done.stderr}"
    return done.stderr


def content(location: str) -> dict[str, bytes]:
    """The files below a location, or the one that it is."""
    got = Path("got")
    fs("-get", location, str(got))
    found = {"": got.read_bytes()} if got.is_file() else {}
    if not found:
        files = [path for path in got.rglob("*") if path.is_file()]
        found = {str(path.relative_to(got)): path.read_bytes() for path in files}
    subprocess.run(["rm", "-r", str(got)], check=True)
    return found


@pytest.fixture
def places(bucket: Bucket, there: str, tmp_path: Path) -> list[str]:
    """A folder on the disk, one in S3 and one in HDFS, each with the same files."""
    folder = tmp_path / "disk"
    (folder / "in" / "deep").mkdir(parents=True)
    (folder / "in" / "much").write_bytes(MUCH)
    (folder / "in" / "deep" / "little").write_text("x")
    (folder / "in" / "empty").touch()
    fs("-mkdir", "-p", there)
    for place in (bucket.url("top"), there):
        fs("-put", str(folder / "in"), f"{place}/in")
    return [str(folder), bucket.url("top"), there]


def test_copies_between_places(places: list[str]) -> None:
    wanted = {"much": MUCH, "deep/little": b"x", "empty": b""}
    for number, source in enumerate(places):
        for target in places:
            fs("-cp", f"{source}/in", f"{target}/from-{number}")
            assert content(f"{target}/from-{number}") == wanted
            said = fs("-cp", f"{source}/in/much", f"{target}/from-{number}/much", status=1)
            assert said.endswith("/much': File exists\n")
            fs("-cp", "-f", f"{source}/in/empty", f"{target}/from-{number}/much")
            assert content(f"{target}/from-{number}/much") == {"": b""}
    for place in places:
        said = fs("-cp", f"{place}/in", f"{place}/in/deep/again", status=1)
        assert "is a subdirectory of itself" in said
        assert "No such file" in fs("-cp", f"{place}/nothing", f"{place}/b", status=1)
        several = (f"{place}/in/much", f"{place}/in/empty")
        assert "No such file" in fs("-cp", *several, f"{place}/c", status=1)
        assert "directory" in fs("-cp", *several, f"{place}/in/empty", status=1)
        assert content(f"{place}/in") == wanted
    assert nothing_staged(places[2], f"{places[2]}/from-0")
    assert not list(Path(places[0]).rglob("*_COPYING_"))


def test_moves_within_a_place(places: list[str]) -> None:
    for place in places:
        fs("-mv", f"{place}/in/much", f"{place}/in/deep")
        fs("-mv", f"{place}/in", f"{place}/moved")
        wanted = {"deep/much": MUCH, "deep/little": b"x", "empty": b""}
        assert content(f"{place}/moved") == wanted
        fs("-test", "-e", f"{place}/in", status=1)
        said = fs("-mv", f"{place}/moved/empty", f"{place}/moved/deep/little", status=1)
        assert said.endswith("/little': File exists\n")
        assert "No such file" in fs("-mv", f"{place}/nothing", f"{place}/b", status=1)
        assert content(f"{place}/moved") == wanted
    for source in places:
        for target in places:
            if source != target:
                said = fs("-mv", f"{source}/moved", f"{target}/other", status=1)
                assert "Does not match target filesystem" in said
    assert is_there(f"{places[2]}/moved")
