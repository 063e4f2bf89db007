"""Compressed files in and out of `gristmill sort`, and outputs of several parts.

What programs of the field make is read, and what comes out they read: gzip, bzip2, xz and zstd.
"""

import bz2
import gzip
import json
import lzma
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.optional import missing

from .harness import report, run
from .sorting import (
    gnu_sort,
    naive_fixed,
    noise,
    nothing_of_ours_stays,
    refusal,
    same,
    sort,
    try_sort,
)


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test does: in its folders, in TMPDIR and where it runs, nothing of ours stays."""
    with nothing_of_ours_stays(tmp_path, monkeypatch):
        yield


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


def unpacked(path: Path) -> bytes:
    """Return what a compressed file holds, by programs that are not ours."""
    data = path.read_bytes()
    if path.suffix == ".zst" or data.startswith(b"\x28\xb5\x2f\xfd"):
        zstd = shutil.which("zstd")
        if zstd is None:
            missing("NOT TESTED: ZSTD OUTPUT, READ BY ANOTHER PROGRAM", "install zstd")
        done = subprocess.run([zstd, "-dc", path], stdout=subprocess.PIPE, check=True)
        return done.stdout
    for known in (gzip, bz2, lzma):
        try:
            return known.decompress(data)
        except (OSError, lzma.LZMAError):
            continue
    raise AssertionError(f"{path} is not compressed")


# --- compressed input ---


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("options", [[], ["-r"], ["-u"], ["-k2,2n", "-s"], ["-f"]])
def test_compressed_lines_are_lines(suffix: str, options: list[str]) -> None:
    data = noise(200_000, b"ab 019", 0.1, seed=3)
    Path(f"in.{suffix}").write_bytes(COMPRESS[suffix](data))
    want = gnu_sort(*options, stdin=data)
    same(sort(*options, f"in.{suffix}"), want)
    assert sort(*options, f"in.{suffix}", "-o", "out") == b""
    same(Path("out"), want)


def test_plain_and_compressed_files_and_streams_together() -> None:
    pieces = [noise(30_000, b"abc,", 0.1, seed=seed) + b"x" for seed in range(5)]
    Path("0").write_bytes(pieces[0])
    Path("1.gz").write_bytes(gzip.compress(pieces[1][:9000]) + gzip.compress(pieces[1][9000:]))
    Path("2").write_bytes(bz2.compress(pieces[2]))  # whatever it is called
    Path("4.xz").write_bytes(lzma.compress(pieces[4]))
    Path("empty.gz").write_bytes(gzip.compress(b""))
    files = ["0", "1.gz", "2", "-", "empty.gz", "4.xz"]
    whole = b"".join(piece + b"\n" for piece in pieces)
    for options in ([], ["-s", "-t,", "-k2,2"]):
        same(sort(*options, *files, stdin=pieces[3]), gnu_sort(*options, stdin=whole))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_compressed_input_in_less_memory_than_it_has(workers: str) -> None:
    data = noise(30_000_000, b"abcdefgh", 0.02, seed=5)
    Path("in.gz").write_bytes(gzip.compress(data, 1))
    options = ["in.gz", "-o", "out", "--memory", "24M", "--workers", workers]
    done = report("sort", *options)
    assert done["counters"]["SPILLED_RUNS"] > 1
    same(Path("out"), gnu_sort(stdin=data))


def test_compressed_records_of_one_length() -> None:
    data = random.Random(4).randbytes(7 * 3000)
    Path("in.gz").write_bytes(gzip.compress(data))
    same(sort("--format", "fixed:7:3", "in.gz"), naive_fixed(data, 7, 3, set()))
    Path("cut.gz").write_bytes(gzip.compress(data + b"xy"))
    assert "2 bytes into a record of 7" in refusal("--format", "fixed:7", "cut.gz")


def test_damaged_compressed_files_are_refused() -> None:
    packed = gzip.compress(noise(50_000, b"ab", 0.1, seed=1))
    Path("cut.gz").write_bytes(packed[:-20])
    said = refusal("cut.gz", "-o", "out")
    assert "cut short" in said
    assert "cut.gz" in said
    Path("plain.gz").write_bytes(b"b\na\n")
    assert "does not begin as gzip data do" in refusal("plain.gz")


def test_compressed_tables() -> None:
    data = b'a,b\n2,x\n1,"y\nz"\n'
    Path("in.csv.gz").write_bytes(gzip.compress(data))
    Path("more.csv").write_bytes(b"a,b\n0,w\n")
    want = b'a,b\n0,w\n1,"y\nz"\n2,x\n'
    for files in (["in.csv.gz", "more.csv"], ["more.csv", "in.csv.gz"]):
        same(sort("--csv", "--key", "a", *files), want)
    Path("bad.csv.gz").write_bytes(gzip.compress(data + b"3\n"))
    assert "line 5" in refusal("--csv", "bad.csv.gz")


def test_a_check_reads_compressed_input() -> None:
    Path("in.gz").write_bytes(gzip.compress(b"a\nb\n"))
    assert try_sort("-c", "in.gz").status == 0
    Path("out-of-order.gz").write_bytes(gzip.compress(b"b\na\n"))
    assert "out-of-order.gz:2" in refusal("-c", "out-of-order.gz")


def test_tasks_in_processes_read_compressed_files() -> None:
    data = noise(300_000, b"abc", 0.1, seed=7)
    Path("in.gz").write_bytes(gzip.compress(data))
    Path("in").write_bytes(data)
    sort("in.gz", "in", "-o", "out", "--runner", "processes", "--workers", "2", "--memory", "200M")
    same(Path("out"), gnu_sort(stdin=data + b"\n" + data))


def test_compressed_input_is_explained() -> None:
    Path("in.gz").write_bytes(gzip.compress(b"a\nb\n"))
    done = run("explain", "sort", "in.gz", "-o", "out", "--json")
    assert json.loads(done.stdout)["stages"][0]["name"] == "spill"


# --- compressed output ---


@pytest.mark.parametrize("codec", ["gzip", "zstd", "bzip2", "xz"])
def test_compressed_output_is_what_programs_read(codec: str) -> None:
    data = noise(300_000, b"abc", 0.1, seed=8)
    Path("in").write_bytes(data)
    want = gnu_sort(stdin=data)
    done = report("sort", "in", "-o", "out", "--compress", codec)
    assert done["records"] == data.count(b"\n") + (not data.endswith(b"\n"))
    same(unpacked(Path("out")), want)
    Path("stream").write_bytes(sort("--compress", codec, stdin=data))
    same(unpacked(Path("stream")), want)
    same(sort("out", "-u"), gnu_sort("-u", stdin=data))
    sort("-u", "in", "-o", "unique", "--compress", codec)
    same(unpacked(Path("unique")), gnu_sort("-u", stdin=data))
    sort("--compress", codec, "-o", "nothing")
    assert unpacked(Path("nothing")) == b""


# --- parts ---


def part_files(folder: Path) -> list[Path]:
    """Return the parts, in order."""
    return sorted(folder.glob("part-r-*"))


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("options", [[], ["-r"], ["-u"], ["-k1,1n", "-s"], ["-ru", "-k1,1"]])
def test_parts_are_the_output_one_after_the_other(count: int, options: list[str]) -> None:
    data = noise(100_000, b"ab 019", 0.1, seed=count)
    Path("in").write_bytes(data)
    done = report("sort", *options, "in", "-o", "out", "--parts", str(count))
    parts = part_files(Path("out"))
    assert [part.name for part in parts] == [f"part-r-{number:05}" for number in range(count)]
    want = gnu_sort(*options, stdin=data)
    same(b"".join(part.read_bytes() for part in parts), want)
    assert (done["parts"], done["output_bytes"]) == (count, len(want))
    proof = json.loads(Path("out/_SUCCESS").read_bytes())
    assert [part["bytes"] for part in proof["parts"]] == [part.stat().st_size for part in parts]
    assert proof["records"] == want.count(b"\n")


def test_parts_are_about_as_long_as_each_other() -> None:
    data = noise(2_000_000, b"abcdefgh", 0.05, seed=11)
    Path("in").write_bytes(data)
    sort("in", "-o", "out", "--parts", "4")
    sizes = [part.stat().st_size for part in part_files(Path("out"))]
    assert min(sizes) > len(data) / 4 / 2, sizes


@pytest.mark.parametrize("memory", ["24M", "500M"])
def test_parts_of_a_large_input(memory: str) -> None:
    data = noise(36_000_000, b"abcdefgh", 0.02, seed=12)
    Path("in").write_bytes(data)
    sort("in", "-o", "out", "--parts", "3", "--memory", memory)
    parts = part_files(Path("out"))
    same(b"".join(part.read_bytes() for part in parts), gnu_sort(stdin=data))
    assert min(part.stat().st_size for part in parts) > len(data) / 3 / 2


def test_compressed_parts_have_the_suffix_of_their_codec() -> None:
    data = noise(200_000, b"abc", 0.1, seed=13)
    Path("in").write_bytes(data)
    sort("in", "-o", "out", "--parts", "3", "--compress", "gzip")
    parts = part_files(Path("out"))
    assert [part.name for part in parts] == [f"part-r-{number:05}.gz" for number in range(3)]
    want = gnu_sort(stdin=data)
    same(b"".join(unpacked(part) for part in parts), want)
    proof = json.loads(Path("out/_SUCCESS").read_bytes())
    assert [part["bytes"] for part in proof["parts"]] == [part.stat().st_size for part in parts]
    same(sort("-m", "out"), want)


def test_parts_of_compressed_files_are_even() -> None:
    pieces = [noise(300_000, b"abcdefgh", 0.05, seed=seed) + b"\n" for seed in (14, 15)]
    for number, piece in enumerate(pieces):
        Path(f"{number}.gz").write_bytes(gzip.compress(piece))
    sort("0.gz", "1.gz", "-o", "out", "--parts", "3")
    parts = part_files(Path("out"))
    same(b"".join(part.read_bytes() for part in parts), gnu_sort(stdin=b"".join(pieces)))
    assert min(part.stat().st_size for part in parts) > 600_000 / 3 / 2


def test_more_parts_than_lines_and_no_lines() -> None:
    Path("in").write_bytes(b"b\na\n")
    Path("empty").write_bytes(b"")
    for name, want in (("in", b"a\nb\n"), ("empty", b"")):
        sort(name, "-o", f"{name}-out", "--parts", "5")
        parts = part_files(Path(f"{name}-out"))
        assert len(parts) == 5
        assert b"".join(part.read_bytes() for part in parts) == want


def test_a_directory_is_replaced_only_if_asked_for() -> None:
    Path("in").write_bytes(b"b\na\n")
    sort("in", "-o", "out", "--parts", "2")
    assert "--overwrite" in refusal("in", "-o", "out", "--parts", "2")
    sort("in", "-r", "-o", "out", "--parts", "3", "--overwrite")
    assert len(part_files(Path("out"))) == 3


def test_parts_that_cannot_be() -> None:
    Path("in").write_bytes(b"b\na\n")
    assert "name a directory" in refusal("in", "--parts", "2", status=2)
    assert "name a directory" in refusal("in", "-o", "-", "--parts", "2", status=2)
    assert "one holds the other" in refusal(
        "in", "-o", "in", "--parts", "2", "--overwrite", status=2
    )
    said = refusal("-", "-o", "out", "--parts", "2", stdin=b"a\n", status=2)
    assert "sort files" in said
