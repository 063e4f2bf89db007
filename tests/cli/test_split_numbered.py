"""`gristmill split --lines` and `--bytes` against a plain reading of the input."""

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill as gm

from .harness import failure, names, run
from .random_records import Table, large_lines, large_table, lines_in, tables, written
from .resuming import tree


def numbered(texts: list[bytes], suffix: str) -> dict[str, bytes]:
    """Files by their names."""
    return {f"part-{number:05}{suffix}": text for number, text in enumerate(texts)}


def files_of(out: Path) -> dict[str, bytes]:
    """What an output holds, in the order of names."""
    return dict(sorted(tree(out).items()))


def of_lines(records: list[bytes], most: int, header: bytes = b"") -> list[bytes]:
    """Files of so many records."""
    some = (records[at : at + most] for at in range(0, len(records), most))
    return [header + b"".join(file) for file in some]


def of_bytes(records: list[bytes], most: int, header: bytes = b"") -> list[bytes]:
    """Files of at most so many bytes, or of one record."""
    files: list[bytes] = []
    for record in records:
        if files and len(files[-1]) + len(record) <= most:
            files[-1] += record
        else:
            files.append(header + record)
    return files


PIECES = st.lists(st.sampled_from([b"a", b"b", b"\n", b"\r\n", b"\xff", b"a long word", b'"']))


@settings(max_examples=40)
@given(st.lists(PIECES, min_size=1, max_size=3), st.integers(1, 5), st.integers(1, 30))
def test_any_lines(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[list[bytes]], most: int, size: int
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    texts = [b"".join(some) for some in pieces]
    source, records = written(folder, texts), [record.text for record in lines_in(texts)]
    gm.split_by(source, folder / "lines", lines=most)
    assert files_of(folder / "lines") == numbered(of_lines(records, most), ".txt")
    gm.split_by(source, folder / "bytes", bytes=size)
    assert files_of(folder / "bytes") == numbered(of_bytes(records, size), ".txt")
    shutil.rmtree(folder)


@settings(max_examples=40)
@given(tables(), st.integers(1, 4), st.integers(1, 60))
def test_any_rows(
    tmp_path_factory: pytest.TempPathFactory, table: Table, most: int, size: int
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    source, records = written(folder, table.texts), [record.text for record in table.records]
    no_header = not table.header
    gm.split_by(source, folder / "lines", lines=most, csv=True, no_header=no_header)
    assert files_of(folder / "lines") == numbered(of_lines(records, most, table.header), ".csv")
    gm.split_by(source, folder / "bytes", bytes=size, csv=True, no_header=no_header)
    assert files_of(folder / "bytes") == numbered(of_bytes(records, size, table.header), ".csv")
    shutil.rmtree(folder)


@pytest.mark.parametrize("many", [large_lines, large_table])
def test_workers_and_memory_change_nothing(many: object, tmp_path: Path) -> None:
    text = large_lines() if many is large_lines else large_table()
    (tmp_path / "in").write_bytes(text)
    command = ["split", tmp_path / "in", *(["--csv"] if many is large_table else [])]
    for size in (["--lines", "30011"], ["--bytes", "1M"]):
        run(*command, tmp_path / "one", *size, "--workers", "1", "--overwrite")
        wanted = files_of(tmp_path / "one")
        header = text[: text.index(b"\n") + 1] if many is large_table else b""
        ends = {file[-1:] for file in wanted.values()}
        assert b"".join(file.removeprefix(header) for file in wanted.values()) == text.removeprefix(
            header
        )
        assert ends == {b"\n"}
        assert size[0] == "--lines" or max(map(len, wanted.values())) <= 1_000_000
        more = ["--workers", "2", "--memory", "60M", "--runner", "processes", "--overwrite"]
        run(*command, tmp_path / "two", *size, *more)
        assert files_of(tmp_path / "two") == wanted


def test_lines_are_as_those_of_split(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"".join(large_lines().splitlines(keepends=True)[:2000]))
    for ours, theirs in ((["--lines", "70"], ["-l", "70"]), (["--bytes", "999"], ["-C", "999"])):
        run("split", tmp_path / "in", tmp_path / "out", *ours, "--overwrite")
        for old in tmp_path.glob("x*"):
            old.unlink()
        subprocess.run(["split", *theirs, "in", "x"], cwd=tmp_path, check=True)
        wanted = [path.read_bytes() for path in sorted(tmp_path.glob("x*"))]
        assert list(files_of(tmp_path / "out").values()) == wanted


def test_a_pipe_and_compressed_files(tmp_path: Path) -> None:
    for number in range(3):
        text = b"".join(b"%d,%d\n" % (number, at) for at in range(10))
        (tmp_path / f"{number}.gz").write_bytes(gzip.compress(b"n,at\n" + text))
    run("split", "--csv", "--lines", "12", *sorted(tmp_path.glob("*.gz")), tmp_path / "out")
    files = files_of(tmp_path / "out")
    assert [text.count(b"\n") for text in files.values()] == [13, 13, 7]
    assert files["part-00001.csv"].startswith(b"n,at\n1,2\n1,3\n")


def test_what_makes_no_sense(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"k,v\nx,1\ny,2\n")
    for options, wanted in (
        (["--lines", "1", "--bytes", "2"], "lines and bytes exclude each other"),
        (["--lines", "1", "--by", "1"], "files of so many lines or bytes exclude by"),
        (["--bytes", "1", "--parts", "2"], "files of so many lines or bytes exclude parts"),
        (["--bytes", "0"], "a file of no bytes has no records"),
        (["--lines", "0"], "is not a whole number from 1 on"),
        (["--lines", "1", "-t", ":"], "field-separator is for fields"),
    ):
        assert wanted in failure("split", *options, tmp_path / "in", tmp_path / "out", status=2)
    says = failure("split", "--lines", "1", "--max-files", "2", tmp_path / "in", tmp_path / "out")
    assert "the output would have more than 2 files. What to do: choose columns" in says
    assert names(tmp_path) == ["in"]


def test_nothing_makes_no_file(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"k,v\n")
    run("split", "--csv", "--bytes", "1M", tmp_path / "in", tmp_path / "out")
    assert names(tmp_path / "out") == ["_SUCCESS"]


def test_an_output_in_an_object_store(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"a\nb\nc\n")
    run("split", "--lines", "2", tmp_path / "in", f"objects://{tmp_path}/out")
    made = [name for name in names(tmp_path / "out") if not name.startswith(".")]
    assert made == ["_SUCCESS", "part-00000.txt", "part-00001.txt"]
