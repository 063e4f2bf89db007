"""Limits on what a process may map (`ulimit -v`, `ulimit -d`), as batch systems set them."""

import random
import re
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .harness import GRISTMILL, content, failure, run

LINES = 40_000


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """2 MB of lines."""
    chance = random.Random(7)
    path = tmp_path / "lines"
    path.write_text("".join(f"{chance.getrandbits(190):048x} w\n" for _ in range(LINES)))
    return path


def limited(kind: int, kib: int) -> Callable[[], None]:
    """What sets a limit in a child, as the shell's `ulimit` does."""

    def limit() -> None:
        resource.setrlimit(kind, (kib * 1024, kib * 1024))

    return limit


LIMITS = [
    pytest.param(limited(resource.RLIMIT_AS, 4_000_000), id="v4000000"),
    pytest.param(limited(resource.RLIMIT_AS, 1_000_000), id="v1000000"),
    pytest.param(limited(resource.RLIMIT_DATA, 1_000_000), id="d1000000"),
    pytest.param(limited(resource.RLIMIT_DATA, 200_000), id="d200000"),
]


@pytest.mark.parametrize("limit", LIMITS)
def test_small_files_are_sorted(limit: Callable[[], None], lines: Path, tmp_path: Path) -> None:
    expected = b"".join(sorted(lines.read_bytes().splitlines(keepends=True)))
    for number, more in enumerate([[], ["-k1,1"], ["--runner", "processes"], ["--workers", "8"]]):
        out = tmp_path / f"out{number}"
        run("sort", lines, "-o", out, *more, preexec=limit)
        assert out.read_bytes() == expected, more


@pytest.mark.parametrize("limit", LIMITS)
def test_other_commands(limit: Callable[[], None], lines: Path, data: Path, tmp_path: Path) -> None:
    run("wordcount", lines, tmp_path / "words", preexec=limit)
    counts = dict(line.split(b"\t") for line in content(tmp_path / "words").splitlines())
    assert (len(counts), counts[b"w"]) == (LINES + 1, str(LINES).encode())
    run("terasort", data, tmp_path / "sorted", preexec=limit)
    run("teravalidate", tmp_path / "sorted", preexec=limit)
    assert run("grep", "-c", "w", lines, preexec=limit).stdout == f"{LINES}\n"


@pytest.mark.parametrize("limit", LIMITS)
def test_a_job_of_python_functions(limit: Callable[[], None], lines: Path, tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(
        "import gristmill as gm\n"
        f"job = gm.Job(gm.text({str(lines)!r}), map=lambda line: [(line[-1:], 1)],"
        f" reduce=gm.sum(), output=gm.tsv({str(tmp_path / 'out')!r}))\n"
    )
    run("run", job, "--workers", "2", preexec=limit)
    assert content(tmp_path / "out") == f"w\t{LINES}\n".encode()


@pytest.mark.parametrize("kib", range(70_000, 300_000, 30_000))
def test_near_what_is_needed_it_is_sorted_or_refused(kib: int, lines: Path, tmp_path: Path) -> None:
    """Threads and memory that the system refuses are no panic, and nothing waits for ever."""
    sort = [GRISTMILL, "sort", lines, "-o", tmp_path / "out", "--no-sync"]
    limit = limited(resource.RLIMIT_AS, kib)
    done = subprocess.run(
        sort, capture_output=True, text=True, timeout=60, preexec_fn=limit, check=False
    )
    if done.returncode == 0:
        expected = b"".join(sorted(lines.read_bytes().splitlines(keepends=True)))
        assert (tmp_path / "out").read_bytes() == expected
    else:
        assert done.returncode == 1
        assert done.stderr.startswith("gristmill sort: "), done.stderr
        assert "panicked" not in done.stderr


def test_what_is_too_little_names_the_limit_and_what_is_needed(lines: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    least = 60_000
    for _ in range(40):  # up to where the program itself begins
        least += 10_000
        done = run_at(least, lines, out)
        if "ulimit -v" in done:
            break
    named = re.search(r"raise the limit: `ulimit -v (\d+)` or more", done)
    assert named, done
    run("sort", lines, "-o", out, preexec=limited(resource.RLIMIT_AS, int(named[1])))
    assert out.stat().st_size == lines.stat().st_size


def run_at(kib: int, lines: Path, out: Path) -> str:
    """What a sort with so little address space says."""
    try:
        run("sort", lines, "-o", out, preexec=limited(resource.RLIMIT_AS, kib))
    except AssertionError as error:
        return str(error)
    pytest.fail(f"{kib} KiB are enough for a sort, and nothing less is refused with advice")


def test_more_memory_than_the_limit_is_refused_with_both_numbers(
    data: Path, tmp_path: Path
) -> None:
    limit = limited(resource.RLIMIT_AS, 1_000_000)
    says = failure("wordcount", data, tmp_path / "out", "--memory", "8G", preexec=limit)
    assert "`ulimit -v` lets the process map 1.02 GB" in says
    assert re.search(r"or raise the limit: `ulimit -v \d+` or more", says)
