"""`gristmill grep` and `gm.grep` on lines longer than they may be: an error, not all the memory.

`crates/grep/tests/long_lines.rs` has the cases, with small lines.
"""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from .harness import GRISTMILL, clean_environment

MB = 1_000_000


def compressed(path: Path, length: int, behind: bytes = b"") -> Path:
    """A file whose first line has so many megabytes."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(length):
            file.write(b"a" * MB)
        file.write(behind)
    return path


USED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""
"""Runs a command from a small process: the peak of a child begins with that of its parent."""


@pytest.mark.timeout(600)
def test_a_line_without_an_end(tmp_path: Path) -> None:
    (tmp_path / "small").write_text("a q\n")
    done = subprocess.run(
        [sys.executable, "-c", USED, GRISTMILL, "grep", "-c", "q", "/dev/zero", "small"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=clean_environment(),
        check=False,
    )
    counts, peak_kb = done.stdout.splitlines()
    assert (done.returncode, counts) == (2, "small:1")
    error = done.stderr
    assert "cannot search the input: a line has more than" in error
    assert "(file /dev/zero, offset 0). What to do: check that it is text" in error
    assert int(peak_kb) * 1024 < (1 << 30) + 100 * MB


@pytest.mark.timeout(600)
def test_lines_for_python(tmp_path: Path) -> None:
    fits = compressed(tmp_path / "fits.gz", 30, b"\nthe last\n")
    large = compressed(tmp_path / "large.gz", 270)
    code = f"""
import gristmill as gm, resource
found = gm.grep("^aaa|last", [{str(large)!r}, {str(fits)!r}], skip_unreadable=True)
print([(line.number, len(line.line)) for line in found], *found.unreadable)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert peak * 1024 < (256 << 20) + {100 * MB}, peak
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        env=clean_environment(),
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout == f"[(1, {30 * MB}), (2, 8)] {large}\n", done.stderr
