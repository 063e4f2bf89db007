"""The same jobs through Hadoop's own streaming jar: equal parts, counters and exit codes."""

import bz2
import gzip
import json
import struct
import zlib
from pathlib import Path

import pytest

from .case import Case
from .cases import CASES
from .conftest import Run, Yard

pytestmark = pytest.mark.timeout(600)  # the first test runs Hadoop's side of all

FRAMEWORK = "org.apache.hadoop.mapreduce.TaskCounter"
COMPARED = (
    "MAP_INPUT_RECORDS",
    "MAP_OUTPUT_RECORDS",
    "COMBINE_INPUT_RECORDS",
    "COMBINE_OUTPUT_RECORDS",
    "REDUCE_INPUT_GROUPS",
    "REDUCE_INPUT_RECORDS",
    "REDUCE_OUTPUT_RECORDS",
)


def parts(folder: Path, case: Case) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.name[0] in "._":
            continue
        data = path.read_bytes()
        if case.decoded:
            found[path.name] = decoded(path.name, data)
        else:
            found[path.name] = sorted(data.split(b"\n")) if case.unordered else data
    return found


def decoded(name: str, data: bytes) -> object:
    if data.startswith(b"SEQ"):
        return sequence(data)
    if name.endswith(".gz"):
        return gzip.decompress(data)
    if name.endswith(".bz2"):
        return bz2.decompress(data)
    return zlib.decompress(data)


def sequence(data: bytes) -> tuple[list[bytes], list[tuple[bytes, bytes]]]:  # noqa: C901 - naive
    """A naive reader of sequence files: classes and codec, and the records as they are stored."""
    at = 4

    def take(count: int) -> bytes:
        nonlocal at
        at += count
        return data[at - count : at]

    def vint(source: bytes, start: int) -> tuple[int, int]:
        first = struct.unpack_from("b", source, start)[0]
        if first >= -112:
            return first, start + 1
        count = -112 - first
        return int.from_bytes(source[start + 1 : start + 1 + count], "big"), start + 1 + count

    def text() -> bytes:
        return take(take(1)[0])

    assert data[3] == 6
    head = [text(), text()]
    compressed, blocks = take(2)
    if compressed:
        head.append(text())
    assert take(4) == bytes(4)
    sync = take(16)
    records: list[tuple[bytes, bytes]] = []
    while at < len(data):
        (length,) = struct.unpack(">i", take(4))
        if length == -1:
            assert take(16) == sync
            if blocks:
                count, at = vint(data, at)
                buffers = []
                for _ in range(4):
                    size, at = vint(data, at)
                    buffers.append(zlib.decompress(take(size)))
                places = [0, 0, 0, 0]
                for _ in range(count):
                    pair = []
                    for lengths in (0, 2):
                        size, places[lengths] = vint(buffers[lengths], places[lengths])
                        start = places[lengths + 1]
                        pair.append(buffers[lengths + 1][start : start + size])
                        places[lengths + 1] += size
                    records.append((pair[0], pair[1]))
            continue
        (key_length,) = struct.unpack(">i", take(4))
        key, value = take(key_length), take(length - key_length)
        records.append((key, zlib.decompress(value) if compressed else value))
    return head, records


def hadoops_counters(
    results: Path, name: str
) -> tuple[int, dict[str, int], dict[str, dict[str, int]]]:
    code, *lines = (results / name).read_text(encoding="utf-8").splitlines()
    framework: dict[str, int] = {}
    users: dict[str, dict[str, int]] = {}
    for line in lines:
        group, counter, amount = line.split("\t")
        if group == FRAMEWORK:
            framework[counter] = int(amount)
        elif not group.startswith(("org.apache.hadoop", "File", "Shuffle")):
            users.setdefault(group, {})[counter] = int(amount)
    return int(code), framework, users


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same(case: Case, hadoops: Path, yard: Yard, streaming: Run) -> None:
    code, framework, users = hadoops_counters(hadoops, case.name)
    assert code == case.code, "Hadoop itself ends otherwise: see hadoop.log"
    done = streaming(*yard.words(case, "ours"), "--json")
    assert done.returncode == case.code, done.stderr
    if case.code != 0:
        return
    ours = parts(yard.home / "ours" / case.name, case)
    theirs = parts(yard.home / "hadoop" / case.name, case)
    assert ours == theirs
    if not case.counters:
        return
    report = json.loads(done.stdout)
    assert report["user_counters"] == users
    ours_framework = {name: report["counters"].get(name, 0) for name in COMPARED}
    assert ours_framework == {name: framework.get(name, 0) for name in COMPARED}
