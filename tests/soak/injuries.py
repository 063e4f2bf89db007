"""What is done to a job, its processes, its disk or its agents; undone at the end of the job."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.cli.agents import agents_of
from tests.cli.servers import ServerMissing
from tests.cli.worker_processes import descendants, is_alive, task_workers

from .running import Running

SPILL_BYTES = 150_000_000
"""Of the spill directory: several times the runs of a job."""

SPILL_MODE = 0o1777

STOPS_S = (0.5, 4.0)
"""How long a process, or the server of a mount, is stopped."""


Injury = AbstractContextManager[None]


@dataclass(frozen=True)
class Victim:
    """A job that is disturbed: its process, its user's folders below the spill directory."""

    running: Running
    spill: Path
    uid: int
    stopped_s: float
    choice: random.Random
    mount: "subprocess.Popen[bytes] | None"

    @property
    def driver(self) -> int:
        """Its process."""
        return self.running.process.pid


@contextmanager
def none(_victim: Victim) -> Generator[None]:
    """Do nothing."""
    yield


@contextmanager
def kill_driver(victim: Victim) -> Generator[None]:
    """Kill the job's process; its workers end by themselves."""
    below = descendants(victim.driver)
    os.kill(victim.driver, signal.SIGKILL)
    deadline_s = time.monotonic() + 20
    while any(map(is_alive, below)):
        assert time.monotonic() < deadline_s, "workers outlive their driver"
        time.sleep(0.01)
    yield


@contextmanager
def kill_worker(victim: Victim) -> Generator[None]:
    """Kill a process of its tasks."""
    for worker in task_workers(victim.driver)[:1]:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
    yield


@contextmanager
def kill_agent(victim: Victim) -> Generator[None]:
    """Kill an agent of a cluster."""
    for agent in list(agents_of(victim.spill))[:1]:
        with suppress(ProcessLookupError):
            os.kill(agent, signal.SIGKILL)
    yield


@contextmanager
def refuse_order(victim: Victim) -> Generator[None]:
    """Kill an agent; another one cannot write down what it hears of that: its file is in use."""
    held = ExitStack()
    with held:
        agents = sorted(agents_of(victim.spill).items())
        if len(agents) > 1:
            (killed, _), (refuses, folder) = victim.choice.sample(agents, 2)
            try:
                held.enter_context(_in_use(refuses, folder / "agents.new"))
            except (OSError, subprocess.CalledProcessError) as problem:
                assert victim.running.listen(10), f"no order is refused: {problem}"
            with suppress(ProcessLookupError):
                os.kill(killed, signal.SIGKILL)
        yield


@contextmanager
def _in_use(process: int, table: Path) -> Generator[None]:
    """Keep a process from replacing or removing a file: something is mounted on it."""
    space = os.open(f"/proc/{process}/ns/mnt", os.O_RDONLY)
    there = ["nsenter", f"--mount=/proc/self/fd/{space}"]
    try:
        table.touch()
        mount = [*there, "mount", "--bind", "/dev/null", str(table)]
        subprocess.run(mount, check=True, pass_fds=[space], capture_output=True)
        try:
            yield
        finally:
            subprocess.run([*there, "umount", "--lazy", str(table)], check=True, pass_fds=[space])
            table.unlink(missing_ok=True)
    finally:
        os.close(space)


@contextmanager
def stop(victim: Victim) -> Generator[None]:
    """Stop one of its processes for a while."""
    agents = agents_of(victim.spill)
    chosen = victim.choice.choice([victim.driver, *task_workers(victim.driver), *agents])
    stop_for(chosen, victim.stopped_s, victim.running)
    yield


@contextmanager
def hang_mount(victim: Victim) -> Generator[None]:
    """Stop the server of the mount that the output is in."""
    if victim.mount is not None:
        stop_for(victim.mount.pid, 4 * victim.stopped_s, victim.running)
    yield


def stop_for(process: int, seconds: float, running: Running) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGSTOP)
        try:
            running.listen(seconds)
        finally:
            os.kill(process, signal.SIGCONT)
    running.at_s = time.monotonic()  # a process that is stopped says nothing


@contextmanager
def fill_disk(victim: Victim) -> Generator[None]:
    """Let the disk of the runs be full."""
    filler = victim.spill / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 20))
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def close_folders(victim: Victim) -> Generator[None]:
    """Let the folders of the job take no new files."""
    with ExitStack() as held:
        for folder in left_of(victim.uid, victim.spill):
            held.enter_context(closed(folder, 0o500, 0o700))
        yield


@contextmanager
def closed(folder: Path, mode: int, usual: int) -> Generator[None]:
    """Let a directory take no new files."""
    folder.chmod(mode)
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            folder.chmod(usual)


ON_MACHINE = {
    "kill driver": kill_driver,
    "kill worker": kill_worker,
    "stop": stop,
    "full disk": fill_disk,
    "no new files": close_folders,
    "none": none,
}
"""Of jobs on one machine."""

ON_RAY = {
    "kill driver": kill_driver,
    "kill agent": kill_agent,
    "refused order": refuse_order,
    "stop": stop,
    "full disk": fill_disk,
    "none": none,
}
"""Of jobs on a cluster, whose agents are root's."""

OF_MOUNT = {"hung mount": hang_mount}
"""Of jobs whose output is on a mount."""


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


def left_of(uid: int, folder: Path) -> list[Path]:
    """What has a name of ours in a folder, and belongs to a user."""
    found = [path for path in folder.iterdir() if "gristmill-" in path.name]
    return [path for path in found if path.name.startswith(".") and owns(uid, path)]


def owns(uid: int, path: str | Path) -> bool:
    """Whether something belongs to a user."""
    with suppress(FileNotFoundError):
        return Path(path).lstat().st_uid == uid
    return False
