"""`gristmill cp` of files that several tasks copy: whole or not there, whatever happens between."""

import json
import os
import random
import stat
import zlib
from pathlib import Path
from typing import Any

import pytest

from .conftest import Mount
from .harness import end, failure, report, run, start
from .resuming import events_of, kept, kill_when, wait_until_time
from .s3_server import Bucket
from .test_cp import tree

MB = 1 << 20
SPLIT = ("--split-size", "1M", "--workers", "2")
LONG = random.Random(5).randbytes(9 * MB + 12345)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of a long file and a short one, in the current one."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "long").write_bytes(LONG)
    (folder / "short").write_bytes(b"short\n")
    return folder


def staged(top: Path) -> list[Path]:
    return list(top.rglob("*gristmill*"))


def pieces_of(done: dict[str, Any]) -> list[int]:
    """Files that were cut, pieces that were copied, and those that were there."""
    names = ("CUT_FILES", "COPIED_PIECES", "KEPT_PIECES")
    return [done["counters"].get(name, 0) for name in names]


@pytest.mark.parametrize("runner", ["threads", "processes"])
@pytest.mark.parametrize("how", [(), ("--verify",), ("--no-sync",), ("--atomic",)])
def test_a_long_file_is_copied_in_pieces(source: Path, runner: str, how: tuple[str, ...]) -> None:
    done = report("cp", "s/", "t", *SPLIT, "--runner", runner, "--manifest", "made", *how)
    assert tree(Path("t")) == tree(source)
    assert pieces_of(done) == [1, 10, 0]
    assert [phase["name"] for phase in done["phases"]][:2] == ["copy", "complete"]
    counters = done["counters"]
    assert (counters["COPY"], counters["BYTESCOPIED"]) == (2, len(LONG) + 6)
    lines = [json.loads(line) for line in Path("made").read_text().splitlines()]
    found = {line["path"].rpartition("/")[2]: line["crc32"] for line in lines}
    assert found == {
        name: f"{zlib.crc32(data):08x}" for name, data in (("long", LONG), ("short", b"short\n"))
    }
    whole = report("cp", "s/", "u", "--workers", "2")
    assert (done["checksum"], pieces_of(whole)) == (whole["checksum"], [0, 0, 0])
    assert staged(Path()) == []


def test_what_is_there_already(source: Path) -> None:
    Path("t").mkdir()
    Path("t/long").write_bytes(b"x" * 99)
    assert "has other bytes (file t/long, source s/long)" in failure("cp", "s/", "t", *SPLIT)
    assert Path("t/long").read_bytes() == b"x" * 99
    Path("t/long").chmod(0o640)
    done = report("cp", "s/", "t", *SPLIT, "--update")
    assert (pieces_of(done)[0], done["counters"]["REPLACED_FILES"]) == (1, 1)
    assert tree(Path("t")) == tree(source)
    assert stat.S_IMODE(Path("t/long").stat().st_mode) == 0o640
    # Of the same length: compared first, whole.
    done = report("cp", "s/", "t", *SPLIT)
    assert (pieces_of(done)[0], done["counters"]["SKIP"]) == (0, 2)
    Path("t/long").write_bytes(bytes(len(LONG)))
    done = report("cp", "s/", "t", *SPLIT, "--update")
    assert tree(Path("t")) == tree(source)
    done = report("cp", "s/", "t", *SPLIT, "--overwrite")
    assert (pieces_of(done)[0], done["counters"]["REPLACED_FILES"]) == (1, 2)
    assert tree(Path("t")) == tree(source)
    assert staged(Path()) == []


def test_names_that_a_file_cannot_have(source: Path) -> None:
    Path("t/long").mkdir(parents=True)
    assert "a directory has the name of the file" in failure("cp", "s/", "t", *SPLIT)
    Path("u").write_bytes(b"a file")
    assert failure("cp", "s/", "u/x", *SPLIT)
    assert tree(Path("u").parent / "t").keys() >= {b"long"}
    assert staged(Path()) == []
    assert source.exists()


