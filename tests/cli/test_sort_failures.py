"""`gristmill sort` where it cannot finish: one paragraph and exit code 1, or an end at once.

Whatever ends it: the old output is as it was, or the new one is there whole; nothing else is left.
After a kill -9 something may be, until the next sort to the same output.
"""

import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .conftest import Mount
from .harness import names, wait_until_asleep, without_privileges
from .sorting import (
    Sorted,
    begin,
    clear,
    end,
    endless,
    gnu_sort,
    leftovers,
    noise,
    nothing_of_ours_stays,
    refusal,
    same,
    shell,
    sort,
    try_sort,
)

AT_ONCE_S = 5.0


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """However a test's jobs end: in its folders and in TMPDIR nothing of ours stays."""
    with nothing_of_ours_stays(tmp_path, monkeypatch):
        yield


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """40 MB of lines: with 20M of memory they are spilled."""
    file = tmp_path_factory.mktemp("text") / "text"
    file.write_bytes(noise(40_000_000, b"ab\0\xff", 0.02, seed=1))
    yield file
    file.unlink()


@pytest.fixture(scope="module")
def text_sorted(text: Path) -> Iterator[Path]:
    """The same in order."""
    file = text.with_name("sorted")
    gnu_sort("-o", file, text)
    yield file
    file.unlink()


# --- wrong command lines ---


