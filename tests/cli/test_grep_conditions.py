"""`grep --and` and `--not`, and `all_of` and `none_of` of `gm.grep`, against a naive search.

The naive one asks Python's `re` about each line. Texts have empty lines, CRLF and bytes that are
not UTF-8.
"""

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import gristmill as gm
from gristmill.cli.program import the_program

from .harness import run

PATTERNS = [b"a", b"b", b"ab", b"a+b", b"^a", b"b$", b"^$", b"", b"B|-", b"[ab] a", b"\xff", b"z"]
PIECES = [b"a", b"b", b"ab", b"A", b" ", b"-", b"\xff", b"\r", b"\n", b"\n\n", b"\r\n"]

texts = st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join)
some = st.lists(st.sampled_from(PATTERNS), max_size=2)
at_least_one = st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=2)
few = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@dataclass(frozen=True)
class Naive:
    """What is asked of each line."""

    any_of: list[bytes]
    all_of: list[bytes]
    none_of: list[bytes]
    flags: frozenset[str]

    def regex(self, *patterns: bytes) -> re.Pattern[bytes]:
        """Patterns, of which one is enough."""
        if "-F" in self.flags:
            patterns = tuple(map(re.escape, sorted(patterns, key=len, reverse=True)))
        one = b"(?:%s)" % b"|".join(b"(?:%s)" % each for each in patterns)
        if "-x" in self.flags:
            one = rb"\A%s\Z" % one
        elif "-w" in self.flags:
            one = rb"(?<![\w\x80-\xff])%s(?![\w\x80-\xff])" % one
        return re.compile(one, re.IGNORECASE if "-i" in self.flags else 0)

    def inner(self, line: bytes) -> bytes:
        return line.removesuffix(b"\r") if "--crlf" in self.flags else line

    def selects(self, line: bytes) -> bool:
        line = self.inner(line)
        matches = (
            any(self.regex(one).search(line) for one in self.any_of)
            and all(self.regex(one).search(line) for one in self.all_of)
            and not any(self.regex(one).search(line) for one in self.none_of)
        )
        return matches != ("-v" in self.flags)

    def spans(self, line: bytes, patterns: list[bytes]) -> Iterator[tuple[int, int]]:
        """The places that match and are not empty."""
        regex, at, line = self.regex(*patterns), 0, self.inner(line)
        while at <= len(line) and (found := regex.search(line, at)):
            if found[0]:
                yield found.span()
            at = found.end() + (not found[0])

    def arguments(self) -> list[bytes]:
        conditions = [
            *(b"--and=" + one for one in self.all_of),
            *(b"--not=" + one for one in self.none_of),
        ]
        patterns = [b"--regexp=" + one for one in self.any_of]
        return [*patterns, *conditions, *(flag.encode() for flag in sorted(self.flags))]


FLAGS = {
    "-F": "fixed_strings",
    "-i": "ignore_case",
    "-v": "invert_match",
    "-w": "word_regexp",
    "-x": "line_regexp",
    "--crlf": "crlf",
}
searches = st.builds(
    Naive, at_least_one, some, some, st.frozensets(st.sampled_from([*FLAGS]), max_size=3)
)


def lines_of(text: bytes) -> list[bytes]:
    return text.removesuffix(b"\n").split(b"\n") if text else []


def with_context(
    selected: list[bool], before: int, after: int, most: int | None
) -> list[tuple[int, bool]]:
    """Numbers of the lines that are given, from 0, each with whether it is selected."""
    chosen = [at for at, is_selected in enumerate(selected) if is_selected][:most]
    return [
        (at, at in chosen)
        for at in range(len(selected))
        if any(one - before <= at <= one + after for one in chosen)
    ]


@few
@given(texts, searches, st.integers(0, 2), st.integers(0, 2), st.none() | st.integers(0, 3))
@example(b"a b\na\n", Naive([b"a"], [b"b"], [], frozenset()), 0, 1, None)
def test_lines_are_those_of_a_naive_search(
    tmp_path: Path, text: bytes, naive: Naive, before: int, after: int, most: int | None
) -> None:
    (tmp_path / "in").write_bytes(text)
    lines = lines_of(text)
    selected = [naive.selects(line) for line in lines]
    options: Any = {FLAGS[flag]: True for flag in naive.flags}
    found = gm.grep(
        naive.any_of,
        tmp_path / "in",
        all_of=naive.all_of,
        none_of=naive.none_of,
        before_context=before,
        after_context=after,
        max_count=most,
        **options,
    )
    given = [(line.number - 1, not line.is_context, line.line) for line in found]
    wanted = with_context(selected, before, after, most)
    assert given == [(at, is_selected, lines[at]) for at, is_selected in wanted]
    for line in found:
        has_spans = line.is_context == ("-v" in naive.flags)
        spans = naive.spans(line.line, naive.any_of) if has_spans else ()
        assert line.spans == tuple(spans)
    count = min(sum(selected), len(lines) if most is None else most)
    assert found.counts() == {str(tmp_path / "in"): count}
    assert found.any() == bool(count)
    assert bool(list(found.files())) == bool(count) != bool(list(found.files_without_match()))


