"""`gristmill grep` as a shell uses it, against GNU grep in the C locale.

The crate `grep` has tests of its own, of options and texts drawn at random.
"""

import bz2
import gzip
import json
import lzma
import os
import random
import re
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import gristmill as gm
from gristmill.cli.program import the_program

from .harness import GRISTMILL, clean_environment, run

WORDS = [
    b"fish",
    b"whale",
    b"Fish",
    b"a",
    b"of",
    b"fishes",
    b"the",
    b"x\xffy",
    b"gr\xc3\xb6\xc3\x9fe",
]


def some_lines(count: int, seed: int) -> bytes:
    made = random.Random(seed)
    return b"".join(
        b" ".join(made.choices(WORDS, k=made.randrange(9))) + b"\n" for _ in range(count)
    )


def grep(*words: str | Path, cwd: Path, stdin: bytes = b"") -> tuple[int, bytes]:
    """What it prints, and its exit code."""
    return _run([GRISTMILL, "grep", *words], cwd, stdin)


def gnu(*words: str | Path, cwd: Path, stdin: bytes = b"") -> tuple[int, bytes]:
    return _run(["grep", "-E", *words], cwd, stdin)


def _run(words: list[str | Path], cwd: Path, stdin: bytes) -> tuple[int, bytes]:
    environment = clean_environment(LC_ALL="C")
    done = subprocess.run(
        words, input=stdin, capture_output=True, cwd=cwd, env=environment, timeout=60, check=False
    )
    assert b"Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "options",
    [
        "fish",
        "-n fish",
        "-c fish",
        "-v -c fish",
        "-vn fish",
        "-w -o fish",
        "-i -b whale",
        "-l fish",
        "-L nothing",
        "-x -n fish",
        "-H -m 3 of",
        "-n -A 2 -B 1 fishes.whale",
        "-C 1 -m 2 fishes.whale.a",
        "-q fish",
        "-F -e fishes -e whale -o",
        "-c nothing",
        "nothing",
    ],
)
def test_large_files_are_as_by_gnu_grep(options: str, tmp_path: Path) -> None:
    # Several blocks, no last line feed, and a file without lines.
    (tmp_path / "a").write_bytes(some_lines(100_000, 1) + b"the last fish")
    (tmp_path / "b").write_bytes(b"")
    (tmp_path / "c").write_bytes(some_lines(100, 2))
    words = options.split()
    files = ["a"] if "-n" in words else ["a", "b", "c"]
    expected = gnu("-a", *[word for word in words if word != "-F"], *files, cwd=tmp_path)
    assert grep("-a", *words, *files, cwd=tmp_path) == expected


def test_lines_longer_than_blocks(tmp_path: Path) -> None:
    long = b"x" * 3_000_000
    text = b"a\n" + long + b" fish\n" + b"fish " + long + long + b"\nno\n" + long + b"\nfish"
    (tmp_path / "a").write_bytes(text)
    for words in (["-n", "fish"], ["-c", "x"], ["-v", "x"], ["-o", "fish"]):
        assert grep(*words, "a", cwd=tmp_path) == gnu(*words, "a", cwd=tmp_path)
        assert grep(*words, cwd=tmp_path, stdin=text) == gnu(*words, cwd=tmp_path, stdin=text)


def test_compressed_files_and_folders(tmp_path: Path) -> None:
    text = some_lines(50_000, 3)
    folder = tmp_path / "logs"
    (folder / "b").mkdir(parents=True)
    (folder / "a.gz").write_bytes(gzip.compress(text, 1))
    (folder / "b" / "c.bz2").write_bytes(bz2.compress(text, 1))
    (folder / "b" / "d").write_bytes(lzma.compress(text, preset=0))  # its bytes say what it is
    (folder / "e.txt").write_bytes(text)
    (folder / "f.gz").write_bytes(text)  # only its name says that it is compressed
    (folder / "_hidden").write_bytes(text)
    (folder / "link").symlink_to("..")
    count = gnu("-c", "fish", cwd=tmp_path, stdin=text)[1].decode().strip()
    found = ["a.gz", "b/c.bz2", "b/d", "e.txt", "f.gz"]
    code, printed = grep("-c", "fish", "logs", cwd=tmp_path)
    assert printed.decode().splitlines() == [f"logs/{name}:{count}" for name in found]
    assert code == 0
    code, printed = grep("-l", "fish", "logs", "--hidden", "-g", "*.gz", "-g", "_*", cwd=tmp_path)
    assert printed.decode().split() == ["logs/_hidden", "logs/a.gz", "logs/f.gz"]
    code, printed = grep("-l", "fish", "logs", "-g", "!b/*", cwd=tmp_path)
    assert printed.decode().split() == ["logs/a.gz", "logs/e.txt", "logs/f.gz"]


