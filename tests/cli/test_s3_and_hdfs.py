"""From S3 to HDFS and back: the bytes are those of a job on a disk, and prove themselves."""

import random
from pathlib import Path

import pytest

from .harness import report, run
from .hdfs_server import file, files, local, nothing_staged
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


#: Commands of text: each reads the same lines, and writes a file or a directory.
OF_TEXT = (
    "sort -k2,2nr -k1,1f {0} -o {1}",
    "sort -t: -u -k1.2,1.3 {0} -o {1} --compress zstd --parts 2",
    "sort --csv --key n:num,word:desc {0} -o {1}",
    "wordcount --fold-case {0} {1} --parts 2",
    "wordcount --top 3 {0} {1}",
    "grep --counts [a-z]+[0-9] {0} -o {1}",
)


@pytest.mark.parametrize("command", OF_TEXT)
def test_commands_of_text(command: str, bucket: Bucket, there: str) -> None:
    made = random.Random(command)
    rows = (
        f"{made.choice('abAB')}{made.randrange(50)} b,{made.randrange(99)}" for _ in range(9000)
    )
    text = "\n".join(["word,n", *rows]).encode()
    Path("text").write_bytes(text)
    (bucket.folder / "text").write_bytes(text)
    far = f"{there}/{OF_TEXT.index(command)}"
    run(*command.format("text", "out").split())
    run(*command.format(bucket.url("text"), far).split())
    if Path("out").is_dir():
        assert files(far) == local(Path("out"))
    else:
        assert file(far) == Path("out").read_bytes()
    assert nothing_staged(far)
