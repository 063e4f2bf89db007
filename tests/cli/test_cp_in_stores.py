"""`gristmill cp` within S3: the store copies, and no byte comes here.

What the server cannot do is asked of stubs (test_cp_in_stubs.py); test_clouds.py has other stores.
"""

import hashlib
import os
import random
import signal
from pathlib import Path

import pytest

from .harness import end, only_object, report, run, start
from .s3_server import HERE, Bucket, serving
from .test_cp import made, tree

PART = 8 << 20

FILES = {
    (b"short",): b"short",
    (b"a b", b"10%25=1+#?.bin"): random.Random(6).randbytes(5_000_000),
    (b"long",): random.Random(7).randbytes(20_000_000),
}

LONG = {names: data for names, data in FILES.items() if len(data) > 4 << 20}
LONG_BYTES = sum(map(len, LONG.values()))


@pytest.fixture
def source(bucket: Bucket) -> Path:
    """A tree in the current directory, which is that of the bucket's test."""
    assert bucket.name
    made(Path("s"), FILES)
    return Path("s")


def in_store(done: dict[str, dict[str, int]]) -> tuple[int, int, int]:
    """How many files the store copied, their bytes, and how many of them are not proved."""
    names = ("STORE_COPIES", "STORE_COPIED_BYTES", "STORE_COPIES_UNPROVED")
    files, size, unproved = (done["counters"].get(name, 0) for name in names)
    return files, size, unproved


