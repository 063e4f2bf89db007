"""GNU sort's options as `gristmill sort` has them: each is there, or refused with what to do."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.optional import missing

from gristmill.cli.gnu_sort import GNU_OPTIONS

from .harness import failure, run

ROOT = Path(__file__).parents[2]

BOTH = {"--help", "--version"}


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "lines"
    path.write_text("b\na\n")
    return path


@pytest.mark.parametrize(
    ("given", "name", "advice"),
    [
        ("-R", r"-R \(--random-sort\)", "shuffle lines with shuf"),
        ("--random-sort", r"-R \(--random-sort\)", "shuffle lines with shuf"),
        ("--random-source=x", "--random-source", "leave it out"),
        ("--compress-program=gzip", "--compress-program", "give --compress-runs lz4"),
        ("--compress-prog=gzip", "--compress-program", "give --compress-runs lz4"),
        ("--debug", "--debug", "see docs/guide/sort.md"),
    ],
)
def test_an_option_that_is_not_here(lines: Path, given: str, name: str, advice: str) -> None:
    says = failure("sort", given, lines, status=2)
    assert re.match(rf"{name} of GNU sort is not here\. What to do: {advice}", says), says


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["-y"], "no such option '-y'. What to do: leave it out: GNU sort ignores it."),
        (["-y10"], "no such option '-y'. What to do: leave it out"),
        (["--header"], "no such option '--header'. What to do: give --csv or --tsv"),
        (["+1", "-2"], "no such option '-2'. What to do: write -k: +1 -3 is -k 2,3."),
        (["+1.2n"], "there is no file +1.2n, and a key is not written so. What to do: write -k"),
    ],
)
def test_what_old_sorts_and_others_have(lines: Path, given: list[str], says: str) -> None:
    assert failure("sort", *given, lines, status=2).startswith(says)


def test_a_file_may_look_like_an_old_key(lines: Path) -> None:
    lines.rename(lines.parent / "+1")
    assert run("sort", "+1", cwd=lines.parent).stdout == "a\nb\n"


def budget(*given: str, lines: Path) -> int:
    """The memory of a job's plan, in bytes."""
    plan = json.loads(run("explain", "sort", *given, lines, "--json").stdout)
    assert isinstance(plan["memory_bytes"], int)
    return plan["memory_bytes"]


def test_a_part_of_the_memory_of_this_machine(lines: Path) -> None:
    """At most what is available, which changes: 1 % of it is there in any case."""
    one = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 100
    assert budget("-S", "1%", lines=lines) == budget("--memory=1%", lines=lines) == one
    assert budget("-S", "500%", lines=lines) < 100 * one
    says = failure("sort", "-S", "50%", "--on", "ray", lines, status=2)
    assert says.startswith("50% is a part of this machine's memory. What to do: give a size")
    assert '"half%" is not a size' in failure("sort", "-S", "half%", lines, status=2)


def test_h_is_never_help(lines: Path) -> None:
    assert run("sort", "-h", lines).stdout == "a\nb\n"
    assert run("explain", "sort", "-h", lines).stdout.startswith("sort")
    for command in (["sort"], ["explain", "sort"]):
        shown = run(*command, "--help").stdout
        assert shown.startswith(f"Usage: gristmill {' '.join(command)}")
        assert "-h, --human-numeric-sort" in shown
    assert run("terasort", "-h").stdout == run("terasort", "--help").stdout


def test_the_table_has_every_option_of_gnu_sort() -> None:
    sort = shutil.which("sort")
    shown = ""
    if sort is not None:
        shown = subprocess.run([sort, "--help"], capture_output=True, text=True, check=False).stdout
    if "--files0-from" not in shown:
        missing("NOT TESTED: THE OPTIONS OF GNU SORT", "sort is not GNU's")
    known = {one.word.partition("=")[0] for one in GNU_OPTIONS}
    assert set(re.findall(r"(?m)^ .{2,6}?(--[a-z0-9-]+)", shown)) == known | BOTH
    pairs = {(one.letter, one.word.partition("=")[0]) for one in GNU_OPTIONS}
    for letter, word in re.findall(r"(?m)^  (-\w), (--[a-z-]+)", shown):
        assert (letter, word) in pairs or word in BOTH


def test_each_row_names_a_test_or_what_to_do() -> None:
    for one in GNU_OPTIONS:
        assert bool(one.test) != bool(one.advice), one
        if one.test:
            path, _, name = one.test.partition("::")
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), one


@pytest.mark.parametrize("name", ["missing", "dangling", "folder"])
def test_trouble_with_a_check_exits_with_2(tmp_path: Path, name: str) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "folder/inner").mkdir(parents=True)
    failure("sort", "-c", name, status=2, cwd=tmp_path)


def test_a_check_that_finds_disorder_exits_with_1(lines: Path) -> None:
    assert "out of order" in failure("sort", "-c", lines, status=1)