@pytest.mark.parametrize(
    "shape",
    [
        *("", "line", "LINES", "fixed", "fixed:", "fixed:0", "fixed:-1", "fixed:x", "fixed:1.5"),
        *("fixed:10:", "fixed:10:0", "fixed:10:11", "fixed:10:x", "fixed:10:5:1", "lines:3"),
        *("fixed:99999999999999999999", "fixed:18446744073709551615", "fixed: 10", "fixed:10k"),
    ],
)
def test_a_wrong_format(shape: str) -> None:
    says = refusal("--format", shape, status=2, stdin=b"0123456789")
    assert "format" in says
    assert names(Path()) == ["temporary"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--wings"],
        ["-k", "2.0"],
        ["--memory", "much"],
        ["--memory"],
        ["--workers", "0"],
        ["-o"],
        ["--format"],
        ["-o", "out", "-o"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line(arguments: list[str]) -> None:
    Path("out").write_text("old")
    refusal(*arguments, status=2, stdin=b"b\na\n")
    assert Path("out").read_text() == "old"


def test_help() -> None:
    shown = sort("--help").decode()
    options = "--format -r --reverse -u --unique -s --stable -c --check --memory --workers"
    for option in [*options.split(), "--spill-dir", "-o", "--output", "--no-sync", "--json"]:
        assert re.search(rf"(?<![\w-]){option}\b", shown), option


# --- inputs ---


def test_no_such_input() -> None:
    Path("out").write_text("old")
    for arguments in (["no/such"], ["out", "no/such", "-o", "out"], ["-c", "no/such"]):
        says = refusal(*arguments, status=2 if "-c" in arguments else 1)
        assert "no/such" in says
        assert "no such file" in says.lower()
    assert Path("out").read_text() == "old"
    assert names(Path()) == ["out", "temporary"]


def test_a_later_input_that_may_not_be_read(text: Path) -> None:
    """The old output is as it was, also where much was sorted before."""
    Path("secret").write_text("mine\n")
    Path("secret").chmod(0)
    Path("out").write_text("old")
    command = ["--memory", "20M", "-o", "out", text, "secret"]
    says = refusal(*command, preexec=without_privileges)
    assert "permission denied" in says.lower()
    assert "secret" in says
    says = refusal("-c", "secret", status=2, preexec=without_privileges)
    assert "secret" in says
    assert Path("out").read_text() == "old"
    assert names(Path()) == ["out", "secret", "temporary"]


@pytest.mark.parametrize("size", [1, 250])
def test_a_length_that_is_no_multiple(size: int) -> None:
    Path("whole").write_bytes(bytes(300))
    Path("cut.short").write_bytes(bytes(size))
    Path("out").write_text("old")
    for more in (["whole", "cut.short"], ["cut.short", "whole", "-s"], ["-c", "cut.short"]):
        output = [] if "-c" in more else ["-o", "out"]
        status = 2 if "-c" in more else 1
        says = refusal("--format", "fixed:100", *output, *more, status=status)
        assert "cut.short" in says
        assert str(size // 100 * 100) in re.findall(r"\d+", says)
    assert Path("out").read_text() == "old"


def test_a_pipe_whose_length_is_no_multiple() -> None:
    for more in ([], ["-r", "-"], ["-c", "-"]):
        status = 2 if "-c" in more else 1
        says = refusal("--format", "fixed:100", *more, status=status, stdin=bytes(250))
        assert "200" in re.findall(r"\d+", says)


def test_two_files_that_are_a_multiple_only_together() -> None:
    Path("a").write_bytes(bytes(50))
    Path("b").write_bytes(bytes(50))
    assert "50" in refusal("--format", "fixed:100", "a", "b")


def test_a_closed_standard_input() -> None:
    done = shell('exec "$gristmill" sort <&-', Path())
    assert (done.status, done.stdout) == (1, b"")
    assert done.stderr.count("\n") == 1


def test_a_directory_as_standard_input() -> None:
    done = shell('exec "$gristmill" sort < .', Path())
    assert (done.status, done.stdout) == (1, b"")
    assert "directory" in done.stderr.lower()


# --- outputs ---


def test_a_directory_as_output() -> None:
    folder = clear(Path("folder"))
    (folder / "a").write_text("a\n")
    for output in ("folder", "folder/", "."):
        done = try_sort("-o", output, stdin=b"b\na\n")
        assert done.status in (1, 2)
        assert f"(file {output}" in done.stderr
    assert names(folder) == ["a"]


def test_an_output_without_parent() -> None:
    """GNU sort fails; here the directories are made, and go again if the job fails."""
    assert "missing" in refusal("missing", "-o", "no/such/out")
    assert not Path("no").exists()
    sort("-o", "no/such/out", stdin=b"b\na\n")
    assert Path("no/such/out").read_bytes() == b"a\nb\n"


def test_a_parent_that_may_not_be_written() -> None:
    """A file that is there, and may be written, is written in place: test_sort_in_place.py."""
    folder = clear(Path("folder"))
    (folder / "out").write_text("old")
    folder.chmod(0o555)
    says = refusal("-o", "folder/new", stdin=b"a\n", preexec=without_privileges)
    folder.chmod(0o755)
    assert "permission denied" in says.lower()
    assert "What to do: write to a directory in which you may make files" in says
    assert (folder / "out").read_text() == "old"
    assert names(folder) == ["out"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_standard_output(text: Path) -> None:
    Path("few").write_text("b\na\n")
    for memory, name in (("20M", text), ("512M", text), ("512M", "few")):
        done = shell(f'"$gristmill" sort --memory {memory} {name} > /dev/full', Path())
        assert done.status == 1
        assert "no space left on device" in done.stderr.lower()
        assert done.stderr.count("\n") == 1


def test_a_closed_standard_output(text: Path) -> None:
    """What cannot be written is not taken for written, nor does it land in another file."""
    Path("in").write_text("b\na\n")
    for name in ("in", str(text)):
        done = shell(f'exec "$gristmill" sort --memory 20M {name} >&-', Path())
        assert done.status == 1, done
        assert done.stderr.count("\n") == 1
    assert names(Path()) == ["in", "temporary"]
    assert Path("in").read_text() == "b\na\n"


# --- memory ---


@pytest.mark.parametrize("workers", ["1", "2", "8"])
def test_the_memory_that_is_named_suffices(
    workers: str, text: Path, text_sorted: Path, tmp_path: Path
) -> None:
    command = [text, "--no-sync", "-o", tmp_path / "out", "--workers", workers, "--memory"]
    for little in ("1", "1M", "7M"):
        says = refusal(*command, little)
        named = re.search(r"--memory (\w+)", says)
        assert named is not None, says
        sort(*command, named[1])
        same(tmp_path / "out", text_sorted)


@pytest.mark.parametrize("shape", ["lines", "fixed:1", "fixed:2:1", "fixed:1000000"])
@pytest.mark.parametrize("workers", ["1", "3"])
def test_little_memory_suffices_for_little(shape: str, workers: str) -> None:
    """However small the records are, and however many workers there might be."""
    little = ["--format", shape, "--memory", "22M", "--workers", workers]
    for content in (b"", b"\n" * 1_000_000):
        Path("in").write_bytes(content)
        same(sort(*little, "in"), content)
        same(sort(*little, stdin=content), content)


def test_a_line_that_is_longer_than_memory(tmp_path: Path) -> None:
    """It is sorted all the same, or the memory that is named suffices."""
    long, out = tmp_path / "long", tmp_path / "out"
    long.write_bytes(b"b\n" + b"a" * 45_000_000 + b"\na\n")
    command = [long, "--no-sync", "-o", out, "--memory"]
    done = try_sort(*command, "20M")
    if done.status != 0:
        says = refusal(*command, "20M")
        named = re.search(r"--memory (\w+)", says)
        assert named is not None, says
        sort(*command, named[1])
    same(out, gnu_sort(long))


def test_a_pipe_with_a_line_that_is_longer_than_memory() -> None:
    stdin = b"b\n" + b"a" * 45_000_000 + b"\na\n"
    done = try_sort("--memory", "20M", stdin=stdin)
    if done.status == 0:
        same(done.stdout, gnu_sort(stdin=stdin))
    else:
        assert "--memory" in refusal("--memory", "20M", stdin=stdin)


# --- disks ---


def test_a_spill_directory_that_is_none(text: Path) -> None:
    Path("file").write_text("mine")
    Path("few").write_text("b\na\n")
    for spill, source in (("no/such", text), ("file", text), ("no/such", "few"), ("file", "few")):
        done = try_sort("--memory", "20M", "--spill-dir", spill, source)
        assert done.status in (1, 2)
        assert spill in done.stderr
    assert names(Path()) == ["few", "file", "temporary"]


def test_a_spill_directory_that_is_full(text: Path, mount: Mount) -> None:
    disk = mount("size=4m")
    Path("out").write_text("old")
    spilling = ["--memory", "20M", "--spill-dir", disk]
    for command in (["-o", "out", text], [text]):
        assert re.search(r"\bfree\b|no space left", refusal(*spilling, *command).lower())
    assert re.search(r"\bfree\b|no space left", refusal(*spilling, stdin=text.read_bytes()).lower())
    assert Path("out").read_text() == "old"
    assert names(disk) == []


def test_a_spill_directory_with_room_after_a_full_one(
    text: Path, text_sorted: Path, mount: Mount
) -> None:
    disk, room = mount("size=16m"), clear(Path("room"))
    spilling = ["--memory", "20M", "--spill-dir", disk, "--spill-dir", room]
    same(sort(*spilling, text), text_sorted)
    same(sort(*spilling, stdin=text.read_bytes()), text_sorted)
    assert names(disk) == names(room) == []


def test_an_output_disk_that_is_full(text: Path, mount: Mount) -> None:
    disk = mount("size=16m")
    (disk / "out").write_text("old")
    for memory in ("20M", "512M"):
        spilling = ["--memory", memory, "--spill-dir", "temporary", "-o", disk / "out"]
        for given in ([text], []):
            stdin = b"" if given else text.read_bytes()
            says = refusal(*spilling, *given, stdin=stdin)
            assert re.search(r"\bfree\b|no space left", says.lower())
    assert (disk / "out").read_text() == "old"
    assert names(disk) == ["out"]


# --- ends from outside ---


def wait_for(
    begun: Callable[[], bool], process: subprocess.Popen[bytes], timeout_s: float = 20.0
) -> None:
    """Wait until it can be seen that a job has begun."""
    deadline_s = time.monotonic() + timeout_s
    while not begun():
        assert process.poll() is None, "it is over"
        assert time.monotonic() < deadline_s, "it has not begun"
        time.sleep(0.002)


@pytest.mark.parametrize(
    ("signum", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
@pytest.mark.parametrize("output", ["out", "-"])
def test_a_signal_while_it_spills(
    signum: signal.Signals, status: int, output: str, text: Path
) -> None:
    spill = clear(Path("spill"))
    Path("out").write_text("old")
    command = ["--memory", "20M", "--spill-dir", spill, "-o", output, *[text] * 6]
    with begin(*command) as process:
        wait_for(lambda: any(spill.iterdir()), process)
        time.sleep(random.uniform(0, 0.3))
        took_s, done = signalled(process, signum)
    assert done.status == status
    assert done.stderr.count("\n") == 1
    assert took_s < AT_ONCE_S
    assert Path("out").read_text() == "old"
    assert names(spill) == []


def signalled(process: subprocess.Popen[bytes], signum: signal.Signals) -> tuple[float, Sorted]:
    """Send a signal; returns how long the end took, and how it was."""
    began_s = time.monotonic()
    process.send_signal(signum)
    done = end(process)
    return time.monotonic() - began_s, done


@pytest.mark.parametrize("command", [[], ["-"], ["-o", "out"], ["-c"], ["--memory", "20M"]])
def test_ctrl_c_while_it_waits_for_input(command: list[str]) -> None:
    """A pipe to which nobody writes, or somebody who has paused."""
    Path("out").write_text("old")
    for beginning in (b"", b"a\nb\n"):
        reading, writing = os.pipe()
        try:
            os.write(writing, beginning)
            with begin(*command, stdin=reading) as process:
                wait_until_asleep(process, 0.4)
                took_s, done = signalled(process, signal.SIGINT)
        finally:
            os.close(reading)
            os.close(writing)
        assert done.status == 130
        assert took_s < AT_ONCE_S
    assert Path("out").read_text() == "old"


@pytest.mark.parametrize("output", ["out", "-"])
def test_ctrl_c_while_input_does_not_end(output: str) -> None:
    spill = clear(Path("spill"))
    Path("out").write_text("old")
    command = ["--memory", "20M", "--spill-dir", spill, "-o", output]
    with endless() as stdin, begin(*command, stdin=stdin) as process:
        time.sleep(0.8)
        took_s, done = signalled(process, signal.SIGINT)
    assert done.status == 130
    assert took_s < AT_ONCE_S
    assert Path("out").read_text() == "old"
    assert names(spill) == []


def test_ctrl_c_while_nobody_reads(text: Path) -> None:
    """Stdout is a pipe that is full: the job waits in a write."""
    reading, writing = os.pipe()
    try:
        with begin("--memory", "32M", text, stdout=writing) as process:
            os.read(reading, 1)
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            done = end(process, timeout_s=5)
    finally:
        os.close(reading)
        os.close(writing)
    assert done.status == 130


def test_kill_9_at_any_moment(text: Path, text_sorted: Path) -> None:
    """The output is the old one or the new one; the next sort to it clears the dead one away."""
    spill, out, killed = clear(Path("spill")), Path("out"), 0
    for attempt in range(5):
        where = ["--spill-dir", spill] if attempt % 2 else []
        command = ["--memory", "20M", *where, "--no-sync", "-o", out, text]
        out.write_text("old")
        with begin(*command) as process:
            time.sleep(random.uniform(0.1, 0.4))
            process.kill()
            killed += end(process).status == -signal.SIGKILL
        if out.read_bytes() != b"old":
            same(out, text_sorted)
        sort(*command)
        same(out, text_sorted)
        assert leftovers(Path()) == []
        assert names(spill) == []
    assert killed >= 2, "the jobs were over before they could be killed"


def test_a_small_sort_clears_a_large_one_away(text: Path) -> None:
    """Also what it would have no need of itself: runs."""
    out = Path("out")
    with begin("--memory", "20M", "-o", out, *[text] * 6) as process:
        wait_for(lambda: leftovers(Path()) != [], process)
        time.sleep(0.3)
        process.kill()
        end(process)
    assert leftovers(Path()) != []
    sort("-o", out, stdin=b"b\na\n")
    assert out.read_bytes() == b"a\nb\n"
    assert names(Path()) == ["out", "temporary"]


def test_kill_9_while_it_reads_a_pipe(text: Path, text_sorted: Path) -> None:
    spill, out = clear(Path("spill")), Path("out")
    command = ["--memory", "20M", "--spill-dir", spill, "--no-sync", "-o", out]
    with endless() as stdin, begin(*command, stdin=stdin) as process:
        time.sleep(0.6)
        process.kill()
        end(process)
    assert not out.exists()
    sort(*command, text)
    same(out, text_sorted)
    assert names(spill) == []
    assert names(Path()) == ["out", "spill", "temporary"]


def test_two_sorts_to_one_output(text: Path, text_sorted: Path) -> None:
    """The second is refused, or both do their work: never is there anything but a whole output."""
    out, few = Path("out"), b"b\na\n"
    out.write_text("old")
    with begin("--memory", "20M", "--no-sync", "-o", out, *[text] * 2) as first:
        time.sleep(0.4)
        second = try_sort("-o", out, stdin=few)
        assert second.status in (0, 1), second.stderr
        if second.status == 1:
            assert "another job is writing this output now" in second.stderr
        assert end(first).status == 0
    same(out, gnu_sort("-m", text_sorted, text_sorted))
