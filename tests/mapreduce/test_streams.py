"""Jobs that read standard input, pipes and FIFOs: as if the same data were in a file."""

import gzip
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest
from tests.cli.harness import GRISTMILL, clean_environment
from tests.mapreduce.harness import native, total, words

import gristmill as gm

JOB = """
import gristmill as gm

def words(line, context):
    for word in line.split():
        yield f"{word} {context.input_file}", 1

def inverse(line):
    yield 1 / int(line), 1

out = gm.tsv("out")
job = gm.Job(gm.text("-"), map=words, reduce=gm.sum(), output=out)
fails = gm.Job(gm.text("-"), map=inverse, reduce=gm.sum(), output=out)
tagged = gm.Job(
    [gm.text("-", tag="a"), gm.text("b.txt", tag="b")],
    map=lambda line, context: [(line, context.tag)], reduce=gm.collect(), output=gm.jsonl("out"),
)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.py").write_text(JOB)
    return tmp_path


@contextmanager
def fed(path: Path, data: bytes) -> Generator[str]:
    """A FIFO that data is written to, in two pieces with a pause between them."""
    os.mkfifo(path)

    def feed() -> None:
        with path.open("wb", buffering=0) as file:
            file.write(data[:5])
            time.sleep(0.05)
            file.write(data[5:])

    writer = threading.Thread(target=feed)
    writer.start()
    try:
        yield str(path)
    finally:
        writer.join()


def parts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("[!_]*"))}


def program(
    folder: Path,
    *arguments: str,
    data: bytes | IO[bytes] = b"",
    command: str = "run",
    status: int = 0,
) -> tuple[str, str]:
    """Run `gristmill run job.py` with data from a pipe, or from a file."""
    piped = isinstance(data, bytes)
    done = subprocess.run(
        [GRISTMILL, command, "job.py", *arguments],
        input=data if piped else None,
        stdin=None if piped else data,
        capture_output=True,
        cwd=folder,
        env=clean_environment(),
        timeout=60,
        check=False,
    )
    said = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == status, said
    assert "/proc/" not in "".join(said)
    return said


def pairs(record: Any) -> Iterator[tuple[str, int]]:
    yield repr(record), 1


def rows(batch: Any) -> Iterator[tuple[str, int]]:
    yield "rows", batch.num_rows


def times(pair: tuple[str, int]) -> Iterator[tuple[int, int]]:
    yield pair[1], 1


def itself(record: Any) -> Iterator[Any]:
    yield record


@dataclass(frozen=True)
class Kind:
    make: Callable[[Any], Any]
    write: Callable[[Path], None]


def of_bytes(data: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


def write_parquet(path: Path) -> None:
    writer = gm.parquet("out").writer(str(path))
    for number in range(1000):
        writer.write({"a": number})
    writer.close()


def write_kv(path: Path) -> None:
    writer = gm.kv("out").writer(str(path))
    for number in range(1000):
        writer.write((number, "x"))
    writer.close()


LINES = b"".join(b"%d some words\n" % number for number in range(3000))
ROWS = b"a,b\n" + b"".join(b'%d,"x\ny"\n' % number for number in range(500))

KINDS = {
    "text": Kind(gm.text, of_bytes(LINES)),
    "lines=2": Kind(lambda path: gm.text(path, lines=2), of_bytes(LINES)),
    "tsv": Kind(gm.tsv, of_bytes(LINES.replace(b" ", b"\t"))),
    "jsonl": Kind(gm.jsonl, of_bytes(b'{"a": 1}\n' * 100)),
    "csv": Kind(gm.csv, of_bytes(ROWS)),
    "csv, cut": Kind(lambda path: gm.csv(path, multiline=False), of_bytes(b"a\n" + LINES)),
    "fixed": Kind(lambda path: gm.fixed(path, 5), of_bytes(LINES)),
    "delimited": Kind(lambda path: gm.delimited(path, " "), of_bytes(LINES)),
    "parquet": Kind(gm.parquet, write_parquet),
    "kv": Kind(gm.kv, write_kv),
    "gzip": Kind(gm.text, of_bytes(gzip.compress(LINES))),
    "zstd": Kind(gm.text, lambda path: native("zstd")(path, LINES)),
    "empty": Kind(gm.text, of_bytes(b"")),
    "no last newline": Kind(gm.text, of_bytes(LINES[:-1])),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_fifo_is_as_a_file(name: str, tmp_path: Path) -> None:
    """Each format gives the same bytes, whether they come from a file or through a FIFO."""
    kind = KINDS[name]
    kind.write(tmp_path / "in")

    def run(path: str, output: Path) -> dict[str, bytes]:
        form = gm.tsv(output)
        gm.Job(kind.make(path), map=pairs, reduce=total, output=form, split_max=3000).run()
        return parts(output)

    expected = run(str(tmp_path / "in"), tmp_path / "of-file")
    with fed(tmp_path / "fifo", (tmp_path / "in").read_bytes()) as fifo:
        assert run(fifo, tmp_path / "of-fifo") == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fifo", "in", "of-fifo", "of-file"]


@pytest.mark.parametrize("given", ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])
def test_standard_input_of_the_program(given: str, folder: Path) -> None:
    """What comes through a pipe has the name that was given."""
    program(folder, "--input", given, data=b"a b\nb\n")
    name = "standard input" if given == "-" else given
    assert parts(folder / "out") == {"part-r-00000.tsv": f"a {name}\t1\nb {name}\t2\n".encode()}


def test_standard_input_that_is_a_file(folder: Path) -> None:
    """A file is read itself, with its own name, which keeps splits, `--only` and resume."""
    (folder / "in.txt").write_bytes(b"a b\nb\n")
    with (folder / "in.txt").open("rb") as file:
        program(folder, data=file)
    name = folder.resolve() / "in.txt"
    assert parts(folder / "out") == {"part-r-00000.tsv": f"a {name}\t1\nb {name}\t2\n".encode()}


def test_the_rest_of_a_file(folder: Path) -> None:
    """A file of which something has been read is a stream of the rest; so is one without a name."""
    path = folder / "in.txt"
    path.write_bytes(b"a b\nb\n")
    with path.open("rb", buffering=0) as file:
        file.read(4)
        program(folder, data=file)
    assert parts(folder / "out") == {"part-r-00000.tsv": b"b standard input\t1\n"}
    with path.open("rb", buffering=0) as file:
        path.unlink()
        program(folder, "--overwrite", data=file)
    assert b"a standard input\t1\n" in parts(folder / "out")["part-r-00000.tsv"]


def test_whole_files(folder: Path) -> None:
    """A record that is a file has the stream's name for its path."""
    with fed(folder / "fifo", b"all of\nit") as fifo:
        job = gm.Job(gm.text(fifo, whole=True), map=itself, output=gm.kv(folder / "o"))
        assert list(job.run()) == [(fifo, "all of\nit")]


