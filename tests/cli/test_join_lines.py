"""`gristmill join` of lines against GNU join."""

import gzip
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill

from .harness import failure, names, run

SEPARATORS = (None, b":", b" ", b"\t", b"\0", b"")
WORDS = st.sampled_from([b"", b"a", b"A", b"b", b"ab", b"aB", b"\xff", b"1", b"-", b'"', b"\r"])
BETWEEN = st.sampled_from([b":", b" ", b"\t", b"\0", b"  ", b"::", b" :"])
LINE = st.builds(
    lambda pairs, end: b"".join(a + b for a, b in pairs) + end,
    st.lists(st.tuples(WORDS, BETWEEN), max_size=4),
    WORDS,
)
FILE = st.tuples(st.lists(LINE, max_size=7), st.booleans())


SWAPPED = bytes.maketrans(b"\n\0", b"\0\n")


def text_of(file: tuple[list[bytes], bool]) -> bytes:
    """The bytes of a file, whose last line may have no end."""
    lines, has_end = file
    text = b"\n".join(lines)
    return text + b"\n" * (has_end or text.endswith(b"\n")) if text else b"\n" * len(lines)


def gnu(words: Sequence[object], directory: Path, text: bytes | None = None) -> bytes:
    """What a GNU program prints."""
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(
        [os.fsencode(str(word)) if not isinstance(word, bytes) else word for word in words],
        cwd=directory,
        env=environment,
        capture_output=True,
        input=text,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def gnu_sorted(
    file: Path,
    field: int,
    separator: bytes | None,
    *,
    fold: bool,
    has_header: bool,
    end: bytes = b"\n",
) -> None:
    """Sorts a file by a field as GNU join wants it; lines of equal keys stay as they are."""
    options: list[object] = ["sort", "-s", f"-k{field}{'b' * (separator is None)},{field}"]
    if separator == b"":
        options[2] = "-k1"
    elif separator is not None:
        options += [b"-t" + (separator if separator != b"\0" else b"\\0")]
    if fold:
        options.append("-f")
    if end == b"\0":
        options.append("-z")
    lines = file.read_bytes()
    header = b""
    if has_header and lines:
        header, _, lines = lines.partition(end)
        header += end
    text = gnu(options, file.parent, lines)
    file.with_suffix(".sorted").write_bytes(header + text)


def words_of(options: dict[str, Any], separator: bytes | None) -> list[object]:
    """Options as GNU join has them."""
    words: list[object] = []
    for name, letter in (("left_field", "-1"), ("right_field", "-2"), ("field", "-j")):
        if options.get(name):
            words += [letter, options[name]]
    words += [f"-a{number}" for number in options.get("unpaired", ())]
    words += [f"-v{number}" for number in options.get("only_unpaired", ())]
    for name, letter in (("empty", "-e"), ("fields", "-o")):
        if options.get(name) is not None:
            words += [letter, options[name]]
    words += ["-i"] * options.get("ignore_case", False)
    words += ["--header"] * options.get("header", False)
    if separator is not None:
        words += ["-t", separator if separator != b"\0" else b"\\0"]
    return words


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "left_field": st.integers(1, 3),
        "right_field": st.integers(1, 3),
        "unpaired": st.lists(st.sampled_from("12"), min_size=1, max_size=2),
        "only_unpaired": st.lists(st.sampled_from("12"), min_size=1, max_size=2),
        "empty": st.sampled_from(["", "-", "EMPTY"]),
        "fields": st.sampled_from(
            ["auto", "0", "0,1.2,2.3", "2.1,1.1", "1.1,1.2", "2.2,0,1.3,0,2.1,2.2", "1.1,2.1,1.2"]
        ),
        "ignore_case": st.booleans(),
        "header": st.booleans(),
    },
)


