"""Jobs that read from an HTTP server: bytes are those of a disk, or the job says why not."""

import gzip
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .harness import GRISTMILL, failure, only_object, run
from .http_server import Files, serving

TEXT = "the ox turns the mill\nthe mill turns the stone\n" * 20_000


@pytest.fixture
def files(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Files]:
    assert not home.exists()
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "a.txt").write_text(TEXT)
    (folder / "b.txt").write_text("and the end\n")
    (folder / "empty").touch()
    (folder / "c.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(folder) as files:
        yield files


def parts(folder: str) -> dict[str, bytes]:
    return {part.name: part.read_bytes() for part in Path(folder).glob("part-*")}


@pytest.mark.parametrize("how", ["good", "dated", "weak", "flaky"])
def test_bytes_are_those_of_a_disk(how: str, files: Files) -> None:
    names = ("a.txt", "b.txt", "empty", "c.txt.gz")
    local, there = (
        [str(files.folder / name) for name in names],
        [files.url(how, name) for name in names],
    )
    run("wordcount", *local, "local")
    run("wordcount", *there, "there")
    assert parts("there") == parts("local")
    run("sort", local[0], local[1], "-o", "wanted")
    run("sort", there[0], there[1], "-o", "sorted")
    assert Path("sorted").read_bytes() == Path("wanted").read_bytes()
    job = ["streaming", "-mapper", "cat", "-reducer", "uniq -c", "-D", "mapreduce.job.maps=3"]
    run(*job, "-input", local[0], "-input", local[3], "-output", "out-local")
    run(*job, "-input", there[0], "-input", there[3], "-output", "out-there")
    assert parts("out-there") == parts("out-local")
    assert files.asked[f"{how} ranges"] > 0


def test_a_server_is_asked_again_when_it_says(files: Files) -> None:
    began_s = time.monotonic()
    done = run("sort", files.url("busy", "b.txt"), "-o", "sorted", "--json")
    assert time.monotonic() - began_s > 1
    counters = only_object(done.stdout)["counters"]
    assert (counters["STORE_IO_THROTTLED"], counters["STORE_IO_RETRY"]) == (1, 1)
    assert "the store had too many requests" in done.stderr
    assert files.asked["busy"] == counters["STORE_IO_REQUEST"]


def test_what_signs_an_address_is_in_no_text(files: Files, home: Path) -> None:
    query = "X-Amz-Credential=planted-a&part=1&X-Amz-Signature=planted-b&sig=planted-c%3D"
    there, gone = (files.url("good", f"{name}?{query}") for name in ("a.txt", "no"))
    said = ""
    run("sort", files.folder / "a.txt", "-o", "wanted")
    for runner in ("threads", "processes"):
        for more in ((), ("--json",)):
            command = ("sort", there, "-o", "sorted", "--memory", "64M", "--runner", runner)
            done = run(*command, "--history", *more)
            said += done.stdout + done.stderr
    assert Path("sorted").read_bytes() == Path("wanted").read_bytes()
    done = run("wordcount", there, "counted", "--history")
    said += done.stdout + done.stderr + run("explain", "wordcount", there, "no").stdout
    for how in ("locked", "bare"):
        signed = files.url(how, f"a.txt?{query}")
        said += failure("sort", signed, "-o", "no", "--history")
        said += failure("wordcount", signed, "no", "--history")
    said += failure("sort", gone, "-o", "no")
    assert "X-Amz-Signature=***" in said
    said += run("jobs").stdout + run("jobs", "show", "last").stdout
    kept = [path for folder in (home, Path()) for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "events.jsonl" for path in kept)
    for text in (said.encode(), *(path.read_bytes() for path in kept)):
        assert b"planted" not in text


def test_python_jobs_and_records_of_one_length(files: Files) -> None:
    run("teragen", "20k", files.folder / "tera", "--no-sync")
    there = files.url("good", "tera/part-m-00000")
    run("terasort", there, "sorted", "--partitions", "2")
    run("teravalidate", "sorted", "--against", there)
    Path("job.py").write_text(
        "import sys\nimport gristmill as gm\n"
        "job = gm.Job(gm.text(sys.argv[1:]), map=lambda line: [(line[:3], 1)], reduce=gm.sum(),\n"
        "             output=gm.tsv('counted'))\n"
        "print(sorted(job.run().read()))\n"
    )
    python = GRISTMILL.with_name("python")
    inputs = [files.url("good", "b.txt?token=x*"), files.url("good", "c.txt.gz")]
    done = subprocess.run(
        [python, "job.py", *inputs], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "[('and', '1'), ('the', '40000')]\n", done.stderr


def test_what_cannot_be_read_is_refused_with_what_to_do(files: Files) -> None:
    (files.folder / "large").write_text("word\n" * 5_000_000)
    for how, says in {
        "whole": "does not send ranges",
        "bare": "no ETag and no Last-Modified",
        "changing": "it was replaced while the job read it",
        "new": "it was replaced while the job read it",
        "locked": "answered 403",
    }.items():
        error = failure("sort", files.url(how, "large"), "-o", "no")
        assert says in error
        assert "What to do" in error
    assert "no such file" in failure("sort", files.url("good", "nothing"), "-o", "no")
    assert "no answer" in failure("sort", "http://127.0.0.1:1/a", "-o", "no")
    error = failure("sort", "http://me:hush@127.0.0.1:1/a", "-o", "no", status=2)
    assert "holds a user name" in error
    assert not Path("no").exists()


def test_nothing_is_written_there(files: Files) -> None:
    out = files.url("good", "out")
    (files.folder / "in").mkdir()
    for command in (
        ("teragen", "10", out),
        ("sort", files.folder / "a.txt", "-o", out),
        ("wordcount", files.folder / "a.txt", out),
        ("streaming", "-mapper", "cat", "-input", files.folder / "a.txt", "-output", out),
    ):
        assert "for reading only" in failure(*command, status=2)
