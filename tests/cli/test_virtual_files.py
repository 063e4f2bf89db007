"""Files of /sys, which have fewer bytes than they say: read to their end, or refused in words."""

import subprocess
from pathlib import Path

import pytest

from .harness import GRISTMILL, clean_environment

MTU = Path("/sys/class/net/lo/mtu")

pytestmark = pytest.mark.skipif(not MTU.exists(), reason="there is no /sys")


def ours(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [GRISTMILL, *map(str, words)],
        capture_output=True,
        cwd=cwd,
        env=clean_environment(),
        timeout=60,
        check=False,
    )


def test_sort_and_grep_read_a_file_that_says_it_has_a_page(tmp_path: Path) -> None:
    assert MTU.stat().st_size > len(MTU.read_bytes())
    (tmp_path / "one").write_bytes(b"0 first\n")
    done = ours("sort", MTU, "one", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"0 first\n" + MTU.read_bytes())
    done = ours("sort", "-n", "-k1,1", MTU, "one", "-o", "out", cwd=tmp_path)
    assert (tmp_path / "out").read_bytes() == b"0 first\n" + MTU.read_bytes()
    assert ours("sort", "-c", MTU, cwd=tmp_path).returncode == 0
    done = ours("sort", "--csv", "--no-header", "-k1:num", MTU, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, MTU.read_bytes())
    assert ours("grep", "-c", "", MTU, cwd=tmp_path).stdout == b"1\n"


def test_wordcount_refuses_it_in_words(tmp_path: Path) -> None:
    done = ours("wordcount", MTU, "out", cwd=tmp_path)
    assert done.returncode == 1
    assert b"it says that it has 4096 bytes, and it has less, like the files of /sys" in done.stderr
    assert b"copy its bytes to a file first" in done.stderr


def test_streaming_reads_it(tmp_path: Path) -> None:
    job = ["-input", str(MTU), "-output", "out", "-mapper", "cat", "-numReduceTasks", "0"]
    assert ours("streaming", *job, cwd=tmp_path).returncode == 0
    assert (tmp_path / "out/part-00000").read_bytes().split() == MTU.read_bytes().split()


@pytest.mark.parametrize("size", [4096, 16384, 65536])
def test_a_real_file_of_a_page_is_one(size: int, tmp_path: Path) -> None:
    (tmp_path / "page").write_bytes(b"b\na\n" * (size // 4))
    done = ours("sort", "-u", "page", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"a\nb\n")
    assert ours("wordcount", "page", "out", cwd=tmp_path).returncode == 0
