"""GNU sort's keys in `gristmill sort`: what it writes is what GNU sort writes, byte for byte.

What the keys mean is compared far more often in crates/gnu-keys/tests. Here it is the way through
the command: in memory and by runs on disk, from files and pipes, to files and pipes.
"""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Mount
from .harness import names, report, run
from .sorting import gnu_sort, nothing_of_ours_stays, refusal, same, sort, try_sort

LETTERS = "bdfghiMnrV"

PIECES = [
    *(b"a", b"B", b"z", b"~", b".", b"-", b"0", b"00", b"1", b"9", b"10", b" ", b"  ", b"\t", b","),
    *(
        b",",
        b"\0",
        b"\1",
        b"\xff",
        b"\x80",
        b"\xc3\xa4",
        b"\r",
        b".5",
        b"-1",
        b"-0.5",
        b"1K",
        b"2M",
    ),
    *(
        b"1G",
        b"-1M",
        b"jan",
        b"Feb",
        b"DEC",
        b"0x10",
        b"1e3",
        b"1e",
        b"inf",
        b"-inf",
        b"v1",
        b"1.02",
    ),
    *(b".tar.gz", b".txt", b"foo-1.2", b"18446744073709551617", b"18446744073709551616.5"),
]


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test does: in its folders, in TMPDIR and where it runs, nothing of ours stays."""
    with nothing_of_ours_stays(tmp_path, monkeypatch):
        yield


def text(seed: int, lines: int, end: bytes = b"\n") -> bytes:
    """Lines of pieces; the last one has no end at times."""
    chosen = random.Random(seed)
    made = (b"".join(chosen.choices(PIECES, k=chosen.randrange(8))) for _ in range(lines))
    return end.join(made) + chosen.choice([end, b"x"])


def options(seed: int) -> list[str]:
    """Options that GNU sort takes."""
    chosen = random.Random(seed)

    def position(first: int) -> str:
        char = chosen.choice(["", "", f".{chosen.randrange(first, 5)}"])
        return f"{chosen.randrange(1, 5)}{char}{chosen.choice(['', 'b', 'n', 'f', 'r', 'V', 'br'])}"

    made: list[str] = []
    for _ in range(chosen.randrange(1, 4)):
        end = chosen.choice(["", f",{chosen.randrange(1, 5)}", f",{chosen.randrange(1, 5)}.2b"])
        made += chosen.choice([["-k", position(1) + end], [f"--key={position(1)}{end}"]])
    made += chosen.choice([[], ["-t,"], ["-t", "\\0"], ["--field-separator=1"]])
    made += chosen.choice([[], ["-n"], ["-h"], ["--sort=general-numeric"], ["-V"], ["-fd"]])
    made += [letter for letter in ("-r", "-s", "-u", "-z") if chosen.randrange(3) == 0]
    return made


@pytest.mark.parametrize("letter", LETTERS)
def test_every_letter(letter: str) -> None:
    data = text(ord(letter), 300)
    Path("in").write_bytes(data)
    same(sort(f"-{letter}", "in"), gnu_sort(f"-{letter}", stdin=data))
    chosen = ["-s", f"-k2{letter}", "-k1,1r"]
    same(
        sort(*chosen, "in", "-o", "out") or Path("out").read_bytes(), gnu_sort(*chosen, stdin=data)
    )


@pytest.mark.parametrize(
    ("word", "letter"),
    [("month", "M"), ("numeric", "n"), ("version", "V"), ("human-numeric", "h")],
)
def test_the_words_of_sort(word: str, letter: str) -> None:
    data = text(7, 100)
    same(sort(f"--sort={word}", stdin=data), gnu_sort(f"-{letter}", stdin=data))


@pytest.mark.parametrize("seed", range(25))
def test_options_drawn_at_random(seed: int) -> None:
    chosen = options(seed)
    data = text(seed, 200, b"\0" if "-z" in chosen else b"\n")
    expected = gnu_sort(*chosen, stdin=data)
    same(sort(*chosen, stdin=data), expected)
    middle = len(data) // 2
    middle = data.index(b"\0" if "-z" in chosen else b"\n", middle) + 1
    Path("a").write_bytes(data[:middle])
    Path("b").write_bytes(data[middle:])
    assert sort(*chosen, "a", "b", "-o", "out", "--workers", "2") == b""
    same(Path("out").read_bytes(), expected)


@pytest.mark.parametrize(
    "chosen",
    [
        ["-t,", "-k2,2n", "-k1,1"],
        ["-t,", "-k2,2n", "-s"],
        ["-k1,1V", "-r"],
        ["-t,", "-k2,2h", "-u"],
        ["-z", "-n"],
    ],
)
def test_keys_in_less_memory_than_the_input(chosen: list[str]) -> None:
    drawn = random.Random(len(chosen))
    end = b"\0" if "-z" in chosen else b"\n"
    data = b"".join(
        b"%d-%s,%d" % (drawn.randrange(99), b"x" * drawn.randrange(60), drawn.randrange(5000)) + end
        for _ in range(300_000)
    )
    Path("in").write_bytes(data)
    expected = gnu_sort(*chosen, stdin=data)
    for memory, on_disk in (("24M", True), ("500M", False)):
        resources = ["--memory", memory, "--workers", "2", "--no-sync"]
        report = json.loads(sort(*chosen, "in", "-o", "out", *resources, "--json"))
        assert (report["counters"]["MAP_OUTPUT_MATERIALIZED_BYTES"] > 0) == on_disk
        same(Path("out").read_bytes(), expected)
    same(sort(*chosen, "--memory", "24M", stdin=data), expected)


def test_disk_space_is_reckoned_with_codes(mount: Mount) -> None:
    drawn = random.Random(1)
    data = b"".join(b"%d\n" % drawn.randrange(10_000, 100_000) for _ in range(1_700_000))
    Path("in").write_bytes(data)
    disk = mount("size=16m")
    job = ["-k1,1n", "in", "-o", "out", "--memory", "24M", "--spill-dir", str(disk)]
    explained = run("explain", "sort", *job, "--json", status=1)  # the disk is too small
    plan = json.loads(explained.stdout)
    needs = plan["disks"][1]
    runs = needs["needs"] - needs["passes"]
    assert plan["disks"][0]["needs"] == len(data) < 16 << 20 < runs
    stages = {stage["name"]: stage for stage in plan["stages"]}
    written = stages["spill"]["writes"]
    assert written < runs < 1.01 * written  # with headers and whole blocks
    assert stages["spill"]["reads"] == len(data)
    assert (stages["merge"]["reads"], stages["merge"]["writes"]) == (written, len(data))
    says = refusal(*job, "--no-sync")
    assert says.startswith("cannot spill: runs need ")
    assert names(disk) == []
    done = report("sort", *job[:-2], "--no-sync")
    spilled = done["counters"]["MAP_OUTPUT_MATERIALIZED_BYTES"]
    assert spilled / 1.2 < runs < spilled * 1.2


def test_long_lines_are_not_refused_for_what_a_short_one_says(mount: Mount) -> None:
    data = (b"x" * 9_990 + b"\n\n") * 1_300
    Path("in").write_bytes(data)
    disk = mount("size=16m")
    job = ["-k1,1n", "-s", "in", "-o", "out", "--memory", "24M", "--spill-dir", str(disk)]
    sort(*job, "--no-sync")
    same(Path("out").read_bytes(), gnu_sort("-k1,1n", "-s", stdin=data))


def test_the_memory_that_a_long_line_asks_for_is_enough_and_not_far_more() -> None:
    data = b"b\n" + b"a" * 2_000_000 + b"\na\n"
    Path("in").write_bytes(data)
    chosen = ["-k1", "-k1f", "-k1d", "-k1i"]
    job = [*chosen, "in", "-o", "out", "--workers", "1", "--no-sync", "--memory"]
    named = re.search(r"a line with its keys has .* --memory (\d+)M", refusal(*job, "24M"))
    assert named is not None
    assert 24 < int(named[1]) < 50
    sort(*job, f"{named[1]}M")
    same(Path("out").read_bytes(), gnu_sort(*chosen, stdin=data))


def test_a_separator_that_is_not_utf8() -> None:
    data = b"b\xff10\na\xff9\nc\xffx\xff1\n\xc3\xbf\n" * 50
    Path("in").write_bytes(data)
    for chosen in (["-t", "\udcff", "-k2n"], ["-t\udcff", "-k2,2n", "-s"]):
        expected = gnu_sort(*chosen, stdin=data)
        same(sort(*chosen, stdin=data), expected)
        sort(*chosen, "in", "-o", "out", "--runner", "processes")
        same(Path("out").read_bytes(), expected)


@pytest.mark.parametrize("runner", ["threads", "processes"])
def test_keys_on_every_runner(runner: str) -> None:
    data = text(3, 20_000)
    Path("in").write_bytes(data)
    chosen = ["-k2n", "-k1,1Vr"]
    sort(*chosen, "in", "-o", "out", "--runner", runner)
    same(Path("out").read_bytes(), gnu_sort(*chosen, stdin=data))


def test_options_that_change_no_byte() -> None:
    data = text(5, 500)
    Path("in").write_bytes(data)
    Path("names").write_bytes(b"in\0")
    expected = gnu_sort("-n", stdin=data)
    for same_here in (
        ["-m"],
        ["-S", "500M"],
        ["--buffer-size=500M"],
        ["-T", "."],
        ["--temporary-directory=."],
        ["--parallel=2"],
        ["--batch-size=7"],
        ["--parallel", "2", "-n"],
    ):
        same(sort("-n", *same_here, "in"), expected)
    same(sort("-n", "--files0-from=names"), expected)
    same(sort("-n", "--files0-from=-", stdin=b"in\0"), expected)
    same(sort("--num", "--output=out", "in") or Path("out").read_bytes(), expected)
    refusal("--files0-from=names", "in", status=2)
    refusal("--files0-from=nothing", status=2)


@pytest.mark.parametrize("chosen", [["-n"], ["-k2,2nr", "-s"], ["-V", "-u"], ["-z", "-f"]])
def test_a_check_by_keys(chosen: list[str]) -> None:
    end = b"\0" if "-z" in chosen else b"\n"
    data = gnu_sort(*chosen, stdin=text(11, 200, end))
    Path("in").write_bytes(data)
    assert sort("-c", *chosen, "in") == b""
    assert sort("-C", *chosen, "in") == b""
    first = data.split(end)
    Path("in").write_bytes(end.join([first[-2], *first]))
    done = try_sort("-c", *chosen, "in")
    assert done.status == 1
    assert "in:2:" in done.stderr
    for word in ("--check=diagnose-first", "--check=diag", "--ch=d"):
        assert try_sort(word, *chosen, "in").stderr == done.stderr
    for quiet in ("-C", "--check=quiet", "--check=silent", "--check=q", "--check=sil", "--ch=s"):
        done = try_sort(quiet, *chosen, "in")
        assert (done.status, done.stdout, done.stderr) == (1, b"", "")


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        (["-k0"], "-k 0: the number of a field is zero"),
        (["-k1x"], "-k 1x: 'x' is left over"),
        (["-nM"], "options '-Mn' are incompatible"),
        (["-t", "ab"], "more than one byte"),
        (["-k1R"], "-R is not here: its order is another one in every run; use `shuf`"),
        (["--sort=random"], "-R is not here"),
        (["--sort=x"], "--sort=x: give one of general-numeric, human-numeric, month, numeric, ver"),
        (["-k", ""], "a key is empty. What to do: give F[.C][OPTS][,F[.C][OPTS]]"),
        (["-n", "--format", "fixed:10"], "keys and zero_terminated are for lines"),
    ],
)
def test_keys_that_are_refused(chosen: list[str], says: str) -> None:
    Path("in").write_bytes(b"a\n")
    assert says in refusal(*chosen, "in", status=2)
    assert names(Path()) == ["in", "temporary"]