def test_times_and_permissions(source: Path) -> None:
    (source / "long").chmod(0o751)
    os.utime(source / "long", ns=(10**18, 10**18 + 123456789))
    run("cp", "s/long", "t", *SPLIT, "--preserve", "times,mode")
    found = Path("t").stat()
    assert (stat.S_IMODE(found.st_mode), found.st_mtime_ns) == (0o751, 10**18 + 123456789)


def test_what_would_be_done(source: Path) -> None:
    assert source.exists()
    assert run("cp", "s/", "t", *SPLIT, "--dry-run").stdout == "copy t/long\ncopy t/short\n"
    assert not Path("t").exists()
    plan = report("explain", "cp", "s/", "t", *SPLIT)
    assert [(stage["name"], stage["tasks"]) for stage in plan["stages"]] == [
        ("copy", 11),
        ("complete", 1),
    ]
    assert "1 of them in 10 pieces" in plan["reason"]
    assert plan["stages"][0]["writes"] == len(LONG) + 6
    plan = report("explain", "cp", "s/", "t", "--workers", "2")
    assert [stage["tasks"] for stage in plan["stages"]] == [2]
    assert "--split-size must be" in failure("cp", "s/", "t", "--split-size", "9", status=2)


def slow(home: Path, pieces: int, *arguments: str | Path) -> None:
    """Kill a copy once so many pieces are there."""
    kill_when(
        ["cp", *arguments, "--bandwidth", "8M"],
        home,
        lambda events: kept(events, "uploaded") >= pieces,
    )


def test_killed_and_resumed(source: Path, home: Path) -> None:
    slow(home, 3, "s/", "t", *SPLIT)
    assert not Path("t/long").exists()
    done = report("resume", events_of(home)[0]["job_id"])
    assert tree(Path("t")) == tree(source)
    _, copied, was_there = pieces_of(done)
    assert copied + was_there == 10
    assert was_there >= 3
    assert staged(Path("t")) == []


