"""From S3 to HDFS and back: the bytes are those of a job on a disk, and prove themselves."""

from pathlib import Path

from .harness import report, run
from .hdfs_server import files, local, nothing_staged
from .own_code import Bench
from .s3_server import Bucket


def test_there_and_back(bucket: Bucket, there: str, tmp_path: Path) -> None:
    run("teragen", "100k", "in", "--files", "2", "--no-sync")
    run("terasort", "in", "out", "--partitions", "3", "--no-sync")
    wanted = local(Path("out"))
    run("teragen", "100k", bucket.url("in"), "--files", "2")
    run("terasort", bucket.url("in"), f"{there}/sorted", "--partitions", "3", "--replication", "1")
    assert files(f"{there}/sorted") == wanted
    run("terasort", f"{there}/sorted", bucket.url("back"), "--partitions", "3")
    run("terasort", "out", "back", "--partitions", "3", "--no-sync")
    assert bucket.objects("back") == local(Path("back"))
    for output, against in ((f"{there}/sorted", bucket.url("in")), (bucket.url("back"), "in")):
        assert report("teravalidate", output, "--against", against)["records"] == 100_000
    bench = Bench.made(tmp_path / "bench", 300_000)
    text = tmp_path / "bench" / "in.txt"
    run("sort", text, "-o", "lines")
    run("sort", text, "-o", f"{there}/lines")
    run("sort", f"{there}/lines", "-o", bucket.url("lines"))
    assert bucket.objects("lines") == {"": Path("lines").read_bytes()}
    command = bench.command("function", Path("words"))
    run(*command)
    for source, target in ((bucket.url("lines"), f"{there}/words"), (f"{there}/lines", "s3")):
        place = bucket.url("words") if target == "s3" else target
        moved = {str(text): source, "words": place}
        run(*(moved.get(str(word), word) for word in command))
    # Files of counts, whatever the order of the lines was.
    assert files(f"{there}/words") == bucket.objects("words") == local(Path("words"))
    assert nothing_staged(there)
    assert bucket.uploads() == []