def test_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a").write_bytes(b"fish\n")
    (tmp_path / "b" / "c").write_bytes(b"a fish\nnone\n")
    for words in (["-rn", "fish"], ["-rhc", "fish"], ["-rl", "fish", "."], ["-r", "fish", "a"]):
        code, printed = gnu(*words, cwd=tmp_path)
        found = grep(*words, cwd=tmp_path, stdin=b"fish\n" * 9)
        assert (found[0], sorted(found[1].splitlines())) == (code, sorted(printed.splitlines()))
    code, printed = grep("-r", "-g", "!b/*", "fish", cwd=tmp_path)
    assert (code, printed) == (0, b"a:fish\n")
    assert grep("fish", "-", cwd=tmp_path, stdin=b"fish\n") == (0, b"fish\n")
    assert grep("fish", "", cwd=tmp_path)[0] == 2


def test_of_options_that_contradict_each_other_the_last_counts(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"fish\n")
    (tmp_path / "b").write_bytes(b"whale\n")
    for options in ("-lL", "-Ll", "-hH", "-Hh", "-hHh", "-lcL", "-Lo", "-qL", "-co", "-oc", "-clL"):
        for files in (["a"], ["a", "b"], ["b"]):
            expected = gnu(options, "fish", *files, cwd=tmp_path)
            assert grep(options, "fish", *files, cwd=tmp_path) == expected, options


def test_options_of_gnu_grep_that_do_nothing_or_are_not_here(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"fish\n--color=never\n")
    for words in (
        "-y FISH",
        "-RU fish a",
        "--line-buffered --color=never fish",
        "-e --color=never",
    ):
        expected = gnu(*words.split(), "a", cwd=tmp_path)
        assert expected[0] == 0
        assert grep(*words.split(), "a", cwd=tmp_path) == expected
    for words, advice in (("-rnP", "-P is not here"), ("-2v3", "write -C N ")):
        said = run("grep", *words.split(), "fish", "a", cwd=tmp_path, status=2).stderr
        assert said.startswith("gristmill grep: ")
        assert advice in said


def test_files_of_an_object_store_that_fails(tmp_path: Path) -> None:
    folder = tmp_path / "store" / "logs"
    (folder / "b").mkdir(parents=True)
    (folder / "a").write_bytes(some_lines(300_000, 8))
    (folder / "b" / "c.gz").write_bytes(gzip.compress(some_lines(50_000, 9), 1))
    place = f"objects://{tmp_path}/store/logs"
    faults = "refused=0.05,lost=0.03"
    for words in (["-c", "fish"], ["-n", "-x", "fish( fish| a)+"]):
        near = run("grep", *words, "store/logs", cwd=tmp_path)
        far = run("grep", *words, place, cwd=tmp_path, GRISTMILL_OBJECTS_FAULTS=faults)
        assert far.stdout == near.stdout.replace("store/logs", place)
        assert len(near.stdout) > 20
    far = run("grep", "-c", "fish", f"{place}/*", "-h", cwd=tmp_path)
    assert len(far.stdout.split()) == 2
    run("grep", "fish", f"{place}/none", cwd=tmp_path, status=2)


