"""`gristmill sort` where all goes well: what it writes is what GNU sort writes, byte for byte.

Whatever the lines are, however they are spread over files and pipes, in whatever memory and with
however many workers. Records of fixed length, which GNU sort does not know, are compared with a
sort of a few lines. What fails and what is interrupted: test_sort_failures.py.
"""

import json
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from .harness import names
from .sorting import (
    HOSTILE,
    begin,
    clear,
    cut,
    end,
    gnu_sort,
    naive_fixed,
    noise,
    nothing_of_ours_stays,
    same,
    shell,
    sort,
    try_sort,
)

ANY_BYTE = bytes(range(256)).replace(b"\n", b"")
FLAGS = ["-r", "-u", "-s"]

#: What a budget is refused with, before or while an endless line is read.
TOO_SMALL = ("is too small to sort with", "a record is longer than the")


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test does: in its folders, in TMPDIR and where it runs, nothing of ours stays."""
    with nothing_of_ours_stays(tmp_path, monkeypatch):
        yield


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the files of one example after the other."""
    return tmp_path_factory.mktemp("desk")


# --- any lines, any records ---


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """Few different bytes and shared beginnings, short or long; empty lines, no last newline."""
    tails = st.binary(max_size=4).map(lambda tail: bytes(HOSTILE[at % len(HOSTILE)] for at in tail))
    heads = st.sampled_from([b"", b"", b"a" * 9, b"a" * 10, b"a" * 11, b"\0" * 25, b"\xff" * 5000])
    lines = draw(st.lists(st.builds(bytes.__add__, heads, tails), max_size=30))
    text = b"\n".join(lines)
    # Some texts are said again and again, until they are more than a block.
    most = (3 << 20) // max(1, len(text))
    return text * draw(st.sampled_from([1, 1, 1, 1, min(70_000, most)]))


flag_sets = st.sets(st.sampled_from(FLAGS)).map(sorted)


@st.composite
def resources(draw: st.DrawFn) -> list[str]:
    """Options that must not change a byte."""
    memory = draw(st.sampled_from([[], ["--memory", "20M"]]))
    workers = draw(
        st.sampled_from([[], ["--workers", "1"], ["--workers", "2"], ["--workers", "3"]])
    )
    return [*memory, *workers]


def sort_in_enough(resources: list[str], *arguments: str, stdin: bytes) -> bytes:
    """Sort; in the memory by default, where what was given is too little.

    For how much that may be said: test_sort_failures.py.
    """
    done = try_sort(*resources, *arguments, stdin=stdin)
    if done.status == 1 and any(why in done.stderr for why in TOO_SMALL):
        return sort(*arguments, stdin=stdin)
    assert done.status == 0, done.stderr
    return done.stdout


def spread(contents: list[bytes], piped: int, desk: Path) -> tuple[list[str], bytes]:
    """Write files, and name them; the one of number `piped`, if there is one, is standard input."""
    clear(desk)
    inputs: list[str] = []
    for number, content in enumerate(contents):
        if number == piped:
            inputs.append("-")
        else:
            inputs.append(str(desk / f"in-{number}"))
            (desk / inputs[-1]).write_bytes(content)
    return inputs, contents[piped] if piped < len(contents) else b""


@settings(max_examples=40)
@given(st.lists(texts(), min_size=1, max_size=3), st.integers(0, 5), flag_sets, resources())
@example([b""], 5, [], [])
@example([b"\n"], 0, ["-r"], [])
@example([b"b", b"", b"a"], 1, [], ["--workers", "1"])
@example([b"a\0b\na\0a\na\0\na\n\0\n\0\0\n"], 5, [], [])
@example([b"a\r\na\n\r\n\xff\n\xc3\x28\na\x80\n"], 5, ["-r"], [])
def test_lines_come_out_as_from_gnu_sort(
    desk: Path, contents: list[bytes], piped: int, flags: list[str], resources: list[str]
) -> None:
    inputs, stdin = spread(contents, piped, desk)
    found = sort_in_enough(resources, *flags, *inputs, stdin=stdin)
    same(found, gnu_sort(*flags, *inputs, stdin=stdin))


@st.composite
def fixed_formats(draw: st.DrawFn) -> tuple[int, int | None, list[bytes]]:
    """A length, perhaps a key's length, and files of such records, in which newlines are bytes."""
    length = draw(st.integers(1, 24))
    key_length = draw(st.none() | st.integers(1, length))
    one = st.lists(st.sampled_from(b"\0\n\xffa"), min_size=length, max_size=length).map(bytes)
    files = st.lists(st.lists(one, max_size=25).map(b"".join), min_size=1, max_size=3)
    return length, key_length, draw(files)


