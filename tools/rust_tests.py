"""Run the tests of the crates; a test that failed is run once more by itself, and listed.

    python tools/rust_tests.py [OPTION OF cargo test]...

Tests kill, race and fill disks, on machines that are busy. One that fails at times must not hide
what the rest says, so all are run, and those that failed are run again, alone, at the end:

    RERUN it spill_faults::a_file_that_ends_early_is_noticed: passed
    FAILED it places::every_store: failed twice

The exit code is 0 where each passed at last. A RERUN is a defect to be mended (CONTRIBUTING.md,
"A test that fails at times"). An error of the compiler, or a program of tests that ends without
naming a test, fails at once.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_PROGRAM = re.compile(r"^\s+Running .* \((?P<path>[^()]+)\)$")
_DOCUMENTATION = re.compile(r"^\s+Doc-tests (?P<crate>\w+)$")
_FAILED = re.compile(r"^test (?P<name>.+?) \.\.\. FAILED$")
_ENDED = re.compile(r"^test result: (?P<result>ok|FAILED)\.")


@dataclass(frozen=True)
class Failed:
    """A test that failed: its name, and its program or, of a documentation test, its crate."""

    name: str
    program: str = ""
    crate: str = ""

    @property
    def shown(self) -> str:
        """Both, for people."""
        return f"{self.crate or self.program.rpartition('/')[2].rpartition('-')[0]} {self.name}"

    @property
    def command(self) -> list[str]:
        """What runs this test and none of another name."""
        kind = "--doc" if self.crate else "--tests"
        return ["cargo", "test", "--locked", "--workspace", kind, "--", "--exact", self.name]


class Reader:
    """Reads what `cargo test --no-fail-fast` says, line by line."""

    def __init__(self) -> None:
        self.failed: list[Failed] = []
        self.unnamed = ""
        """A program that failed and named no test: it was killed, or did not start."""
        self._program = self._crate = ""
        self._is_open = False
        self._before = 0

    def read(self, line: str) -> None:
        """Take one line in."""
        if found := _PROGRAM.match(line):
            self._begin(program=found["path"])
        elif found := _DOCUMENTATION.match(line):
            self._begin(crate=found["crate"])
        elif found := _FAILED.match(line):
            self.failed.append(Failed(found["name"], self._program, self._crate))
        elif found := _ENDED.match(line):
            self._is_open = False
            if found["result"] == "FAILED" and len(self.failed) == self._before:
                self._miss()

    def _begin(self, program: str = "", crate: str = "") -> None:
        self.end()
        self._program, self._crate = program, crate
        self._is_open, self._before = True, len(self.failed)

    def _miss(self) -> None:
        self.unnamed = self.unnamed or self._program or self._crate

    def end(self) -> None:
        """Note that nothing more is said of the program that was read last."""
        if self._is_open:
            self._miss()
        self._is_open = False


def told(command: list[str]) -> Iterator[str]:
    """Yield the lines that a command writes, and write them; the last one is its exit code."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "CARGO_TERM_COLOR": "never"},  # lines are read, not looked at
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            yield line.rstrip("\n")
    yield str(process.returncode)


def passes(test: Failed, command: list[str]) -> bool:
    """Run a test by a command; one that was not found did not pass."""
    *said, code = told(command)
    return code == "0" and any(line == f"test {test.name} ... ok" for line in said)


def again(failed: Iterable[Failed]) -> list[str]:
    """Run each of these once more; returns those that failed again."""
    told_of = [(test, passes(test, test.command)) for test in failed]
    for test, passed in told_of:
        print(f"RERUN {test.shown}: passed" if passed else f"FAILED {test.shown}: failed twice")
    return [test.shown for test, passed in told_of if not passed]


def main(options: list[str]) -> int:
    """Run all tests, and those that failed once more."""
    reader = Reader()
    code = "1"
    for line in told(["cargo", "test", "--no-fail-fast", *options]):
        reader.read(line)
        code = line
    reader.end()
    if code == "0":
        return 0
    if reader.unnamed or not reader.failed:
        print(f"the tests did not run to their end: {reader.unnamed or 'see above'}")
        return 1
    return 1 if again(reader.failed) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
