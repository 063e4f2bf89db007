"""Jobs of lines from S3: each small object is asked for once, in the version that was listed."""

import bz2
import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from .harness import failure, only_object, report, run
from .object_server import Objects, serving
from .s3_server import Bucket

FILES = 40
#: A listing, twice, and what tells a key from the beginning of others and from an output.
BESIDE = 8

JOB = """
import gristmill as gm


def words(line):
    for word in line.split():
        yield word, 1


def job(input, output):
    return gm.Job(gm.text(input), map=words, reduce=gm.sum(), output=gm.tsv(output))
"""

SCRIPTS = ("streaming", "-mapper", "tr ' ' '\\n'", "-reducer", "uniq -c")


def texts() -> dict[str, bytes]:
    return {f"in/{n:03}.txt": b"some words of %d\nand more\n" % (n % 7) for n in range(FILES)}


def command(kind: str, source: str, output: str) -> list[str]:
    if kind == "run":
        Path("job.py").write_text(JOB)
        return ["run", "job.py", "--job", "job", "--input", source, "--output", output]
    if kind == "streaming":
        return [*SCRIPTS, "-input", source, "-output", output]
    return [kind, source, output]


def counted(folder: str) -> list[str]:
    lines = "".join(part.read_text() for part in sorted(Path(folder).glob("part-*"))).splitlines()
    return sorted(line.strip() for line in lines)


@pytest.fixture
def kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Objects]:
    (home.parent / "work").mkdir()
    monkeypatch.chdir(home.parent / "work")
    with serving(texts()) as kept:
        for name, value in kept.environment.items():
            monkeypatch.setenv(name, value)
        yield kept


@pytest.mark.parametrize("pattern", ["in", "in/*.txt"])
@pytest.mark.parametrize("kind", ["wordcount", "run", "streaming"])
def test_each_small_object_is_asked_for_once(kind: str, pattern: str, kept: Objects) -> None:
    run(*command(kind, f"s3://bucket/{pattern}", "out"))
    assert kept.asked["GET"] == FILES
    assert sum(kept.asked.values()) <= FILES + BESIDE, kept.asked
    for name, data in kept.objects.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(data)
    run(*command(kind, "in", "here"))
    assert counted("out") == counted("here")


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("kind", ["wordcount", "run", "streaming"])
def test_a_large_object_is_asked_for_in_large_ranges(
    kind: str, packed: bool, kept: Objects
) -> None:
    """Each byte once, but for the ends of lines behind the ends of splits; never in blocks."""
    data = b"".join(b"%08d word%d and\n" % (n % 100, n % 1000) for n in range(500_000))
    name = "in/a.gz" if packed else "in/a.txt"
    kept.objects = {name: gzip.compress(data, 0) if packed else data}  # as long as it was
    run(*command(kind, "s3://bucket/in", "out"))
    splits = 1 if packed else len(data) // (1 << 20) + 1
    assert kept.asked["GET"] <= max(len(data) / 8e6, splits) + 2, kept.asked
    Path("in").mkdir()
    Path(name).write_bytes(kept.objects[name])
    run(*command(kind, "in", "here"))
    assert counted("out") == counted("here")


@pytest.mark.parametrize("kind", ["wordcount", "run", "streaming"])
def test_what_a_name_hides_is_found_by_its_task(kind: str, kept: Objects) -> None:
    """Compressed text by any name; without a look at it before."""
    run(*command(kind, "s3://bucket/in", "plain"))
    ways = (gzip.compress, bz2.compress, bytes)
    for number, (key, data) in enumerate(list(kept.objects.items())):
        del kept.objects[key]
        name = (key, key.replace(".txt", ".gz"), key.replace(".txt", ""))[number // 3 % 3]
        way = ways[number % 3]
        kept.objects[name if way is not bytes else key] = way(data)
    kept.asked.clear()
    run(*command(kind, "s3://bucket/in", "packed"))
    assert kept.asked["GET"] == FILES
    assert counted("packed") == counted("plain")
    kept.objects["in/020.txt.gz"] = b"this is not compressed\n"
    said = run(*command(kind, "s3://bucket/in", "wrong"), status=1).stderr
    assert "020.txt.gz" in said
    assert "does not begin as gzip data do" in said


@pytest.mark.parametrize("kind", ["wordcount", "run", "streaming"])
def test_an_object_that_was_replaced_since_it_was_listed_is_noticed(
    kind: str, kept: Objects
) -> None:
    def replace() -> None:
        kept.objects["in/007.txt"] = b"other words\n"

    kept.got = replace
    said = run(*command(kind, "s3://bucket/in", "out"), status=1).stderr
    assert "it was replaced while the job read it" in said
    assert "s3://bucket/in/007.txt" in said
    assert not Path("out").exists()


@pytest.mark.parametrize("kind", ["wordcount", "run"])
def test_requests_of_all_processes_are_counted(kind: str, kept: Objects) -> None:
    """Those of worker processes of Python, too: they read the objects."""
    found = report(*command(kind, "s3://bucket/in", "out"))["counters"]
    sent = sum(kept.asked.values())
    assert sent - BESIDE <= found["STORE_IO_REQUEST"] <= sent, kept.asked
    assert "STORE_IO_RETRY" not in found


@pytest.mark.usefixtures("kept")
def test_throttled_requests_of_python_are_counted() -> None:
    job = [*command("run", "s3://bucket/in", "out"), "--json"]
    done = only_object(run(*job, GRISTMILL_OBJECTS_FAULTS="throttled=0.3,seed=3").stdout)
    found = done["counters"]
    # The driver alone sends some ten: a listing, and what tells a key from the beginning of others.
    assert found["STORE_IO_REQUEST"] > FILES + 8
    assert 8 <= found["STORE_IO_THROTTLED"] == found["STORE_IO_RETRY"]
    assert "the store had too many requests" in " ".join(done["warnings"])


def test_requests_are_counted(bucket: Bucket) -> None:
    """Of a server that many use."""
    for name, data in texts().items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(data)
    run("hadoop", "fs", "-put", "in", bucket.url(""))
    run(*command("wordcount", "in", "here"))
    found = report("wordcount", bucket.url("in"), bucket.url("out"), "--parts", "1")
    assert found["counters"]["STORE_IO_REQUEST"] <= FILES + BESIDE + 20
    lines = b"".join(bucket.objects("out").values()).decode().splitlines()
    assert sorted(lines) == counted("here")
    assert "exists" in failure("wordcount", bucket.url("in"), bucket.url("out"))


@pytest.mark.parametrize("status", [403, 404])
def test_what_went_between_two_requests_is_not_there(status: int, kept: Objects) -> None:
    """HEAD cannot say why it failed: the reply to GET counts."""
    kept.head_of_nothing = status
    told = run("wordcount", "s3://bucket/none", "out", status=1).stderr
    assert "cannot find the input: no such file or directory" in told
