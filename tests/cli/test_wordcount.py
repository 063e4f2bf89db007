"""`gristmill wordcount` against a naive count: the same words, however they are cut and packed."""

import bz2
import gzip
import random
import re
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gristmill

from .harness import names, report, run
from .resuming import killed_again_and_again, tree

_BETWEEN = re.compile(rb"[ \t\n\r\x0c]+")


def counted(*texts: bytes) -> bytes:
    """What one part holds."""
    words = Counter(word for text in texts for word in _BETWEEN.split(text) if word)
    return b"".join(b"%s\t%d\n" % found for found in sorted(words.items()))


def part_of(word: bytes, parts: int) -> int:
    """Hadoop's HashPartitioner over Text."""
    value = 1
    for byte in word:
        value = (31 * value + (byte - 256 if byte > 127 else byte)) & 0xFFFFFFFF
    return (value & 0x7FFFFFFF) % parts


def some_text(size: int, seed: int) -> bytes:
    """Words of skewed frequency, many of them rare, not all of them UTF-8."""
    made = random.Random(seed)
    known = [b"%x" % made.getrandbits(made.choice((8, 16, 40))) for _ in range(20_000)]
    known += [b"\xff\xfe", b"\x00", "größe".encode(), b"\x0b", b"x" * 5_000]
    words = made.choices(known, [1 / (rank + 1) for rank in range(len(known))], k=size)
    between = made.choices([b" ", b"  ", b"\t", b"\n", b"\r\n", b"\x0c", b"\n\n"], k=size)
    return b"".join(word + space for word, space in zip(words, between, strict=True))


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=4), st.integers(1, 5))
def test_any_bytes_are_counted(
    tmp_path_factory: pytest.TempPathFactory, texts: list[bytes], parts: int
) -> None:
    folder = tmp_path_factory.mktemp("words")
    source, out = folder / "in", folder / "out"
    source.mkdir()
    for number, text in enumerate(texts):
        (source / f"{number}").write_bytes(text)
    done = gristmill.wordcount(source, out, parts=parts)
    # A byte order mark before a text is not part of its first word, as Hadoop has it.
    wanted = counted(*(text.removeprefix(b"\xef\xbb\xbf") for text in texts))
    found = [(out / f"part-r-{part:05}").read_bytes() for part in range(parts)]
    lines = [line for text in found for line in text.split(b"\n")[:-1]]
    assert sorted(lines) == sorted(wanted.split(b"\n")[:-1])
    for part, text in enumerate(found):
        lines = text.split(b"\n")[:-1]
        words = [line.split(b"\t")[0] for line in lines]
        assert words == sorted(words)
        assert all(part_of(word, parts) == part for word in words)
    assert done.records == wanted.count(b"\n")
    shutil.rmtree(folder)


