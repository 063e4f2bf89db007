"""`gristmill cp` to S3 and HDFS and back: every name and byte, and nothing of ours stays."""

import json
import os
import random
from pathlib import Path

import pytest
from tests.optional import or_missing
from tests.soak.copies import Place, campaign

from .harness import failure, report, run, start, without_privileges
from .hdfs_server import file, is_there, nothing_staged
from .http_server import serving
from .s3_server import Bucket, Server
from .test_cp import made, tree
from .toxiproxy import proxied

FILES = {
    (b"a b", b"10%25=1+#?.txt"): b"one",
    (b"_a", b".b"): b"two",
    (b"empty",): b"",
    (b"k" * 200, b"caf\xc3\xa9"): b"long name",
    (b"long",): random.Random(3).randbytes(20_000_000),
    **{(b"many", b"%d" % n): b"%d" % n for n in range(300)},
}


@pytest.fixture
def source() -> Path:
    """A tree in the current directory."""
    made(Path("s"), FILES)
    return Path("s")


def test_s3_and_back(bucket: Bucket, source: Path) -> None:
    done = report("cp", "s/", bucket.url("t"), "--verify", "--manifest", bucket.url("made"))
    assert (done["counters"]["COPY"], done["durable"]) == (len(FILES), True)
    assert tree(bucket.folder / "t") == tree(source)
    assert (bucket.folder / "made").read_bytes().count(b"\n") == len(FILES)
    assert bucket.uploads() == []
    run("cp", bucket.url("t"), "back")
    assert tree(Path("back/t")) == tree(source)
    done = report("cp", "s/", bucket.url("t"))
    assert (done["counters"]["COPY"], done["counters"]["SKIP"]) == (0, len(FILES))
    (source / "many" / "7").write_bytes(b"8")
    (source / "empty").unlink()
    assert "has other bytes" in failure("cp", "s/", bucket.url("t"))
    done = report("cp", "s/", bucket.url("t"), "--update", "--delete")
    assert (done["counters"]["COPY"], done["counters"]["DELETED_FILES"]) == (1, 1)
    assert tree(bucket.folder / "t") == tree(source)
    plan = report("explain", "cp", "s/", bucket.url("t"))
    (output,) = plan["stores"]
    # Short files take two requests, the long one an upload of three parts.
    assert (output["place"], output["requests"]) == (f"s3://{bucket.name}", 2 * 303 + 7)


def test_s3_that_is_busy_and_whose_replies_are_lost(bucket: Bucket, source: Path) -> None:
    faults = {"GRISTMILL_OBJECTS_FAULTS": "throttled=0.05,lost=0.1,seed=4"}
    run("cp", "s/", bucket.url("t"), "--verify", **faults)
    assert tree(bucket.folder / "t") == tree(source)
    run("cp", bucket.url("t/"), bucket.url("u"), **faults)
    assert tree(bucket.folder / "u") == tree(source)
    assert bucket.uploads() == []


def test_how_many_files_go_at_once_is_found(bucket: Bucket) -> None:
    made(Path("s"), {(b"%d" % n,): b"%d" % n for n in range(1500)})
    # Two tasks begin with 64 each.
    done = report("cp", "s/", bucket.url("t"), "--workers", "2")["counters"]
    assert (done["COPY"], done["COPY_STREAMS"] >= 16) == (1500, True)
    busy = {"GRISTMILL_OBJECTS_FAULTS": "throttled=0.2,seed=5"}
    copied = run("cp", "s/", bucket.url("u"), "--workers", "2", "--json", **busy)
    done = json.loads(copied.stdout)["counters"]
    assert (done["COPY"], done["COPY_STREAMS"] < 128) == (1500, True)
    assert tree(bucket.folder / "u") == tree(Path("s"))


