"""Jobs over records that read standard input, pipes and FIFOs, as if they were files."""

import gzip
import os
import signal
import subprocess
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill

from .harness import GRISTMILL, clean_environment, end, failure, names, run, start
from .random_records import large_table

COMMANDS = [
    ["distinct", "--csv", "--key", "#1"],
    ["top", "7", "--csv", "--key", "#1"],
    ["group", "--csv", "--by", "#1", "--count"],
    ["sample", "-n", "5", "--csv"],
    ["shuf", "--csv"],
    ["distinct", "--count"],
    ["shuf"],
]
"""Commands with options."""


def piped(given: bytes, *arguments: str | Path, cwd: Path, status: int = 0) -> bytes:
    """What a job writes that has so much on standard input."""
    done = subprocess.run(
        [GRISTMILL, *map(str, arguments)],
        input=given,
        capture_output=True,
        cwd=cwd,
        env=clean_environment(),
        timeout=60,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert b"Traceback" not in done.stderr
    return done.stdout if status == 0 else done.stderr


def of_file(given: bytes, *arguments: str | Path, cwd: Path) -> bytes:
    """The same of a file."""
    (cwd / "given").write_bytes(given)
    done = subprocess.run(
        [GRISTMILL, *map(str, arguments), "given"],
        stdout=subprocess.PIPE,
        cwd=cwd,
        env=clean_environment(),
        timeout=60,
        check=True,
    )
    (cwd / "given").unlink()
    return done.stdout


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize(
    "given",
    [b"", b"id,w\n", b'id,w\n2,"a\nb"\n1,c\n2,d', b'\xef\xbb\xbf"id",w\r\n2,a\r\n1,\xff\r\n'],
)
def test_a_pipe_is_as_a_file(words: list[str], given: bytes, tmp_path: Path) -> None:
    wanted = of_file(given, *words, cwd=tmp_path)
    assert piped(given, *words, cwd=tmp_path) == wanted
    assert names(tmp_path) == []


def test_a_large_pipe_with_little_memory(tmp_path: Path) -> None:
    table = large_table()
    text = table + table[table.index(b"\n") + 1 :]
    wanted = of_file(text, "distinct", "--csv", "--key", "#2", cwd=tmp_path)
    words = ["distinct", "-", "--csv", "--key", "#2", "--memory", "60M", "--workers", "2"]
    assert piped(text, *words, "--runner", "processes", cwd=tmp_path) == wanted
    (tmp_path / "runs").mkdir()
    piped(text, *words, "-o", "out", "--spill-dir", "runs", cwd=tmp_path)
    assert (tmp_path / "out").read_bytes() == wanted
    assert names(tmp_path / "runs") == []


def test_a_compressed_pipe_is_decoded(tmp_path: Path) -> None:
    text = b"b\na\nb\n" * 1000
    found = piped(gzip.compress(text), "distinct", "--count", cwd=tmp_path)
    assert found == b"   2000 b\n   1000 a\n"


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from([b"a", b"b", b"\n", b'"', b",", b"\xff", b"\x1f\x8b", b"\r\n"])))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "file").write_bytes(b"".join(pieces))
    read, write = os.pipe()
    os.write(write, b"".join(pieces))
    os.close(write)
    gristmill.unique(folder / "file", output=folder / "of_file")
    gristmill.unique(f"/dev/fd/{read}", output=folder / "of_pipe")
    os.close(read)
    assert (folder / "of_file").read_bytes() == (folder / "of_pipe").read_bytes()


def test_pipes_stand_between_files(tmp_path: Path) -> None:
    fifo, more = tmp_path / "fifo", tmp_path / "more"
    os.mkfifo(fifo)
    more.write_text("id,w\n3,c\n3,d\n")
    writer = Thread(target=fifo.write_bytes, args=(b"id,w\n2,b\n3,b\n",))
    writer.start()
    words = ["distinct", "--csv", "--key", "id", "-", fifo, more]
    found = piped(b"id,w\n1,a\n2,a\n", *words, cwd=tmp_path)
    writer.join()
    assert found == b"id,w\n1,a\n2,a\n3,b\n"