@settings(max_examples=40)
@given(fixed_formats(), st.integers(0, 5), flag_sets, resources())
@example((3, 1, [b"a\n2a\n1b\n0a\n2"]), 5, ["-r"], [])
@example((3, 1, [b"a\n2a\n1b\n0a\n2"]), 0, ["-r", "-s"], [])
@example((3, 1, [b"a\n2a\n1", b"b\n0a\n0"]), 5, ["-r", "-u"], [])
def test_records_come_out_as_from_a_naive_sort(
    desk: Path,
    format_: tuple[int, int | None, list[bytes]],
    piped: int,
    flags: list[str],
    resources: list[str],
) -> None:
    length, key_length, contents = format_
    inputs, stdin = spread(contents, piped, desk)
    shape = f"fixed:{length}" if key_length is None else f"fixed:{length}:{key_length}"
    found = sort_in_enough(resources, "--format", shape, *flags, *inputs, stdin=stdin)
    same(found, naive_fixed(b"".join(contents), length, key_length, set(flags)))


def test_flags_in_every_spelling(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"b\na\nb\nc\n")
    expected = b"c\nb\na\n"
    for flags in (["-ru"], ["-r", "-u"], ["-sur"], ["--reverse", "--unique", "--stable"]):
        assert sort(*flags, "a") == expected
        assert sort("a", *flags, "--format", "lines") == expected


# --- inputs ---


def test_standard_input_wherever_it_is_named() -> None:
    Path("a").write_bytes(b"c\na")
    for inputs in (["-", "a"], ["a", "-"], ["--", "a", "-"]):
        assert sort(*inputs, stdin=b"d\nb") == b"a\nb\nc\nd\n"
    for inputs in ([], ["-"]):
        assert sort(*inputs, stdin=b"d\nb") == b"b\nd\n"


def test_standard_input_that_is_a_file() -> None:
    Path("a").write_bytes(b"c\na\nb")
    with Path("a").open("rb") as opened:
        assert sort("-", stdin=opened) == b"a\nb\nc\n"
    with Path("a").open("rb") as opened:  # it begins where it is, not at the file's beginning
        opened.seek(2)
        assert sort(stdin=opened) == b"a\nb\n"


def test_a_directory_stands_for_the_files_in_it() -> None:
    folder = clear(Path("folder"))
    for name in ("b", "a", "_SUCCESS", ".hidden"):
        (folder / name).write_text(f"{name}\nz\n")
    Path("c").write_text("c\n")
    assert sort("folder", "c") == b"a\nb\nc\nz\nz\n"


def test_a_file_given_twice() -> None:
    Path("a").write_text("b\na\n")
    assert sort("a", "a") == b"a\na\nb\nb\n"


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="no /proc here")
def test_a_file_that_says_it_is_empty_and_is_not() -> None:
    """As those in /proc are: their size is 0."""
    assert sort("/proc/meminfo").count(b"\n") == gnu_sort("/proc/meminfo").count(b"\n")
    assert try_sort("-c", "/proc/meminfo").status == 1


def test_many_files() -> None:
    folder = clear(Path("folder"))
    for number in range(300):
        (folder / f"{number}").write_text(f"{number}\n")
    expected = gnu_sort(stdin=b"".join(b"%d\n" % number for number in range(300)))
    assert sort("folder") == expected
    done = shell('ulimit -n 64; "$gristmill" sort folder/*', Path())
    assert (done.status, done.stdout) == (0, expected), done.stderr


def test_process_substitution() -> None:
    done = shell('"$gristmill" sort <(printf "b\\nd\\n") <(printf "c\\na\\n")', Path())
    assert (done.status, done.stdout) == (0, b"a\nb\nc\nd\n"), done.stderr


# --- more than memory ---


def spilled(*arguments: str | Path) -> dict[str, Any]:
    """Sort into a file; returns the report, which tells of two runs or more."""
    found = json.loads(sort(*arguments, "--no-sync", "--json"))
    assert found["status"] == "succeeded"
    assert found["counters"]["SPILLED_RUNS"] >= 2, found["counters"]
    assert found["counters"]["SPILLED_RECORDS"] > 0
    return found


@pytest.mark.parametrize("memory", ["20M", "64M"])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_spilled_runs(
    memory: str, workers: str, much_text: Path, much_text_sorted: Path, tmp_path: Path
) -> None:
    out, spill = tmp_path / "out", clear(tmp_path / "spill")
    options = ["--memory", memory, "--workers", workers, "--spill-dir", spill]
    found = spilled(*options, "-o", out, much_text)
    same(out, much_text_sorted)
    assert found["records"] == out.read_bytes().count(b"\n")
    assert names(spill) == []


