"""Bad input, and disks and memory that do not suffice: one clear paragraph, exit code 1.

And nothing left: `leaves_nothing` looks after every test that beside the inputs, which the tests
themselves compare, there is nothing in the folder, hidden or not.
"""

import os
import random
import re
import resource
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Mount
from .harness import (
    content,
    end,
    failure,
    is_whole,
    names,
    parts,
    run,
    start,
    wait_for_job,
    without_privileges,
)


@pytest.fixture(autouse=True)
def leaves_nothing(tmp_path: Path) -> Iterator[None]:
    """What a test puts below `inputs` stays as it is; beside it there is nothing in the end."""
    (tmp_path / "inputs").mkdir()
    yield
    assert set(names(tmp_path)) <= {"inputs", "disk"}


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """Where a test puts its inputs."""
    return tmp_path / "inputs"


# --- inputs ---


@pytest.mark.parametrize("command", ["terasort", "teravalidate"])
def test_a_length_that_is_no_multiple_of_100(command: str, inputs: Path, tmp_path: Path) -> None:
    (inputs / "a").write_bytes(bytes(250))
    arguments = [command, inputs, tmp_path / "out"][: 3 if command == "terasort" else 2]
    says = failure(*arguments)
    assert "250 bytes is not a multiple of" in says
    assert "50 bytes are left at offset 200" in says
    assert str(inputs / "a") in says


@pytest.mark.parametrize("command", ["terasort", "teravalidate"])
def test_no_such_input(command: str, inputs: Path, tmp_path: Path) -> None:
    arguments = [command, inputs / "a", tmp_path / "out"][: 3 if command == "terasort" else 2]
    assert re.search(r"no such file or directory \(file .*/inputs/a\)", failure(*arguments))


def test_standard_input_where_files_are_read(inputs: Path) -> None:
    says = failure("terasort", "-", "out", status=2, cwd=inputs)
    assert "terasort reads files, not standard input (-). What to do: save it to a" in says
    (inputs / "-").write_text("a")
    run("wordcount", "./-", "out", cwd=inputs)


_COUNTS = ["grep", "--counts", "a", "-", "-o", "out"]


@pytest.mark.parametrize("words", [["wordcount", "no", "out"], [*_COUNTS[:3], "no", "-o", "out"]])
def test_a_missing_input_is_told_with_what_to_do(words: list[str], tmp_path: Path) -> None:
    says = failure(*words, cwd=tmp_path)
    assert says.endswith("(file no). What to do: check the name.\n")


def test_an_input_that_may_not_be_read(inputs: Path, tmp_path: Path) -> None:
    (inputs / "a").write_bytes(bytes(200))
    (inputs / "a").chmod(0)
    for command in (["terasort", inputs, tmp_path / "out"], ["teravalidate", inputs]):
        says = failure(*command, preexec=without_privileges)
        assert "permission denied" in says
        assert str(inputs / "a") in says


def test_a_directory_in_the_input(inputs: Path, tmp_path: Path) -> None:
    (inputs / "a").mkdir()
    says = failure("terasort", inputs, tmp_path / "out")
    assert re.search(r"a directory inside an input directory \(file .*/inputs/a\)", says)


@pytest.mark.parametrize("command", ["terasort", "teravalidate"])
def test_a_pipe_as_input(command: str, inputs: Path, tmp_path: Path) -> None:
    os.mkfifo(inputs / "a")
    for name in (inputs / "a", inputs):
        arguments = [command, name, tmp_path / "out"][: 3 if command == "terasort" else 2]
        assert "not a regular file" in failure(*arguments)


def test_a_directory_without_files(inputs: Path) -> None:
    assert "no part files" in failure("teravalidate", inputs)


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    says = failure("terasort", os.fsdecode(b"in\xff"), tmp_path / "out")
    assert r"no such file or directory (file in\xff)" in says


# --- outputs ---


def test_an_output_that_exists(data: Path, inputs: Path) -> None:
    out = inputs / "out"
    run("terasort", data, out, "--partitions", "2")
    before = content(out)
    for again in (["terasort", data], ["teragen", "10"]):
        says = failure(*again, out)
        assert "the output exists" in says
        assert "--overwrite" in says
    assert content(out) == before
    assert names(inputs) == ["out"]


def test_an_output_that_is_a_file(data: Path, inputs: Path) -> None:
    (inputs / "out").write_text("mine")
    for overwrite in ([], ["--overwrite"]):
        assert "a file of this name" in failure("terasort", data, inputs / "out", *overwrite)
    assert (inputs / "out").read_text() == "mine"


def test_an_output_file_whose_name_ends_with_a_slash(data: Path, inputs: Path) -> None:
    for command in (("sort",), ("distinct",), ("group", "--by", "1"), ("shuf",)):
        says = failure(*command, data, "-o", f"{inputs}/new/", status=2)
        assert "it ends with a slash, and the output is a file" in says
    assert names(inputs) == []


def test_an_output_that_holds_what_is_no_output(data: Path, inputs: Path) -> None:
    (inputs / "thesis.tex").write_text("mine")
    says = failure("terasort", data, inputs, "--overwrite")
    assert "thesis.tex" in says
    assert (inputs / "thesis.tex").read_text() == "mine"


