"""Jobs make the same bytes and counters wherever their tasks run and their data lie.

               disk              object store that fails   S3          HDFS        shared directory
    threads    the reference     the same                  the same    the same
    processes  the same          the same                                          the same
    Ray                                                                            the same

The store is kept in a directory, or S3's server keeps it in one; one request in twelve is refused
or loses its reply. A directory is shared where tasks run on several machines; this one is written
as if they did.
"""

import json
import re
import shlex
import shutil
import signal
import subprocess
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.cli.harness import GRISTMILL, clean_environment
from tests.cli.hdfs_server import Cluster, nothing_staged
from tests.cli.ray_cluster import RayCluster
from tests.cli.resuming import events_of
from tests.cli.s3_server import Server
from tests.places.inputs import make_inputs
from tests.places.table import CASES, CLUSTERED, Case

from gristmill import _core
from gristmill.locations import open_read

FAULTS = "refused=0.05,lost=0.03"

JOBS = Path(__file__).with_name("jobs.py")

USUAL = "--memory 64M --workers 2"

#: What a report says of the work, and not of how it was done.
ALIKE = ("command", "status", "input_bytes", "output_bytes", "records", "duplicate_keys")
ALIKE += ("checksum", "parts", "user_counters", "report", "misorders")

#: Beginnings of counters that say how it was done.
UNLIKE = ("CPU", "DEVICE", "STORE", "SPILLED", "FILE_BYTES", "MERGE", "TOTAL_LAUNCHED")
UNLIKE += ("SHUFFLE", "FAILED_SHUFFLE", "LOST", "SPECULATIVE")  # of clusters alone
UNLIKE += ("DIR_COPY", "COPY_STREAMS")  # of places with directories, and of far ones
UNLIKE += ("CUT_FILES", "COPIED_PIECES")  # of places where several tasks write one file

#: Those of sorts alone: which have none in memory.
UNLIKE_SORTS = ("MAP_OUTPUT_BYTES", "MAP_OUTPUT_MATERIALIZED_BYTES")

TIMEOUT_S = 60


@dataclass(frozen=True)
class Place:
    """Where tasks run, and where data lie."""

    runner: str
    store: str

    def __str__(self) -> str:
        return f"{self.runner} and {self.store}"


@dataclass(frozen=True)
class Ground:
    """A folder in which data of a place lie, and how the place spells what is there."""

    folder: Path
    url: str
    environment: dict[str, str] = field(default_factory=dict)
    is_far: bool = False
    """The folder is a copy of what is there, made by `fetch`."""

    @property
    def inputs(self) -> Path:
        """The inputs, the same in every place."""
        return self.folder / "in"

    def location(self, path: Path) -> str:
        """How the place spells a path below the folder."""
        return f"{self.url}/{path.relative_to(self.folder)}"

    def fetch(self, path: Path) -> None:
        """Copy what is at a path, so that it can be looked at."""
        if not self.is_far or not _core.exists(self.location(path)):
            return
        path.mkdir(exist_ok=True)
        for found, state in _core.Listing(self.location(path)):
            copy = path / found.rpartition("/")[2]
            is_directory, *_ = state or _core.stat(found) or (False, 0, 0, "")
            if is_directory:
                self.fetch(copy)
            else:
                copy.write_bytes(open_read(found).read())
        if self.folder != path and not nothing_staged(self.location(path)):
            (path / "staged").touch()


REFERENCE = Place("threads", "disk")

PLACES = (
    REFERENCE,
    Place("processes", "disk"),
    Place("threads", "objects"),
    Place("processes", "objects"),
    Place("threads", "s3"),
    Place("threads", "hdfs"),
    Place("processes", "shared"),
)


#: Nodes of a cluster, on this machine: all see the same directories.
ON_RAY = Place("agents", "ray")


def places(case: Case) -> tuple[Place, ...]:
    usual = PLACES if case.everywhere else PLACES[:3]
    return (*usual, ON_RAY) if case.name in CLUSTERED else usual


@dataclass
class Outcome:
    """What a case came to in a place."""

    status: int
    stdout: str
    stderr: str
    files: dict[str, bytes] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    """What is neither output nor history."""