def test_a_side_of_a_join_may_be_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "right").write_text("id,v\n1,x\n3,z\n")
    left = b"id,w\n1,a\n2,b\n"
    found = piped(left, "join", "--csv", "--by", "id", "-", "right", cwd=tmp_path)
    assert found == b"id,w,v\n1,a,x\n"
    found = piped(left, "join", "--csv", "--by", "id", "right", "-", cwd=tmp_path)
    assert found == b"id,v,w\n1,x,a\n"


def test_a_pipe_to_a_directory(tmp_path: Path) -> None:
    text = b"k 1\nl 2\nk 3\n"
    piped(text, "split", "-", "out", "--by", "1", cwd=tmp_path)
    assert names(tmp_path / "out") == ["_SUCCESS", "k.txt", "l.txt"]
    says = piped(text, "split", "-", "out", "--by", "1", cwd=tmp_path, status=1)
    assert b"the output exists" in says
    piped(text, "wordcount", "-", "words", "--parts", "1", cwd=tmp_path)
    assert (tmp_path / "words" / "part-r-00000").read_bytes().startswith(b"1\t1\n")


def test_an_output_that_exists_is_refused_before_the_pipe_is_read(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    read, write = os.pipe()  # which never ends
    done = subprocess.run(
        [GRISTMILL, "split", "-", "out", "--by", "1"],
        stdin=read,
        capture_output=True,
        cwd=tmp_path,
        env=clean_environment(),
        timeout=60,
        check=False,
    )
    os.close(write)
    os.close(read)
    assert done.returncode == 1
    assert b"the output exists" in done.stderr
    assert names(tmp_path) == ["out"]


def test_errors_name_the_pipe(tmp_path: Path) -> None:
    says = piped(b"a,b\n1,2\n3\n", "distinct", "--csv", cwd=tmp_path, status=1)
    assert b"(file standard input, row 3, line 3, offset 8)" in says
    says = piped(b"a,b\n1,2\n", "top", "1", "--csv", "--key", "c", cwd=tmp_path, status=2)
    assert b'there is no column "c" (file standard input' in says
    says = failure("join", "--csv", "--by", "id", "-", "-", status=2)
    assert "standard input is named twice, and can be read only once. What to do: save it" in says
    assert names(tmp_path) == []


def test_explain_reads_no_pipe(tmp_path: Path) -> None:
    said = run("explain", "distinct", "--csv", "--key", "id", "-", cwd=tmp_path).stdout
    assert "standard input, whose length is not known" in said
    assert "is saved to disk first" in said


def test_a_job_that_waits_for_a_pipe_can_be_cancelled(tmp_path: Path) -> None:
    fifo, runs = tmp_path / "fifo", tmp_path / "runs"
    os.mkfifo(fifo)
    runs.mkdir()
    process = start("distinct", fifo, "-o", tmp_path / "out", "--spill-dir", runs)
    while not names(runs):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert end(process).status == 130
    assert (names(tmp_path), names(runs)) == (["fifo", "runs"], [])


def test_a_killed_job_is_not_resumed_and_leaves_nothing_for_long(tmp_path: Path) -> None:
    fifo, runs = tmp_path / "fifo", tmp_path / "runs"
    os.mkfifo(fifo)
    runs.mkdir()
    words = ["distinct", fifo, "-o", tmp_path / "out", "--spill-dir", runs]
    process = start(*words, "--history")
    while not names(runs):
        assert process.poll() is None
    process.kill()
    process.communicate()
    assert len(names(runs)) == 1
    (tmp_path / "file").write_text("a\n")
    run("distinct", tmp_path / "file", "-o", tmp_path / "out", "--spill-dir", runs)
    assert names(runs) == []
