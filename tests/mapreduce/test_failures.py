"""Wrong jobs: each ends in one paragraph that says what failed, at which record, and what to do."""

import ctypes
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.harness import GRISTMILL, clean_environment, wait_for_job
from tests.mapreduce.harness import total

import gristmill as gm

BAD = 7_123


def paragraph(error: BaseException) -> str:
    """What an exception says; one paragraph, in our style."""
    text = str(error)
    assert "\n" not in text
    assert text.startswith("cannot ")
    assert text.endswith(".")
    return text


def failed(job: gm.Job, kind: type[Exception] = RuntimeError, **options: Any) -> BaseException:
    with pytest.raises(kind) as caught:
        job.run(**options)
    paragraph(caught.value)
    assert job.output is not None
    output = Path(job.output.folder)
    assert not output.exists()
    assert not list(output.parent.glob(f".{output.name}*")), "nothing is left behind"
    return caught.value


def invert(line: str) -> Iterator[tuple[str, float]]:
    print("at", line)
    yield line, 1 / (int(line) - BAD)


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    path = tmp_path / "numbers.txt"
    path.write_text("".join(f"{n}\n" for n in range(10_000)))
    return path


def of(numbers: Path, **options: Any) -> gm.Job:
    options.setdefault("map", invert)
    options.setdefault("reduce", gm.sum())
    return gm.Job(gm.text(numbers), output=gm.tsv(numbers.parent / "out"), **options)


@pytest.mark.parametrize("split_max", [10_000, None])
def test_a_division_by_zero(numbers: Path, split_max: int | None) -> None:
    error = failed(of(numbers, split_max=split_max))
    offset = sum(len(f"{n}\n") for n in range(BAD))
    text = paragraph(error)
    assert "map invert: ZeroDivisionError: division by zero" in text
    assert f"file {numbers}, offset {offset}" in text
    assert f"record '{BAD}'" in text
    frames, log, again = error.__notes__
    assert frames.startswith("In your code:")
    assert "yield line, 1 / (int(line) - BAD)" in frames
    assert "gristmill/mapreduce" not in frames
    assert log.startswith("The last lines of its stdout:")
    assert log.endswith(f"at {BAD}")
    assert again.startswith("To try it again alone: ")
    report = gm.report_of(error)
    assert report is not None
    assert report.error is not None
    assert report.error.kind == "user_code"
    assert report.counters.get("FAILED_ATTEMPTS", 2) <= 2, "the same twice: no third try"


def test_the_same_exception_is_tried_twice_at_most(numbers: Path) -> None:
    tries = numbers.parent / "tries"

    def fail(line: str, context: gm.Context) -> None:
        if line == str(BAD):
            with tries.open("a") as file:
                file.write(f"{context.attempt}\n")
            raise ValueError("no good")

    failed(of(numbers, map=fail))
    assert tries.read_text() == "0\n1\n"


def test_what_fails_once_does_no_harm(numbers: Path) -> None:
    def fail_once(line: str, context: gm.Context) -> Iterator[tuple[str, int]]:
        if context.attempt == 0 and line == str(BAD):
            raise OSError("the network is down")
        yield "n", 1

    assert dict(of(numbers, map=fail_once).run().read()) == {"n": "10000"}


def test_only_one_try(numbers: Path) -> None:
    tries = numbers.parent / "tries"

    def fail(_line: str) -> None:
        with tries.open("a") as file:
            file.write("x")
        raise ValueError(f"at {time.monotonic()}")

    failed(of(numbers, map=fail), attempts=1)
    assert tries.read_text() == "x"


def test_an_unpicklable_closure(numbers: Path) -> None:
    lock = threading.Lock()

    def locked(line: str) -> Iterator[tuple[str, int]]:
        with lock:
            yield line, 1

    error = failed(of(numbers, map=locked), TypeError)
    assert "map locked" in str(error)
    assert "its variable lock holds lock" in str(error)
    assert "context.state" in str(error)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda line: (line, 1), r"map <lambda> returned one pair, \('0', 1\)"),
        (lambda line: line, r"returned '0', a str"),
        (len, r"returned 1, an int"),
        (lambda line: [line], r"'0'"),
        (lambda line: [(line, 1, 2)], r"\('0', 1, 2\)"),
        (lambda line: [([line], 1)], r"a key must be str.*\['0'\]"),
    ],
)
def test_a_wrong_return_type(numbers: Path, function: Callable[..., Any], says: str) -> None:
    error = failed(of(numbers, map=function))
    assert "offset 0" in str(error)
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(str(error))


