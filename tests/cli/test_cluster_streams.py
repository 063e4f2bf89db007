"""Standard input and output of jobs on a cluster: bytes of the machine that starts the job."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from .harness import GRISTMILL, clean_environment, content, names, run

#: More than a pipe holds.
LINES = b"".join(b"%07d %s\n" % (n * 7919 % 20_000, b"x" * (n % 50)) for n in range(20_000))
SORTED = b"".join(sorted(LINES.splitlines(keepends=True)))

JOB = """
import gristmill as gm


def pairs(line):
    yield line[-1], 1


job = gm.Job(gm.text("in.txt"), map=pairs, reduce=gm.sum(), output=gm.tsv("counts"), parts=1)
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which jobs are started; there is nothing else in it."""
    folder = tmp_path / "desk"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def piped(*words: str | Path, given: bytes = b"", status: int = 0) -> bytes:
    """What a command line writes that is given this."""
    done = subprocess.run(
        [GRISTMILL, *map(str, words)],
        input=given,
        capture_output=True,
        env=clean_environment(),
        timeout=60,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done.stderr if status else done.stdout


@pytest.mark.parametrize("options", [(), ("-o", "-"), ("-o", "/dev/stdout", "--memory", "64M")])
def test_a_sort_writes_to_standard_output(
    options: tuple[str, ...], on_ray: tuple[str, ...], desk: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_bytes(LINES)
    os.chdir(desk)  # the fixture of the cluster has another one
    assert piped("sort", tmp_path / "in.txt", *options, *on_ray) == SORTED
    assert names(desk) == []


def test_a_reader_that_leaves_ends_the_job_quietly(
    on_ray: tuple[str, ...], desk: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_bytes(LINES)
    os.chdir(desk)
    words = [GRISTMILL, "sort", str(tmp_path / "in.txt"), *on_ray]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment()
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(10) == SORTED[:10]
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 128 + signal.SIGPIPE
    assert names(desk) == []


def test_a_sort_reads_standard_input(on_ray: tuple[str, ...], desk: Path) -> None:
    os.chdir(desk)
    piped("sort", "-", "-o", "out", *on_ray, given=LINES)
    assert (desk / "out").read_bytes() == SORTED
    assert names(desk) == ["out"]


def test_a_file_as_standard_input_is_read_where_it_is(
    on_ray: tuple[str, ...], desk: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_bytes(LINES)
    os.chdir(desk)
    with (tmp_path / "in.txt").open("rb") as file:
        done = subprocess.run(
            [GRISTMILL, "sort", *on_ray],
            stdin=file,
            capture_output=True,
            env=clean_environment(),
            timeout=60,
            check=False,
        )
    assert done.stdout == SORTED, done.stderr
    assert names(desk) == []


def test_a_job_reads_standard_input(on_ray: tuple[str, ...], desk: Path) -> None:
    os.chdir(desk)
    (desk / "job.py").write_text(JOB)
    piped("run", "job.py", "--input", "-", *on_ray, given=b"one\ntwo\nthree\n")
    assert content(desk / "counts") == b"e\t2\no\t1\n"
    assert [name for name in names(desk) if name.startswith(".gristmill")] == []


@pytest.mark.parametrize("options", [(), ("-o", "out", "--collect")])
def test_input_that_no_node_would_see_is_refused(
    options: tuple[str, ...], on_ray: tuple[str, ...], desk: Path
) -> None:
    os.chdir(desk)
    said = piped("sort", *options, *on_ray, given=LINES, status=2)
    assert b"standard input is of this machine alone" in said
    assert b"save it to a file" in said
    assert names(desk) == []


def test_a_copy_goes_with_the_job_that_is_killed(on_ray: tuple[str, ...], desk: Path) -> None:
    os.chdir(desk)
    process = subprocess.Popen(
        [GRISTMILL, "sort", "-", "-o", "out", *on_ray],
        stdin=subprocess.PIPE,
        env=clean_environment(),
    )
    with process:
        assert process.stdin is not None
        process.stdin.write(LINES)
        process.stdin.flush()
        deadline_s = time.monotonic() + 60
        while not list(desk.glob(".gristmill-input-*/input")):
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        process.kill()
    while names(desk):
        assert time.monotonic() < deadline_s, names(desk)
        time.sleep(0.01)


def test_files_are_sorted_as_before(on_ray: tuple[str, ...], desk: Path) -> None:
    os.chdir(desk)
    (desk / "-").write_bytes(LINES)
    run("sort", "./-", "-o", "./out", *on_ray)
    assert (desk / "out").read_bytes() == SORTED


def test_distinct_puts_together_what_nodes_send(
    on_ray: tuple[str, ...], desk: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_bytes(LINES * 2)
    os.chdir(desk)
    wanted = b"".join(dict.fromkeys(LINES.splitlines(keepends=True)))
    assert piped("distinct", tmp_path / "in.txt", *on_ray) == wanted
    assert names(desk) == []
    (desk / "out").write_bytes(b"old")
    for more in ((), ("--collect",), ("--no-sync",)):
        piped("distinct", tmp_path / "in.txt", "-o", "out", *more, *on_ray)
        assert (desk / "out").read_bytes() == wanted
        assert names(desk) == ["out"]
    piped("distinct", "out", "-o", "out", "--count", *on_ray)
    assert (desk / "out").read_bytes()[:8] == b"      1 "
    said = piped("distinct", "out", "-o", "s3://bucket/out", *on_ray, status=2)
    assert b"one file cannot be put together in an object store" in said


@pytest.mark.parametrize("words", [("sort", "--key", "n:num:desc"), ("join", "--by", "n")])
def test_parquet_is_read_and_written_beside_the_output(
    words: tuple[str, ...], on_ray: tuple[str, ...], desk: Path, tmp_path: Path
) -> None:
    table = pa.table({"n": pa.array(range(5000)), "text": ["a,b", "", None, "c", "d"] * 1000})
    pq.write_table(table, tmp_path / "in.parquet")
    os.chdir(desk)
    inputs = [tmp_path / "in.parquet"] * (2 if words[0] == "join" else 1)
    run(words[0], *inputs, *words[1:], "-o", desk / "out.parquet", *on_ray)
    found = pq.read_table(desk / "out.parquet").sort_by("n").select(["n", "text"])
    if words[0] == "join":
        texts = [text or None for text in table.column("text").to_pylist()]
        table = table.set_column(1, "text", pa.array(texts))
    assert found == table
    assert names(desk) == ["out.parquet"]
