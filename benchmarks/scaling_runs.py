"""One run of benchmarks/scaling.py: a job with p capped workers and its device, and what it took.

    in.txt: p lines "ready", then a line for each block      a task for each line
    history ──▶ without what was before all workers were ready ──▶ seconds, phases, losses

The output is checked against the words that were sent.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from scaling_caps import Groups
from scaling_device import BLOCK_BYTES, text_of_block

from gristmill.analysis.histories import LOSSES, losses
from gristmill.history.model import Attempt, JobHistory, PhaseSpan
from gristmill.history.reader import load

HERE = Path(__file__).parent
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where jobs have their files: the disk of the machine takes no part."""
RUN_LIMIT_S = 90
ATTEMPTS = 30
"""A block may time out so often; a job gives up after four by default."""
WIDER = 1024
MACHINES: dict[str, float | None] = {"plain": None, "throttled": 1.0, "widened": 1.0 / WIDER}
"""How long the disk of each takes, as a part of `Work.slow_s`; of none, nothing is on disk."""
LEFT_OUT = ("processors", "machine")
"""Losses that are not counted: histories know the processors of the machine, and not the caps. So a
worker that is held back looks as one that others keep from a processor.

`restarts` is counted in addition: an attempt that fails takes its worker along, and the start of
the next one is a part of another attempt (`restarts_s`).
"""


class Failed(Exception):
    """A run that did not come to its end, or whose output is wrong."""


@dataclass(frozen=True)
class Work:
    """What each run does."""

    blocks: int = 48
    """Of 1.5 MB; the same for every p."""
    cache: int = 9
    """Blocks that the memory of a node holds: six nodes hold all."""
    limit_s: float = 0.25
    """How long a worker waits for a block."""
    slow_s: float = 0.4
    """Seconds that the slow disk takes for a block, on the average."""


@dataclass(frozen=True)
class Measured:
    """A run."""

    machine: str
    p: int
    round: int
    seconds: float
    """From the moment when all workers were ready, to the job's end."""
    start_s: float
    """Before that: processes start. It is not counted."""
    phases: dict[str, float]
    wastes: dict[str, float]
    left_out: dict[str, float]
    """Losses that are not counted, as the histories have them."""
    failed_attempts: int
    cpu_s: float
    device: dict[str, float]
    """Blocks that disks read, and seconds that they were busy, all nodes together."""
    caps: dict[str, int]
    """Of the workers' groups: periods, and those in which they were held back."""


@contextmanager
def benches(work: Work, groups: Groups) -> Iterator["Bench"]:
    """Start the device, and make a folder for jobs."""
    command = [sys.executable, HERE / "scaling_device.py"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        tempfile.TemporaryDirectory(prefix="gristmill-scaling-", dir=MEMORY) as name,
        subprocess.Popen(command, start_new_session=True, **pipes) as it,  # Ctrl-C is not for it
    ):
        assert it.stdout is not None
        try:
            yield Bench(work, groups, Path(name), port=int(it.stdout.readline()))
        finally:
            it.kill()