@pytest.mark.parametrize(
    "function", [lambda key, values: (key, 1), lambda key, values: sum(values)]
)
def test_a_wrong_reduction(numbers: Path, function: Callable[..., Any]) -> None:
    error = failed(of(numbers, map=lambda line: [(len(line), 1)], reduce=function))
    assert "reduce <lambda>" in str(error)
    assert "(key 1" in str(error)


def combined(key: int, values: Iterable[int]) -> Iterator[int]:
    if key == 3:
        raise LookupError("no such luck")
    yield sum(values)


@pytest.mark.parametrize("count", [1, 40])
def test_a_failing_combiner(tmp_path: Path, count: int) -> None:
    job = gm.Job(
        gm.items(list(range(count * 10))),
        map=lambda n: [(n % 7, n)],
        combine=combined,
        reduce=lambda key, values: [(key, sum(values))],
        output=gm.kv(tmp_path / "out"),
    )
    with pytest.raises(RuntimeError, match=r"combine combined: LookupError: .* \(key 3\b"):
        job.run(workers=1)


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (lambda _line: 5, "yield each of them, or return a list"),
        (lambda _line: [({1}, 1)], "make a key of one of these types from it"),
    ],
)
def test_the_place_comes_before_the_advice(
    numbers: Path, function: Callable[..., Any], advice: str
) -> None:
    job = gm.Job(
        gm.text(numbers),
        map=function,
        reduce=gm.sum(),
        output=gm.kv(numbers.with_name("out")),
    )
    with pytest.raises(RuntimeError) as caught:
        job.run(workers=1)
    assert str(caught.value).endswith(f". What to do: {advice}.")
    assert str(caught.value).count("What to do") == 1
    assert "offset 0" in str(caught.value)