@pytest.mark.parametrize("flags", [["-u"], ["-r"], ["-s", "-r", "-u"]], ids="".join)
def test_spilled_runs_with_flags(flags: list[str], much_text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    spilled(*flags, "--memory", "24M", "-o", out, *cut_once(much_text, tmp_path))
    same(out, gnu_sort(*flags, *cut_once(much_text, tmp_path)))


def cut_once(text: Path, folder: Path) -> list[Path]:
    """Half of a text in three files, for a test."""
    files = sorted(folder.glob("cut-*"))
    return files or cut(text.read_bytes()[: 30 << 20], folder, 3, seed=2)


def test_more_passes_than_one(much_text: Path, much_text_sorted: Path, tmp_path: Path) -> None:
    """Many runs, of which a merge in so little memory cannot take all."""
    out, inputs = tmp_path / "out", [much_text, much_text]
    found = spilled("--memory", "16M", "--workers", "1", "-o", out, *inputs)
    assert found["counters"]["MERGE_PASSES"] >= 1, found["counters"]
    same(out, gnu_sort("-m", much_text_sorted, much_text_sorted))


LONG_HEAD = b"\n" + b"/very/deep/folder" * 150
KINDS: dict[str, tuple[list[str], Callable[[], bytes]]] = {
    "a head of 2.5 kB that all share": (
        ["-r"],
        lambda: noise(400_000, HOSTILE, 0.05, 3).replace(b"\n", LONG_HEAD),
    ),
    "all lines equal": ([], lambda: b"the same again\n" * 2_000_000),
    "all lines equal, one wanted": (["-u"], lambda: b"the same again\n" * 2_000_000),
    "nothing but newlines": ([], lambda: b"\n" * 3_000_000),
    "lines of a byte": (["-u", "-r"], lambda: noise(4_000_000, ANY_BYTE, 0.5, 4)),
    "lines of a megabyte": (
        [],
        lambda: b"\n".join(noise(size, HOSTILE, 0, 5) for size in range(1, 1_000_000, 16_384)),
    ),
    "CR LF": (["-s"], lambda: noise(16_000_000, b"abcdefgh", 0.1, 6).replace(b"\n", b"\r\n")),
    "random bytes": ([], lambda: noise(30_000_000, ANY_BYTE, 1 / 256, 7)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_spilled_runs_of_every_kind(kind: str, tmp_path: Path) -> None:
    flags, make = KINDS[kind]
    text, out = tmp_path / "text", tmp_path / "out"
    text.write_bytes(make())
    spilled(*flags, "--memory", "20M", "--workers", "1", "-o", out, text)
    same(out, gnu_sort(*flags, text))


PARTS = {
    "a line of 100 kB": b"a" * 100_000 + b"\n",
    "a line of a megabyte": b"b" * 1_000_000 + b"\n",
    "lines of a kilobyte": (b"c" * 999 + b"\n") * 1000,
    "newlines": b"\n" * 300_000,
    "lines of 8 bytes": b"8 bytes\n" * 300_000,
}


@pytest.mark.parametrize(("first", "second"), list(permutations(PARTS, 2)))
def test_a_text_that_changes(first: str, second: str) -> None:
    """What the lines are like at its beginning is not what they are like later."""
    text = PARTS[first] + PARTS[second]
    Path("text").write_bytes(text)
    expected = gnu_sort("text")
    same(sort("text"), expected)
    same(sort(stdin=text), expected)


@pytest.mark.parametrize("memory", ["50M", "128M"])
def test_a_text_that_changes_and_is_more_than_memory(memory: str) -> None:
    text = b"".join(PARTS.values()) + PARTS["lines of 8 bytes"] * 9
    Path("text").write_bytes(text)
    expected = gnu_sort("text")
    same(sort("--memory", memory, "text"), expected)
    same(sort("--memory", memory, stdin=text), expected)


@pytest.mark.parametrize(
    ("shape", "flags"),
    [
        ("fixed:16", []),
        ("fixed:16", ["-u", "-r"]),
        ("fixed:16:2", []),
        ("fixed:16:2", ["-r"]),
        ("fixed:16:2", ["-s"]),
        ("fixed:16:2", ["-u"]),
        ("fixed:1000:3", ["-r", "-s"]),
        ("fixed:1000:3", ["-u", "-r"]),
        ("fixed:100000:70000", []),
    ],
)
def test_spilled_records(shape: str, flags: list[str], tmp_path: Path) -> None:
    """Keys of which many are equal: their order is that of the input, or of all their bytes."""
    _, length, *key = shape.split(":")
    whole = (12_000_000 if length == "16" else 30_000_000) // int(length) * int(length)
    data, out = noise(whole, b"\0a\xff", 0.2, 8), tmp_path / "out"
    half = whole // int(length) // 2 * int(length)
    inputs = [tmp_path / "first", tmp_path / "second"]
    inputs[0].write_bytes(data[:half])
    inputs[1].write_bytes(data[half:])
    spilled("--format", shape, *flags, "--memory", "20M", "-o", out, *inputs)
    same(out, naive_fixed(data, int(length), int(key[0]) if key else None, set(flags)))


def test_memory_is_kept(much_text: Path, tmp_path: Path) -> None:
    """Beyond what a small sort has, a large one has no more than it was given."""
    (tmp_path / "few").write_text("b\na\n")
    report = ["--json", "--no-sync", "-o", str(tmp_path / "out")]
    idle = json.loads(sort(*report, "few"))["peak_anon_bytes"]
    with much_text.open("rb") as opened:
        for given in (str(much_text), "-"):
            found = json.loads(sort("--memory", "32M", *report, given, stdin=opened))
            assert found["peak_anon_bytes"] < idle + 33_000_000, (found["peak_anon_bytes"], idle)


def test_a_line_of_100_megabytes_among_small_ones(tmp_path: Path) -> None:
    text, out = tmp_path / "text", tmp_path / "out"
    text.write_bytes(b"b\n" + b"a" * 100_000_000 + b"\na\nc\n" + b"a" * 1000)
    sort("--memory", "600M", "--no-sync", "-o", out, text)
    same(out, gnu_sort(text))


@pytest.mark.parametrize("memory", [[], ["--memory", "512M"]], ids=["default", "512M"])
def test_a_line_of_13_megabytes_behind_small_ones(memory: list[str]) -> None:
    text = b"ab\n" * 2_000_000 + b"x" * 13_000_000 + b"\n"
    Path("text").write_bytes(text)
    expected = gnu_sort("text")
    same(sort(*memory, "text"), expected)
    same(sort(*memory, stdin=text), expected)


def test_two_jobs_share_a_spill_directory(
    much_text: Path, much_text_sorted: Path, tmp_path: Path
) -> None:
    spill = clear(tmp_path / "spill")
    command = ["--memory", "20M", "--spill-dir", spill, "--no-sync", much_text, "-o"]
    with begin(*command, tmp_path / "one") as one, begin(*command, tmp_path / "two") as two:
        for process in (one, two):
            done = end(process)
            assert done.status == 0, done.stderr
    same(tmp_path / "one", much_text_sorted)
    same(tmp_path / "two", much_text_sorted)
    assert names(spill) == []


# --- pipes ---


def test_a_pipe_of_any_size() -> None:
    command = """head -c 30M /dev/urandom | "$gristmill" sort --memory 20M - |
                 "$gristmill" sort -c -"""
    done = shell(command, Path())
    assert (done.status, done.stdout) == (0, b""), done.stderr


@pytest.mark.parametrize("more", [[], ["-u"], ["--spill-dir", "spill"]], ids=["", "-u", "spill"])
def test_a_pipe_that_is_more_than_memory(
    more: list[str], much_text: Path, much_text_sorted: Path
) -> None:
    clear(Path("spill"))
    piped = sort("--memory", "20M", *more, stdin=much_text.read_bytes())
    same(piped, gnu_sort("-u", much_text_sorted) if "-u" in more else much_text_sorted)
    assert names(Path("spill")) == []


def test_a_pipe_in_drops() -> None:
    """What is written byte by byte, with pauses, is one input."""
    command = """(printf 'b\\nc'; sleep 0.2; printf 'c\\n'; sleep 0.2; printf 'a') |
                 "$gristmill" sort"""
    assert shell(command, Path()).stdout == b"a\nb\ncc\n"


@pytest.mark.parametrize("memory", ["20M", "512M"])
def test_a_reader_that_has_seen_enough(memory: str, much_text: Path) -> None:
    head = f'"$gristmill" sort --memory {memory} {much_text} | head -1'
    done = shell(head + " | wc -l; exit ${PIPESTATUS[0]}", Path())
    assert done.stdout.strip() == b"1"
    assert done.stderr == ""


def test_standard_output_by_name() -> None:
    Path("a").write_text("b\na\n")
    assert sort("-o", "-", "a") == b"a\nb\n"
    assert sort("a", "--output", "-") == b"a\nb\n"
    assert names(Path()) == ["a", "temporary"]


def test_standard_output_that_is_a_file(much_text: Path, much_text_sorted: Path) -> None:
    """It is written from where it stands, and what follows is written behind that."""
    expected = b"before\n" + much_text_sorted.read_bytes() + b"after\n"
    for redirected in (">", ">>"):
        Path("out").write_bytes(b"")
        command = f"""(echo before; "$gristmill" sort --memory 20M {much_text}; echo after)"""
        done = shell(f"{command} {redirected} out", Path())
        assert done.status == 0, done.stderr
        same(Path("out"), expected)