class Yard:
    """A folder of a case in a place: `work`, where its jobs are begun, `home`, and the output."""

    def __init__(self, case: Case, place: Place, ground: Ground, name: str, folder: Path) -> None:
        self.case, self.place, self.ground, self.folder = case, place, ground, folder
        self.work, self.home, self.gate = folder / "work", folder / "home", folder / "gate"
        self.data = ground.folder / name
        self.out = self.data / "out"
        self.work.mkdir(parents=True)
        if not ground.is_far:
            self.data.mkdir()

    def remove(self) -> None:
        """Remove all of it."""
        for folder in (self.folder, self.data):
            shutil.rmtree(folder, ignore_errors=True)

    def outcome(self) -> Outcome:
        """Run all steps."""
        for step in self.case.steps[:-1]:
            if (done := self._run(step)).status != 0:
                return done
        done = self._run(self.case.steps[-1])
        if self.case.json and done.stdout:
            done.report = json.loads(done.stdout)
            done.stdout = ""
        self.ground.fetch(self.data)
        done.files = self._files()
        done.left = self._left()
        return done

    def _run(self, step: str) -> Outcome:
        kind, _, rest = step.partition(" ")
        words = self._words(kind, rest)
        if kind == "killed":
            return self._killed(words)
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, **self._around()
        )
        said = WAITING.sub("", done.stderr)
        return Outcome(done.returncode, self._same(done.stdout), self._same(said))

    def _words(self, kind: str, rest: str) -> list[str]:
        """A command line."""
        there = self.ground.location(self.ground.inputs)
        if kind in ("python", "killed"):
            job, _, options = rest.partition(" ")
            rest = f"{JOBS} --job {job} --set at={there} {options}"
        out, files = self.ground.location(self.out), self.ground.inputs
        rest = rest.format_map({"in": there, "files": files, "out": out, "gate": self.gate})
        words = [str(GRISTMILL), "run" if kind in ("python", "killed") else kind]
        words += shlex.split(rest)
        if kind == "grep":
            words += ["--workers", "2"]
        elif kind != "resume":
            words += shlex.split(USUAL) if "--memory" not in words else []
            words += ["--on", "ray"] if self.place == ON_RAY else ["--runner", self.place.runner]
            words.append("--history")
        return [*words, "--json"] if self.case.json else words

    def _around(self) -> dict[str, Any]:
        seed = zlib.crc32(f"{self.case.name} {self.place}".encode())
        own = {**self.ground.environment, "GRISTMILL_HOME": str(self.home)}
        environment = clean_environment(**own)
        if self.place.store != "disk":
            environment["GRISTMILL_OBJECTS_FAULTS"] = f"{FAULTS},seed={seed}"
        return {"cwd": self.work, "env": environment, "stdin": subprocess.DEVNULL}

    def _killed(self, words: list[str]) -> Outcome:
        """Start a job of which one map stands still, and kill it when all others are done."""
        job = subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **self._around()
        )
        deadline_s = time.monotonic() + TIMEOUT_S
        while job.poll() is None and not self._one_is_left() and time.monotonic() < deadline_s:
            time.sleep(0.005)
        job.kill()
        _, said = job.communicate()
        self.gate.touch()
        return Outcome(0 if job.returncode == -signal.SIGKILL else 1, "", said)

    def _one_is_left(self) -> bool:
        """Whether all maps but one are over."""
        if not list(self.home.glob("jobs/*/events.jsonl")):
            return False
        events = events_of(self.home)
        tasks = sum(event["tasks"] for event in events if event["event"] == "phase_started")
        over = sum(event["event"] == "attempt_finished" for event in events)
        return tasks > 1 and over == tasks - 1

    def _files(self) -> dict[str, bytes]:
        """All files of the output; its proof without the name of the job."""
        if not self.out.is_dir():
            return {"": self.out.read_bytes()} if self.out.exists() else {}
        found = {
            str(path.relative_to(self.out)): self._read(path)
            for path in self.out.rglob("*")
            if path.is_file() and ".objects" not in path.parts
        }
        if "_SUCCESS" in found:
            proof = {**json.loads(found["_SUCCESS"]), "job_id": None}
            for part in proof["parts"]:
                if part["name"].startswith("_bad-"):
                    proof["bytes"] -= part.pop("bytes")
                    del part["crc"]
            found["_SUCCESS"] = json.dumps(proof).encode()
        return found

    def _read(self, path: Path) -> bytes:
        """A file; records that were left out are said to be of a file of the place."""
        found = path.read_bytes()
        return self._same(found.decode()).encode() if path.name.startswith("_bad-") else found

    def _left(self) -> list[str]:
        """What is neither the output nor a store's note of an object."""
        there = [*self.work.rglob("*"), *self.data.rglob("*")]
        return sorted(str(path) for path in there if not self._belongs(path))

    def _belongs(self, path: Path) -> bool:
        if ".objects" in path.parts:
            return path.name == ".objects" or path.suffix == ".version"
        return path.is_relative_to(self.out) and not path.name.startswith(".")

    def _same(self, text: str) -> str:
        """A text without what differs from place to place by nature."""
        for path, name in ((self.data, "PLACE"), (self.ground.inputs, "INPUTS")):
            text = text.replace(self.ground.location(path), name).replace(str(path), name)
        return re.sub(r"job_\w+", "JOB", text)


#: What a job on a cluster may say before it begins: others have its CPUs, or the machine is slow.
WAITING = re.compile(r"^gristmill: waiting for \d+ CPUs.* of the cluster: .*\n", re.MULTILINE)

Grounds = dict[str, Ground]

#: The server that a store needs, a fixture.
NEEDS = {"s3": "server", "hdfs": "cluster", "ray": "ray"}


