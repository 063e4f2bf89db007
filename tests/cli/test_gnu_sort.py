"""What `gristmill sort` says to those who give it GNU sort's options."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.optional import missing

from gristmill.cli.gnu_sort import GNU_OPTIONS

from .harness import failure, run

SAME_HERE = {"--check", "--output", "--reverse", "--stable", "--unique", "--help", "--version"}


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "lines"
    path.write_text("b\na\n")
    return path


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("-S1G", "--memory"),
        ("-S 1G", "--memory"),
        ("--buffer-size=1G", "--memory"),
        ("--buffer 1G", "--memory"),
        ("-T /tmp", "--spill-dir"),
        ("--temporary-directory=/tmp", "--spill-dir"),
        ("--parallel=2", "--workers"),
        ("--parallel 2", "--workers"),
        ("--check=diagnose-first", "-c"),
    ],
)
def test_an_option_with_another_name_here(lines: Path, given: str, name: str) -> None:
    says = failure("sort", *given.split(), lines, status=2)
    assert "of GNU sort has another name here" in says
    assert f"What to do: give {name}" in says


@pytest.mark.parametrize(
    ("given", "name"),
    [
        *((f"-{letter}", rf"-{letter} \(--[a-z-]+\)") for letter in "nghVMfdibz"),
        ("-k1", r"-k \(--key\)"),
        ("-k 2,2n", r"-k \(--key\)"),
        ("-t,", r"-t \(--field-separator\)"),
        ("-nr", r"-n \(--numeric-sort\)"),
        ("-rn", r"-n \(--numeric-sort\)"),
        ("-m", r"-m \(--merge\)"),
        ("-R", r"-R \(--random-sort\)"),
        ("-C", r"-C \(--check=quiet\)"),
        ("--check=quiet", r"-C \(--check=quiet\)"),
        ("--check=silent", "--check=silent"),
        ("--files0-from=x", "--files0-from"),
        ("--sort=numeric", "--sort"),
        ("--batch-size=2", "--batch-size"),
        ("--compress-program=gzip", "--compress-program"),
        ("--debug", "--debug"),
        ("--key=1", r"-k \(--key\)"),
        ("--human-numeric-sort", r"-h \(--human-numeric-sort\)"),
        ("--random-source=x", "--random-source"),
    ],
)
def test_an_option_that_is_not_here_yet(lines: Path, given: str, name: str) -> None:
    says = failure("sort", *given.split(), lines, status=2)
    assert re.match(rf"{name} of GNU sort is not here yet\. What to do: ", says), says


def test_h_is_never_help() -> None:
    assert "is not here yet. What to do: for help, give --help." in failure("sort", "-h", status=2)
    done = run("explain", "sort", "-h", "x", status=2)
    assert "not here yet" in done.stderr
    for command in (["sort"], ["explain", "sort"]):
        shown = run(*command, "--help").stdout
        assert shown.startswith(f"Usage: gristmill {' '.join(command)}")
        assert "-h" not in re.findall(r"(?m)^  (-\w)\b", shown)
    assert run("terasort", "-h").stdout == run("terasort", "--help").stdout


def test_the_table_has_every_option_of_gnu_sort() -> None:
    sort = shutil.which("sort")
    shown = ""
    if sort is not None:
        shown = subprocess.run([sort, "--help"], capture_output=True, text=True, check=False).stdout
    if "--files0-from" not in shown:
        missing("NOT TESTED: THE OPTIONS OF GNU SORT", "sort is not GNU's")
    known = {word.partition("=")[0] for one in GNU_OPTIONS for word in (one.word,)}
    assert set(re.findall(r"(?m)^ .{2,6}?(--[a-z0-9-]+)", shown)) == known | SAME_HERE
    for letter, word in re.findall(r"(?m)^  (-\w), (--[a-z-]+)", shown):
        if word not in SAME_HERE:
            assert (letter, word) in {(one.letter, one.word) for one in GNU_OPTIONS}


@pytest.mark.parametrize("name", ["missing", "dangling", "folder"])
def test_trouble_with_a_check_exits_with_2(tmp_path: Path, name: str) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "folder/inner").mkdir(parents=True)
    failure("sort", "-c", name, status=2, cwd=tmp_path)


def test_a_check_that_finds_disorder_exits_with_1(lines: Path) -> None:
    assert "out of order" in failure("sort", "-c", lines, status=1)
