"""GNU sort's options as `gristmill sort` has them: each is there, or refused with what to do."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.optional import missing

from gristmill.cli.gnu.gnu_sort import GNU_OPTIONS

from .harness import failure, run
from .sorting import try_sort

ROOT = Path(__file__).parents[2]

BOTH = {"--help", "--version"}


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "lines"
    path.write_text("b\na\n")
    return path


GnuSort = Callable[..., int]


@pytest.fixture
def gnu(tmp_path: Path) -> GnuSort:
    """The exit code of the installed sort, where that is GNU's."""
    sort = shutil.which("sort")
    shown = "" if sort is None else subprocess.check_output([sort, "--version"], text=True)
    if sort is None or "GNU" not in shown:
        missing("NOT TESTED: REFUSALS OF GNU SORT", "sort is not GNU's")

    def code(*given: str | Path, stdin: bytes = b"") -> int:
        return subprocess.run(
            [str(sort), *given], cwd=tmp_path, input=stdin, capture_output=True, check=False
        ).returncode

    return code


def test_a_tilde_is_a_byte_and_a_name(lines: Path) -> None:
    """The shell has replaced those that mean a home."""
    (lines.parent / "~").mkdir()
    (lines.parent / "~/in").write_text("b~1\na~2\n")
    told = run("sort", "-t~", "-k2r", "~/in", cwd=lines.parent)
    assert told.stdout == "a~2\nb~1\n"


@pytest.mark.parametrize(
    ("given", "name", "advice"),
    [
        ("-R", r"-R \(--random-sort\)", "shuffle lines with gristmill shuf"),
        ("--random-sort", r"-R \(--random-sort\)", "shuffle lines with gristmill shuf"),
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
    what, _, advice = says.partition(". What to do: ")
    assert what == "50% is a part of this machine's memory, and the job runs elsewhere"
    assert advice.startswith("give a size")
    assert '"half%" is not a size' in failure("sort", "-S", "half%", lines, status=2)


def test_more_memory_than_this_machine_has(lines: Path) -> None:
    """Gristmill takes what is available, which changes; GNU sort does likewise."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < budget("-S", "1000T", lines=lines) <= whole
    assert run("sort", "-S", "1000T", lines).stdout == "a\nb\n"
    assert budget("-S", "64M", lines=lines) == 64_000_000
    says = failure("sort", "-S", "100000000000000000000", lines, status=2)
    assert "is not a size of less than 8 EiB. What to do: write it like 512M" in says


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["-o", "x", "-o", "y"], "-o names 2 outputs: x, y. What to do: name one."),
        (["-uo", "x", "--output=y"], "-o names 2 outputs: x, y. What to do: name one."),
        (["-cC"], "-c and -C exclude each other. What to do: give -C"),
        (["--check", "--check=quiet"], "-c and -C exclude each other"),
        (["--check=wings"], "--check takes no word 'wings'. What to do: give quiet, silent or"),
        (["--check="], "--check takes no word ''. What to do: give quiet, silent or"),
    ],
)
def test_what_excludes_each_other_in_gnu_sort(
    lines: Path, given: list[str], says: str, gnu: GnuSort
) -> None:
    assert failure("sort", *given, lines, status=2, cwd=lines.parent).startswith(says)
    assert gnu(*given, lines) == (1 if "takes no word" in says else 2)
    assert [path.name for path in lines.parent.iterdir()] == ["lines"]


def test_the_same_output_may_be_named_twice(lines: Path) -> None:
    out = lines.parent / "out"
    run("sort", "-o", out, "-o", out, lines)
    assert out.read_text() == "a\nb\n"


def test_names_from_standard_input_leave_no_lines_in_it(gnu: GnuSort) -> None:
    done = try_sort("--files0-from", "-", stdin=b"-\0")
    assert done.status == 2
    assert "standard input has the names of the inputs: it cannot be an input" in done.stderr
    assert gnu("--files0-from=-", stdin=b"-\0") == 2


def test_hard_links_keep_the_old_lines(lines: Path) -> None:
    """GNU sort writes into the file; see docs/guide/sort.md, "What differs"."""
    other = lines.parent / "other"
    other.hardlink_to(lines)
    run("sort", lines, "-o", lines)
    assert (lines.read_text(), other.read_text()) == ("a\nb\n", "b\na\n")


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
