"""The progress bar: on a terminal, and only there."""

import os
import subprocess
import sys
from pathlib import Path

from .harness import clean_environment

# The bar's first drawing is put forward, so that a small job has one.
PROGRAM = """
import sys
from gristmill.cli import main, progress
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
