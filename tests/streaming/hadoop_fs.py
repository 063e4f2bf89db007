"""`gristmill hadoop fs` as tests run it, in a folder with a few files."""

import subprocess
import sys
from pathlib import Path

import pytest

__all__ = ["fs", "home"]


def fs(home: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gristmill", "hadoop", "fs", *map(str, words)]
    return subprocess.run(
        command, cwd=home, capture_output=True, text=True, check=False, timeout=100
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "not.gz").write_bytes(b"\x1f\x8b damaged")
    return tmp_path