def test_batches(folder: Path) -> None:
    """`map_batches` reads streams, too."""
    with fed(folder / "fifo", LINES) as fifo:
        job = gm.Job(
            gm.text(fifo),
            map_batches=rows,
            reduce=gm.sum(),
            output=gm.kv(folder / "out"),
        )
        assert list(job.run()) == [("rows", 3000)]


def test_a_join_with_a_tag(folder: Path) -> None:
    """One of several inputs is a stream."""
    (folder / "b.txt").write_text("x\ny\n")
    program(folder, "--job", "tagged", "--input", "a=-", data=b"x\n")
    (part,) = parts(folder / "out").values()
    assert part == b'{"key": "x", "value": ["a", "b"]}\n{"key": "y", "value": ["b"]}\n'


def test_a_chain_and_a_sample(folder: Path) -> None:
    """The first job of a chain reads the stream, and a sample of it first."""
    with fed(folder / "fifo", LINES) as fifo:
        first = gm.Job(
            gm.text(fifo), map=words, reduce=total, partition_by=gm.sampled_ranges(), parts=3
        )
        last = first.then(map=times, reduce=gm.sum(), output=gm.kv(folder / "o"))
        assert list(last.run()) == [(1, 3000), (3000, 2)]


def test_an_error_names_the_stream(folder: Path) -> None:
    """An error has the stream's name and the offset; the record is kept to be tried again."""
    _, said = program(folder, "--job", "fails", data=b"1\n2\n0\n", status=1)
    assert "(file standard input, offset 4, " in said
    command = said.splitlines()[-1].removeprefix("To try it again alone: ")
    again = subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, text=True, check=False, cwd=folder
    )
    assert again.returncode == 1
    assert "\nrecord 2 of its split" in again.stdout, "the record is kept, as the input is gone"
    (folder / "saved").write_bytes(b"1\n2\n0\n")
    found, _ = program(folder, "--job", "fails", "--only", "saved:2")
    assert found == "record 1 of its split: '2'\n  (0.5, 1)\n"
    _, said = program(folder, "--job", "fails", "--only", "-:2", status=2)
    assert "what was read from standard input is gone" in said


def test_damage_names_the_stream(folder: Path) -> None:
    """What is wrong with the data is said of the stream, not of its copy."""
    _, said = program(folder, data=gzip.compress(LINES)[:-20], status=1)
    assert "standard input" in said
    _, said = program(folder, data=b"good\n\xff bad\n", status=1)
    assert "standard input" in said
    assert "offset 5" in said


def test_a_stream_that_is_no_table(folder: Path) -> None:
    """What the plan finds wrong is said of the stream, too."""
    with fed(folder / "fifo", LINES) as fifo:
        job = gm.Job(gm.parquet(fifo), map=pairs, output=gm.kv(folder / "out"))
        with pytest.raises(ValueError, match=f"cannot read {fifo}: ") as caught:
            job.run()
    assert "/proc/" not in str(caught.value)