class Bench:
    """Runs the job with a machine and p workers."""

    def __init__(self, work: Work, groups: Groups, folder: Path, port: int) -> None:
        self.work, self.groups, self.folder, self.port = work, groups, folder, port
        words = Counter(text_of_block().decode().split())
        self.right = {word: count * work.blocks for word, count in words.items()}

    def run(self, machine: str, p: int, number: int) -> Measured:
        """Run it once.

        Raises:
            Failed: It failed, or its output is wrong.
        """
        self._set_up(machine, p, number)
        lines = [f"ready {n}" for n in range(p)] + [f"block {n}" for n in range(self.work.blocks)]
        (self.folder / "in.txt").write_text("".join(f"{line:<99}\n" for line in lines))
        try:
            report = self._job(p)
        finally:
            caps = self.groups.clear()
        self._check()
        history = load(Path(report["history"]))
        whole_s = history.wall_s
        counted = without_start(history, p)
        failed = sum(one.outcome == "failed" for one in counted.attempts)
        if caps["workers"] != p + failed:  # each that failed took its worker along
            raise Failed(f"{caps['workers']} workers were limited, and there were {p + failed}")
        lost = losses(counted) | {"restarts": restarts_s(counted.attempts, p)}
        wastes = {name: s for name, s in lost.items() if name not in LEFT_OUT}
        return Measured(
            machine=machine,
            p=p,
            round=number,
            seconds=round(counted.wall_s, 4),
            start_s=round(whole_s - counted.wall_s, 4),
            phases={phase.name: round(seconds_of(phase), 4) for phase in counted.phases},
            wastes=at_most(wastes, counted.wall_s),
            left_out={name: round(lost[name], 4) for name in LEFT_OUT},
            failed_attempts=failed,
            cpu_s=round(report["user_s"] + report["sys_s"], 3),
            device=json.loads(self._ask("stats")),
            caps=caps,
        )

    def _set_up(self, machine: str, p: int, number: int) -> None:
        share = MACHINES[machine]
        rate = None if share is None else BLOCK_BYTES / (share * self.work.slow_s)
        known = {"p": p, "blocks": self.work.blocks, "cache": self.work.cache}
        # The same disks in the second and third machine, but for their width.
        told = {**known, "bytes_per_s": rate, "seed": 100 * number + p}
        self._ask(f"setup {json.dumps(told)}")

    def _ask(self, command: str) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(f"{command}\n".encode())
            file = connection.makefile("rb")
            return file.read(int.from_bytes(file.read(8), "little"))

    def _job(self, p: int) -> dict:
        given = {
            "port": self.port,
            "group": self.groups.folder,
            "caps": self.groups.caps,
            "limit": self.work.limit_s,
        }
        sets = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
        run = [sys.executable, "-m", "gristmill", "run", HERE / "scaling_job.py"]
        more = ["--attempts", str(ATTEMPTS), "--no-sync", "--overwrite", "--history", "--json"]
        try:
            done = subprocess.run(
                [*run, "--workers", str(p), *sets, *more],
                cwd=self.folder,
                env={**os.environ, "GRISTMILL_HOME": str(self.folder / "home")},
                capture_output=True,
                text=True,
                timeout=RUN_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Failed(f"it took longer than {RUN_LIMIT_S} s") from error
        if done.returncode != 0:
            raise Failed(f"exit code {done.returncode}: {done.stderr[-1000:]}")
        return json.loads(done.stdout)

    def _check(self) -> None:
        found: dict[str, int] = {}
        for part in (self.folder / "out").glob("part-*"):
            for line in part.read_text().splitlines():
                word, count = line.split("\t")
                found[word] = int(count)
        if found != self.right:
            raise Failed("the output is wrong")


def without_start(history: JobHistory, p: int) -> JobHistory:
    """A history from the moment on when all workers were ready: the first p tasks are over."""
    first = [one for one in history.attempts if one.task < p]
    ready_ms = max(one.end_ms or 0 for one in first)
    others = [one for one in history.attempts if one.task >= p]
    if any(one.outcome != "succeeded" for one in first) or len(first) != p:
        raise Failed("a worker was not ready at once")
    if others[0].start_ms < max(one.start_ms for one in first):
        raise Failed("blocks were read before all workers were ready")
    phase, *rest = history.phases
    assert phase.used is not None
    start_s = (ready_ms - phase.start_ms) / 1000
    waited_s = sum((one.end_ms or 0) - one.start_ms for one in first) / 1000
    used = replace(
        phase.used,
        wall_s=phase.used.wall_s - start_s,
        running_s=max(phase.used.running_s - waited_s, 0.0),
    )
    report = {**history.report, "wall_s": history.wall_s - ready_ms / 1000}
    phases = [replace(phase, start_ms=ready_ms, used=used), *rest]
    return replace(history, phases=phases, attempts=others, report=report)


def restarts_s(attempts: Sequence[Attempt], slots: int) -> float:
    """Seconds of wall time for the start of workers after attempts that failed.

    An attempt that succeeds right after one that failed, in the same slot, has a new worker. What
    it takes longer than the median of those that find their worker counts.

    >>> spans = [(0, 300, "failed"), (300, 500, "succeeded"), (500, 600, "succeeded")]
    >>> restarts_s(
    ...     [
    ...         Attempt(task=0, attempt=0, phase="map", start_ms=start, end_ms=end, outcome=outcome)
    ...         for start, end, outcome in spans
    ...     ],
    ...     slots=1,
    ... )
    0.1
    """
    free = [(0, "succeeded")] * slots  # when the last attempt in each slot ended, and how
    with_worker: list[int] = []
    without: list[int] = []
    for one in sorted(attempts, key=lambda one: one.start_ms):
        before = max((slot for slot in free if slot[0] <= one.start_ms), default=min(free))
        free.remove(before)
        free.append((one.end_ms or one.start_ms, one.outcome or ""))
        if one.outcome == "succeeded" and one.phase == "map":
            took = free[-1][0] - one.start_ms
            (with_worker if before[1] == "succeeded" else without).append(took)
    if not with_worker:
        return 0.0
    usual = median(with_worker)
    return sum(max(took - usual, 0) for took in without) / slots / 1000


def seconds_of(phase: PhaseSpan) -> float:
    end_ms = phase.start_ms if phase.end_ms is None else phase.end_ms
    return (end_ms - phase.start_ms) / 1000 if phase.used is None else phase.used.wall_s


def at_most(wastes: dict[str, float], seconds: float) -> dict[str, float]:
    """Wastes, each in its turn, with together less than the time of the run."""
    left = 0.99 * seconds
    found: dict[str, float] = {}
    for name in ("retries", "restarts", *LOSSES[1:]):
        if name in wastes:
            found[name] = round(min(wastes[name], left), 4)
            left -= found[name]
    return found