@settings(max_examples=150)
@given(FILE, FILE, OPTIONS, st.sampled_from(SEPARATORS), st.booleans())
def test_lines_are_those_of_gnu_join(
    tmp_path_factory: pytest.TempPathFactory,
    left: tuple[list[bytes], bool],
    right: tuple[list[bytes], bool],
    options: dict[str, Any],
    separator: bytes | None,
    zero: bool,
) -> None:
    """With -z each LF and each NUL change places: so lines have LFs, which are blanks."""
    folder = tmp_path_factory.mktemp("lines")
    if separator == b"":
        options = {**options, "left_field": 1, "right_field": 1}
    swap = SWAPPED if zero else None
    if zero and separator == b"\0":
        separator = b":"  # GNU join does not cut lines where an LF is
    for name, file in (("left", left), ("right", right)):
        (folder / name).write_bytes(text_of(file).translate(swap))
        gnu_sorted(
            folder / name,
            options.get(f"{name}_field", 1),
            separator,
            fold=options.get("ignore_case", False),
            has_header=options.get("header", False),
            end=b"\0" if zero else b"\n",
        )
    words = [
        "join",
        "--nocheck-order",
        *words_of(options, separator),
        *["-z"] * zero,
        "left.sorted",
    ]
    wanted = gnu([*words, "right.sorted"], folder)
    mine: dict[str, Any] = {**options, "zero_terminated": zero}
    if separator is not None:
        mine["field_separator"] = {b"\0": r"\0"}.get(separator, separator.decode())
    # How many fields the first line has depends on which one that is.
    for ending in (".sorted",) if options.get("fields") == "auto" else ("", ".sorted"):
        inputs = (folder / f"left{ending}", folder / f"right{ending}")
        gristmill.join(*inputs, output=folder / "out", sorted=not ending, **mine)
        assert (folder / "out").read_bytes() == wanted


How = Literal["inner", "left", "right", "full", "semi", "anti"]
HOW = {"inner": (), "left": ("-a1",), "right": ("-a2",), "full": ("-a1", "-a2")}


@settings(max_examples=60)
@given(FILE, FILE, st.sampled_from(get_args(How)), st.sampled_from(SEPARATORS[:3]))
def test_lines_are_joined_as_tables_are(
    tmp_path_factory: pytest.TempPathFactory,
    left: tuple[list[bytes], bool],
    right: tuple[list[bytes], bool],
    how: How,
    separator: bytes | None,
) -> None:
    """By the words that tables have: GNU join has other ones. What is selected stays as it is."""
    folder = tmp_path_factory.mktemp("lines")
    for name, file, field in (("left", left, 2), ("right", right, 1)):
        (folder / name).write_bytes(text_of(file))
        gnu_sorted(folder / name, field, separator, fold=False, has_header=False)
    mine: dict[str, Any] = {"field_separator": separator and separator.decode()}
    inputs = (folder / "left", folder / "right")
    out = folder / "out"
    gristmill.join(*inputs, output=out, by="2=1", how=how, sorted=True, **mine)
    words = words_of({"left_field": 2, "right_field": 1}, separator)
    if how in HOW:
        files = ("left.sorted", "right.sorted")
        assert out.read_bytes() == gnu(
            ["join", "--nocheck-order", *words, *HOW[how], *files], folder
        )
        return
    lines = (folder / "left.sorted").read_bytes().split(b"\n")[:-1]
    keys = {key_of(line, 0, separator) for line in text_of(right).split(b"\n")[:-1]}
    last = text_of(right).split(b"\n")[-1]
    keys |= {key_of(last, 0, separator)} if last else set()
    wanted = [line for line in lines if (key_of(line, 1, separator) in keys) == (how == "semi")]
    assert out.read_bytes() == b"".join(line + b"\n" for line in wanted)


def key_of(line: bytes, field: int, separator: bytes | None) -> bytes:
    """A field of a line; without a separator blanks separate."""
    fields = line.split(separator) if separator else re.findall(rb"[^ \t]+", line)
    return fields[field] if field < len(fields) else b""


