"""Every wait of the engine has an end, or says what it waits for, and hears that the job ends.

Waits without a limit are listed here, each with what ends it: a new one needs a row, and a reason.
What is better than a row: `Stop::sleep` and `Stop::limited` (storage/stop.rs), which end with the
job; a wait with a limit (`recv_timeout`, `wait_timeout_while`); and for calls on files
`sys/file_calls.rs`, by which the user is told which file does not answer.
"""

import re
import sys
from pathlib import Path

import pytest

from .test_layers import TOP, engine_files

sys.path.insert(0, str(TOP / "tools"))
from arrows import blanked, without_tests

_WAITS = re.compile(
    r"\.recv\(\)|\.join\(\)|\.wait_while\(|\.wait\(\)|(?:changed|landed|over|done)\s*\.wait\("
    r"|(?:thread::|(?<![\w:.])(?<!fn ))sleep\([^;]*?\)(?!\s*\.await)"
)

_FILES = "a thread that reads or writes files, whose calls are noted, and seen by the user"
_REQUESTS = "a thread that sends requests, which have limits and end with the job"
_GONE = "ends when the other side is gone, which is when its scope ends"

ALLOWED: dict[str, tuple[int, str]] = {
    "tasks/commit/spill_dirs.rs": (1, "tries of a limited time"),
    "tasks/hadoop/script/process.rs": (
        4,
        "both look at the script's deadline; its pipes do so, too",
    ),
    "engine/history/locked.rs": (1, "tries of a limited number"),
    "tasks/merge/feed.rs": (2, _FILES),
    "tasks/merge/readers.rs": (2, _FILES),
    "engine/runner/cluster": (12, "links and agents: silence has a limit (link.rs)"),
    "engine/runner/slots.rs": (1, _GONE),
    "engine/runner/worker.rs": (1, "the heartbeat of a worker, which ends with it"),
    "storage/agents/fetch.rs": (1, "tries of a limited time"),
    "storage/io/at_once.rs": (1, _REQUESTS),
    "storage/collected.rs": (1, "tries of a limited time"),
    "storage/hdfs/client.rs": (1, "a moment, in a child of a fork"),
    "storage/objects/listing/mod.rs": (1, _REQUESTS),
    "storage/objects/retry.rs": (1, "the pause of a request that cleans up, a moment"),
    "storage/objects/s3/program.rs": (1, "the program has ended, or was killed"),
    "storage/objects/part_uploader.rs": (1, _REQUESTS),
    "storage/objects/writer.rs": (1, _REQUESTS),
    "storage/io/overlap.rs": (1, _FILES),
    "storage/io/probe.rs": (1, _FILES),
    "storage/io/read_ahead.rs": (1, _FILES),
    "storage/private/removal.rs": (1, "tries of a limited number"),
    "storage/io/sequential.rs": (2, _FILES),
    "storage/net/stop.rs": (1, "the wait that looks at the end of the job"),
    "storage/io/stream.rs": (1, "looks at the end of the job each time"),
    "storage/io/window/mod.rs": (1, _REQUESTS),
    "storage/net/http_client.rs": (1, "requests under way, which have limits and end with the job"),
    "tasks/worker/attempt.rs": (1, "the stack of a worker that hangs: a limited time"),
    "tasks/worker/pool.rs": (2, "the keeper of workers answers or is gone"),
    "tasks/worker/process.rs": (2, "a limited time; a child that was killed as it began"),
    "tasks/worker/tail.rs": (1, "a limited time"),
}


def waits(source: str) -> list[str]:
    """The waits in a file that have no limit of their own."""
    return _WAITS.findall(without_tests(blanked(source)))


def _row_of(path: Path) -> str:
    whole = [str(path), *map(str, path.parents)]
    return next((name for name in whole if name in ALLOWED), str(path))


def test_no_wait_is_new() -> None:
    found: dict[str, list[str]] = {}
    for path, source in engine_files():
        if "tests" not in path.parts and path.stem != "tests":
            found.setdefault(_row_of(path), []).extend(waits(source))
    more = {
        name: there for name, there in found.items() if len(there) > ALLOWED.get(name, (0, ""))[0]
    }
    assert not more, (
        "waits without a limit: bound them, or say in tests/test_waits.py what ends them"
    )
    gone = [name for name in ALLOWED if not found.get(name)]
    assert not gone, "rows of nothing"


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("let next = orders.recv();", 1),
        ("let next = orders.recv_timeout(LOOK);", 0),
        ("thread::sleep(LOOK);", 1),
        ("sleep(LOOK).await;", 0),
        ("if stop.sleep(wait) {}", 0),
        ("self.changed.wait_while(state, idle);", 1),
        ("self.changed.wait_timeout_while(state, LONG, idle);", 0),
        ("let _ = thread.join();", 1),
        ("let path = folder.join(name);", 0),
        ("// it waits: sleep(LOOK);", 0),
        ("#[cfg(test)]\nmod tests { fn f() { thread::sleep(LOOK); } }", 0),
    ],
)
def test_the_canaries(source: str, count: int) -> None:
    assert len(waits(source)) == count
