"""`--comment`: lines of a table that are no rows, of all commands over tables."""

import csv
import gzip
import io
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill as gm

from .harness import GRISTMILL, failure, report, run
from .random_records import MARK, large_table

SIGNS = ["#", "//", "§", "ab#", "\N{FULLWIDTH NUMBER SIGN}"]
"""What comments begin with; the last one begins as a byte order mark does."""

COMMENTS = st.sampled_from([b"#", b"# a,b", b'#"', b'# x,"open', b"#,,,", b'##"",\r', b"#\xff"])
ROWS = st.sampled_from(
    [
        *(b"b,1", b'a,"n\nl"', b'"#a",2', b'c," #"', b'x"y,3', b'a,"""#"'),
        *(b"/,4", b'ab"y,5', b"\xc2,6", b"\xef\xbc,7", b'a,"8"', b'/"/,9'),
    ]
)


def cells(path: Path) -> list[list[str]]:
    """What the cells of a table say: a first one that looks like a comment gets quotes."""
    return [*csv.reader(io.StringIO(path.read_bytes().decode("latin-1"), newline=""))]


@settings(max_examples=60)
@given(
    st.lists(COMMENTS, max_size=3),
    st.lists(st.one_of(ROWS, COMMENTS), max_size=12),
    st.sampled_from(SIGNS),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_comments_are_as_if_they_were_not_there(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[bytes],
    lines: list[bytes],
    sign: str,
    has_mark: bool,
    whole: bool,
    packed: bool,
) -> None:
    folder = tmp_path_factory.mktemp("comments")
    before = [line.replace(b"#", sign.encode()) for line in before]
    lines = [line.replace(b"#", sign.encode()) for line in lines]
    text = b"\n".join([*before, b"k,v", *lines]) + (b"\n" if whole else b"")
    text = MARK * has_mark + text
    rows = [line for line in lines if not line.startswith(sign.encode())]
    with_comments, plain = folder / ("with.gz" if packed else "with"), folder / "plain"
    with_comments.write_bytes(gzip.compress(text) if packed else text)
    marked = MARK * (has_mark and not before)
    plain.write_bytes(marked + b"\n".join([b"k,v", *rows]) + b"\n")
    out = folder / "out"

    def done(source: Path, words: dict[str, Any]) -> list[object]:
        found: list[object] = []
        gm.sort(source, output=out, csv=True, key=["v"], **words)
        found.append(out.read_bytes())
        gm.unique(source, output=out, csv=True, key=["k"], **words)
        found.append(out.read_bytes())
        gm.group(source, output=out, csv=True, by=["k"], first=["v"], **words)
        found.append(cells(out))
        gm.join(source, source, output=out, csv=True, by=["k"], **words)
        found.append(cells(out))
        gm.split_by(source, folder / "by", csv=True, lines=2, overwrite=True, **words)
        found += [path.read_bytes() for path in sorted((folder / "by").glob("part-*"))]
        return found

    assert done(with_comments, {"comment": sign}) == done(plain, {})
    shutil.rmtree(folder)


def fed(text: str, *words: str) -> str:
    """What a command makes of its standard input."""
    done = subprocess.run(
        [GRISTMILL, *words], input=text, capture_output=True, encoding="utf-8", check=True
    )
    return done.stdout


def test_without_a_header_and_from_standard_input(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(MARK + b'# "a\n#b\n2,x\n# c\n1,y')
    words = ["--csv", "--comment", "#", "--no-header"]
    assert run("sort", *words, tmp_path / "in").stdout == "1,y\n2,x\n"
    assert fed("#x\n#\n2,x\n#", "sort", *words) == "2,x\n"
    assert fed('#"\n2,x\n2,x\n#', "distinct", *words) == "2,x\n"
    assert fed("; a\nk\tv\n;\n2\t\n", "sort", "--tsv", "--comment", ";") == "k\tv\n2\t\n"
    assert not fed("#2\n1,x\n#0\n2,x\n", "sort", "-c", *words)


def test_files_of_comments_alone_and_several_headers(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"# nothing, but this\n#")
    (tmp_path / "b").write_bytes(b'# "b"\nk,v\n2,x\n')
    (tmp_path / "c").write_bytes(b'#1\n#2,"\nk,v\n# k,v\n1,y\n')
    done = run("sort", "--csv", "--comment", "#", *(tmp_path / name for name in "abc"))
    assert done.stdout == "k,v\n1,y\n2,x\n"
    done = run("distinct", "--csv", "--comment", "#", *(tmp_path / name for name in "abc"))
    assert done.stdout == "k,v\n2,x\n1,y\n"


def test_what_is_written_is_no_comment(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b'"#k",v\n#,1\n"#a",2\n"#",#\n')
    words = ["--csv", "--comment", "#"]
    group = ["group", *words, "--by", "#1", "--first", "v", "--count", tmp_path / "in"]
    assert run(*group).stdout == '"#k",count,v_first\n"#",1,#\n"#a",1,2\n'
    join = ["join", *words, "--by", "#k", tmp_path / "in", tmp_path / "in"]
    assert run(*join).stdout == '"#k",v,v_right\n"#a",2,2\n"#",#,#\n'
    (tmp_path / "in").write_bytes(b'"//k",v\n/,1\n"//a",2\n"//",//\n')
    join = ["join", "--csv", "--comment", "//", "--by", "//k", tmp_path / "in", tmp_path / "in"]
    assert run(*join).stdout == '"//k",v,v_right\n/,1,1\n"//a",2,2\n"//",//,//\n'


def test_an_error_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b'# a\n# "b\nk,v\n1,2\n#\n3\n')
    for command in ("sort", "distinct"):
        says = failure(command, "--csv", "--comment", "#", tmp_path / "in")
        assert "the row has 1 field, and the header has 2 fields" in says
        assert "row 3, line 6, offset 19" in says
    (tmp_path / "in").write_bytes(b'# a\n# "b\nk,"v\n1,2\n')
    for command in ("sort", "distinct"):
        says = failure(command, "--csv", "--comment", "#", tmp_path / "in")
        assert "a quote is open" in says
        assert "line 3, offset 11" in says
    middle = b'#"\n' + b"1,2\n#\n" * 200_000
    (tmp_path / "in").write_bytes(b"k,v\n" + middle + b"3\n" + middle)
    says = failure("distinct", "--csv", "--comment", "#", tmp_path / "in", "--memory", "60M")
    assert "row 200002, line 400003, offset 1200007" in says


def test_what_makes_no_sense(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"k,v\n")
    for words, wanted in (
        (["--comment", "#"], "comment is for tables"),
        (["--csv", "--comment", ""], 'comments of a table cannot begin with ""'),
        (["--csv", "--comment", "/,"], 'comments of a table cannot begin with "/,"'),
        (["--csv", "--comment", "#" * 16], "at most 15 bytes"),
        (["--csv", "--comment", ","], 'comments of a table cannot begin with ","'),
        (["--csv", "--comment", '"'], "comments of a table cannot begin with"),
    ):
        for command in ("sort", "distinct", "shuf"):
            assert wanted in failure(command, *words, tmp_path / "in", status=2)


def test_comments_before_the_first_row_have_a_bound(tmp_path: Path) -> None:
    for head, is_read in ((b"#\n" * 4_000_000, True), (b"#\n" * 4_500_000, False)):
        (tmp_path / "in").write_bytes(head + b"k,v\n1,2\n")
        for command in ("sort", "distinct"):
            words = [command, "--csv", "--comment", "#", tmp_path / "in"]
            if is_read:
                assert run(*words).stdout == "k,v\n1,2\n"
            else:
                assert "bytes before its first row" in failure(*words)


@pytest.mark.parametrize("words", [["sort", "--key", "number:num"], ["distinct", "--key", "#2"]])
def test_workers_and_memory_change_nothing(words: list[Any], tmp_path: Path) -> None:
    text = large_table()
    chance = random.Random(7)
    pieces: list[bytes] = []
    for line in text.split(b"\nc"):
        pieces.append(line)
        if chance.random() < 0.1:
            pieces.append(b"\n# don't, \"open" + b"." * chance.randrange(90))
        pieces.append(b"\nc")
    (tmp_path / "with").write_bytes(b"".join(pieces[:-1]))
    (tmp_path / "plain").write_bytes(text)
    command = [words[0], "--csv", *words[1:]]
    run(*command, tmp_path / "plain", "-o", tmp_path / "plain-out")
    command += ["--comment", "#", tmp_path / "with"]
    run(*command, "-o", tmp_path / "one", "--workers", "1")
    more = ["--workers", "2", "--memory", "60M", "--runner", "processes"]
    done = report(*command, "-o", tmp_path / "two", *more)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert (tmp_path / "one").read_bytes() == (tmp_path / "plain-out").read_bytes()
    assert done["counters"].get("MAP_SKIPPED_RECORDS", 0) == 0
