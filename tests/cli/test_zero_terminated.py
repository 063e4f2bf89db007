"""`-z`: lines that NUL ends, of all commands over lines, against GNU's programs.

Each LF of an input and each NUL change places: what comes out must be what comes out without -z,
with the same change. Joins are in test_join_lines.py.
"""

import gzip
import itertools
import random
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill

from .harness import GRISTMILL, clean_environment, failure, names, run

SWAPPED = bytes.maketrans(b"\n\0", b"\0\n")
PIECES = st.sampled_from(
    [b"a", b"b", b"B", b"\n", b"\n", b"\0", b"\r\n", b"\xff", b" ", b":", b"1"]
)
TEXTS = st.lists(st.lists(PIECES, max_size=9).map(b"".join), min_size=1, max_size=3)

COMMANDS: dict[str, tuple[str, dict[str, Any]]] = {
    "shuf": ("shuf", {"seed": "7"}),
    "sample": ("sample", {"number": 2}),
    "sample-rate": ("sample", {"rate": 0.5}),
    "sample-by": ("sample", {"number": 1, "by": ["1"], "field_separator": ":"}),
    "distinct": ("unique", {"count": True}),
    "distinct-last": ("unique", {"keep": "last", "key": ["2"], "field_separator": ":"}),
    "top-by": ("top_records", {"by": ["1"], "key": ["2"], "field_separator": ":"}),
    "group": ("group", {"by": ["1"], "count": True, "field_separator": ":"}),
    "group-first": ("group", {"by": ["1"], "last": ["2"], "field_separator": ":", "sorted": True}),
    "join": ("join", {"by": ["1"], "how": "left", "field_separator": ":"}),
}


def texts_in(folder: Path, texts: list[bytes]) -> Path:
    folder.mkdir()
    for number, text in enumerate(texts):
        (folder / f"{number}").write_bytes(text)
    return folder


def gnu(*words: str, text: bytes) -> bytes:
    """What a GNU program makes of its standard input."""
    environment = {**clean_environment(), "LC_ALL": "C"}
    done = subprocess.run(words, input=text, capture_output=True, env=environment, check=True)
    return done.stdout


def written(*words: str | Path, text: bytes = b"") -> bytes:
    """What a command line writes to standard output."""
    command = [GRISTMILL, *map(str, words)]
    done = subprocess.run(
        command, input=text, capture_output=True, env=clean_environment(), check=True
    )
    assert done.stderr == b""
    return done.stdout