@pytest.mark.parametrize("options", [(), ("--memory", "40M"), ("--workers", "1")], ids=str)
def test_compressed_and_large_inputs(options: tuple[str, ...], tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    texts = [some_text(2_000_000, 1), some_text(30_000, 2), some_text(30_000, 3)]
    (source / "a.txt").write_bytes(texts[0])
    (source / "b.gz").write_bytes(gzip.compress(texts[1], 1))
    (source / "c.bz2").write_bytes(bz2.compress(texts[2], 1))
    (source / "_ignored").write_text("not these")
    found = report("wordcount", source, tmp_path / "out", *options)
    assert (tmp_path / "out/part-r-00000").read_bytes() == counted(*texts)
    assert found["counters"]["MAP_OUTPUT_RECORDS"] == 2_060_000
    assert names(tmp_path / "out") == ["_SUCCESS", "part-r-00000"]


def test_killed_at_any_moment(home: Path, tmp_path: Path) -> None:
    source, out, wanted = tmp_path / "in", tmp_path / "out", tmp_path / "wanted"
    text = some_text(4_000_000, 4)
    source.write_bytes(text)
    options = ("--parts", "3", "--memory", "24M")
    began_s = time.monotonic()
    run("wordcount", source, wanted, *options)
    took_s = time.monotonic() - began_s
    shutil.rmtree(home, ignore_errors=True)  # of a run that took long
    killed = killed_again_and_again(["wordcount", source, out, *options], home, took_s=took_s)
    assert tree(out) == tree(wanted)
    assert names(tmp_path) == ["home", "in", "out", "wanted"]
    assert killed >= 1, "the job was over before it could be killed"


@pytest.mark.parametrize("runner", ["threads", "processes"])
def test_without_regard_to_case(runner: str, tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.write_bytes("The the tHe Ä ä a A\n".encode() + b"\xc1 \xe1")
    run("wordcount", source, out, "--ignore-case", "--runner", runner)
    assert (out / "part-r-00000").read_bytes() == counted(source.read_bytes().lower())


def test_the_most_frequent_words_come_first(tmp_path: Path) -> None:
    text = some_text(50_000, 7)
    (tmp_path / "in").write_bytes(text)
    words = Counter(word for word in _BETWEEN.split(text) if word)
    ranked = sorted(words.items(), key=lambda found: (-found[1], found[0]))
    for top in (1, 100, 10**6):
        gristmill.wordcount(tmp_path / "in", tmp_path / "out", top=top, min=2, overwrite=True)
        wanted = [found for found in ranked[:top] if found[1] >= 2]
        lines = b"".join(b"%s\t%d\n" % found for found in wanted)
        assert (tmp_path / "out/part-r-00000").read_bytes() == lines
    many = run("wordcount", tmp_path / "in", tmp_path / "o", "--top", "3", "--parts", "2", status=2)
    assert "parts: with --top the output has one part" in many.stderr


def test_rare_words_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a b a c a b")
    run("wordcount", tmp_path / "in", tmp_path / "out", "--min", "2")
    assert (tmp_path / "out/part-r-00000").read_bytes() == b"a\t3\nb\t2\n"


@pytest.mark.parametrize("runner", ["threads", "processes"])
def test_words_by_a_pattern_and_without_case(runner: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes("Été, été! ÉTÉ-3 the The".encode() + b"\n\xff\xc1 \xff\xc1")
    options = ("--runner", runner, "--overwrite")
    run("wordcount", tmp_path / "in", tmp_path / "out", "--fold-case", *options)
    folded = (tmp_path / "in").read_bytes().decode("utf-8", "surrogateescape").lower()
    wanted = counted(folded.encode("utf-8", "surrogateescape"))
    assert (tmp_path / "out/part-r-00000").read_bytes() == wanted
    run(
        "wordcount",
        tmp_path / "in",
        tmp_path / "out",
        "--fold-case",
        "--tokens",
        "[^\\W0-9]+",
        *options,
    )
    wanted = "the\t2\nété\t3\n".encode()
    assert (tmp_path / "out/part-r-00000").read_bytes() == wanted
    wrong = run("wordcount", tmp_path / "in", tmp_path / "o", "--tokens", "a{2", status=2).stderr
    assert "tokens: unclosed counted repetition, at character" in wrong


@pytest.mark.parametrize(
    ("options", "memory"),
    [(("--workers", "1"), "16M"), (("--workers", "2"), "20M"), (("--runner", "processes"), "28M")],
    ids=str,
)
def test_the_memory_that_the_guide_names_is_about_the_least(
    options: tuple[str, ...], memory: str, tmp_path: Path
) -> None:
    (tmp_path / "in").write_text("a b")
    command = ("wordcount", tmp_path / "in", tmp_path / "out", "--workers", "2", *options)
    said = run(*command, "--memory", "5M", status=1).stderr
    (least,) = re.findall(r"--memory (\d+)M or more", said)
    assert abs(int(least) - int(memory.removesuffix("M"))) <= 4


@pytest.mark.parametrize("runner", ["threads", "processes"])
def test_a_pattern_that_is_not_utf8(runner: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"a\xff\xffb\xff\n\xc3\xbf \xff\xff\n")
    options = ("--runner", runner)
    run("wordcount", tmp_path / "in", tmp_path / "words", "--tokens", "\udcff+", *options)
    assert (tmp_path / "words/part-r-00000").read_bytes() == b"\xff\t1\n\xff\xff\t2\n"
    for fixed in ((), ("--fixed-strings",)):
        out = tmp_path / f"matches{len(fixed)}"
        run("matchcount", "b\udcff", tmp_path / "in", out, *fixed, *options)
        assert (out / "part-r-00000").read_bytes() == b"1\tb\xff\n"


def test_what_cannot_be_counted_is_said(tmp_path: Path) -> None:
    missing = run("wordcount", tmp_path / "none", tmp_path / "out", status=1)
    assert "no such file" in missing.stderr
    (tmp_path / "in").write_text("a b")
    many = run("wordcount", tmp_path / "in", tmp_path / "out", "--parts", "1000000", status=2)
    assert "parts must be from 1 to 100000" in many.stderr
    assert names(tmp_path) == ["in"]


@pytest.mark.parametrize("encoding", ["UTF-16LE", "UTF-16BE"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("command", ["wordcount", "matchcount"])
def test_text_in_utf_16_is_told(tmp_path: Path, command: str, mark: str, encoding: str) -> None:
    data = f"{mark}some words, and some more\n".encode(encoding)
    files = tmp_path / "in"
    files.mkdir()
    (files / "a").write_bytes(data)
    (files / "b.gz").write_bytes(gzip.compress(data))
    (files / "c").write_text("plain é\n")
    words = ["wordcount"] if command == "wordcount" else ["matchcount", "[a-z]+"]
    done = run(*words, files, tmp_path / "out")
    said = [line for line in done.stderr.splitlines() if "looks like" in line]
    assert said == [
        f"gristmill: {files}/{name} looks like {encoding}, and its bytes are counted as they are."
        f" To decode it: iconv -f {encoding} -t UTF-8"
        for name in ("a", "b.gz")
    ]
    for number in range(4):
        (files / f"d{number}").write_bytes(data)
    done = run(*words, files, tmp_path / "more")
    assert done.stderr.count("looks like") == 3
    assert "3 more file(s) look like UTF-16 or UTF-32" in done.stderr


@pytest.mark.parametrize("words", [("matchcount",), ("grep", "--counts")])
def test_a_basic_regular_expression_that_counts_nothing_is_told(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "a").write_text("ERROR WARN\n")

    def said(*more: str) -> str:
        out = ("-o", tmp_path / "out") if words[0] == "grep" else (tmp_path / "out",)
        return run(*words, *more, tmp_path / "a", *out, "--overwrite").stderr

    hint = f"gristmill {' '.join(words)}: nothing matched, and \\| in the pattern stands for"
    assert hint in said(r"ERROR\|WARN")
    assert "nothing matched" not in said("ERROR|WARN") + said("-F", r"ERROR\|WARN")