def test_a_column_that_is_not_there_has_its_place_before_the_advice(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a,b,c\n1,2,3\n")
    source = gm.csv(tmp_path / "in.csv", columns=["zz"])
    job = gm.Job(source, map=lambda row: [row], output=gm.jsonl(tmp_path / "out"))
    with pytest.raises(
        ValueError, match=r"(?m)in.csv.*\. What to do: take some of 'a', 'b', 'c'\.$"
    ):
        job.run(workers=1)


def test_a_failing_reduction(numbers: Path) -> None:
    def fail(key: int, values: Iterable[int]) -> Iterator[Any]:
        if key == 3:
            raise LookupError("nothing there")
        yield key, sum(values)

    error = failed(of(numbers, map=lambda line: [(len(line), 1)], reduce=fail))
    assert "reduce fail: LookupError: nothing there" in str(error)
    assert "(key 3" in str(error)


def test_an_endless_loop(numbers: Path) -> None:
    def loop(line: str) -> Iterator[tuple[str, int]]:
        while line == str(BAD):
            pass
        yield line, 1

    begun = time.monotonic()
    error = failed(of(numbers, map=loop), timeout_s=2)
    assert "no progress for 2 seconds" in str(error)
    assert re.search(r"record \d+ of its split", str(error))
    (stack,) = (note for note in error.__notes__ if note.startswith("Where it stood:"))
    frames = [line for line in stack.splitlines() if line.startswith("  File ")]
    assert [line.split('"')[1] for line in frames] == [__file__] * len(frames) != []
    offset = sum(len(f"{n}\n") for n in range(BAD))
    assert f"offset {offset}" in str(error)
    assert any("while line == str(BAD)" in note or "in loop" in note for note in error.__notes__)
    assert time.monotonic() - begun < 15


def test_a_sign_of_life(numbers: Path) -> None:
    def slow(line: str, context: gm.Context) -> Iterator[tuple[str, int]]:
        if line == str(BAD):
            for step in range(6):
                time.sleep(0.3)
                context.status(f"step {step}")
        yield "n", 1

    assert dict(of(numbers, map=slow).run(timeout_s=1).read()) == {"n": "10000"}


def test_a_crash(numbers: Path) -> None:
    def crash(line: str) -> Iterator[tuple[str, int]]:
        if line == str(BAD):
            ctypes.string_at(0)
        yield line, 1

    error = failed(of(numbers, map=crash))
    offset = sum(len(f"{n}\n") for n in range(BAD))
    assert "SIGSEGV" in str(error) or "segmentation" in str(error).lower()
    assert f"offset {offset}" in str(error)
    assert any("in crash" in note for note in error.__notes__), error.__notes__


def test_too_much_memory(numbers: Path) -> None:
    def hoard(line: str) -> Iterator[tuple[str, int]]:
        kept = []
        while line == str(BAD):
            kept.append(bytearray(10_000_000))
            time.sleep(0.01)
        yield line, 1

    error = failed(of(numbers, map=hoard), MemoryError, worker_memory="300M")
    assert "more than its" in str(error)
    assert "worker_memory" in str(error)


def test_an_exit(numbers: Path) -> None:
    def leave(_line: str) -> None:
        raise SystemExit(3)

    assert "SystemExit: 3" in str(failed(of(numbers, map=leave)))


def test_what_cannot_be_loaded_in_a_worker(numbers: Path) -> None:
    class Odd:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return _refuse, ("no loading",)

        def __call__(self, line: str) -> list[Any]:
            return [line]

    error = failed(of(numbers, map=Odd(), reduce=None))
    assert "load the functions" in str(error)
    assert "no loading" in str(error)


def _refuse(text: str) -> None:
    raise ValueError(text)


def test_in_setup_and_teardown(numbers: Path) -> None:
    def fail(_context: gm.Context) -> None:
        raise KeyError("key")

    assert "run setup fail" in str(failed(of(numbers, map=lambda line: [], setup=fail)))
    assert "run teardown fail" in str(failed(of(numbers, map=lambda line: [], teardown=fail)))


def test_a_side_file_that_is_not_there(numbers: Path) -> None:
    failed(of(numbers, files=["none.txt"]), FileNotFoundError)


def test_a_side_file_that_is_a_directory(numbers: Path) -> None:
    said = failed(of(numbers, files=[numbers.parent]), IsADirectoryError)
    assert "is a directory. What to do: " in str(said)


def test_a_damaged_input(tmp_path: Path) -> None:
    import gzip

    data = bytearray(gzip.compress(b"line\n" * 100_000))
    data[len(data) // 2] ^= 1
    (tmp_path / "a.gz").write_bytes(data)
    job = gm.Job(gm.text(tmp_path / "a.gz"), map=lambda line: [], output=gm.text(tmp_path / "out"))
    error = failed(job, ValueError)
    text = paragraph(error)
    assert text.count(f"(file {tmp_path}/a.gz, compressed offset ") == 1
    assert text.count("file ") - text.count("the file ") == 1, "it is named once"
    assert text.endswith("What to do: copy the file again from its source, or compress it again.")


def test_pairs_that_are_none(tmp_path: Path) -> None:
    job = gm.Job(gm.items([1]), reduce=total, output=gm.kv(tmp_path / "out"))
    assert "1" in str(failed(job))


SLOW = """
import time
import gristmill as gm


def slow(line):
    time.sleep(0.05)
    yield line, 1


job = gm.Job(gm.text("numbers.txt"), map=slow, reduce=gm.sum(), output=gm.tsv("out"))
"""


@pytest.mark.parametrize("way", ["command", "python"])
def test_ctrl_c(numbers: Path, way: str) -> None:
    """The job ends, workers and all, and leaves nothing behind."""
    (numbers.parent / "slow.py").write_text(SLOW + ("" if way == "command" else "job.run()"))
    command = [GRISTMILL, "run", "slow.py"] if way == "command" else [sys.executable, "slow.py"]
    process = subprocess.Popen(
        command,
        cwd=numbers.parent,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=clean_environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    wait_for_job(numbers.parent / "out", process)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode in (130, -signal.SIGINT), stderr
    if way == "command":
        assert stderr == "gristmill run: cannot finish the job: it was cancelled.\n"
    else:
        assert stderr.endswith("KeyboardInterrupt\n")
    left = sorted(path.name for path in numbers.parent.iterdir() if path.name != "__pycache__")
    assert left == ["numbers.txt", "slow.py"]


def test_batches_of_what_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"good\na\xffb\n")
    job = gm.Job(
        gm.text(tmp_path / "a"), map_batches=lambda batch: [], output=gm.text(tmp_path / "out")
    )
    assert "the byte at offset 6 is not UTF-8 text" in str(failed(job, ValueError))


def test_a_batch_that_fails(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\nb\n")
    job = gm.Job(
        gm.text(tmp_path / "a"),
        map_batches=lambda batch: [batch.column("none")],
        reduce=gm.sum(),
        output=gm.text(tmp_path / "out"),
    )
    error = failed(job)
    assert "map_batches <lambda>: KeyError" in str(error)
    assert "offset 0" in str(error)


def test_a_table_with_other_columns(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\nb\n")
    job = gm.Job(
        gm.text(tmp_path / "a"),
        map_batches=lambda batch: [batch],
        reduce=gm.sum(),
        output=gm.text(tmp_path / "out"),
    )
    assert "a table with the columns 'line': two are expected" in str(failed(job))
