"""A campaign of faults at random moments: jobs of users in turn, who share a spill directory.

    seed, number ──▶ Case ──▶ a job ──▶ a fault at a moment of it ──▶ what came of it ──▶ the next

What must hold of each, whatever the fault:

- the output has the bytes of a job that nobody disturbs, at once or after `gristmill resume last`;
  or the job ends with exit code 1 and one paragraph, and the same job succeeds after the fault;
- it is not silent for thirty seconds;
- of its folders another user can read nothing while it runs;
- after the user's next job nothing is left of it, in the spill directory or beside the output.

A case is a function of seed and number alone; the moment depends on how fast the machine is. Jobs
on Ray are root's, as Ray's own processes are; all others are of two users who are not.
"""

import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.cli import ray_cluster
from tests.cli.harness import GRISTMILL, clean_environment
from tests.cli.mount_server import mounted_for_all
from tests.cli.two_users import TwoUsers, User, two_users

from . import injuries
from .grounds import Folder, Ground, bucket_in, directory_of_hdfs
from .injuries import SPILL_MODE, Victim, left_of, owns
from .running import Running, check_told

__all__ = ["PLACES", "RUNNERS", "campaign"]

LINES, RECORDS, WORDS = 300_000, 300_000, 200_000

LITTLE = {"local": "30M", "mount": "30M", "s3": "60M", "hdfs": "60M"}
"""So little memory that sorts make runs on a disk; what speaks to a store takes some of it."""

JOBS = ("sort", "numbers", "terasort", "wordcount", "python", "streaming")
OF_FUNCTIONS = ("python", "streaming")
PLACES = ("local", "s3", "hdfs", "mount")
RUNNERS = ("threads", "processes", "ray")


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


def drawn(seed: int, number: int, places: tuple[str, ...], runners: tuple[str, ...]) -> Case:
    """Draw a case."""
    draws = random.Random(f"{seed}/{number}")
    job = draws.choice(JOBS)
    runner = draws.choice(runners)
    if job in OF_FUNCTIONS and runner == "threads":
        runner = "processes"
    place = draws.choice(places)
    faults = [*(injuries.ON_RAY if runner == "ray" else injuries.ON_MACHINE)]
    if runner == "threads":
        faults.remove("kill worker")
    if place == "mount":
        faults += [*injuries.OF_MOUNT] * 3
    fault = draws.choice(faults)
    return Case(
        number, job, runner, place, fault, draws.uniform(0, 1), draws.uniform(*injuries.STOPS_S)
    )


