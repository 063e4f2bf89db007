"""`make quick`: which tests touch a change, and that the sample is there."""

import doctest
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parent.parent
sys.path.insert(0, str(TOP / "tools"))
import quick_tests  # noqa: E402 - a tool


def test_what_touches_a_change() -> None:
    failed, tried = doctest.testmod(quick_tests)
    assert (failed, tried > 0) == (0, True)
    assert all((TOP / name).exists() for name in quick_tests.SAMPLE)


def test_what_begins_too_late_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "test_late.py").write_text("def test_late(): pass\n")
    (tmp_path / "conftest.py").write_text("from tests.conftest import *  # the option\n")
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path]
    for seconds, outcome in (("60", "1 passed"), ("0", "1 skipped")):
        done = subprocess.run(
            [sys.executable, *words, "--seconds", seconds],
            cwd=TOP,
            capture_output=True,
            text=True,
            check=False,
        )
        assert outcome in done.stdout, done.stdout + done.stderr
