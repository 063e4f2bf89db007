"""Scripts, `hadoop fs` and mrjob with HDFS: what programs written for Hadoop call."""

import subprocess
from pathlib import Path

import pytest
from tests.streaming.test_mrjob import prepared, ran

from .harness import GRISTMILL, clean_environment, failure, run
from .hdfs_server import Cluster, file, files, is_there, local, settings

WORDS = "the ox and the mill turn and turn\nthe wheel turns the stone\n" * 300


@pytest.fixture
def default(there: str, cluster: Cluster, tmp_path: Path) -> str:
    """An empty folder of the default file system."""
    settings(tmp_path / "conf", {"fs.defaultFS": f"hdfs://127.0.0.1:{cluster.port}"})
    return "hdfs:///" + there.rsplit("/", 1)[1]


def hadoop(*words: str | Path, status: int = 0) -> str:
    done = subprocess.run(
        [GRISTMILL, "hadoop", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env=clean_environment(),
    )
    assert done.returncode == status, (words, done.stderr)
    return done.stdout + done.stderr


def test_a_job_with_scripts(there: str) -> None:
    Path("in").mkdir()
    for name in ("a", "b", "_hidden"):
        Path("in", name).write_text(f"{name} {WORDS}")
    Path("count.sh").write_text("#!/bin/sh\nuniq -c\n")
    hadoop("fs", "-put", "in", f"{there}/in")
    hadoop("fs", "-put", "count.sh", f"{there}/scripts/count.sh")
    words = ["-mapper", "tr ' ' '\\n'", "-reducer", "count.sh", "-numReduceTasks", "2"]
    more = ["-D", "mapreduce.job.maps=5", "-files"]
    run("streaming", *more, "count.sh", *words, "-input", "in", "-output", "out")
    shipped = [*more, f"{there}/scripts/count.sh"]
    job = [*shipped, *words, "-input", f"{there}/in/*", "-output", f"{there}/out"]
    run("streaming", *job)
    assert files(f"{there}/out") == local(Path("out"))
    hadoop("jar", "hadoop-streaming.jar", *job[:-1], f"{there}/again")
    assert files(f"{there}/again") == local(Path("out"))
    assert "already exists" in failure("streaming", *job, status=5)


def test_hadoop_fs(default: str, there: str) -> None:
    Path("a.txt").write_text("a\n")
    hadoop("fs", "-mkdir", "-p", f"{default}/new/empty")
    assert is_there(f"{there}/new/empty")
    hadoop("fs", "-put", "a.txt", f"{default}/new")
    assert file(f"{there}/new/a.txt") == b"a\n"
    assert hadoop("fs", "-cat", f"{default}/new/*.txt") == "a\n"
    listed = hadoop("fs", "-ls", "-R", default).splitlines()
    names = [f"{default}/new", f"{default}/new/a.txt", f"{default}/new/empty"]
    assert [line.split()[-1] for line in listed] == names
    hadoop("fs", "-get", f"{default}/new", "got")
    assert Path("got/a.txt").read_text() == "a\n"
    assert "Is a directory" in hadoop("fs", "-rm", f"{default}/new", status=1)
    assert "Directory is not empty" in hadoop("fs", "-rmdir", f"{default}/new", status=1)
    hadoop("fs", "-rmdir", f"{default}/new/empty")
    assert not is_there(f"{there}/new/empty")
    assert is_there(f"{there}/new/a.txt")
    hadoop("fs", "-rm", "-r", f"{default}/new")
    assert not is_there(f"{there}/new")
    hadoop("fs", "-test", "-d", f"{default}/new", status=1)


def test_mrjob(default: str, there: str, tmp_path: Path) -> None:
    (tmp_path / "mrjob").mkdir()
    home = prepared(tmp_path / "mrjob")
    ours = ran(
        home, "mr_word_freq_count", "hadoop", "--output-dir", f"{default}/out", "--cat-output"
    )
    assert ours == ran(home, "mr_word_freq_count", "inline")
    assert ours
    kept = b"".join(files(f"{there}/out").values()).decode()
    assert sorted(kept.splitlines()) == ours
    assert not (home / "gristmill" / "hdfs").exists()