def by_hand(bucket: Bucket, key: str, size: int) -> str:
    """Make an object of zeros, as if it had been sent in parts by who says no CRC; its ETag."""
    path = bucket.folder / key
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)
    of_part = hashlib.md5(bytes(PART), usedforsecurity=False).digest()
    lengths = [PART] * (size // PART) + [size % PART] * (size % PART > 0)
    sums = [
        of_part if length == PART else hashlib.md5(bytes(length), usedforsecurity=False).digest()
        for length in lengths
    ]
    etag = f"{hashlib.md5(b''.join(sums), usedforsecurity=False).hexdigest()}-{len(sums)}"
    os.setxattr(path, "user.etag", etag.encode())
    return etag


def test_s3_copies_and_is_asked_for_no_byte(
    source: Path, tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    (tmp_path / "b2" / bucket.name).mkdir(parents=True)
    with serving(tmp_path / "b2", HERE, "--access-log", str(log)) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        run("cp", "s/", bucket.url("t"))
        log.write_text("")
        done = report("cp", bucket.url("t/"), bucket.url("u"))
        assert in_store(done) == (len(LONG), LONG_BYTES, 0)
        assert done["counters"]["COPY"] == len(FILES)
        # The short one is read: that is one request less.
        asked = log.read_text()
        assert [asked.count(f" s3_{what} ") for what in ("GetObject", "CopyObject")] == [1, 2]
        assert tree(server.folder / bucket.name / "u") == tree(source)
        log.write_text("")
        done = report("cp", bucket.url("t/"), bucket.url("u"))
        assert (done["counters"]["SKIP"], done["counters"]["COPY"]) == (len(FILES), 0)
        assert " s3_GetObject " not in log.read_text()  # their sums are compared


def test_s3_copies_what_was_sent_in_parts_in_the_same_parts(bucket: Bucket) -> None:
    etag = by_hand(bucket, "t/long", 20_000_000)
    done = report("cp", bucket.url("t/"), bucket.url("u"))
    assert in_store(done) == (1, 20_000_000, 0)
    assert os.getxattr(bucket.folder / "u" / "long", "user.etag").decode().strip('"') == etag
    assert (bucket.folder / "u" / "long").read_bytes() == bytes(20_000_000)
    # Whose ETag says nothing, whose bytes come here.
    os.setxattr(bucket.folder / "t" / "long", "user.etag", b"something")
    done = report("cp", bucket.url("t/"), bucket.url("v"))
    assert (in_store(done), done["counters"]["COPY"]) == ((0, 0, 0), 1)
    assert bucket.uploads() == []


def test_s3_that_refuses_is_sent_the_bytes(
    source: Path, tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert source.is_dir()
    (tmp_path / "b2" / bucket.name).mkdir(parents=True)
    with serving(tmp_path / "b2", HERE, "--copy-object-threshold", "4000000") as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        there = Bucket(bucket.name, server.folder / bucket.name)
        run("cp", "s/", there.url("t"))
        by_hand(there, "t/zeros", 20_000_000)
        done = report("cp", there.url("t/"), there.url("u"))
        assert (in_store(done), done["counters"]["COPY"]) == ((0, 0, 0), len(FILES) + 1)
        assert tree(there.folder / "u") == tree(there.folder / "t")
        assert there.uploads() == []


def test_requests_for_parts_that_fail_are_made_again(source: Path, tmp_path: Path) -> None:
    """The store that is kept in a directory copies in parts, however short."""
    assert source.is_dir()
    there = f"objects://{tmp_path / 'store'}"
    run("cp", "s/", f"{there}/t")
    faults = {"GRISTMILL_OBJECTS_FAULTS": "refused=0.1,lost=0.1,seed=5"}
    done = run("cp", f"{there}/t/", f"{there}/u", "--json", **faults)
    assert in_store(only_object(done.stdout)) == (len(LONG), LONG_BYTES, 0)
    for names, data in FILES.items():
        assert tmp_path.joinpath("store", "u", *map(os.fsdecode, names)).read_bytes() == data
    assert not list((tmp_path / "store").rglob("*.upload-*"))


def test_a_copy_in_parts_that_is_interrupted_leaves_nothing(bucket: Bucket) -> None:
    by_hand(bucket, "t/long", 4 << 30)
    process = start("cp", bucket.url("t/"), bucket.url("u"))
    while not bucket.uploads() and process.poll() is None:
        pass
    process.send_signal(signal.SIGINT)
    assert end(process).status == 130
    assert bucket.uploads() == []
    assert not (bucket.folder / "u" / "long").exists()


def test_a_source_that_changes_midway_is_named(bucket: Bucket) -> None:
    by_hand(bucket, "t/long", 4 << 30)
    process = start("cp", bucket.url("t/"), bucket.url("u"))
    while not bucket.uploads() and process.poll() is None:
        pass
    os.setxattr(bucket.folder / "t" / "long", "user.etag", b"another")
    done = end(process)
    assert done.status == 1
    assert "it was replaced" in done.stderr
    assert bucket.url("t/long") in done.stderr
    assert bucket.uploads() == []
    assert not (bucket.folder / "u" / "long").exists()


def test_explain_says_what_the_store_copies(bucket: Bucket, source: Path) -> None:
    assert source.is_dir()
    run("cp", "s/", bucket.url("t"))
    plan = report("explain", "cp", bucket.url("t/"), bucket.url("u"))
    reads, writes = plan["stores"]
    assert writes["copies"] == {"files": len(LONG), "bytes": LONG_BYTES, "proved": True}
    # A short file is read; two are looked at.
    assert (reads["bytes"], reads["requests"], reads["copies"]) == (5, 3, None)
    assert (writes["bytes"], writes["requests"]) == (5, 2 + 2 * 3)
    assert [stage["reads"] for stage in plan["stages"]] == [5]
    said = run("explain", "cp", bucket.url("t/"), bucket.url("u")).stdout
    assert f"s3://{bucket.name} copies 2 files itself, 25.0 MB: none of it comes here" in said
    for words in (("--verify",), ("--bandwidth", "1G")):
        plan = report("explain", "cp", bucket.url("t/"), bucket.url("u"), *words)
        assert [store["copies"] for store in plan["stores"]] == [None, None]
    plan = report("explain", "cp", "s/", bucket.url("u"))
    assert plan["stores"][0]["copies"] is None