@few
@given(texts, searches)
@example(b"aab ab\nb\n", Naive([b"a+b"], [b"a"], [], frozenset()))
def test_what_is_printed_is_that_of_a_naive_search(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], text: bytes, naive: Naive
) -> None:
    (tmp_path / "in").write_bytes(text)
    lines = [(at, line) for at, line in enumerate(lines_of(text), 1) if naive.selects(line)]
    is_found = bool(lines)

    def printed(*words: str) -> bytes:
        given = [word.decode(errors="surrogateescape") for word in naive.arguments()]
        arguments = ["grep", "-a", *words, *given, str(tmp_path / "in")]
        code = the_program().main(arguments, standalone_mode=False)
        out, said = capfdbinary.readouterr()
        assert (code, said) == (0 if is_found else 1, b""), arguments
        return out

    name = str(tmp_path / "in").encode() + b"\n"
    assert printed("-n") == b"".join(b"%d:%s\n" % line for line in lines)
    # No line is read where none can be selected.
    assert printed("-c") in ({b"%d\n" % len(lines)} | (set() if is_found else {b""}))
    assert printed("-l") == (name if is_found else b"")
    assert printed("-q") == b""
    matches = [] if "-v" in naive.flags else lines
    parts = [line[slice(*span)] for _, line in matches for span in naive.spans(line, naive.any_of)]
    assert printed("-o") == b"".join(part + b"\n" for part in parts)
    coloured = [where_coloured(line) for line in printed("--color=always").split(b"\n")[:-1]]
    assert coloured == [(line, colours(naive, line)) for _, line in lines]


def colours(naive: Naive, line: bytes) -> set[int]:
    """The bytes of a selected line that are in a match."""
    if "-v" in naive.flags:
        return set()
    patterns = [naive.any_of, *([one] for one in naive.all_of)]
    return {at for each in patterns for span in naive.spans(line, each) for at in range(*span)}


def where_coloured(printed: bytes) -> tuple[bytes, set[int]]:
    """A line without its colours, and which of its bytes have one."""
    line, places = b"", set[int]()
    for part in re.split(rb"(\x1b\[01;31m\x1b\[K.*?\x1b\[m\x1b\[K)", printed):
        plain = re.sub(rb"\x1b\[(01;31)?[mK]", b"", part)
        if plain != part:
            places |= set(range(len(line), len(line) + len(plain)))
        line += plain
    return line, places


def test_files_of_folders_and_stores(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    text = b"ERROR disk full\nERROR disk full (test)\nERROR net\n\0 ERROR disk\n"
    (tmp_path / "logs/a").write_bytes(text)
    (tmp_path / "logs/b.gz").write_bytes(gzip.compress(text))
    words = ["ERROR", "--and", "disk", "--not", "test", "--not=^\\x00"]
    for place in ("logs", f"objects://{tmp_path}/logs"):
        found = run("grep", "-a", "-n", *words, place, cwd=tmp_path).stdout
        assert found == f"{place}/a:1:ERROR disk full\n{place}/b.gz:1:ERROR disk full\n"
    blocks = b"disk ERROR\n" * 120_000 + b"ERROR test disk\n"
    (tmp_path / "long").write_bytes(blocks)
    assert run("grep", "-c", *words, "long", cwd=tmp_path).stdout == "120000\n"
    assert run("grep", "-vn", *words, "long", cwd=tmp_path).stdout == "120001:ERROR test disk\n"


def test_what_is_wrong_names_the_option(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\n")
    for option in ("--and", "--not"):
        wrong = run("grep", "a", "in", option, "a(b", cwd=tmp_path, status=2).stderr
        says = f"cannot read the pattern of {option}: unclosed group, at character 2 of a(b"
        assert says in wrong
        words = ["--counts", "a", "in", "-o", "out"]
        wrong = run("grep", *words, option, "b", cwd=tmp_path, status=2).stderr
        assert f"--counts does not take {option}. What to do: see gristmill grep --counts" in wrong
    for name in ("all_of", "none_of"):
        options: Any = {name: "a(b"}
        with pytest.raises(ValueError, match=f"pattern of {name}: unclosed group"):
            gm.grep("a", tmp_path / "in", **options)
        with pytest.raises(TypeError, match=f"cannot read the options: {name} is 3"):
            gm.grep("a", tmp_path / "in", **{name: 3})  # pyright: ignore
    said = run("grep", "a", "in", "--and", r"b\|c", cwd=tmp_path, status=1).stderr
    assert r"\| in the pattern stands for the character |" in said
