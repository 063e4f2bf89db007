"""Cases of trouble with tables that users of other programs had, for the commands over records."""

from pathlib import Path

import pytest

from .harness import names, run

HEADER = b"id,note,d,pct\n"
ROWS = (
    b'00731,"a,b",07/02/2011,9%\n',
    b'0412,"he said ""hi""",31/12/2004,10%\n',
    b'00058,"two\nlines",01/03/2008,2%\n',
)
"""Zeros, dates, doubled quotes, a row of two lines."""
MARK = b"\xef\xbb\xbf"


def made(folder: Path, *words: str) -> bytes:
    """What a command writes, which runs in a folder."""
    run(*words, "-o", "out", cwd=folder)
    return (folder / "out").read_bytes()


@pytest.mark.parametrize(
    ("words", "order"),
    [
        (["distinct", "--key", "id:num", "--sorted"], [2, 1, 0]),
        (["distinct", "--sorted"], [2, 0, 1]),
        (["top", "9", "--key", "id:num"], [2, 1, 0]),
        (["sample", "-n", "9"], [0, 1, 2]),
        (["shuf"], None),
    ],
)
def test_no_byte_of_a_row_is_touched(
    words: list[str], order: list[int] | None, tmp_path: Path
) -> None:
    (tmp_path / "in").write_bytes(HEADER + b"".join(ROWS))
    found = made(tmp_path, words[0], "--csv", *words[1:], "in")
    if order is None:
        assert found.startswith(HEADER)
        assert all(row in found for row in ROWS)
        assert len(found) == len(HEADER) + sum(map(len, ROWS))
    else:
        assert found == HEADER + b"".join(ROWS[at] for at in order)


def test_split_and_join_touch_no_byte(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(HEADER + b"".join(ROWS))
    run("split", "--csv", "--by", "id", tmp_path / "in", tmp_path / "by")
    for row in ROWS:
        name = row[: row.index(b",")].decode() + ".csv"
        assert (tmp_path / "by" / name).read_bytes() == HEADER + row
    found = made(tmp_path, "join", "--csv", "--by", "id", "--how", "semi", "in", "in")
    assert sorted(found.split(b"\n")) == sorted((HEADER + b"".join(ROWS)).split(b"\n"))


def test_a_table_without_a_header(tmp_path: Path) -> None:
    rows = [b'k,"-7.5",x\n', b'k,"-120",y\n', b'k,"3",z\n']
    (tmp_path / "in").write_bytes(b"".join(rows))
    table = ["--csv", "--no-header"]
    ordered = b"".join(rows[at] for at in (1, 0, 2))
    assert made(tmp_path, "top", "3", *table, "--key", "2:num", "in") == ordered
    assert made(tmp_path, "distinct", *table, "--key", "2:num", "--sorted", "in") == ordered
    assert made(tmp_path, "sample", *table, "-n", "9", "in") == b"".join(rows)
    run("split", *table, "--by", "3", tmp_path / "in", tmp_path / "by")
    assert names(tmp_path / "by") == ["_SUCCESS", "x.csv", "y.csv", "z.csv"]


def test_a_byte_order_mark_before_a_quoted_header(tmp_path: Path) -> None:
    (tmp_path / "b1").write_bytes(MARK + b'"id","n"\n2,b\n1,a\n')
    (tmp_path / "b2").write_bytes(MARK + b'"id","n"\n3,c\n')
    (tmp_path / "b3").write_bytes(b'"id","n"\n4,d\n')
    for words in (
        ["distinct", "--key", "id:num", "--sorted"],
        ["top", "9", "--key", "id:num"],
        ["sample", "-n", "9", "--by", "id"],
    ):
        found = made(tmp_path, words[0], "--csv", *words[1:], "b1", "b2", "b3")
        assert found.removeprefix(MARK) == b'"id","n"\n1,a\n2,b\n3,c\n4,d\n'
        assert found.count(MARK) <= 1
    found = made(tmp_path, "group", "--csv", "--by", "id", "--count", "b1", "b2", "b3")
    assert found.count(MARK) <= 1
    assert found.endswith(b"1,1\n2,1\n3,1\n4,1\n")
    found = made(tmp_path, "join", "--csv", "--by", "id", "b1", "b3", "--how", "anti", "--sorted")
    assert found.count(MARK) <= 1
    assert found.endswith(b"1,a\n2,b\n")


def test_one_row_of_each_id(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"id,w\n52,a\n7,b\n528,c\n52,d\n70,e\n7,f\n")
    distinct = ["distinct", "--csv", "--sorted", "in", "--key"]
    assert made(tmp_path, *distinct, "id") == b"id,w\n52,a\n528,c\n7,b\n70,e\n"
    assert made(tmp_path, *distinct, "id:num") == b"id,w\n7,b\n52,a\n70,e\n528,c\n"
    top = made(tmp_path, "top", "1", "--csv", "--by", "id", "--key", "w", "in")
    assert sorted(top.split()) == sorted(b"id,w 52,a 528,c 7,b 70,e".split())


def test_long_ids_stay_apart(tmp_path: Path) -> None:
    rows = [b"18446744073709551616,b\n", b"18446744073709551617,a\n"]
    (tmp_path / "in").write_bytes(b"id,w\n" + rows[1] + rows[0])
    wanted = b"id,w\n" + b"".join(rows)
    for key in ("id", "id:num"):
        assert made(tmp_path, "distinct", "--csv", "--sorted", "--key", key, "in") == wanted
    assert made(tmp_path, "top", "2", "--csv", "--key", "id:num", "in") == wanted
