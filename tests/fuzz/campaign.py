"""A campaign: cases drawn from a seed, each run by Gristmill and by the program that it stands for.

    seed, number ──▶ Case ──▶ ours, theirs ──▶ the same bytes, the same exit code: the next one
                                          └──▶ target/fuzz/NAME-SEED-NUMBER/reproduce.sh; an error

What must come of a case says another program, or an oracle that drew the case and knows it. A case
is a function of seed and number alone. FUZZ_MINUTES is the time of all campaigns against programs.
Where it is not set, each takes a minute and at most `CASES_MAX` cases, so that a fast machine tries
nothing that others have not tried. FUZZ_CASES is the number of cases of all campaigns against
oracles. FUZZ_SEED is a number, or `new`; FUZZ_CASE runs one case alone.
"""

import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.harness import clean_environment

from gristmill.names import quote

ROOT = Path(__file__).parents[2]
FAILED = ROOT / "target/fuzz"
SEED = 18
HANGS_S = 60.0
CASES_MAX = 2_000


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    status: int
    stdout: bytes = b""
    written: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Files of the output, by their paths."""
    said: str = ""

    def agrees(self, theirs: "Outcome", *, any_order: bool) -> bool:
        """Whether both did the same; where both refuse, what they wrote before does not count."""
        if self.status >= 2 or theirs.status >= 2:
            return self.status == theirs.status
        if any_order:
            return (self.status, self.lines()) == (theirs.status, theirs.lines())
        return (self.status, self.stdout, self.written) == (
            theirs.status,
            theirs.stdout,
            theirs.written,
        )

    def lines(self) -> list[bytes]:
        """All lines with their ends, LF or NUL, sorted."""
        text = b"".join((self.stdout, *self.written.values()))
        return sorted(re.findall(rb"[^\n\0]*[\n\0]?", text))


@dataclass(frozen=True)
class Case:
    """A command line, another one or an oracle that says what must come of it, and what is read."""

    ours: list[str]
    theirs: list[str]
    files: dict[str, bytes]
    stdin: bytes = b""
    pieces: list[int] = field(default_factory=list[int])
    """Standard input is a pipe that gives so many bytes at a time; a file where there are none."""
    output: str = ""
    """A file that both write, beside standard output; or a directory."""
    wanted: Outcome | None = None
    """What must come of it, where no other program says that."""
    any_order: bool = False
    """Whether only the lines must be the same, all of them taken together."""
    has_report: bool = False
    """Whether the program says on standard output what it did, which nothing is compared with."""


Draw = Callable[[random.Random], Case]


class Program:
    """The program, in a process that forks for each run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("server.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            start_new_session=True,
        )

    def run(self, case: Case) -> Outcome:
        asked = {
            "words": case.ours,
            "folder": str(self._folder),
            "stdin": str(self._folder / "stdin"),
            "pieces": case.pieces,
            "stdout": str(self._folder / "ours"),
            "stderr": str(self._folder / "said"),
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], HANGS_S)[0]:
            return Outcome(-1, said=f"it did not end within {HANGS_S:.0f} s")
        status = int(self._process.stdout.readline() or b"-2")
        said = (self._folder / "said").read_text(errors="backslashreplace")
        if "Traceback" in said or "panicked" in said or "a defect of" in said:
            status = -3
        stdout = b"" if case.has_report else (self._folder / "ours").read_bytes()
        return Outcome(status, stdout, output_of(case, self._folder), said)

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)  # a run that hangs, too
        self._process.communicate()


def environment() -> dict[str, str]:
    return clean_environment(LC_ALL="C", TERM="xterm")


def theirs(case: Case, folder: Path) -> Outcome:
    if case.wanted is not None:
        return case.wanted
    with (folder / "stdin").open("rb") as stdin:
        done = subprocess.run(
            case.theirs,
            stdin=stdin,
            capture_output=True,
            cwd=folder,
            env=environment(),
            timeout=HANGS_S,
            check=False,
        )
    said = done.stderr.decode(errors="backslashreplace")
    return Outcome(done.returncode, done.stdout, output_of(case, folder), said)


def output_of(case: Case, folder: Path) -> dict[str, bytes]:
    """Its files, but for those that say that it is complete."""
    path = folder / case.output
    if not case.output or not path.exists():
        return {}
    if path.is_file():
        return {case.output: path.read_bytes()}
    files = (file for file in path.iterdir() if not file.name.startswith("_"))
    return {f"{case.output}/{file.name}": file.read_bytes() for file in files}


def seed() -> int:
    """The seed of this run."""
    given = os.environ.get("FUZZ_SEED", str(SEED))
    return random.SystemRandom().randrange(1, 1 << 32) if given == "new" else int(given)