@settings(max_examples=25)
@pytest.mark.parametrize("name", COMMANDS)
@given(texts=TEXTS)
def test_lf_and_nul_change_places(
    tmp_path_factory: pytest.TempPathFactory, name: str, texts: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    function, options = COMMANDS[name]
    found: list[bytes] = []
    for zero in (False, True):
        swap = SWAPPED if zero else None
        source = texts_in(folder / f"in{zero}", [text.translate(swap) for text in texts])
        given_first: list[Any] = [3] if function == "top_records" else []
        inputs = [source, source] if function == "join" else [source]
        out = folder / f"out{zero}"
        done = getattr(gristmill, function)(
            *given_first, *inputs, output=out, zero_terminated=zero, **options
        )
        assert not zero or not done.warnings
        found.append(out.read_bytes())
    if "group" in name or "by" in name:  # groups are in the order of their bytes
        pieces = [sorted(found[0].split(b"\n")), sorted(found[1].translate(SWAPPED).split(b"\n"))]
        assert pieces[0] == pieces[1]
    else:
        assert found[1].translate(SWAPPED) == found[0]


@settings(max_examples=40)
@given(TEXTS, st.sampled_from([[], ["-c"], ["-d"], ["-u"]]))
def test_sorted_ones_are_those_of_gnu_uniq(
    tmp_path_factory: pytest.TempPathFactory, texts: list[bytes], options: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    source = texts_in(folder / "in", texts)
    text = b"".join(text + b"\0" * (text[-1:] not in (b"", b"\0")) for text in texts)
    wanted = gnu("uniq", "-z", *options, text=gnu("sort", "-z", text=text))
    long = {"-c": "count", "-d": "repeated", "-u": "once"}
    gristmill.unique(
        source,
        output=folder / "out",
        sorted=True,
        zero_terminated=True,
        **{long[word]: True for word in options},
    )
    assert (folder / "out").read_bytes() == wanted


@settings(max_examples=40)
@given(TEXTS)
def test_an_order_of_gnu_shuf(tmp_path_factory: pytest.TempPathFactory, texts: list[bytes]) -> None:
    """The same lines, of which GNU shuf gives each an end, too; in an order of our own."""
    folder = tmp_path_factory.mktemp("lines")
    gristmill.shuf(texts_in(folder / "in", texts[:1]), output=folder / "out", zero_terminated=True)
    found = (folder / "out").read_bytes()
    theirs = gnu("shuf", "-z", text=texts[0])
    assert Counter(found.split(b"\0")) == Counter(theirs.split(b"\0"))
    assert found.endswith(b"\0") or not texts[0]


def test_first_ones_are_those_of_gnu_sort(tmp_path: Path) -> None:
    chance = random.Random(5)
    lines = [b"%d\n%x" % (chance.randrange(40), chance.getrandbits(20)) for _ in range(500)]
    text = b"\0".join(lines)
    (tmp_path / "in").write_bytes(text)
    wanted = gnu("head", "-z", "-n30", text=gnu("sort", "-z", "-s", "-n", "-k1,1", text=text))
    assert written("top", "30", "-z", "-n", "-k1,1", tmp_path / "in") == wanted
    by = written("top", "1", "-z", "--by", "1", "-k2", tmp_path / "in")  # an LF is a blank
    least: dict[bytes, bytes] = {}
    for line in lines:
        key = line.split(b"\n")[0]
        least[key] = min(least.get(key, line), line)
    assert sorted(by.split(b"\0")[:-1]) == sorted(least.values())


def test_files_of_so_many_lines_are_those_of_gnu_split(tmp_path: Path) -> None:
    text = b"".join(b"%d\n\0" % number for number in range(10)) + b"last"
    (tmp_path / "in").write_bytes(text)
    (tmp_path / "gnu").mkdir()
    subprocess.run(["split", "-t", "\\0", "-l3", "in", "gnu/"], cwd=tmp_path, check=True)
    run("split", "-z", "--lines", "3", tmp_path / "in", tmp_path / "out")
    parts = [name for name in names(tmp_path / "out") if name.startswith("part-")]
    found = [(tmp_path / "out" / name).read_bytes() for name in parts]
    wanted = [(tmp_path / "gnu" / name).read_bytes() for name in names(tmp_path / "gnu")]
    assert found == [*wanted[:-1], wanted[-1] + b"\0"]
    run("split", "-z", "--bytes", "9", tmp_path / "in", tmp_path / "bytes")
    pieces = [(tmp_path / "bytes" / name) for name in names(tmp_path / "bytes")]
    sizes = [len(path.read_bytes()) for path in pieces if path.name.startswith("part-")]
    assert sizes == [9, 9, 9, 8]
    run("split", "-z", "--by", "1", tmp_path / "in", tmp_path / "by")
    assert (tmp_path / "by" / "7.txt").read_bytes() == b"7\n\0"
    assert (tmp_path / "by" / "last.txt").read_bytes() == b"last\0"


WHERE = (["--workers", "1"], ["--workers", "3"], ["--runner", "processes", "--memory", "60M"])


@pytest.mark.parametrize(
    "words", [["shuf"], ["distinct"], ["join", "-a1", "-t:", "--sorted"]], ids="-".join
)
def test_any_workers_and_memory_give_the_same_bytes(words: list[str], tmp_path: Path) -> None:
    """Of files that are cut, or compressed."""
    chance = random.Random(3)
    lines = [b"%x:\n%x" % (chance.getrandbits(18), chance.getrandbits(60)) for _ in range(500_000)]
    (tmp_path / "in").write_bytes(b"\0".join(lines))
    (tmp_path / "in.gz").write_bytes(gzip.compress(b"\0".join(lines), 1))
    (tmp_path / "right").write_bytes(b"".join(b"%x:y\0" % number for number in range(200_000)))
    more = [tmp_path / "right"] if words[0] == "join" else []
    found: list[bytes] = []
    sources = [tmp_path / "in"] * len(WHERE) + [tmp_path / "in.gz"]
    for number, (source, where) in enumerate(zip(sources, [*WHERE, []], strict=True)):
        out = tmp_path / f"out{number}"
        run(words[0], "-z", *words[1:], source, *more, "-o", out, *where)
        found.append(out.read_bytes())
    assert len(set(found)) == 1
    joined = [line + b":y" if int(line.split(b":")[0], 16) < 200_000 else line for line in lines]
    wanted = joined if more else lines
    assert Counter(found[0].split(b"\0")[:-1]) == Counter(wanted)
    keys = [line.split(b":")[0] for line in found[0].split(b"\0")[:-1]]
    assert not more or all(one <= other for one, other in itertools.pairwise(keys))


def test_standard_input_and_output() -> None:
    assert written("distinct", "-z", text=b"b\n\0a\0b\n") == b"b\n\0a\0"
    assert written("group", "-z", "--by", "1", "--sorted", text=b"b\nx\0b\ta\0a") == b"a\t1\0b\t2\0"
    assert written("sample", "-z", "-n", "9", text=b"\0\0x") == b"\0\0x\0"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["distinct", "--csv"], "rows of a table do not end with NUL"),
        (["shuf", "--tsv"], "rows of a table do not end with NUL"),
        (["distinct", "--jsonl", "--key", "id"], "JSON objects end with LF"),
        (["group", "--by", "1", "-t", "\\0"], "does not separate fields"),
    ],
)
def test_what_makes_no_sense(words: list[str], says: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"id\n")
    error = failure(*words, "-z", tmp_path / "in", status=2)
    assert says in error
    assert "What to do" in error