def test_a_piece_that_was_damaged_is_copied_again(source: Path, home: Path) -> None:
    slow(home, 4, "s/", "t", *SPLIT, "--workers", "1")
    (file,) = Path("t").glob(".gristmill-staging*/long.*")
    with file.open("r+b") as damaged:
        damaged.seek(MB // 2)
        damaged.write(b"damage")
    done = report("resume", "last")
    assert tree(Path("t")) == tree(source)
    _, copied, was_there = pieces_of(done)
    assert copied + was_there == 10
    assert was_there >= 3
    assert staged(Path("t")) == []


@pytest.mark.parametrize("gone", ["staged", "source"])
def test_pieces_of_what_is_no_more_are_not_used(source: Path, home: Path, gone: str) -> None:
    slow(home, 3, "s/", "t", *SPLIT)
    if gone == "source":
        (source / "long").write_bytes(LONG[::-1])
    else:
        (file,) = Path("t").glob(".gristmill-staging*/long.*")
        file.unlink()
    done = report("resume", "last")
    assert tree(Path("t")) == tree(source)
    assert pieces_of(done) == [1, 10, 0]
    assert staged(Path("t")) == []


def test_killed_and_run_again(source: Path, home: Path) -> None:
    slow(home, 2, "s/", "t", *SPLIT)
    run("cp", "s/", "t", *SPLIT, "--update")
    assert tree(Path("t")) == tree(source)
    assert staged(Path("t")) == []


@pytest.mark.parametrize("ignores", [False, True])
def test_a_source_that_changes_between_pieces_is_named(
    source: Path, home: Path, ignores: bool
) -> None:
    how = ("--ignore-failures",) if ignores else ()
    words = ("cp", "s/", "t", *SPLIT, "--bandwidth", "8M", "--history", "--json", *how)
    process = start(*words)
    wait_until_time(process, home, lambda events: kept(events, "uploaded") >= 2)
    with (source / "long").open("r+b") as changed:
        changed.write(b"other")
    done = end(process)
    assert done.status == 1
    said = json.loads(done.stdout)
    message = said["error"]["message"]
    assert "it changed while it was read" in message
    assert "s/long" in message
    if ignores:
        assert (said["counters"]["FAIL"], said["counters"]["COPY"]) == (1, 1)
        assert tree(Path("t")) == {b"short": b"short\n"}
    assert not Path("t/long").exists()
    assert staged(Path("t")) == []


def test_a_full_disk_fails_the_file_and_leaves_nothing(source: Path, mount: Mount) -> None:
    to = mount("size=4m") / "t"
    done = report("cp", f"{source}/", str(to), *SPLIT, "--ignore-failures", status=1)
    assert "no space left on device" in done["error"]["message"]
    assert done["counters"]["FAIL"] == 1
    assert tree(to) == {b"short": b"short\n"}


def test_ctrl_c_leaves_nothing(source: Path, home: Path) -> None:
    process = start("cp", "s/", "t", *SPLIT, "--bandwidth", "4M", "--history")
    wait_until_time(process, home, lambda events: kept(events, "uploaded") >= 1)
    process.send_signal(2)
    assert end(process).status == 130
    assert not Path("t/long").exists()
    assert staged(Path("t")) == []
    assert source.exists()


def test_pieces_that_are_written_past_the_page_cache(tmp_path: Path) -> None:
    with (tmp_path / "long").open("wb") as long:
        long.write(b"begins")
        long.truncate(70 * MB)
    cut = ("--split-size", "66M", "--workers", "2", "--no-sync")
    assert pieces_of(report("cp", tmp_path / "long", tmp_path / "cut", "--verify", *cut))[0] == 1
    assert (tmp_path / "cut").read_bytes() == (tmp_path / "long").read_bytes()


def in_store(folder: Path) -> str:
    return f"objects://{folder}/store"


UPLOADED = ("--split-size", "8M", "--workers", "2")
LONGER = random.Random(6).randbytes(33 * MB + 5)


def test_a_store_gets_one_upload_of_several_tasks(source: Path, tmp_path: Path) -> None:
    (source / "long").write_bytes(LONGER)
    to = in_store(tmp_path)
    done = report("cp", "s/", to, *UPLOADED, "--verify", "--manifest", "made")
    assert pieces_of(done) == [1, 5, 0]
    assert (tmp_path / "store" / "long").read_bytes() == LONGER
    assert f"{zlib.crc32(LONGER):08x}" in Path("made").read_text()
    assert not list((tmp_path / "store").rglob("*upload*"))
    run("cp", f"{to}/", "back", "--split-size", "1M", "--workers", "2")
    assert tree(Path("back")) == tree(source)
    # The store copies its own files, whole.
    assert pieces_of(report("cp", f"{to}/", f"{to}-2", *UPLOADED)) == [0, 0, 0]


def test_a_store_killed_and_resumed(source: Path, tmp_path: Path, home: Path) -> None:
    (source / "long").write_bytes(LONGER)
    kill_when(
        ["cp", "s/", in_store(tmp_path), *UPLOADED, "--bandwidth", "16M"],
        home,
        lambda events: kept(events, "uploaded") >= 2,
    )
    done = report("resume", "last")
    assert (tmp_path / "store" / "long").read_bytes() == LONGER
    _, copied, was_there = pieces_of(done)
    assert (copied + was_there, was_there >= 2) == (5, True)
    assert not list((tmp_path / "store").rglob("*upload*"))


def test_s3_gets_one_upload_of_several_tasks(bucket: Bucket) -> None:
    Path("s").mkdir()
    Path("s/long").write_bytes(LONGER)
    done = report("cp", "s/", bucket.url("t"), *UPLOADED)
    assert pieces_of(done) == [1, 5, 0]
    assert tree(bucket.folder / "t") == tree(Path("s"))
    faults = {"GRISTMILL_OBJECTS_FAULTS": "throttled=0.05,lost=0.2,seed=4"}
    run("cp", "s/", bucket.url("v"), *UPLOADED, **faults)
    assert tree(bucket.folder / "v") == tree(Path("s"))
    assert bucket.uploads() == []


def test_s3_killed_and_resumed(bucket: Bucket, home: Path) -> None:
    Path("s").mkdir()
    Path("s/long").write_bytes(LONGER)
    kill_when(
        ["cp", "s/", bucket.url("u"), *UPLOADED, "--bandwidth", "16M"],
        home,
        lambda events: kept(events, "uploaded") >= 2,
    )
    done = report("resume", "last")
    assert tree(bucket.folder / "u") == tree(Path("s"))
    assert pieces_of(done)[2] >= 2
    assert bucket.uploads() == []