def test_explain_reads_nothing(folder: Path) -> None:
    """A pipe that nobody writes to is planned at once."""
    os.mkfifo(folder / "fifo")
    with (folder / "fifo").open("r+b", buffering=0) as pipe:
        pipe.write(b"a\n")
        said, _ = program(folder, "--explain", data=pipe)
        assert "  input        a stream of unknown length, of gm.text('-')\n" in said
        said, _ = program(folder, "--job", "tagged", "--input", "b=job.py", "--explain", data=pipe)
        assert " B and a stream of unknown length" in said
        assert pipe.read(10) == b"a\n"


def test_check(folder: Path) -> None:
    """`gristmill check` reads the stream once, and its copy many times."""
    said, _ = program(folder, "--rounds", "1", data=LINES, command="check")
    assert said.startswith("deterministic: ")


@pytest.mark.parametrize("inputs", [("-", "-"), ("-", "/dev/stdin"), ("fifo", "./fifo")])
def test_a_stream_twice(inputs: tuple[str, str], folder: Path) -> None:
    """A stream can be read only once: it is refused by name."""
    os.mkfifo(folder / "fifo")
    _, said = program(folder, "--input", inputs[0], "--input", inputs[1], status=2)
    assert "is named twice" in said or "is also named" in said
    assert ("standard input" if inputs[0] == "-" else "fifo") in said


def test_jobs_side_by_side(folder: Path) -> None:
    """Each of two jobs would get some of the stream: they are refused."""
    os.mkfifo(folder / "fifo")
    jobs = [
        gm.Job(gm.text(folder / "fifo"), map=words, reduce=total, output=gm.kv(folder / name))
        for name in ("a", "b")
    ]
    with pytest.raises(ValueError, match="fifo is named twice"):
        gm.run_all(jobs)


def test_nothing_is_read_for_a_job_that_cannot_run(folder: Path) -> None:
    """An output that exists is refused before the stream is read."""
    (folder / "out").mkdir()
    (folder / "out" / "kept").write_text("")
    os.mkfifo(folder / "fifo")
    with (folder / "fifo").open("r+b", buffering=0) as pipe:
        program(folder, data=pipe, status=1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("given", ["-", "fifo"])
def test_a_signal_while_nothing_comes(given: str, number: signal.Signals, folder: Path) -> None:
    """The program ends at once, and leaves nothing behind."""
    os.mkfifo(folder / "fifo")
    before = set(folder.iterdir())
    with subprocess.Popen(
        [GRISTMILL, "run", "job.py", "--input", given],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=clean_environment(),
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"some words\n")
        process.stdin.flush()
        _wait_until_it_reads(process.pid)
        process.send_signal(number)
        assert process.wait(5) == 128 + number
    assert {path for path in folder.iterdir() if path.name != "__pycache__"} == before


def _wait_until_it_reads(pid: int) -> None:
    """Wait until a process has made the file for the copy, which has no name."""
    for _ in range(500):
        time.sleep(0.02)
        with suppress(OSError):  # a descriptor was closed while it was looked at
            links = Path(f"/proc/{pid}/fd").iterdir()
            if any("(deleted)" in str(link.readlink()) for link in links):
                return
    raise AssertionError("it does not read")


def test_a_full_disk(folder: Path) -> None:
    """A disk that is full is one clear error. Here a limit of the shell stands for its end."""
    done = subprocess.run(
        ["bash", "-c", 'ulimit -f 1000; exec "$0" run job.py', GRISTMILL],
        input=b"x\n" * 1_000_000,
        capture_output=True,
        cwd=folder,
        env=clean_environment(),
        timeout=60,
        check=False,
    )
    said = done.stderr.decode()
    assert done.returncode == 1, said
    assert said.startswith("gristmill run: cannot keep what comes from standard input: ")
    assert "What to do: name a spill directory" in said


def test_closed_standard_input(folder: Path) -> None:
    """What is closed is no empty input."""
    done = subprocess.run(
        ["bash", "-c", 'exec "$0" run job.py <&-', GRISTMILL],
        capture_output=True,
        cwd=folder,
        env=clean_environment(),
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert b"cannot read standard input: it is closed" in done.stderr


def test_a_terminal(folder: Path) -> None:
    """What is typed is read, until Ctrl-D."""
    master, terminal = os.openpty()
    os.write(master, b"a b\n\x04")
    with os.fdopen(terminal, "rb", buffering=0) as typed:
        program(folder, data=typed)
    os.close(master)
    assert parts(folder / "out") == {
        "part-r-00000.tsv": b"a standard input\t1\nb standard input\t1\n"
    }


def test_patterns_pass_over_fifos(folder: Path) -> None:
    """As directories do: only a FIFO that is named is read."""
    os.mkfifo(folder / "a.txt")
    (folder / "b.txt").write_text("x\n")
    job = gm.Job(gm.text(folder / "*.txt"), map=words, reduce=total, output=gm.kv(folder / "out"))
    assert list(job.run()) == [("x", 1)]
