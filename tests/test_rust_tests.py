"""The tool that runs the tests of the crates: what it reads out of what cargo says."""

import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
sys.path.insert(0, str(TOP / "tools"))
from rust_tests import Failed, Reader, passes, told  # noqa: E402 - a tool

SAID = """\
    Finished `test` profile [unoptimized] target(s) in 0.1s
     Running unittests src/lib.rs (target/debug/deps/engine-01ab)

running 2 tests
test order::sorts ... ok
test order::fails ... FAILED

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
     Running tests/it/main.rs (target/debug/deps/it-02cd)

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out
   Doc-tests gristmill_engine

test crates/base/src/order/entry.rs - order::entry::Entry (line 12) ... FAILED

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
"""


def read(said: str) -> Reader:
    reader = Reader()
    for line in said.splitlines():
        reader.read(line)
    reader.end()
    return reader


def test_what_failed_is_named_with_its_program() -> None:
    reader = read(SAID)
    assert not reader.unnamed
    assert reader.failed == [
        Failed("order::fails", program="target/debug/deps/engine-01ab"),
        Failed(
            "crates/base/src/order/entry.rs - order::entry::Entry (line 12)",
            crate="gristmill_engine",
        ),
    ]
    assert reader.failed[0].shown == "engine order::fails"
    assert "--exact" in reader.failed[1].command


@pytest.mark.parametrize("cut", ["test order::fails", "test result: FAILED. 1 passed"])
def test_a_program_that_names_no_test_is_no_success(cut: str) -> None:
    """One that was killed half way says no result; another one may say a result and no name."""
    said = "\n".join(line for line in SAID.splitlines() if not line.startswith(cut))
    assert read(said).unnamed == "target/debug/deps/engine-01ab"


@pytest.mark.parametrize(
    ("said", "code", "expected"),
    [
        ("test order::fails ... ok", 0, True),
        ("test order::fails ... FAILED", 101, False),
        ("running 0 tests", 0, False),  # not found: it did not pass
        ("test order::fails_too ... ok", 0, False),
    ],
)
def test_a_test_passes_that_was_run(said: str, code: int, expected: bool) -> None:
    command = [sys.executable, "-c", f"print({said!r}); raise SystemExit({code})"]
    assert passes(Failed("order::fails", "it-1"), command) is expected


def test_the_exit_code_comes_last() -> None:
    command = [sys.executable, "-c", "print('said'); raise SystemExit(3)"]
    assert list(told(command)) == ["said", "3"]