def test_longer_files_go_side_by_side_within_the_memory(
    bucket: Bucket, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Over a link with latency: on a busy machine without one, more at once would be no faster."""
    draw = random.Random(8)
    made(Path("s"), {(b"%d" % n,): draw.randbytes(300_000 + 90_000 * n) for n in range(60)})
    with or_missing("BAD NETWORKS"), proxied(server.endpoint, tmp_path / "proxy.log") as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        proxy.worsen("latency", latency=100)  # far more than the CPU takes for a file
        for memory in ("70M", "1G"):
            limits = ("--memory", memory, "--workers", "2")
            done = report("cp", "s/", bucket.url(memory), *limits)
            assert done["counters"]["COPY_STREAMS"] >= 4
            assert tree(bucket.folder / memory) == tree(Path("s"))
            run("cp", bucket.url(f"{memory}/"), f"back{memory}", *limits, "--bandwidth", "1G")
            assert tree(Path(f"back{memory}")) == tree(Path("s"))
    assert bucket.uploads() == []


def test_within_s3_the_store_copies(bucket: Bucket, source: Path) -> None:
    run("cp", "s/", bucket.url("t"))
    assert report("cp", bucket.url("t/"), bucket.url("u +"))["counters"]["COPY"] == len(FILES)
    assert tree(bucket.folder / "u +") == tree(source)
    # What was sent in parts has another ETag than what the store copied.
    etags = [os.getxattr(bucket.folder / place / "long", "user.etag") for place in ("t", "u +")]
    assert (b"-3" in etags[0], b"-" in etags[1]) == (True, False)
    run("cp", bucket.url("t/"), bucket.url("v"), "--verify")
    assert b"-3" in os.getxattr(bucket.folder / "v" / "long", "user.etag")
    assert tree(bucket.folder / "v") == tree(source)
    assert bucket.uploads() == []


def test_s3_killed_and_run_again(bucket: Bucket, source: Path) -> None:
    process = start("cp", "s/", bucket.url("t"), "--bandwidth", "8M", "--workers", "1")
    while not bucket.uploads() and process.poll() is None:
        pass
    process.kill()
    process.communicate()
    run("cp", "s/", bucket.url("t"), "--update")
    assert tree(bucket.folder / "t") == tree(source)
    assert bucket.uploads() == []


def test_s3_killed_at_random(bucket: Bucket, tmp_path: Path) -> None:
    campaign([1], 7, print, tmp_path, [Place("S3", bucket.url("c"), bucket.uploads)])


def test_hdfs_killed_at_random(there: str, tmp_path: Path) -> None:
    def left() -> list[str]:
        return [] if nothing_staged(there) else ["staged files"]

    campaign([2], 7, print, tmp_path, [Place("HDFS", there, left)])


def test_hdfs_and_back(there: str) -> None:
    made(Path("s"), FILES)
    Path("s/nothing").mkdir()
    run("cp", "s", there)
    assert file(f"{there}/s/long") == FILES[(b"long",)]
    assert nothing_staged(there, f"{there}/s", f"{there}/s/many")
    run("cp", f"{there}/s/", "back")
    assert tree(Path("back")) == tree(Path("s"))
    Path("s/many/7").write_bytes(b"8")
    Path("s/empty").unlink()
    done = report("cp", "s", there, "--update", "--delete")
    assert (done["counters"]["COPY"], done["counters"]["DELETED_FILES"]) == (1, 1)
    assert file(f"{there}/s/many/7") == b"8"
    assert not is_there(f"{there}/s/empty")
    Path("s/10:00").write_bytes(b"colon")
    assert "10:00" in failure("cp", "s", there)
    assert nothing_staged(there, f"{there}/s", f"{there}/s/many")


def test_from_a_web_server(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not home.exists()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    text = b"a,b\n" * 3_000_000
    made(tmp_path / "served", {(b"a.csv",): text})
    with serving(tmp_path / "served") as there:
        run("cp", there.url("good", "a.csv"), "t/")
        run("cp", there.url("flaky", "a.csv"), "one")
        assert "no such file" in failure("cp", there.url("good", "none"), "t")
        assert "a.csv" in failure("cp", there.url("changing", "a.csv"), "other")
    assert tree(Path("t")) == {b"a.csv": text}
    assert Path("one").read_bytes() == text
    assert not Path("other").exists()


def test_s3_to_hdfs_and_back(bucket: Bucket, there: str, source: Path) -> None:
    made(bucket.folder / "in", FILES)
    run("cp", bucket.url("in/"), f"{there}/in")
    run("cp", f"{there}/in/", bucket.url("out"))
    assert tree(bucket.folder / "out") == tree(source)
    assert [path.name for path in Path().iterdir()] == ["s"]


def test_hdfs_gets_the_whole_copy_at_once(there: str) -> None:
    made(Path("s"), FILES)
    run("cp", "s/", f"{there}/t", "--atomic")
    assert file(f"{there}/t/long") == FILES[(b"long",)]
    assert "of this name" in failure("cp", "s/", f"{there}/t", "--atomic")
    assert "of this name" in failure("cp", "s/", f"{there}/t", "--atomic", "--dry-run")
    run("cp", "s/long", f"{there}/one", "--atomic")
    assert file(f"{there}/one") == FILES[(b"long",)]
    done = run("hadoop", "distcp", "-atomic", f"{there}/t/", f"{there}/u")
    assert f"Files Copied={len(FILES)}" in done.stderr
    run("cp", f"{there}/u/", "back")
    assert tree(Path("back")) == tree(Path("s"))
    assert nothing_staged(there, f"{there}/t")


def test_hdfs_has_no_copy_of_some_files(there: str) -> None:
    made(Path("s"), FILES)
    Path("s/zz").write_bytes(b"z")
    Path("s/zz").chmod(0)
    failure("cp", "s/", f"{there}/t", "--atomic", preexec=without_privileges)
    assert not is_there(f"{there}/t")
    assert nothing_staged(there)


@pytest.fixture
def dead_copy(there: str) -> None:
    """What an atomic copy to `t` leaves that is killed half way."""
    made(Path("s"), FILES)
    run("hadoop", "fs", "-mkdir", "-p", there)
    slowly = ("--bandwidth", "8M", "--workers", "1", "--history")
    process = start("cp", "s/", f"{there}/t", "--atomic", *slowly)
    while ".t.gristmill-job_" not in run("hadoop", "fs", "-ls", there).stdout:
        assert process.poll() is None
    process.kill()
    process.communicate()
    assert not is_there(f"{there}/t")


@pytest.mark.usefixtures("dead_copy")
def test_hdfs_a_killed_copy_is_resumed_beside_its_target(there: str) -> None:
    run("resume", "last")
    assert file(f"{there}/t/long") == FILES[(b"long",)]
    run("cp", f"{there}/t/", "back")
    assert tree(Path("back")) == tree(Path("s"))
    assert nothing_staged(there)


@pytest.mark.usefixtures("dead_copy")
def test_hdfs_what_a_dead_copy_left_goes_with_its_history(there: str) -> None:
    run("jobs", "prune", "--older-than", "0")
    assert run("hadoop", "fs", "-ls", there).stdout == ""
