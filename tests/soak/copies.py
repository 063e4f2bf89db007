"""Copies to and from places, drawn at random and killed at any moment.

    seed, number ──▶ Copy ──▶ to a place, or from it: undisturbed, timed; the bytes are compared
                          └─▶ killed with -9, once or twice; resumed, or run again with --update:
                              the same bytes, and nothing of ours is left

A copy is a function of seed and number alone; the moment of the kill depends on how fast the
machine is.
"""

import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.harness import GRISTMILL, Done, clean_environment
from tests.cli.harness import end as ended
from tests.cli.resuming import is_over

from .jobs import LONGEST_S, NOTHING_THERE

__all__ = ["Place", "campaign"]

NAMES = ("a", "b", "a b", "ü", "+%2F", "#?", "_x", ".y", "k" * 100, "*")
"""Parts of names that all places can hold."""


def _nothing() -> Sequence[object]:
    return []


@dataclass(frozen=True)
class Place:
    """Where copies go, and come from."""

    name: str
    location: str
    left: Callable[[], Sequence[object]] = _nothing
    """What is there that is no copy."""
    environment: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Copy:
    """A copy, and how it is disturbed."""

    number: int
    files: dict[str, bytes]
    is_to_place: bool
    how: tuple[str, ...]
    changed: int
    """How many files are there before, with other bytes; 0: the target is not there."""
    shares: tuple[float, ...]
    """When it is killed, and what goes on with it: after these shares of the time that it takes."""
    resumes: bool
    """Whether `resume` goes on with it, or the same command with --update."""


def drawn(seed: int, number: int) -> Copy:
    """Draw a copy."""
    chosen = random.Random(f"copies {seed} {number}")
    files: dict[str, bytes] = {}
    for _ in range(chosen.choice([20, 200, 600])):
        folders = chosen.choices(NAMES, k=chosen.randrange(3))
        name = f"{chosen.choice(NAMES)}{len(files)}"
        size = chosen.choice([0, 1, 99, 4000, 4000, 70_000])
        files["/".join([*(f"d{folder}" for folder in folders), name])] = chosen.randbytes(size)
    for long in range(chosen.randrange(3)):
        files[f"long{long}"] = chosen.randbytes(chosen.randrange(5_000_000, 30_000_000))
    how = ["--workers", str(chosen.choice([1, 2, 2, 3]))]
    how += chosen.choice([[], [], ["--runner", "processes"]])
    how += chosen.choice([[], [], ["--verify"], ["--no-sync"], ["--bandwidth", "40M"]])
    how += chosen.choice([[], ["--split-size", "1M"]])
    return Copy(
        number,
        files,
        chosen.randrange(3) > 0,
        tuple(how),
        chosen.choice([0, 0, len(files) // 3]),
        tuple(chosen.uniform(0.1, 1) for _ in range(chosen.choice([1, 1, 2]))),
        chosen.randrange(3) > 0,
    )


def tree(top: Path) -> dict[str, bytes]:
    """All files below a directory."""
    files = [path for path in top.rglob("*") if path.is_file()]
    return {str(path.relative_to(top)): path.read_bytes() for path in files}


def made(top: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(data)


class Ground:
    """A folder for sources and targets on this disk, and a place."""

    def __init__(self, folder: Path, place: Place) -> None:
        self.folder = folder / "copies"
        self.place = place

    def run(self, copy: Copy) -> str:
        """Copy undisturbed and disturbed; what came of it, in a line."""
        way = "to" if copy.is_to_place else "from"
        what = f"{copy.number:3} {way} {self.place.name}: {len(copy.files)} files"
        what = f"{what} {' '.join(copy.how)}"
        shutil.rmtree(self.folder, ignore_errors=True)
        made(self.folder / "s", copy.files)
        there = f"{self.place.location}/{copy.number}-{random.randrange(1 << 40):x}"
        source, targets = f"{self.folder}/s/", [f"{there}/t0", f"{there}/t1"]
        if not copy.is_to_place:
            self._done("cp", source, f"{there}/s")
            source, targets = f"{there}/s/", [f"{self.folder}/t0", f"{self.folder}/t1"]
        began_s = time.monotonic()
        self._done("cp", source, targets[0], *copy.how)
        took_s = time.monotonic() - began_s
        assert self._read(targets[0]) == copy.files, f"the bytes differ: {what}"
        words = ["cp", source, targets[1], *copy.how]
        if copy.changed:
            self._before(copy, targets[1])
            words += ["--update", "--delete"]
        outcome = self._killed(copy, words, took_s)
        assert self._read(targets[1]) == copy.files, f"the bytes differ, {outcome}: {what}"
        left = [*self.place.left(), *self.folder.rglob("*gristmill*")]
        assert not left, f"{left} is left, {outcome}: {what}"
        return f"{what}, {outcome}"

    def _before(self, copy: Copy, target: str) -> None:
        """Put files in the target: some with other bytes, and one that is to be deleted."""
        names = sorted(copy.files)[:: max(len(copy.files) // copy.changed, 1)]
        before = {name: bytes(len(copy.files[name])) for name in names}
        made(self.folder / "before", {**before, "not in the source": b"x"})
        self._done("cp", f"{self.folder}/before/", target)

    def _killed(self, copy: Copy, words: list[str], took_s: float) -> str:
        """Kill it, and what goes on with it; then let it end."""
        update = [*words, *([] if "--update" in words else ["--update"])]
        process, killed = self._start(*words, "--history"), 0
        for share in copy.shares:
            time.sleep(share * took_s)
            process.kill()
            done = ended(process, LONGEST_S)
            if done.status != -signal.SIGKILL:
                return self._over(done, update, killed)
            killed += 1
            again = ("resume", "last") if copy.resumes else tuple(update)
            process = self._start(*again)
        return self._over(ended(process, LONGEST_S), update, killed)

    def _over(self, done: Done, update: list[str], killed: int) -> str:
        if is_over(done):
            return f"killed {killed} x"
        assert NOTHING_THERE.search(done.stderr), done.stderr
        self._done(*update)
        return f"killed {killed} x, before it began"

    def _read(self, location: str) -> dict[str, bytes]:
        """The files at a location."""
        if Path(location).is_dir():
            return tree(Path(location))
        back = self.folder / "back"
        shutil.rmtree(back, ignore_errors=True)
        self._done("cp", f"{location}/", str(back))
        return tree(back)

    def _done(self, *words: str) -> None:
        done = ended(self._start(*words), LONGEST_S)
        assert done.status == 0, (words, done.stderr)

    def _start(self, *words: str) -> "subprocess.Popen[str]":
        self.folder.mkdir(exist_ok=True)
        return subprocess.Popen(
            [GRISTMILL, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            cwd=self.folder,
            env=clean_environment(
                **{**self.place.environment, "GRISTMILL_HOME": str(self.folder.parent / "home")}
            ),
        )


def campaign(
    numbers: Iterable[int],
    seed: int,
    say: Callable[[str], None],
    folder: Path,
    places: Sequence[Place],
) -> None:
    """Run copies, and say of each what came of it; at the end fail if one was wrong."""
    wrong: list[str] = []
    for number in numbers:
        ground = Ground(folder, places[number % len(places)])
        try:
            say(ground.run(drawn(seed, number)))
        except AssertionError as problem:
            wrong.append(f"copy {number} of seed {seed}: {problem}")
            say(f"WRONG: {wrong[-1]}")
        finally:
            shutil.rmtree(ground.folder, ignore_errors=True)
            shutil.rmtree(folder / "home", ignore_errors=True)
    assert not wrong, "\n".join(wrong)