@pytest.mark.parametrize("words", [("wordcount",), ("sort",), ("sort", "-o")])
def test_an_output_without_parent(inputs: Path, words: tuple[str, ...]) -> None:
    """The directories above it are made, and go if the job fails."""
    (inputs / "a").write_text("b\na\n")
    out, command, more = inputs / "no/such/out", words[0], words[1:]
    if command == "sort":
        more = more or ("--parts", 2, "-o")
    failure(command, inputs / "missing", *more, out)
    assert not (inputs / "no").exists()
    run(command, inputs / "a", *more, out)
    assert out.exists()


def test_a_file_above_an_output_is_named(inputs: Path) -> None:
    (inputs / "a").write_text("b\na\n")
    for command in ("wordcount", "teragen"):
        given = "1k" if command == "teragen" else inputs / "a"
        says = failure(command, given, inputs / "a/b/out")
        assert f"cannot write the output: {inputs}/a is a file" in says


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_input_and_output_the_same(overwrite: list[str], inputs: Path) -> None:
    run("teragen", "1k", inputs / "a")
    before = content(inputs / "a")
    link = inputs / "link"
    link.symlink_to("a")
    for given, output in [
        (inputs / "a", inputs / "a"),
        (inputs / "a/part-m-00000", inputs / "a"),
        (link, inputs / "a"),
        (inputs / "a", inputs),
        (inputs / "a", inputs / "a/../a"),
        (inputs / "a", inputs / "a/out"),
    ]:
        says = failure("terasort", given, output, *overwrite, status=2)
        assert "the output is the same as the input, or one holds the other" in says
    assert content(inputs / "a") == before
    assert names(inputs) == ["a", "link"]


# --- memory ---


def test_the_memory_that_is_named_suffices_and_less_does_not(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sort = ["terasort", data, out, "--workers", "2", "--memory"]
    says = failure(*sort, "1M")
    assert "a memory budget of 1.00 MB is too small" in says
    named = re.search(r"give --memory (\d+)M or more", says)
    assert named is not None
    megabytes = int(named[1])
    failure(*sort, f"{megabytes - 1}M")
    run(*sort, f"{megabytes}M")
    shutil.rmtree(out)


def test_fewer_workers_are_named_where_they_would_do(data: Path, tmp_path: Path) -> None:
    says = failure("terasort", data, tmp_path / "out", "--workers", "8", "--memory", "20M")
    assert "--workers 1" in says
    run("terasort", data, tmp_path / "out", "--workers", "1", "--memory", "20M")
    shutil.rmtree(tmp_path / "out")


# --- disks ---


def test_a_disk_that_is_too_small_is_refused_before_it_is_full(data: Path, mount: Mount) -> None:
    disk = mount("size=512k")
    for command in (["terasort", data], ["teragen", "10k"]):
        says = failure(*command, disk / "out")
        assert re.search(r"it needs 1\.00 MB and the file system has [\d.]+ \w+ free", says)
    assert names(disk) == []


def test_a_disk_that_becomes_full(data: Path, mount: Mount) -> None:
    disk = mount("size=64m,nr_inodes=8")  # room for bytes, not for names
    for command in (["terasort", data, disk / "out", "--partitions", "20"],):
        assert "no space left on device" in failure(*command)
    assert names(disk) == []


def test_a_file_that_may_not_become_so_large(data: Path, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    for command in (["terasort", data], ["teragen", "10k"]):
        assert "file too large" in failure(*command, tmp_path / "out", preexec=limit)


def test_a_read_only_disk(data: Path, mount: Mount, tmp_path: Path) -> None:
    disk = mount("size=16m")
    shutil.copytree(data, disk / "in")
    mount("remount,ro")
    for command in (["terasort", data], ["teragen", "10k"]):
        says = failure(*command, disk / "out")
        assert "read-only file system" in says
        assert str(disk) in says
    run("terasort", disk / "in", tmp_path / "out")  # as input it will do
    shutil.rmtree(tmp_path / "out")


def test_a_parent_that_may_not_be_written(data: Path, inputs: Path) -> None:
    inputs.chmod(0o555)
    says = failure("terasort", data, inputs / "out", preexec=without_privileges)
    assert "permission denied" in says
    assert str(inputs) in says
    inputs.chmod(0o755)
    assert names(inputs) == []


# --- input that changes ---


def test_input_that_shrinks_while_mapped(much_data: Path, inputs: Path, tmp_path: Path) -> None:
    """The job ends with an error, not with the SIGBUS that reading past the end of a mapping gives.

    It may also be over before, or have seen the shorter file from the start: then once more.
    """
    original, victim, out = parts(much_data)[0], inputs / "a", tmp_path / "out"
    length = original.stat().st_size // 2 // 100 * 100
    _copy_prefix(original, victim, length)
    for attempt in range(20):
        process = start("terasort", victim, out, "--no-sync")
        wait_for_job(out, process)
        time.sleep(random.uniform(0, 0.02 * (attempt + 1)))
        os.truncate(victim, length // 2)
        done = end(process)
        if done.status == 1:
            assert re.search(r"it became shorter|it changed while the job ran", done.stderr)
            assert re.search(r"\(file .*/inputs/a", done.stderr)
            assert not out.exists()
            return
        assert done.status == 0, done
        assert is_whole(out, len(parts(out)))
        shutil.rmtree(out)
        _copy_prefix(original, victim, length)
    pytest.fail("no attempt was quick enough to shorten the file under a job")


def _copy_prefix(original: Path, copy: Path, length: int) -> None:
    """Copy through the page cache, where the copy then is."""
    with original.open("rb") as source, copy.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
        target.truncate(length)