@pytest.fixture(scope="module")
def grounds(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Grounds]:
    """The disk, an object store kept on it, and a bucket if there is S3, with the same inputs."""
    disk = tmp_path_factory.mktemp("places")
    (disk / "in").mkdir()
    make_inputs(disk / "in")
    grounds = {"disk": Ground(disk, str(disk)), "objects": Ground(disk, f"objects://{disk}")}
    grounds["shared"] = Ground(disk, str(disk), {"GRISTMILL_SHARED_OUTPUTS": "1"})
    with suppress(pytest.skip.Exception):
        nodes: RayCluster = request.getfixturevalue(NEEDS["ray"])
        grounds["ray"] = Ground(disk, str(disk), nodes.environment)
    with suppress(pytest.skip.Exception):
        server: Server = request.getfixturevalue(NEEDS["s3"])
        bucket = server.folder / "places"
        shutil.copytree(disk / "in", bucket / "in")
        grounds["s3"] = Ground(bucket, "s3://places", server.environment)
    with suppress(pytest.skip.Exception):
        cluster: Cluster = request.getfixturevalue(NEEDS["hdfs"])
        far = Ground(disk.with_name("hdfs-places"), cluster.url("places"), is_far=True)
        shutil.copytree(disk / "in", far.inputs)
        for path in far.inputs.rglob("*"):
            if path.is_file():
                _core.put_file(path, far.location(path))
        cluster.tell("mode", "777", "/places")  # who this process is, earlier tests have decided
        grounds["hdfs"] = far
    yield grounds
    for ground in grounds.values():
        shutil.rmtree(ground.folder, ignore_errors=True)


class Trials:
    """A case in all its places, at the same time; kept until another case is asked for."""

    def __init__(self, grounds: Grounds, folder: Path) -> None:
        self.grounds, self._folder = grounds, folder
        self._tries = 0
        self._case: Case | None = None
        self._asked: set[Place] = set()
        self._outcomes: dict[Place, Outcome] = {}

    def outcome(self, case: Case, place: Place) -> Outcome:
        """What a case comes to in a place. Who asks once more has it tried once more."""
        if case is not self._case or place in self._asked:
            self._case = None
            self._outcomes = self._all(case)
            self._case, self._asked = case, set()
        self._asked.add(place)
        return self._outcomes[place]

    def wanted(self) -> Outcome:
        """What the same case comes to where the others are compared with."""
        return self._outcomes[REFERENCE]

    def _all(self, case: Case) -> dict[Place, Outcome]:
        self._tries += 1  # what the try before left in HDFS is not met

        def outcome(place: Place) -> Outcome:
            ground = self.grounds[place.store]
            name = f"{case.name}-{self._tries}-{place.runner}-{place.store}"
            yard = Yard(case, place, ground, name, self._folder / name)
            try:
                return yard.outcome()
            finally:
                yard.remove()

        there = [place for place in places(case) if place.store in self.grounds]
        with ThreadPoolExecutor(len(PLACES) + 1) as pool:
            return dict(zip(there, pool.map(outcome, there), strict=True))


@pytest.fixture(scope="module")
def trials(grounds: Grounds, tmp_path_factory: pytest.TempPathFactory) -> Trials:
    return Trials(grounds, tmp_path_factory.mktemp("trials"))


@pytest.mark.parametrize(
    ("case", "place"),
    [
        pytest.param(case, place, id=f"{case.name} in {place}")
        for case in CASES
        for place in places(case)
    ],
)
def test_a_job_is_the_same_in_all_places(
    trials: Trials, case: Case, place: Place, request: pytest.FixtureRequest
) -> None:
    if place.store not in trials.grounds:
        request.getfixturevalue(NEEDS[place.store])  # which says what is missing
    found = trials.outcome(case, place)
    wanted = trials.wanted()
    assert found.status == case.status, found.stderr
    assert "Traceback" not in found.stderr
    assert case.says in found.stderr
    assert found.left == []
    assert differing(found.files, wanted.files) == []
    assert found.stdout == wanted.stdout
    assert case.status == 0 or found.stderr == wanted.stderr
    if case.json:
        assert told(found.report) == told(wanted.report)
        assert found.report["user_s"] + found.report["sys_s"] > 0


def differing(found: dict[str, bytes], wanted: dict[str, bytes]) -> list[str]:
    """The names of files that one side lacks, or has with other bytes."""
    return [name for name in {**wanted, **found} if found.get(name) != wanted.get(name)]


def told(report: dict[str, Any]) -> dict[str, Any]:
    """What a report says of the work; of a failed job, which tasks were done is chance."""
    if report["error"]:
        return {"status": report["status"], "error": report["error"]["kind"]}
    counters = report["counters"].items()
    alike = {name: report[name] for name in ALIKE}
    if report["counters"].get("MAP_SKIPPED_RECORDS"):
        del alike["output_bytes"]  # with what is kept of them, and of which file they are
    unlike = UNLIKE + (UNLIKE_SORTS if report["command"] in ("sort", "terasort") else ())
    alike["counters"] = {name: count for name, count in counters if not name.startswith(unlike)}
    # How long workers were idle depends on the machine.
    alike["warnings"] = [said for said in report["warnings"] if "idle" not in said]
    return alike


def test_twenty_jobs_at_least_are_in_processes_and_objects() -> None:
    assert sum(PLACES[3] in places(case) for case in CASES) >= 20