def test_a_file_that_becomes_shorter_is_said(tmp_path: Path) -> None:
    text = some_lines(1_000_000, 10)
    (tmp_path / "a").write_bytes(text)
    with subprocess.Popen(
        [GRISTMILL, "grep", "", "a", "--workers", "1"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(1 << 16)  # it waits to write more
        os.truncate(tmp_path / "a", 1 << 20)
        running.stdout.read()
        said = running.stderr.read()
        assert b"shorter" in said
        assert b"(file a)" in said or b"a: the file" in said
        assert running.wait(60) == 2


def test_what_cannot_be_read_is_said_and_the_rest_is_searched(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("fish\n")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(some_lines(1000, 4))[:-20])
    done = run("grep", "-h", "fish$", "none", "a", cwd=tmp_path, status=2)
    assert done.stdout == "fish\n"
    assert "no such file or directory (file none)" in done.stderr
    assert "cut.gz" in run("grep", "-c", "fish", "cut.gz", cwd=tmp_path, status=2).stderr
    said = run("grep", "-c", "fish", "/proc/self/mem", cwd=tmp_path, status=2).stderr
    assert "(file /proc/self/mem)" in said  # it can be opened, and not be read
    assert run("grep", "-s", "fish", "none", cwd=tmp_path, status=2).stderr == ""
    assert run("grep", "-q", "fish", "none", "a", cwd=tmp_path).stdout == ""


def test_the_output_is_not_searched(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"fish\n")
    words = [GRISTMILL, "grep", "-r", "fish"]
    for more in ([], ["a", "out"], ["-", "a"], ["-c"], ["-m", "1", "-h"]):
        with (tmp_path / "out").open("w+b") as out, (tmp_path / "out").open("rb") as again:
            done = subprocess.run(
                [*words, *more],
                stdin=again,
                stdout=out,
                stderr=subprocess.PIPE,
                cwd=tmp_path,
                env=clean_environment(),
                timeout=60,
                check=False,
            )
        written = (tmp_path / "out").read_bytes()
        if more and more[0] in ("-c", "-m"):  # what is written is not read, or ends the search
            assert (done.returncode, done.stderr) == (0, b"")
        else:
            assert written == b"a:fish\n"
            assert done.returncode == 2
            assert b"also the output" in done.stderr


def test_patterns(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one.\ntwo\nthr\xffee\ncr\r\n")
    (tmp_path / "patterns").write_bytes(b"t.o\none[.]\n")
    (tmp_path / "empty").write_bytes(b"")
    assert grep("-f", "patterns", "a", cwd=tmp_path) == (0, b"one.\ntwo\n")
    assert grep("-f", "empty", "a", cwd=tmp_path) == (1, b"")
    assert grep("-c", "-v", "-f", "empty", "a", cwd=tmp_path) == (0, b"4\n")
    assert grep(os.fsdecode(b"r\xffe"), "a", cwd=tmp_path) == (0, b"thr\xffee\n")
    assert grep("-F", os.fsdecode(b".\nr\xff"), "a", cwd=tmp_path) == (0, b"one.\nthr\xffee\n")
    assert grep("cr$", "a", cwd=tmp_path) == (1, b"")
    assert grep("--crlf", "cr$", "a", cwd=tmp_path) == (0, b"cr\r\n")
    wrong = run("grep", "a(b", "a", cwd=tmp_path, status=2).stderr
    assert "cannot read the pattern: unclosed group, at character 2 of a(b" in wrong
    assert "ends a line" in run("grep", r"a\nb", "a", cwd=tmp_path, status=2).stderr
    assert "no PATTERN" in run("grep", cwd=tmp_path, status=2).stderr
    assert "cannot be read" in run("grep", "-f", "none", "a", cwd=tmp_path, status=2).stderr
    wrong = run("grep", "x", "a", "--glob", "a[", cwd=tmp_path, status=2).stderr
    assert wrong.startswith("gristmill grep: cannot read the glob a[: ")
    assert "What to do: put \\ before [, { or \\ that stands for itself." in wrong
    wrong = run("grep", "x", "a", "--glob", "[" * 200, cwd=tmp_path, status=2).stderr
    assert f"cannot read the glob {'[' * 100}: " in wrong


def test_binary_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"fish\n\0\nfish\n")
    (tmp_path / "late").write_bytes(b"whale\n" * 20_000 + b"fish 1\nfish\0 2\nfish 3\n")
    assert run("grep", "fish", "a", cwd=tmp_path).stderr.endswith("a: binary file matches\n")
    assert run("grep", "-c", "fish", "a", cwd=tmp_path).stdout == "2\n"
    assert grep("-a", "fish", "a", cwd=tmp_path) == (0, b"fish\nfish\n")
    for size in ((96 << 10) - 6, 96 << 10):  # the NUL stands in GNU grep's first buffer, and behind
        (tmp_path / "far").write_bytes(b"fish\n".ljust(size, b"-") + b"\n\0\n")
        code, printed = grep("fish", "far", cwd=tmp_path)
        assert (code, printed == b"") == (0, size < 96 << 10)
    late = run("grep", "fish", "late", cwd=tmp_path)
    assert (late.stdout, late.stderr) == ("fish 1\n", "gristmill grep: late: binary file matches\n")


def test_numbers_and_globs_that_the_engine_does_not_take(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\nfish\ntwo\n")
    huge = "99999999999999999999"
    for words in (["-A", huge], ["-B", huge], ["-C", huge], ["-m", huge], ["-c", "-m", huge]):
        assert grep(*words, "fish", "a", cwd=tmp_path) == gnu(*words, "fish", "a", cwd=tmp_path)
    wrong = run("grep", "--workers", huge, "fish", "a", cwd=tmp_path, status=2).stderr
    assert f"'{huge}' is not a whole number from 1 to 1024" in wrong
    wrong = run("grep", "-g", os.fsdecode(b"\xff*"), "fish", ".", cwd=tmp_path, status=2).stderr
    assert "is not UTF-8" in wrong


def test_a_defect_does_not_look_as_if_no_line_was_selected(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the engine is broken")

    monkeypatch.setattr("gristmill._core.grep", broken)
    assert the_program().main(["grep", "fish", "a"], standalone_mode=False) == 2
    assert "a defect of Gristmill" in capsys.readouterr().err


def test_a_closed_pipe_ends_it_quietly(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(some_lines(200_000, 5))
    with subprocess.Popen(
        [GRISTMILL, "grep", "", "a"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(60) == 128 + signal.SIGPIPE


def test_a_slow_stream_is_searched_as_it_comes(tmp_path: Path) -> None:
    with subprocess.Popen(
        [GRISTMILL, "grep", "-n", "fish"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_environment(),
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for number in range(1, 4):
            running.stdin.write(b"a fish\n")
            running.stdin.flush()
            assert running.stdout.readline() == b"%d:a fish\n" % number
        running.send_signal(signal.SIGINT)  # while it waits for more
        assert running.wait(60) == 130


def test_quiet_does_not_wait_for_the_end_of_a_stream(tmp_path: Path) -> None:
    with subprocess.Popen(
        [GRISTMILL, "grep", "-q", "fish"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        env=clean_environment(),
    ) as running:
        assert running.stdin is not None
        running.stdin.write(b"a fish\n")
        running.stdin.flush()
        assert running.wait(60) == 0


def test_a_summary_as_json(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("fish\nwhale\n")
    done = run("grep", "fish", "a", "--json", cwd=tmp_path)
    said = json.loads(done.stderr)
    assert said.pop("seconds") >= 0
    assert said == {"files": 1, "bytes": 11, "lines": 1, "unreadable": 0}
    assert done.stdout == "fish\n"


@pytest.mark.parametrize(
    "options", [(), ("--runner", "processes"), ("--top", "3"), ("--min", "900")]
)
def test_counts_are_those_of_hadoops_grep(options: tuple[str, ...], tmp_path: Path) -> None:
    text = some_lines(3000, 6)
    (tmp_path / "in").write_bytes(text)
    run("grep", "--counts", "(?i)fi[a-z]+|of|a", "in", "-o", "out", *options, cwd=tmp_path)
    counts = Counter(re.findall(rb"(?i)fi[a-z]+|of|a", text))
    wanted = sorted(counts.items(), key=lambda found: (-found[1], found[0]))
    if "--top" in options:
        wanted = wanted[:3]
    if "--min" in options:
        wanted = [found for found in wanted if found[1] >= 900]
    lines = b"".join(b"%d\t%s\n" % (count, match) for match, count in wanted)
    assert (tmp_path / "out/part-r-00000").read_bytes() == lines


def test_the_output_of_counts_is_an_option(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("fish --counts fish\n")
    for number, words in enumerate((["-o{}"], ["--output={}"], ["--output", "{}"])):
        given = [word.format(number) for word in words]
        run("grep", *given, "--counts", "fish", "in", cwd=tmp_path)
        assert (tmp_path / str(number) / "part-r-00000").read_text() == "2\tfish\n"
    for words in (["-e", "--counts"], ["-oe", "--counts"], ["-c", "--", "--counts"]):
        assert grep(*words, "in", cwd=tmp_path) == gnu(*words, "in", cwd=tmp_path)
    told = run("grep", "--counts", "--help").stdout
    assert told.startswith("Usage: gristmill grep --counts -o OUT [OPTIONS] PATTERN INPUT...\n")
    assert "gristmill grep --counts 'ERROR [A-Z]+' logs/ -o counts/" in told
    assert "OUTPUT " not in told


def test_patterns_of_counts_may_be_options(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("one fish\ntwo fish\nblue whale\n")
    (tmp_path / "patterns").write_text("whale\nblue\n")
    for number, (words, counts) in enumerate(
        (
            (["-e", "fish", "in"], "2\tfish\n"),
            (["--regexp=fish", "-e", "-x", "in"], "2\tfish\n"),
            (["in", "-e", "one", "-e", "two"], "1\tone\n1\ttwo\n"),
            (["-f", "patterns", "in"], "1\tblue\n1\twhale\n"),
            (["-Fe", "fish", "in", "in"], "4\tfish\n"),
            (["fish", "in"], "2\tfish\n"),
        )
    ):
        run("grep", "--counts", *words, "-o", str(number), cwd=tmp_path)
        assert (tmp_path / str(number) / "part-r-00000").read_text() == counts, words
    wrong = run("grep", "--counts", "-o", "out", "in", cwd=tmp_path, status=2).stderr
    assert "there is no INPUT" in wrong
    assert "no PATTERN" in run("grep", "--counts", "-o", "out", cwd=tmp_path, status=2).stderr


def test_a_job_of_counts_that_fails_has_the_name_of_the_command(tmp_path: Path) -> None:
    said = run("grep", "--counts", "x", "none", "-o", "out", cwd=tmp_path, status=1).stderr
    assert said.startswith("gristmill grep: cannot ")
    said = run("matchcount", "x", "none", "out", cwd=tmp_path, status=1).stderr
    assert said.startswith("gristmill matchcount: cannot ")


def test_lines_before_a_match_on_a_slow_pipe_cost_their_own_bytes(tmp_path: Path) -> None:
    lines = b"".join(b"line %d\n" % number for number in range(60_000)) + b"fish\n"
    words = ["-B", "50000", "-n", "fish"]
    with subprocess.Popen(
        [GRISTMILL, "grep", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_environment(),
    ) as running:
        assert running.stdin is not None
        for at in range(0, len(lines), 40):
            os.write(running.stdin.fileno(), lines[at : at + 40])
        printed = running.communicate(timeout=60)[0]
    assert printed == gnu(*words, cwd=tmp_path, stdin=lines)[1]


def test_what_cannot_be_counted_is_said(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("fish")
    wrong = run("grep", "--counts", "a(b", "in", "-o", "out", cwd=tmp_path, status=2).stderr
    assert "unclosed group" in wrong
    wrong = run("grep", "--counts", "a", "in", cwd=tmp_path, status=2).stderr
    assert wrong.startswith("gristmill grep: --counts makes a directory")
    assert "-o OUT" in wrong
    wrong = run("grep", "--counts", "a", "in", "-o", "out", "--nix", cwd=tmp_path, status=2).stderr
    assert wrong.startswith("gristmill grep: ")
    assert "is empty" in run("grep", "--counts", "a", "in", "-o", "", cwd=tmp_path, status=2).stderr
    with pytest.raises(ValueError, match="unclosed group"):
        gm.matchcount("a(b", tmp_path / "in", tmp_path / "out")
