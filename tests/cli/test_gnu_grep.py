"""Each option of GNU grep in `gristmill grep`: what is printed, and the exit code, are GNU grep's.

docs/guide/gnu-options.md names these tests. tests/fuzz draws options together, and hostile data.
"""

import os
import pty
import re
import select
import shlex
import subprocess
from pathlib import Path

import pytest

from gristmill.cli.failures import Refused
from gristmill.cli.gnu.gnu_grep import GNU_WORDS, INSTEAD
from gristmill.cli.program import the_program

from .harness import GRISTMILL, clean_environment, run

TEXT = b"one fish\ntwo Fish\nred-fish_\nblue whale\n\nfish\tand fish\nno\ncr fish\r\nlast fish"
RECORDS = b"one fish\0two\nlines fish\0\0blue whale\0last fish"
FILES = {
    "a.c": TEXT,
    "b.h": b"whale\n",
    "empty": b"",
    "records": RECORDS,
    "binary": b"a fish\n\0\nfish\n",
    "patterns": b"one\nwhale\n",
    "line": b"\n",
    "d/x.c": b"fish x\n",
    "e/skip/y.c": b"fish y\n",
    "e/keep/z.h": b"fish z\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("grep")
    for name, data in FILES.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(data)
    return top


def both(words: list[str], folder: Path, stdin: bytes = TEXT, **more: str) -> None:
    """Run by both, and compare what they print."""
    is_fixed = any(re.match("-[a-z]*F", word) for word in words)
    syntax = [] if is_fixed else ["-E"]
    ours = ran([str(GRISTMILL), "grep", *words], folder, stdin, **more)
    theirs = ran(["grep", *syntax, *words], folder, stdin, **more)
    assert ours == theirs, words


def ran(words: list[str], folder: Path, stdin: bytes, **more: str) -> tuple[int, bytes]:
    environment = clean_environment(LC_ALL="C", TERM="xterm", **more)
    done = subprocess.run(
        words, input=stdin, capture_output=True, cwd=folder, env=environment, check=False
    )
    assert b"Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "words",
    [
        "-e one -e whale a.c b.h",
        "--regexp=one --regexp whale a.c",
        "-f patterns a.c b.h",
        "-F a.b a.c",
        "-F -x whale b.h",
        "-E 'one|two' a.c",
        "-i FISH a.c",
        "-y FISH a.c",
        "-i --no-ignore-case FISH a.c",
        "--no-ignore-case -i FISH a.c",
        "-v fish a.c b.h",
        "-w fish a.c",
        "-x whale a.c b.h",
        "-c fish a.c b.h empty",
        "-c -v fish a.c",
        "-o fish a.c b.h",
        "-ob fish a.c",
        "-on fish a.c b.h",
        "-l fish a.c b.h empty",
        "-L fish a.c b.h empty",
        "-q fish a.c none",
        "-q nothing a.c",
        "-m 2 fish a.c",
        "-m 1 -A 3 fish a.c",
        "-cm 2 fish a.c b.h",
        "-m -1 fish a.c",
        "-c --max-count=-3 fish a.c b.h",
        "-m ' +2' fish a.c",
        "-n fish a.c",
        "-b fish a.c b.h",
        "-H fish a.c",
        "-h fish a.c b.h",
        "-Z fish a.c b.h",
        "-lZ fish a.c b.h",
        "-cZ fish a.c b.h",
        "-LZ fish a.c b.h",
        "-A 1 one a.c",
        "-B 1 blue a.c",
        "-C 1 -n blue a.c",
        "-2 blue a.c",
        "-12 blue a.c",
        "-1 -A 0 blue a.c",
        "-A 0 'one|blue' a.c",
        "--group-separator=== -A 0 'one|blue' a.c",
        "--group-separator '' -A 0 'one|blue' a.c",
        "--no-group-separator -A 0 'one|blue' a.c",
        "-a fish binary",
        "--binary-files=text fish binary",
        "-I fish binary a.c",
        "-cI fish binary",
        "-LI fish binary b.h",
        "--binary-files=without-match -l fish binary a.c",
        "--binary-files=binary -l fish binary",
        "-a -I fish binary",
        "-I -a fish binary",
        "-s fish none a.c",
        "-r -h fish d",
        "-R -h fish d",
        "-d recurse -rh fish d",
        "-U fish a.c",
        "--line-buffered fish a.c",
        "--label=input -H fish",
        "--label=input -c fish - b.h",
        "--label=input -l fish -",
    ],
)
def test_each_option(words: str, folder: Path) -> None:
    both(shlex.split(words), folder)