def test_blanks_separate_and_one_stands_between(tmp_path: Path) -> None:
    (tmp_path / "left").write_bytes(b" 1  a\n\n2 b\tc\n3")
    (tmp_path / "right").write_bytes(b"x 2\ny\t2 z\n")
    join = ("join", tmp_path / "left", tmp_path / "right")
    assert run(*join, "-2", "2", "-a1", "-a2").stdout == "\n1 a\n2 b c x\n2 b c y z\n3\n"
    assert run(*join, "--by", "1=2", "--how", "full").stdout == "\n1 a\n2 b c x\n2 b c y z\n3\n"
    assert run(*join, "-2", "2", "-v1").stdout == "1 a\n\n3\n"  # in the order of the left
    assert run(*join, "-2", "2", "-v1", "--sorted").stdout == "\n1 a\n3\n"
    done = run(*join, "--by", "1=2", "--how", "anti", "-o", tmp_path / "anti")
    assert done.stdout == ""
    assert (tmp_path / "anti").read_bytes() == b" 1  a\n\n3\n"


def test_several_files_of_lines(tmp_path: Path) -> None:
    """Each has a header, which is written once; packed files are read as what they hold."""
    for name, texts in (("left", (b"k a\n1 x\n", b"k a\n2 y\n")), ("right", (b"k b\n2 z",))):
        (tmp_path / name).mkdir()
        for number, text in enumerate(texts):
            (tmp_path / name / f"{number}.gz").write_bytes(gzip.compress(text))
    (tmp_path / "third").write_bytes(b"k c\n1 w\n2 v\n")
    join = ("join", tmp_path / "left", tmp_path / "right")
    assert run(*join, "--header", "-a1").stdout == "k a b\n1 x\n2 y z\n"
    found = run(*join, tmp_path / "third", "--header", "--fields", "0,3.2,1.2,2.2")
    assert found.stdout == "k c a b\n2 v y z\n"
    found = run(*join, tmp_path / "third", "--header", "--how", "full", "--fields", "auto", "-e-")
    assert found.stdout == "k a b c\n1 x - w\n2 y z v\n"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["-1", "0"], "not a whole number from 1 on"),
        (["-a", "3"], '"3" names no input'),
        (["-v", "x"], '"x" names no input'),
        (["-a1", "--how", "left"], "how says which rows are written"),
        (["-1", "2", "--by", "1"], "by says which fields are the key"),
        (["--fields", "1"], '"1" names no field of an input'),
        (["--fields", "3.1"], "with INPUT from 1 to 2"),
        (["--fields", "0", "--how", "anti"], "write lines as they are"),
        (["-o", "0,1.2"], "give --fields 0,1.2"),
        (["-o", "1.2"], "looks like a list of fields"),
        (["-t", "ab"], "does not separate fields"),
        (["--by", "id"], "is not the number of a field"),
        (["--by", "1", "--no-header"], "lines have no header"),
    ],
)
def test_wrong_options(options: list[str], says: str, tmp_path: Path) -> None:
    (tmp_path / "left").write_bytes(b"1 a\n")
    (tmp_path / "right").write_bytes(b"1 b\n")
    assert says in failure("join", "left", "right", *options, status=2, cwd=tmp_path)
    assert names(tmp_path) == ["left", "right"]


def test_gnu_letters_are_for_two_inputs(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1 a\n")
    error = failure("join", "a", "a", "a", "-a1", status=2, cwd=tmp_path)
    assert "--unpaired: it is for two inputs" in error
    assert run("join", "a", "a", "a", cwd=tmp_path).stdout == "1 a a a\n"


def test_lines_with_an_lf_are_taken_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"b\0b\nx\0c\nx\0")
    (tmp_path / "b").write_bytes(b"b\0b\nx\0")
    for separator in ("", "\n"):
        words = ["join", "-z", "-t", separator]
        wanted = gnu([*words, "--nocheck-order", "-o1.1,2.1", "-a1", "a", "b"], tmp_path)
        found = run(*words, "--fields", "1.1,2.1", "-a1", "a", "b", cwd=tmp_path).stdout
        assert sorted(found.split("\0")) == sorted(wanted.decode().split("\0"))
