"""A campaign of faults at random moments: jobs of two users in turn, who share a spill directory.

    seed, number ──▶ Case ──▶ a job ──▶ a fault at a moment of it ──▶ what came of it ──▶ the next

What must hold of each, whatever the fault:

- the output has the bytes of a job that nobody disturbs, at once or after `gristmill resume last`;
  or the job ends with exit code 1 and one paragraph, and the same job succeeds after the fault;
- it is not silent for `SILENCE_S` seconds;
- of its folders the other user can read nothing while it runs;
- after the user's next job nothing is left of it, in the spill directory or beside the output.

A case is a function of seed and number alone; the moment depends on how fast the machine is.
"""

import os
import random
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli import s3_server
from tests.cli.harness import GRISTMILL, clean_environment
from tests.cli.mount_server import mounted_for_all
from tests.cli.servers import ServerMissing
from tests.cli.two_users import TwoUsers, User, two_users
from tests.cli.worker_processes import descendants, is_alive, task_workers

SILENCE_S = 30.0
"""How long a job may say nothing, beyond thrice its usual time: one that is well says nothing."""

LONGEST_S = 120.0

STOPS_S = (0.5, 4.0)
"""How long a process, or the server of a mount, is stopped."""

SPILL_BYTES = 150_000_000
"""Of the spill directory: several times the runs of a job."""

LINES, RECORDS, WORDS = 300_000, 300_000, 200_000
MEMORY = {"local": "30M", "mount": "30M", "s3": "60M"}
"""So little that sorts make runs on a disk; what speaks to a store takes some of it."""

JOBS = ("sort", "numbers", "terasort", "wordcount", "python", "streaming")
RUNNERS = ("threads", "processes")
FAULTS = ("kill driver", "kill worker", "stop", "full disk", "no new files", "none")
OF_MOUNT = "hung mount"


@dataclass(frozen=True)
class Case:
    """A job, where its output goes, and what happens to it after a share of its usual time."""

    number: int
    job: str
    runner: str
    place: str
    fault: str
    share: float
    stopped_s: float


def drawn(seed: int, number: int, places: tuple[str, ...]) -> Case:
    """Draw a case."""
    draws = random.Random(f"{seed}/{number}")
    job = draws.choice(JOBS)
    runner = draws.choice(RUNNERS) if job not in ("python", "streaming") else "processes"
    place = draws.choice(places)
    hung = (OF_MOUNT,) * 3 if place == "mount" else ()
    fault = draws.choice((*FAULTS, *hung))
    if fault == "kill worker" and runner == "threads":
        fault = "kill driver"
    share, stopped_s = draws.uniform(0, 1), draws.uniform(*STOPS_S)
    return Case(number, job, runner, place, fault, share, stopped_s)


@dataclass
class Running:
    """A job that runs, what it has said, and how long it was silent at most."""

    process: "subprocess.Popen[bytes]"
    said: bytes = b""
    silent_s: float = 0.0
    usual_s: float = LONGEST_S
    at_s: float = field(default_factory=time.monotonic)

    def listen(self, for_s: float) -> bool:
        """Listen for so long, or until the job is over; whether it is."""
        stream = self.process.stderr
        assert stream is not None
        until_s = time.monotonic() + for_s
        while (left_s := until_s - time.monotonic()) > 0:
            if self.process.poll() is not None:
                break
            if select.select([stream], [], [], min(left_s, 0.05))[0]:
                self.said += os.read(stream.fileno(), 1 << 16)
                self.at_s = time.monotonic()
            self.silent_s = max(self.silent_s, time.monotonic() - self.at_s)
        return self.process.poll() is not None

    def end(self) -> tuple[int, str]:
        """Wait for the end; the exit status, and all that was said."""
        assert self.listen(LONGEST_S), f"it hangs: {self.said.decode(errors='replace')}"
        assert self.process.stderr is not None
        with suppress(ValueError):
            self.said += self.process.stderr.read()
        self.process.stderr.close()
        most_s = SILENCE_S + 3 * self.usual_s
        assert self.silent_s < most_s, f"silent for {self.silent_s:.0f} s"
        return self.process.returncode, self.said.decode(errors="replace")