@pytest.mark.parametrize(
    "words",
    [
        "-z fish",
        "-zn fish",
        "-zc fish",
        "-zv fish",
        "-zo 'two.*fish'",
        "-zx 'one fish'",
        "-zxF 'one fish'",
        "-zw lines",
        "-z '^lines'",
        "-z 'two$'",
        "-z '^two'",
        "-z 'fish$'",
        "-zb whale",
        "-zl fish",
        "-zlZ fish",
        "-z -A 1 one",
        "-z -B 1 whale",
        "-z -A 0 'one|blue'",
        "-zm 1 fish",
        "-z ''",
        "-zv ''",
        "-zi FISH",
        "-z --color=always lines",
    ],
)
def test_records_that_end_at_a_nul(words: str, folder: Path) -> None:
    both([*shlex.split(words), "records"], folder)
    both(shlex.split(words), folder, RECORDS)


@pytest.mark.parametrize(
    "words",
    [
        "fish a.c b.h",
        "-n fish a.c",
        "-Hnb fish a.c",
        "-o fish a.c b.h",
        "-ob fish a.c",
        "-c fish a.c b.h",
        "-l fish a.c b.h",
        "-L fish a.c b.h",
        "-v fish a.c",
        "-v -C 1 -n fish a.c",
        "-n -A 1 -B 1 'one|blue' a.c",
        "-Z fish a.c b.h",
        "-i FISH a.c",
        "-w fish a.c",
        "'' a.c",
        "'f*' a.c",
        "-x whale b.h",
        "-m 1 fish a.c",
        "fish -",
    ],
)
def test_colours(words: str, folder: Path) -> None:
    for spelling in ("--color=always", "--colour=always"):
        both([spelling, *shlex.split(words)], folder)
    for spelling in ("--color", "--color=never", "--colour=auto", "--colo"):
        both([spelling, *shlex.split(words)], folder)


