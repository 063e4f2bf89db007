"""The progress bar: on a terminal, and only there."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gristmill.terminal import progress

from .harness import clean_environment

# The bar's first drawing is put forward, so that a small job has one.
PROGRAM = """
import sys
from gristmill.cli import main
from gristmill.terminal import progress
progress.FIRST_S = progress.EVERY_S = 0
sys.exit(main.main())
"""


def on_a_terminal(*arguments: str | Path) -> str:
    """What a command line shows on a terminal of 100 columns."""
    master, slave = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=slave,
        env=clean_environment(TERM="xterm", COLUMNS="100"),
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            shown += os.read(master, 4096)
        except OSError:  # EIO: the other side is closed
            break
    os.close(master)
    assert process.wait() == 0, shown
    return shown.decode()


def test_a_bar_on_a_terminal(much_data: Path, tmp_path: Path) -> None:
    shown = on_a_terminal("terasort", much_data, tmp_path / "out", "--no-sync")
    assert "map" in shown or "reduce" in shown  # a quick machine draws only one of them
    assert "MB" in shown
    assert "%" in shown


def test_no_bar_with_json(much_data: Path, tmp_path: Path) -> None:
    assert on_a_terminal("terasort", much_data, tmp_path / "out", "--no-sync", "--json") == ""


class Notebook(io.StringIO):
    """Stands in for the stderr of a notebook, which is told by the module of its class."""

    __module__ = "ipykernel.iostream"


@pytest.mark.parametrize(("stream", "asked"), [(Notebook(), False), (io.StringIO(), True)])
def test_a_bar_in_plain_text(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, asked: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "EVERY_S", 0)
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0)
    for quiet, anywhere in [(True, asked), (False, asked)]:
        with progress.progress_bar(quiet=quiet, first_s=0, anywhere=anywhere) as bar:
            bar.show("map", 500_000, 2_000_000)
            bar.show("reduce", 1_000_000, 0)
    lines = ["map       25 %  of 2.00 MB", "reduce   1.00 MB"]
    if asked:
        assert stream.getvalue() == "".join(f"{line}\n" for line in lines)
    else:
        assert stream.getvalue().split("\r") == [
            "",
            *(f"{line:<26}" for line in lines),
            " " * 16,
            "",
        ]


def test_no_lines_in_a_log_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    with progress.progress_bar(quiet=False, first_s=0) as bar:
        bar.show("map", 1, 2)
    assert stream.getvalue() == ""


def test_progress_is_sent_to_a_user_on_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_sent_to", None)
    stream = io.StringIO()
    progress.send_to(stream)
    with progress.progress_bar(quiet=False) as bar:
        bar.show("map", 10, 100, (2, 4))
        bar.show("map", 10, 100, (2, 4))  # no news
    with progress.progress_bar(quiet=True) as bar:
        bar.show("map", 90, 100, (2, 4))
    assert stream.getvalue() == 'at ["map", 10, 100, 2, 4]\n'
