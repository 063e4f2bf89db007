"""`gristmill.worker`: the protocol holds, whatever the functions of a job do."""

import json
import os
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from tests.mapreduce.worker_harness import Worker

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Runner:
    """The definition of a job that is one function."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def run_task(self, spec: str) -> str:
        return json.dumps(self.function(json.loads(spec)))


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    with Worker(tmp_path) as worker:
        kind, version = worker.receive()
        assert kind == b"H"
        assert version
        yield worker


def fail(worker: Worker, function: Callable[[Any], Any]) -> dict[str, Any]:
    worker.define(Runner(function))
    failure = worker.failure()
    # It still serves: whether it is to be used again is for the driver to say.
    worker.define(Runner(lambda _: "next"), b"n" * 32)
    assert worker.task(key=b"n" * 32) == (b"R", b'"next"')
    return failure


def test_a_task_is_run_by_its_definition(worker: Worker) -> None:
    worker.define(Runner(lambda spec: spec["a"] + 1))
    assert worker.task('{"a": 1}') == (b"R", b"2")
    assert worker.task('{"a": 41}') == (b"R", b"42")
    assert worker.end() == (0, "")


def test_a_definition_is_loaded_once(worker: Worker) -> None:
    class Counted(Runner):
        def __setstate__(self, state: dict[str, Any]) -> None:
            print("loaded")
            self.__dict__.update(state)

    worker.define(Counted(lambda spec: spec))
    assert [worker.task(str(i))[1] for i in range(3)] == [b"0", b"1", b"2"]
    assert worker.end() == (0, "loaded\n")


def test_the_last_four_definitions_are_kept(worker: Worker) -> None:
    keys = [bytes([i]) * 32 for i in range(5)]
    for i, key in enumerate(keys[:4]):
        worker.define(Runner(lambda _, i=i: i), key)
        assert worker.task(key=key) == (b"R", b"%d" % i)
    assert worker.task(key=keys[0]) == (b"R", b"0")
    worker.define(Runner(lambda _: 4), keys[4])
    assert worker.task(key=keys[4]) == (b"R", b"4")
    assert worker.task(key=keys[0]) == (b"R", b"0")
    failure = worker.failure(key=keys[1])  # the one that was used longest ago
    assert failure["kind"] == "bug"


def test_an_exception_comes_with_the_users_frames(worker: Worker) -> None:
    def inner(_: object) -> int:
        return int("x")

    failure = fail(worker, inner)
    assert failure["kind"] == "user_code"
    assert "ValueError: invalid literal for int() with base 10: 'x'" in failure["message"]
    assert f"({__file__}, line " in failure["message"]
    assert "\n" not in failure["message"]
    assert 'return int("x")' in failure["traceback"]
    assert "gristmill/worker.py" not in failure["traceback"]
    assert failure["where"] is None
    assert failure["retryable"] is True
    assert failure["fingerprint"] == worker.failure()["fingerprint"]


def test_what_may_pass_is_never_called_the_same_failure(worker: Worker) -> None:
    def function(name: str) -> None:
        if name == "wrapped":
            try:
                raise TimeoutError("timed out")
            except TimeoutError as error:
                raise RuntimeError("no answer") from error
        raise ConnectionResetError("reset")

    worker.define(Runner(function))
    prints = [worker.failure(json.dumps(name))["fingerprint"] for name in ("wrapped", "reset")]
    assert prints == ["", ""]


def test_causes_are_told_without_our_frames(worker: Worker) -> None:
    def function(_: object) -> None:
        try:
            raise KeyError("first")
        except KeyError as error:
            raise RuntimeError("second") from error

    traceback = fail(worker, function)["traceback"]
    assert "KeyError: 'first'" in traceback
    assert "direct cause" in traceback
    assert "RuntimeError: second" in traceback


def test_where_and_record_come_from_the_exception(worker: Worker) -> None:
    def function(_: object) -> None:
        error = ValueError("bad")
        error.where = {"file": "a.txt", "offset": 12, "record": 3, "line": 4}  # type: ignore[attr-defined]
        error.record = "x" * 1000 + "\udcff"  # type: ignore[attr-defined]
        error.kind = "bad_input"  # type: ignore[attr-defined]
        raise error

    failure = fail(worker, function)
    assert failure["where"] == {"file": "a.txt", "offset": 12, "record": 3, "line": 4}
    assert len(failure["record"]) < 400
    assert failure["record"].endswith("\\xff")
    assert failure["kind"] == "bad_input"
    assert failure["retryable"] is False


def test_a_failure_that_is_described_already_passes_through(worker: Worker) -> None:
    class Described:
        def to_dict(self) -> dict[str, Any]:
            return {"kind": "bad_input", "message": "cannot read it", "record": "\ud800"}

    def function(_: object) -> None:
        error = Exception("not this")
        error.failure = Described()  # type: ignore[attr-defined]
        raise error

    failure = fail(worker, function)
    assert failure == {"kind": "bad_input", "message": "cannot read it", "record": "\\ud800"}


def raise_keyboard_interrupt(_: object) -> None:
    raise KeyboardInterrupt


def recurse(depth: Any) -> Any:
    return recurse([depth])


def take_all_memory(_: object) -> bytearray:
    return bytearray(1 << 60)


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


def raise_unprintable(_: object) -> None:
    raise Unprintable


@pytest.mark.parametrize(
    ("function", "kind", "expected"),
    [
        (lambda _: sys.exit(3), "user_code", "SystemExit: 3"),
        (raise_keyboard_interrupt, "user_code", "KeyboardInterrupt"),
        (recurse, "user_code", "RecursionError"),
        (take_all_memory, "memory", "MemoryError"),
        (raise_unprintable, "user_code", "Unprintable"),
        (lambda _: Path("/no/such").read_text(), "user_code", "FileNotFoundError"),
        (lambda _: {1, 2}, "user_code", "not JSON serializable"),
    ],
)
def test_all_that_can_be_raised_is_caught(
    worker: Worker, function: Callable[[Any], Any], kind: str, expected: str
) -> None:
    failure = fail(worker, function)
    assert failure["kind"] == kind
    assert expected in failure["message"]
    assert len(failure["traceback"]) < 20_000


def test_functions_that_cannot_be_loaded_are_a_failure_of_the_job(worker: Worker) -> None:
    worker.send(b"D", b"k" * 32 + b"cno_such_module\nf\n.")
    for _ in range(2):
        failure = worker.failure()
        assert failure["kind"] == "user_code"
        assert "cannot load the job's functions" in failure["message"]
        assert "No module named 'no_such_module'" in failure["message"]
        assert failure["retryable"] is False
    worker.send(b"D", b"p" * 32 + b"garbage")
    assert "Unpickling" in worker.failure(key=b"p" * 32)["message"]


def test_what_is_printed_goes_to_the_log_and_stdin_is_empty(worker: Worker) -> None:
    def function(_: object) -> str:
        print("to stdout \udcff")
        print("to stderr", file=sys.stderr)
        os.write(1, b"to descriptor 1\n")
        os.system("echo from a child; cat")
        return sys.stdin.read() + os.read(0, 10).decode()

    worker.define(Runner(function))
    assert worker.task() == (b"R", b'""')
    _, stderr = worker.end()
    assert sorted(stderr.splitlines()) == [
        "from a child",
        "to descriptor 1",
        "to stderr",
        "to stdout \\udcff",
    ]


def test_closed_and_replaced_streams_do_no_harm(worker: Worker) -> None:
    def function(_: object) -> list[str]:
        sys.stdout.close()
        sys.stdout = None  # type: ignore[assignment]
        os.close(1)
        os.close(0)
        return sys.argv

    worker.define(Runner(function))
    for _ in range(2):
        kind, payload = worker.task()
        if kind == b"R":
            assert json.loads(payload)[0].endswith("worker.py")


def test_a_flood_of_stderr_does_not_break_the_frames(worker: Worker) -> None:
    def function(_: object) -> str:
        for _i in range(20_000):
            print("x" * 100, file=sys.stderr)
        return "y" * 500_000

    worker.define(Runner(function))
    kind, payload = worker.task()
    assert (kind, len(payload)) == (b"R", 500_002)
    assert len(worker.end()[1]) == 20_000 * 101


def test_interrupts_are_ignored_and_usr1_writes_the_stack(worker: Worker) -> None:
    def where_it_stands(_: object) -> str:
        os.kill(os.getpid(), signal.SIGINT)
        os.close(2)  # the stack has a way of its own
        os.kill(os.getpid(), signal.SIGUSR1)
        return "went on"

    worker.define(Runner(where_it_stands))
    assert worker.task() == (b"R", b'"went on"')
    _, stderr = worker.end()
    assert "most recent call first" in stderr
    assert "in where_it_stands" in stderr


def test_a_crash_writes_the_stack(worker: Worker) -> None:
    def crashes(_: object) -> None:
        import ctypes

        ctypes.string_at(0)

    worker.define(Runner(crashes))
    assert worker.task() == (b"", b"")
    code, stderr = worker.end()
    assert code == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in stderr
    assert "in crashes" in stderr


def test_modules_beside_the_script_are_found(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("def function(spec): return spec * 2\n")
    with Worker(tmp_path, str(tmp_path)) as worker:
        assert worker.receive()[0] == b"H"

        def uses(spec: int) -> int:
            import beside  # type: ignore[import-not-found]  # pyright: ignore[reportMissingImports]

            return beside.function(spec)

        worker.define(Runner(uses))
        assert worker.task("21") == (b"R", b"42")


def test_the_pulse_is_where_the_engine_looks(worker: Worker) -> None:
    def function(_: object) -> None:
        from gristmill import _core

        _core.pulse(7, 700, 1, 650)
        _core.beat()

    worker.define(Runner(function))
    worker.task()
    fields = struct.unpack("<5Q", worker.pulse.read_bytes()[:40])
    assert fields == (7, 650, 700, 1, 2)


def test_a_large_definition_arrives(worker: Worker) -> None:
    large = os.urandom(20_000_000)
    worker.define(Runner(lambda _: len(large)))
    assert worker.task() == (b"R", b"20000000")


def test_a_worker_is_there_soon_and_imports_little(tmp_path: Path) -> None:
    fastest = 10.0
    for i in range(5):
        folder = tmp_path / str(i)
        folder.mkdir()
        start = time.perf_counter()
        with Worker(folder) as worker:
            assert worker.receive()[0] == b"H"
            fastest = min(fastest, time.perf_counter() - start)
            worker.define(Runner(lambda _: sorted(sys.modules)))
            modules = json.loads(worker.task()[1])
            for name in (
                "click",
                "rich",
                "gristmill.cli",
                "gristmill.job",
                "asyncio",
                "subprocess",
            ):
                assert name not in modules
    assert fastest < 1.0  # 0.04 s on a quiet machine