def on_a_terminal(words: list[str], folder: Path, **more: str) -> bytes:
    """What a command prints to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [GRISTMILL, "grep", *words],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        cwd=folder,
        env=clean_environment(**{"TERM": "xterm", "NO_COLOR": "", **more}),
    )
    os.close(theirs)
    assert process.wait(60) == 0
    printed = b""
    while select.select([ours], [], [], 0.1)[0]:
        try:
            printed += os.read(ours, 1 << 16)
        except OSError:  # all is read, and nobody writes any more
            break
    os.close(ours)
    return printed.replace(b"\r\n", b"\n")


def test_colours_by_themselves_are_for_a_terminal(folder: Path) -> None:
    plain, coloured = b"whale\n", b"\x1b[01;31m\x1b[Kwhale\x1b[m\x1b[K\n"
    assert ran([str(GRISTMILL), "grep", "whale", "b.h"], folder, b"") == (0, plain)
    for words in ([], ["--color"], ["--color=auto"]):
        assert on_a_terminal([*words, "whale", "b.h"], folder) == coloured
    assert on_a_terminal(["--color=never", "whale", "b.h"], folder) == plain
    assert on_a_terminal(["whale", "b.h"], folder, NO_COLOR="1") == plain
    assert on_a_terminal(["whale", "b.h"], folder, TERM="dumb") == plain
    assert on_a_terminal(["--color=always", "whale", "b.h"], folder, NO_COLOR="1") == coloured


@pytest.mark.parametrize(
    "words",
    [
        "--include=*.c",
        "--exclude=*.c",
        "--include=*.c --exclude=x*",
        "--exclude=x* --include=*.c",
        "--exclude=x* --include=x.c",
        "--include *.h --include *.c",
        "--exclude-dir=skip",
        "--exclude-dir=skip --exclude-dir keep",
        "--exclude-dir=s*",
        "--exclude-dir=e/skip",
        "--include=*.c --exclude-dir=skip",
        "--exclude-dir=skip --include=*.c",
    ],
)
def test_files_in_folders(words: str, folder: Path) -> None:
    given = ["-r", *shlex.split(words), "fish"]
    for inputs in (["d", "e"], ["e/"], ["e/skip", "d/x.c", "a.c"], ["."]):
        ours = ran([str(GRISTMILL), "grep", *given, *inputs], folder, b"")
        theirs = ran(["grep", *given, *inputs], folder, b"")
        found = [(code, sorted(printed.splitlines())) for code, printed in (ours, theirs)]
        assert found[0] == found[1], inputs


@pytest.mark.parametrize(
    "words",
    [
        "-m 0 fish",
        "-m 0 -c fish",
        "-m 0 -cv fish",
        "-m 0 -l fish",
        "-m 0 -L fish",
        "-m 0 -q fish",
        "-v ''",
        "-vc ''",
        "-vL ''",
        "-vcx ''",
        "-vcw ''",
        "-vc -e '' -e ''",
        "-vc -e '' -e fish",
        "-vc -f line",
        "-c -f empty",
        "-L -f empty",
        "-vc -f empty",
        "-xc -f empty",
        "-c -f empty -e ''",
    ],
)
def test_where_no_line_can_be_selected_no_file_is_read(words: str, folder: Path) -> None:
    for files in (["a.c"], ["a.c", "b.h"], ["-"], ["none"], ["a.c", "none"]):
        both([*shlex.split(words), *files], folder)


@pytest.mark.parametrize("words", ["-n5", "-5n", "-c5", "-A1 -nc5", "-e -5 -in5"])
def test_a_number_behind_a_letter_is_refused(words: str, folder: Path) -> None:
    given = words.split()
    said = run("grep", *given, "fish", "a.c", cwd=folder, status=2).stderr
    assert said.startswith(f"gristmill grep: the number in {given[-1]} belongs to no option. ")
    assert "What to do: write -C N for " in said


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_what_is_said_of_a_depth_is_true(depth: int, tmp_path: Path) -> None:
    names = ["m/1", "m/x/2", "m/x/y/3"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("fish\n")
    glob = "!" + "*/" * depth + "**"
    assert depth > 2 or f"'{glob}'" in INSTEAD["--max-depth"]
    done = run("grep", "-l", "fish", "m", "--glob", glob, cwd=tmp_path)
    assert done.stdout.split() == names[:depth]


@pytest.mark.parametrize("words", ["--include=*.c", "--exclude=n*", "--exclude='*'"])
def test_a_file_that_is_missing_is_said_whatever_its_name(words: str, folder: Path) -> None:
    given = [*shlex.split(words), "fish"]
    for files in (["none"], ["a.c", "none"], ["none", "a.c"], ["none.c"]):
        both([*given, *files], folder)
    said = run("grep", *given, "none", cwd=folder, status=2).stderr
    assert "no such file or directory (file none)" in said


@pytest.mark.parametrize(
    "words",
    [
        "-I fish",
        "-cI fish",
        "-qI fish",
        "-lI fish",
        "-LI fish",
        "-lI end",
        "-LI end",
        "-cI end",
        "-cIv fish",
        "-oI fish",
        "-I -A 1 fish",
        "-I -n fish",
        "-cI -m 1 fish",
        "-I -m 1 fish",
        "-I -m 1 -A 1 fish",
        "-cI nothing",
        "-zcI fish",
    ],
)
def test_lines_far_before_a_nul(words: str, folder: Path) -> None:
    lines = b"whale\n" * 50_000
    (folder / "late").write_bytes(b"early fish\n" + lines + b"\0\nfish end\n")
    for files in (["late"], ["late", "a.c"], ["binary", "a.c"], ["-"]):
        both([*shlex.split(words), *files], folder, (folder / "late").read_bytes())


@pytest.mark.parametrize("cut", ["--coun", "--line-n", "--ignore", "--word", "--inv", "--only"])
def test_long_names_may_be_cut_short(cut: str, folder: Path) -> None:
    both([cut, "fish", "a.c"], folder)


@pytest.mark.parametrize("name", INSTEAD)
def test_an_option_that_is_not_here(name: str) -> None:
    with pytest.raises(Refused) as caught:
        the_program().main(["grep", name, "fish", "a.c"], standalone_mode=False)
    assert (caught.value.message, caught.value.advice) == (f"{name} is not here", INSTEAD[name])


def test_values_that_are_not_here(folder: Path) -> None:
    for words, says in (
        (["-rnP"], "-P is not here. What to do: leave it out: "),
        (["-d", "skip"], "-d can only be recurse"),
        (["--color=sometimes"], "'sometimes' is not one of"),
        (["--binary-files=x"], "'x' is not one of"),
        (["-m", "x"], "'-m' / '--max-count': 'x' is not a whole number. What to do: "),
        (["-m", "1_0"], "'1_0' is not a whole number."),
        (["-A", "-1"], "'-1' is not a whole number from 0 on."),
        (["-C5n"], "'5n' is not a whole number from 0 on."),
        (["--workers", "0"], "'0' is not a whole number from 1 to 1024."),
        (["-m", "x" * 200], f"'{'x' * 100}' is not a whole number."),
        (["--glob", "\udcff" * 200], "--glob " + "\\xff" * 100 + " is not UTF-8"),
    ):
        assert says in run("grep", *words, "fish", "a.c", cwd=folder, status=2).stderr


def test_every_option_of_gnu_grep_is_known() -> None:
    shown = subprocess.run(["grep", "--help"], capture_output=True, text=True, check=True).stdout
    words = {
        word.partition("=")[0].partition("[")[0]
        for word in shown.replace(",", " ").split()
        if word.startswith("--") and len(word) > 2
    }
    assert words - {f"--{word}" for word in GNU_WORDS} == set()
    told = run("grep", "--help").stdout
    hidden = {"--version", "--directories", "--colour", "--silent", "--regexp"}
    assert {word for word in words - hidden if word not in told and word not in INSTEAD} == set()