def seconds(share: int = 2) -> float:
    """How long a campaign takes, of so many that share the time."""
    minutes = os.environ.get("FUZZ_MINUTES", "")
    return 60 * float(minutes) / share if minutes else 60.0


def most() -> int | None:
    """How many cases a campaign runs at most that has a time."""
    return None if os.environ.get("FUZZ_MINUTES") else CASES_MAX


@contextmanager
def program(folder: Path) -> Generator[Program]:
    """The program, whose runs take place in a folder."""
    running = Program(folder)
    try:
        yield running
    finally:
        running.close()


def drawn(name: str, draw: Draw, of_seed: int, number: int) -> Case:
    """A case."""
    return draw(random.Random(f"{name} {of_seed} {number}"))


def campaign(
    name: str, draw: Draw, folder: Path, *, for_s: float, of_seed: int, most: int | None = None
) -> int:
    """Run cases until the time is over, or so many; tells how many. A difference is an error."""
    only = os.environ.get("FUZZ_CASE", "")
    until_s = time.monotonic() + for_s
    number = int(only) if only else 0
    place = folder / "case"
    with program(place) as running:
        while time.monotonic() < until_s and number != most:
            case = drawn(name, draw, of_seed, number)
            compare(name, case, running, place, (of_seed, number))
            number += 1
            if only:
                break
    return number


def compare(
    name: str, case: Case, running: Program, place: Path, numbered: tuple[int, int]
) -> None:
    """Run a case by both; a difference becomes a folder with a script, and an error."""
    put(case, place)
    of_theirs = theirs(case, place)
    if case.output:
        put(case, place)  # the output may be an input
    of_ours = running.run(case)
    if not of_ours.agrees(of_theirs, any_order=case.any_order):
        script = kept(name, case, numbered)
        raise AssertionError(
            f"{name}, seed {numbered[0]}, case {numbered[1]}: exit code {of_ours.status}, theirs"
            f" {of_theirs.status}; {len(of_ours.stdout)} bytes, theirs {len(of_theirs.stdout)}."
            f"\n{of_ours.said}{of_theirs.said}\nTo reproduce it: bash {script}"
        )


def put(case: Case, folder: Path) -> None:
    """Write the files of a case to a folder, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    for path, data in {**case.files, "stdin": case.stdin}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


def kept(name: str, case: Case, numbered: tuple[int, int]) -> Path:
    """Keep a case as a folder; returns the script that runs it."""
    folder = FAILED / f"{name.replace(' ', '-')}-{numbered[0]}-{numbered[1]}"
    shutil.rmtree(folder, ignore_errors=True)
    put(case, folder / "data")
    given, stdin = ("cat stdin | ", "") if case.pieces else ("", " < stdin")
    ours = " ".join(map(quote, case.ours))
    lines = [
        "#!/usr/bin/env bash",
        f"# {name}: FUZZ_SEED={numbered[0]} FUZZ_CASE={numbered[1]} python -m pytest tests/fuzz",
        'cd "$(dirname "$0")" || exit',
        "export LC_ALL=C TERM=xterm",
        "rm -rf ours theirs && cp -r data ours && cp -r data theirs",
        *how_of_theirs(case, folder),
        'echo "theirs: exit code $theirs"',
        f'(cd ours && {given}"${{GRISTMILL:-gristmill}}" {ours}{stdin} > ../ours.out)',
        'ours=$?; echo "ours: exit code $ours"',
        "differs=0; [ $ours = $theirs ] || differs=1",
        *how_compared(case),
        "exit $differs",
    ]
    script = folder / "reproduce.sh"
    script.write_text("\n".join(lines) + "\n", errors="surrogateescape")
    return script


def how_of_theirs(case: Case, folder: Path) -> list[str]:
    """The lines of a script that make theirs; what an oracle says is put beside it."""
    if case.wanted is None:
        others = " ".join(map(quote, case.theirs))
        return [f"(cd theirs && {others} < stdin > ../theirs.out)", "theirs=$?"]
    for path, data in {**case.wanted.written, "stdout": case.wanted.stdout}.items():
        (folder / "wanted" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "wanted" / path).write_bytes(data)
    moved = "cp -r wanted/. theirs && mv theirs/stdout theirs.out"
    return [moved, f"theirs={case.wanted.status}"]


def how_compared(case: Case) -> list[str]:
    """The lines of a script that compare what both have written."""
    out = quote(case.output) if case.output else ""
    if case.any_order:
        both = (
            f"<(cd {side} && find ../{side}.out {out} -type f ! -name '_*' -exec cat {{}} + | sort)"
            for side in ("ours", "theirs")
        )
        return [f"diff -a {' '.join(both)} || differs=1"]
    stdout = [] if case.has_report else ["cmp ours.out theirs.out || differs=1"]
    written = f"diff -a -N -r -x '_*' ours/{out} theirs/{out} || differs=1"
    return [*([written] if out else []), *stdout]