class Campaign:
    """Jobs of two users, their inputs, and what undisturbed jobs make of them."""

    def __init__(self, users: TwoUsers, held: ExitStack, wanted_places: Iterable[str]) -> None:
        self.users = users
        self.spill = users.shared / "spill"
        held.enter_context(small_disk(self.spill))
        self.inputs = made_inputs(users.shared)
        self.places: dict[str, Path] = {"local": users.shared / "local"}
        self.places["local"].mkdir()
        self.environment: dict[str, str] = {}
        self.mount: subprocess.Popen[bytes] | None = None
        if "s3" in wanted_places:
            self._serve(held)
        if "mount" in wanted_places:
            self._mount(held)
        for place in self.places.values():
            place.chmod(0o1777)
        self.usual: dict[tuple[str, str], tuple[str, float]] = {}

    def _serve(self, held: ExitStack) -> None:
        folder = self.users.shared.parent / "buckets"
        (folder / "bucket").mkdir(parents=True)
        with suppress(ServerMissing):
            server = held.enter_context(s3_server.serving(folder))
            self.places["s3"] = folder / "bucket"
            self.environment |= server.environment

    def _mount(self, held: ExitStack) -> None:
        folder = self.users.shared.parent / "mounts"
        folder.mkdir()
        with suppress(ServerMissing):
            data, place, self.mount = held.enter_context(mounted_for_all(folder))
            data.chmod(0o1777)
            self.places["mount"] = place

    # --- one case ---

    def run(self, case: Case) -> str:
        """Run a case; what came of it, in a line."""
        user, other = self.users.alice, self.users.bob
        if case.number % 2:
            user, other = other, user
        wanted, usual_s = self._undisturbed(case)
        out = self._output(case)
        began_s = time.monotonic()
        with ExitStack() as fault:
            if case.fault == "no new files" and case.share < 0.3:
                fault.enter_context(closed(self.spill, SPILL_MODE))  # from the beginning
            running = self._start(user, case)
            running.usual_s = usual_s
            running.listen(case.share * usual_s)
            is_hit = running.process.poll() is None
            if is_hit:
                self._check_private(other)
                fault.enter_context(self._fault(case, user, running))
            status, said = running.end()
        outcome = self._outcome(case, user, (status, said), wanted)
        self._check_clear(user, case)
        self._remove(out)
        when = "" if is_hit else ", after the job"
        took_s = time.monotonic() - began_s
        names = f"{case.job} {case.runner} {case.place}"
        return f"{case.number:3} {names:<28} {case.fault:<12}{when}: {outcome}, {took_s:.1f} s"

    def _outcome(self, case: Case, user: User, ended: tuple[int, str], wanted: str) -> str:
        status, said = ended
        outcome = "right at once"
        if status != 0:
            killed = case.fault == "kill driver" and status == -signal.SIGKILL
            outcome = "killed"
            if not killed:
                check_told(status, said)
                outcome = f"exit {status}"
            again, told = self._gristmill(user, ["resume", "last"]).end() if killed else (1, said)
            outcome += ", resumed" if killed and again == 0 else ""
            if again != 0:
                check_told(again, told)
                again, told = self._start(user, case, more=True).end()
                outcome += ", right when run again"
            assert again == 0, told
        else:
            assert "Traceback" not in said, said
        assert self._found(case) == wanted, f"the bytes differ: {case}\n{said}"
        return outcome

    def _undisturbed(self, case: Case) -> tuple[str, float]:
        """What a job makes that nobody disturbs, and how long it takes."""
        key = (case.job, case.runner if case.place == "local" else case.runner + case.place)
        if key not in self.usual:
            began_s = time.monotonic()
            status, said = self._start(self.users.alice, case).end()
            assert status == 0, said
            self.usual[key] = (self._found(case), time.monotonic() - began_s)
            self._remove(self._output(case))
        return self.usual[key]

    def _output(self, case: Case) -> Path:
        return self.places[case.place] / f"out-{case.number}"

    def _found(self, case: Case) -> str:
        """A sum of all bytes of the output, but for its proof, which names the job."""
        out = self._output(case)
        files = [out] if out.is_file() else sorted(out.glob("[!_.]*"))
        return "\n".join(f"{file.stat().st_size} {checksum(file)}" for file in files)

    def _remove(self, out: Path) -> None:
        shutil.rmtree(out, ignore_errors=True)
        with suppress(FileNotFoundError):
            out.unlink()

    # --- the jobs ---

    def _start(self, user: User, case: Case, *, more: bool = False) -> Running:
        out = str(self._output(case))
        if case.place == "s3":
            out = f"s3://bucket/{Path(out).name}"
        words = self._words(case, out)
        runner = ["--runner", case.runner] if case.job not in ("python", "streaming") else []
        overwrite = ["--overwrite"] if more and case.job not in ("sort", "numbers") else []
        return self._gristmill(
            user,
            [*words, *runner, *overwrite, "--history", "--workers", "2", "--spill-dir", self.spill],
        )

    def _words(self, case: Case, out: str) -> list[str | Path]:
        of, little = self.inputs, ("--memory", MEMORY[case.place])
        match case.job:
            case "sort":
                return ["sort", of["lines"], "-o", out, *little]
            case "numbers":
                return ["sort", "-n", of["numbers"], "-o", out, *little]
            case "terasort":
                return ["terasort", of["records"], out, *little, "--partitions", "3"]
            case "wordcount":
                return ["wordcount", of["words"], out, "--memory", "64M"]
            case "python":
                words = ["--job", "words", "--input", of["words"], "--output", out]
                return ["run", of["job.py"], *words]
            case _:
                command = ["-mapper", "cut -c1-3", "-reducer", "uniq -c"]
                return ["streaming", "-input", of["words"], "-output", out, *command]

    def _gristmill(self, user: User, words: list[str | Path]) -> Running:
        process = subprocess.Popen(
            user.command(GRISTMILL, *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=user.home,
            env=user.environment(**self.environment),
            umask=0o022,
        )
        return Running(process)

    # --- the faults ---

    @contextmanager
    def _fault(self, case: Case, user: User, running: Running) -> Generator[None]:
        """Do what the case says; its undoing comes at the end of the job."""
        process = running.process.pid
        match case.fault:
            case "kill driver":
                os.kill(process, signal.SIGKILL)
                wait_until_gone(descendants(process))
                yield
            case "kill worker":
                for worker in task_workers(process)[:1]:
                    with suppress(ProcessLookupError):
                        os.kill(worker, signal.SIGKILL)
                yield
            case "stop":
                stopped = random.Random(case.number).choice([process, *task_workers(process)])
                stop_for(stopped, case.stopped_s, running)
                yield
            case "hung mount" if self.mount is not None:
                stop_for(self.mount.pid, 4 * case.stopped_s, running)
                yield
            case "full disk":
                with filled(self.spill):
                    yield
            case "no new files":
                with closed_folders(self.spill, user):
                    yield
            case _:
                yield

    # --- what must hold ---

    def _check_private(self, other: User) -> None:
        """The other user can read nothing of the folders of jobs."""
        places = " ".join(map(str, {self.spill, self.places["local"]}))
        found = other.shell(
            f"find {places} -path '*gristmill-*' -type f -readable 2>/dev/null", None
        )
        mine = [
            line for line in found.splitlines() if Path(line).exists() and not owns(other, line)
        ]
        assert mine == [], mine

    def _check_clear(self, user: User, case: Case) -> None:
        """Nothing of the user's jobs is left once one more has come to its end."""
        if left_of(user, self.spill) or left_of(user, self.places[case.place]):
            more = Case(case.number + 1_000_000, case.job, case.runner, case.place, "none", 0, 0)
            status, said = self._start(user, more).end()
            assert status == 0, said
            self._remove(self._output(more))
        for folder in (self.spill, self.places[case.place], user.home):
            assert left_of(user, folder) == []
        if case.place == "s3":
            assert s3_server.Bucket("bucket", self.places["s3"]).uploads() == []


SPILL_MODE = 0o1777


def left_of(user: User, folder: Path) -> list[Path]:
    """What has a name of ours in a folder, and belongs to a user."""
    found = [path for path in folder.iterdir() if "gristmill-" in path.name]
    return [path for path in found if path.name.startswith(".") and owns(user, path)]


def owns(user: User, path: str | Path) -> bool:
    with suppress(FileNotFoundError):
        return Path(path).lstat().st_uid == user.uid
    return False


def check_told(status: int, said: str) -> None:
    """One paragraph says why, and nothing of how the program is made."""
    assert status == 1, (status, said)
    assert "Traceback" not in said, said
    errors = [line for line in said.splitlines() if line.startswith("gristmill ")]
    assert len(errors) >= 1, said
    assert "panicked" not in said, said


def checksum(file: Path) -> str:
    return subprocess.run(["sha256sum", file], capture_output=True, check=True).stdout.decode()[:64]


def wait_until_gone(processes: list[int]) -> None:
    """Workers end by themselves when their driver is killed."""
    deadline_s = time.monotonic() + 20
    while any(map(is_alive, processes)):
        assert time.monotonic() < deadline_s, "workers outlive their driver"
        time.sleep(0.01)


def stop_for(process: int, seconds: float, running: Running) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGSTOP)
        try:
            running.listen(seconds)
        finally:
            os.kill(process, signal.SIGCONT)
    running.at_s = time.monotonic()  # a process that is stopped says nothing


