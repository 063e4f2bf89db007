"""The progress bar: on a terminal, and only there."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

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


def test_a_bar_in_a_notebook_is_one_display_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, dict[str, str]]] = []

    def display(what: dict[str, str], *, raw: bool, display_id: bool) -> SimpleNamespace:
        assert raw
        assert display_id
        shown.append(("display", what))
        return SimpleNamespace(update=update)

    def update(what: dict[str, str], *, raw: bool) -> None:
        assert raw
        shown.append(("update", what))

    module = SimpleNamespace(display=display)
    monkeypatch.setitem(sys.modules, "IPython.display", cast("Any", module))
    monkeypatch.setattr(sys, "stderr", stream := Notebook())
    monkeypatch.setattr(progress, "EVERY_S", 0)
    with progress.progress_bar(quiet=False, first_s=0) as bar:
        bar.show("map", 0, 2_000_000)
        bar.show("map", 500_000, 2_000_000)
    with progress.progress_bar(quiet=True, first_s=0) as bar:
        bar.show("map", 1_000_000, 2_000_000)
    assert [how for how, _ in shown] == ["display", "update", "update"]
    assert re.fullmatch(
        r"map +━+─+ +25 %  500 kB of 2.00 MB  [0-9.]+ .?B/s  0:00:0\d", shown[1][1]["text/plain"]
    )
    assert shown[-1][1] == {"text/plain": ""}
    assert stream.getvalue() == ""


def test_a_bar_in_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "EVERY_S", 0)
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0)
    for quiet in (True, False):
        with progress.progress_bar(quiet=quiet, first_s=0, anywhere=True) as bar:
            bar.show("map", 500_000, 2_000_000)
            bar.show("reduce", 1_000_000, 0)
    lines = ["map       25 %  of 2.00 MB", "reduce   1.00 MB"]
    assert stream.getvalue() == "".join(f"{line}\n" for line in lines)


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
