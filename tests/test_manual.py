"""The manual pages that are committed are those of the options, and a `man` can read them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]

sys.path.insert(0, str(TOP / "tools"))
from manual import FOLDER, made  # noqa: E402 - a tool

PAGES = sorted(FOLDER.glob("*.1"))
MACROS = re.compile(r'\.(\\" |TH |SH |TP$|PP$|B |nf$|fi$)|\.B$')


def test_they_are_current() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in PAGES}
    assert texts == made(), "run `make format`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_their_macros_are_those_of_man(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert '.SH "NAME"' in text
    for line in text.splitlines():
        assert not line.startswith((".", "'")) or MACROS.match(line), line
        # No hyphen that a reader could not copy, and no escape that is not known.
        if not line.startswith('.\\"'):
            assert not re.search(r"(?<!\\)-(?=[a-z]+\b)", line), line
            assert not re.search(r"\\(?![e&\-]|f[BIR]|\[u[0-9A-F]{4}\])", line), line


def test_groff_finds_nothing_wrong() -> None:
    program = shutil.which("groff")
    if program is None:  # the test above does without
        return
    for page in PAGES:
        done = subprocess.run(
            [program, "-man", "-ww", "-Tutf8", page], capture_output=True, text=True, check=True
        )
        assert done.stderr == "", page


def test_the_wheel_takes_them() -> None:
    import tomllib

    settings = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["maturin"]
    assert TOP / settings["data"] / "data/share/man/man1" == FOLDER