@contextmanager
def small_disk(folder: Path) -> Generator[None]:
    """A spill directory of its own, for all."""
    folder.mkdir()
    options = f"size={SPILL_BYTES},mode={SPILL_MODE:o}"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, check=False
    )
    if done.returncode != 0:
        raise ServerMissing(f"a disk for spills: {done.stderr.decode()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=False)


@contextmanager
def filled(folder: Path) -> Generator[None]:
    """A disk that is full."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 20))
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def closed(folder: Path, mode: int) -> Generator[None]:
    """A directory that takes no new files."""
    folder.chmod(0o555)
    try:
        yield
    finally:
        folder.chmod(mode)


@contextmanager
def closed_folders(spill: Path, user: User) -> Generator[None]:
    """The folders of a user's jobs take no new files."""
    with ExitStack() as held:
        for folder in left_of(user, spill):
            held.enter_context(closed_for_now(folder))
        yield


@contextmanager
def closed_for_now(folder: Path) -> Generator[None]:
    folder.chmod(0o500)
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            folder.chmod(0o700)


def made_inputs(folder: Path) -> dict[str, Path]:
    """What jobs read, for all to read."""
    numbers = random.Random(1)
    inputs = {name: folder / name for name in ("lines", "numbers", "words", "job.py")}
    lines = (f"{numbers.getrandbits(320):080x}\n" for _ in range(LINES))
    inputs["lines"].write_text("".join(lines))
    lines = (f"{numbers.randrange(1 << 40)} {'x' * 60}\n" for _ in range(LINES))
    inputs["numbers"].write_text("".join(lines))
    words = (f"w{numbers.randrange(5000)} {numbers.randrange(1 << 30)}\n" for _ in range(WORDS))
    inputs["words"].write_text("".join(words))
    inputs["job.py"].write_text(JOB)
    inputs["records"] = folder / "records"
    subprocess.run(
        [GRISTMILL, "teragen", str(RECORDS), inputs["records"], "--no-sync"],
        env=clean_environment(),
        check=True,
        capture_output=True,
    )
    for path in inputs.values():
        for one in [path, *path.rglob("*")]:
            one.chmod(0o755 if one.is_dir() else 0o644)
    return inputs


JOB = """
import gristmill as gm


def pairs(line):
    yield line.split()[0], 1


def total(word, counts):
    yield word, sum(counts)


def words(input, output):
    output = gm.tsv(output)
    return gm.Job(gm.text(input), map=pairs, reduce=total, output=output, split_max="500k", parts=3)
"""


def campaign(
    cases: Iterable[int], seed: int, places: Iterable[str], say: Callable[[str], None]
) -> None:
    """Run cases, and say of each what came of it."""
    with ExitStack() as held:
        of = Campaign(held.enter_context(two_users()), held, places)
        there = tuple(of.places)
        for number in cases:
            case = drawn(seed, number, there)
            try:
                say(of.run(case))
            except AssertionError as problem:
                raise AssertionError(f"{case} of seed {seed}: {problem}") from problem
