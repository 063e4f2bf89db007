"""The manual pages that the wheel takes: one for each command, and a `man` can read them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]

sys.path.insert(0, str(TOP / "tools"))
from manual import FOLDER, made, write  # noqa: E402 - a tool

PAGES = made()
MACROS = re.compile(r'\.(\\" |TH |SH |TP$|PP$|B |nf$|fi$)|\.B$')


def test_each_command_has_one() -> None:
    assert {"gristmill.1", "gristmill-sort.1", "gristmill-grep.1", "gristmill-run.1"} <= set(PAGES)
    for name, text in PAGES.items():
        assert f'\n.TH "{name.removesuffix(".1").upper()}" "1"' in text, name
    assert r"\-\-memory" in PAGES["gristmill-sort.1"]


def test_they_are_written_and_those_of_before_are_gone(tmp_path: Path) -> None:
    (tmp_path / "man1").mkdir()
    (tmp_path / "man1/gristmill-gone.1").touch()
    write(tmp_path / "man1")
    assert {path.name: path.read_text() for path in (tmp_path / "man1").iterdir()} == PAGES


@pytest.mark.parametrize("page", sorted(PAGES))
def test_their_macros_are_those_of_man(page: str) -> None:
    text = PAGES[page]
    assert '.SH "NAME"' in text
    for line in text.splitlines():
        assert not line.startswith((".", "'")) or MACROS.match(line), line
        # No hyphen that a reader could not copy, and no escape that is not known.
        if not line.startswith('.\\"'):
            assert not re.search(r"(?<!\\)-(?=[a-z]+\b)", line), line
            assert not re.search(r"\\(?![e&\-]|f[BIR]|\[u[0-9A-F]{4}\])", line), line


def test_groff_finds_nothing_wrong(tmp_path: Path) -> None:
    program = shutil.which("groff")
    if program is None:  # the test above does without
        return
    write(tmp_path)
    for page in tmp_path.iterdir():
        done = subprocess.run(
            [program, "-man", "-ww", "-Tutf8", page], capture_output=True, text=True, check=True
        )
        assert done.stderr == "", page


def test_the_wheel_takes_them() -> None:
    import tomllib

    settings = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["maturin"]
    # Without `data`, maturin takes the folder of this name if there is one.
    assert "data" not in settings
    taken = Path(f"{settings['module-name']}.data")
    assert TOP / taken / "data/share/man/man1" == FOLDER
    assert {"path": f"{taken}/**/*", "format": "sdist"} in settings["include"]