class Campaign:
    """Jobs of users, their inputs, and what undisturbed jobs make of them."""

    def __init__(
        self, users: TwoUsers, held: ExitStack, places: Iterable[str], runners: Iterable[str]
    ) -> None:
        self.users = users
        self.root = User(0, users.shared.parent / "root")
        self.root.home.mkdir(mode=0o755)
        self.spill = users.shared / "spill"
        held.enter_context(injuries.small_disk(self.spill))
        self.inputs = made_inputs(users.shared)
        self.mount: subprocess.Popen[bytes] | None = None
        self.grounds: dict[str, Ground] = {}
        for place in places:
            self.grounds[place] = self._ground(place, held)
        self.of_ray: dict[str, str] = {}
        if "ray" in runners:
            self.of_ray = held.enter_context(ray_cluster.serving()).environment
        self.usual: dict[tuple[str, ...], tuple[str, float]] = {}

    def _ground(self, place: str, held: ExitStack) -> Ground:
        own = self.users.shared.parent / place
        match place:
            case "s3":
                return held.enter_context(bucket_in(own))
            case "hdfs":
                return held.enter_context(directory_of_hdfs(own))
            case "mount":
                own.mkdir()
                data, folder, self.mount = held.enter_context(mounted_for_all(own))
                data.chmod(SPILL_MODE)
                return Folder(folder)
            case _:
                own = self.users.shared / place
                own.mkdir()
                own.chmod(SPILL_MODE)
                return Folder(own, shared=[own])

    # --- one case ---

    def run(self, case: Case) -> str:
        """Run a case; what came of it, in a line."""
        user, other = self._users(case)
        wanted, usual_s = self._undisturbed(case)
        began_s = time.monotonic()
        with ExitStack() as fault:
            if case.fault == "no new files" and case.share < 0.3:  # from the beginning
                fault.enter_context(injuries.closed(self.spill, 0o555, SPILL_MODE))
            running = self._start(user, case)
            running.listen(case.share * usual_s)
            is_hit = running.process.poll() is None
            if is_hit:
                self._check_private(other)
                fault.enter_context(self._injury(case)(self._victim(case, user, running)))
            status, said = running.end()
        outcome = self._outcome(case, user, (status, said), wanted)
        self._check_clear(user, case)
        self._ground_of(case).remove(self._name(case))
        when = "" if is_hit else ", after the job"
        took_s = time.monotonic() - began_s
        names = f"{case.job} {case.runner} {case.place}"
        return f"{case.number:3} {names:<28} {case.fault:<13}{when}: {outcome}, {took_s:.1f} s"

    def _users(self, case: Case) -> tuple[User, User]:
        """Whose the job is, and who is the other one."""
        alice, bob = self.users.alice, self.users.bob
        if case.runner == "ray":
            return self.root, bob
        return (bob, alice) if case.number % 2 else (alice, bob)

    def _injury(self, case: Case) -> Callable[[Victim], "injuries.Injury"]:
        all_of_them = {**injuries.ON_MACHINE, **injuries.ON_RAY, **injuries.OF_MOUNT}
        return all_of_them[case.fault]

    def _victim(self, case: Case, user: User, running: Running) -> Victim:
        choice = random.Random(case.number)
        return Victim(running, self.spill, user.uid, case.stopped_s, choice, self.mount)

    def _outcome(self, case: Case, user: User, ended: tuple[int, str], wanted: str) -> str:
        status, said = ended
        outcome = "right at once"
        if status != 0:
            killed = case.fault == "kill driver" and status == -signal.SIGKILL
            outcome = "killed"
            if not killed:
                check_told(status, said)
                outcome = f"exit {status}"
            resume: list[str | Path] = ["resume", "last"]
            again, told = self._gristmill(user, case, resume).end() if killed else (1, said)
            outcome += f", {what_of_resume(again, told)}" if killed else ""
            if again != 0:
                check_told(again, told)
                again, told = self._start(user, case, more=True).end()
                outcome += ", right when run again"
            assert again == 0, told
        else:
            assert "Traceback" not in said, said
        found = self._ground_of(case).found(self._name(case))
        assert found == wanted, f"the bytes differ: {case}\n{said}"
        return outcome

    def _undisturbed(self, case: Case) -> tuple[str, float]:
        """What a job makes that nobody disturbs, and how long it takes."""
        key = (case.job, case.runner, case.place)
        if key not in self.usual:
            began_s = time.monotonic()
            status, said = self._start(self._users(case)[0], case).end()
            assert status == 0, said
            took_s = time.monotonic() - began_s
            self.usual[key] = (self._ground_of(case).found(self._name(case)), took_s)
            self._ground_of(case).remove(self._name(case))
        return self.usual[key]

    def _ground_of(self, case: Case) -> Ground:
        return self.grounds[case.place]

    def _name(self, case: Case) -> str:
        return f"out-{case.number}"

    # --- the jobs ---

    def _start(self, user: User, case: Case, *, more: bool = False) -> Running:
        words = self._words(case, self._ground_of(case).location(self._name(case)))
        where = ["--on", "ray"] if case.runner == "ray" else ["--runner", case.runner]
        if case.job in OF_FUNCTIONS and case.runner != "ray":
            where = []
        overwrite = ["--overwrite"] if more and case.job not in ("sort", "numbers") else []
        common = ["--history", "--workers", "2", "--spill-dir", self.spill]
        return self._gristmill(user, case, [*words, *where, *overwrite, *common])

    def _words(self, case: Case, out: str) -> list[str | Path]:
        of, little = self.inputs, ("--memory", LITTLE[case.place])
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

    def _gristmill(self, user: User, case: Case, words: list[str | Path]) -> Running:
        more = {**self._ground_of(case).environment}
        if case.runner == "ray":
            more |= self.of_ray
        process = subprocess.Popen(
            user.command(GRISTMILL, *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=user.home,
            env=user.environment(**more),
            umask=0o022,
        )
        return Running(process)

    # --- what must hold ---

    def _check_private(self, other: User) -> None:
        """The other user can read nothing of the folders of jobs."""
        folders = [folder for ground in self.grounds.values() for folder in ground.shared]
        places = " ".join(map(str, [self.spill, *folders]))
        find = f"find {places} -path '*/.*gristmill-*' -type f -readable 2>/dev/null"
        lines = other.shell(find, None).splitlines()
        mine = [line for line in lines if Path(line).exists() and not owns(other.uid, line)]
        assert mine == [], mine

    def _check_clear(self, user: User, case: Case) -> None:
        """Nothing of the user's jobs is left once one more has come to its end."""
        if self._left(user, case):
            more = Case(case.number + 1_000_000, case.job, case.runner, case.place, "none", 0, 0)
            status, said = self._start(user, more).end()
            assert status == 0, said
            self._ground_of(more).remove(self._name(more))
        assert self._left(user, case) == []

    def _left(self, user: User, case: Case) -> list[object]:
        there = [found for folder in (self.spill, user.home) for found in left_of(user.uid, folder)]
        return [*there, *self._ground_of(case).left(user.uid)]


def what_of_resume(status: int, said: str) -> str:
    """What came of `resume last` after a job was killed."""
    if status == 0:
        return "resumed"
    return "before it began" if "no job can be resumed" in said else "not resumed"


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
    cases: Iterable[int],
    seed: int,
    say: Callable[[str], None],
    *,
    places: Iterable[str] = PLACES,
    runners: Iterable[str] = RUNNERS,
) -> None:
    """Run cases, and say of each what came of it; at the end fail if one was wrong."""
    wrong: list[str] = []
    with ExitStack() as held:
        of = Campaign(held.enter_context(two_users()), held, places, runners)
        there = tuple(of.grounds)
        for number in cases:
            case = drawn(seed, number, there, tuple(runners))
            try:
                say(of.run(case))
            except AssertionError as problem:
                wrong.append(f"{case} of seed {seed}: {problem}")
                say(f"WRONG: {wrong[-1]}")
    assert not wrong, "\n".join(wrong)
