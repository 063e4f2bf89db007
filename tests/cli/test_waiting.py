"""A signal ends every wait: for the other side of a FIFO, for a reader, for a stopped terminal."""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from .harness import GRISTMILL, clean_environment, names, wait_until_asleep

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
AT_ONCE_S = 5.0


def begin(
    *arguments: str | Path, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """Start a command line that hears signals, also where our parent ignores them."""

    def hear() -> None:
        for number, _ in SIGNALS:
            signal.signal(number, signal.SIG_DFL)

    return subprocess.Popen(
        [GRISTMILL, *map(str, arguments)],
        env=clean_environment(TERM="xterm"),
        preexec_fn=hear,  # noqa: PLW1509
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
    )


def end_by(process: subprocess.Popen[bytes], signum: signal.Signals) -> int:
    """Send a signal to a process once it waits; returns its exit code."""
    wait_until_asleep(process)
    process.send_signal(signum)
    try:
        process.wait(AT_ONCE_S)
    finally:
        process.kill()
        process.communicate()
    return process.returncode


@pytest.mark.parametrize(("signum", "status"), SIGNALS)
@pytest.mark.parametrize("way", ["input", "check", "output", "second input"])
def test_a_fifo_that_nobody_opens(
    way: str, signum: signal.Signals, status: int, tmp_path: Path
) -> None:
    fifo, text = tmp_path / "fifo", tmp_path / "text"
    os.mkfifo(fifo)
    text.write_text("b\na\n")
    arguments: dict[str, list[str | Path]] = {
        "input": [fifo, "-o", tmp_path / "out"],
        "check": ["-c", fifo],
        "output": [text, "-o", fifo],
        "second input": [text, fifo, "-o", tmp_path / "out"],
    }
    assert end_by(begin("sort", *arguments[way]), signum) == status
    assert names(tmp_path) == ["fifo", "text"]


def test_fifos_that_are_opened_late_are_read_and_written(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    os.mkfifo(source)
    os.mkfifo(target)
    process = begin("sort", source, "-o", target)
    time.sleep(0.5)
    writing = threading.Thread(target=_write_late, args=(source,))
    writing.start()
    with target.open("rb") as reading:
        found = reading.read()
    writing.join()
    _, stderr = process.communicate(timeout=AT_ONCE_S)
    assert process.returncode == 0, stderr
    assert found == b"".join(b"%06d\n" % number for number in range(100_000))


def _write_late(source: Path) -> None:
    """Write lines in descending order, in two parts with a pause between."""
    with source.open("wb", buffering=0) as file:
        for first in (99_999, 49_999):
            lines = b"".join(b"%06d\n" % number for number in range(first, first - 50_000, -1))
            file.write(lines)
            time.sleep(0.2)


def test_a_terminal_that_nobody_reads(tmp_path: Path) -> None:
    """As after Ctrl-S: neither records nor the bar of progress can be written."""
    text = tmp_path / "text"
    text.write_text("a line of text\n" * 200_000)
    for stream in ("stdout", "stderr"):
        ours, theirs = os.openpty()
        while True:  # until it is full
            os.set_blocking(theirs, False)
            try:
                os.write(theirs, b"x" * 512)
            except BlockingIOError:
                break
        os.set_blocking(theirs, True)
        waits = tmp_path / "fifo"
        waits.unlink(missing_ok=True)
        os.mkfifo(waits)
        source = text if stream == "stdout" else waits
        process = (
            begin("sort", source, stdout=theirs)
            if stream == "stdout"
            else begin("sort", source, stderr=theirs)
        )
        os.close(theirs)
        assert end_by(process, signal.SIGTERM) == 143
        os.close(ours)


def test_a_full_pipe_does_not_keep_a_report_from_its_end(tmp_path: Path) -> None:
    """The job is over, its report has no reader: a signal ends the wait, the exit code stays."""
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    try:
        while True:
            os.write(theirs, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(theirs, True)
    process = begin("teragen", "1k", tmp_path / "out", stdout=theirs)
    os.close(theirs)
    assert end_by(process, signal.SIGTERM) == 0
    os.close(ours)


@pytest.mark.parametrize("made", ["gm.kv('fifo')", "gm.text('fifo')"])
def test_a_job_waits_for_a_fifo_until_a_signal(made: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    made = made.replace("fifo", str(tmp_path / "fifo"))
    job = f"gm.Job({made}, map=lambda r: [(1, 1)], reduce=gm.sum(), output=gm.tsv('out'))"
    (tmp_path / "job.py").write_text(f"import gristmill as gm\njob = {job}\n")
    assert end_by(begin("run", tmp_path / "job.py"), signal.SIGTERM) == 143


def test_a_signal_ends_planning(tmp_path: Path) -> None:
    """Opening an input is the format's own code, which may wait for anything."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "job.py").write_text(
        "import gristmill as gm\n"
        "from gristmill.mapreduce.formats.items import Items\n"
        "class Slow(Items):\n"
        "    def plan(self, *sizes):\n"
        f"        open({str(tmp_path / 'fifo')!r})\n"
        "job = gm.Job(Slow((1, 2)), map=lambda r: [(1, 1)], reduce=gm.sum(),"
        " output=gm.tsv('out'))\n"
    )
    assert end_by(begin("run", tmp_path / "job.py"), signal.SIGTERM) == 143
