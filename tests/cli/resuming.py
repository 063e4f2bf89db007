"""Jobs that are killed with -9, at any moment or at a chosen one, to be resumed."""

import json
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .harness import Done, end, run, start

KILLS = 10

#: So little memory that 60 MB make runs.
RUNS = ("--memory", "22M", "--workers", "2")

Tree = dict[str, bytes]


def tree(path: Path) -> Tree:
    """All bytes of an output, but for its proof, which names the job."""
    if path.is_file():
        return {"": path.read_bytes()}
    return {part.name: part.read_bytes() for part in path.iterdir() if part.name != "_SUCCESS"}


def undisturbed(records: Path, folder: Path, *options: str) -> Tree:
    """What a terasort that nobody disturbs makes; where it takes long, it leaves no history."""
    out, home = folder / "wanted", folder / "home-of-wanted"
    run("terasort", records, out, *options, GRISTMILL_HOME=str(home))
    found = tree(out)
    for path in (out, home):
        shutil.rmtree(path, ignore_errors=True)
    return found


def events_of(home: Path) -> list[dict[str, Any]]:
    """The history of the only job, as far as its lines are whole."""
    (path,) = home.glob("jobs/*/events.jsonl")
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def wait_for_history(
    home: Path, process: subprocess.Popen[str], event: str = "job_submitted"
) -> None:
    """Wait until an event stands in the history as a whole line; or until the job is over."""
    begins = f'"event":"{event}"'.encode()
    deadline_s = time.monotonic() + 20
    while process.poll() is None:
        histories = list(home.glob("jobs/*/events.jsonl"))
        if histories:
            lines = histories[0].read_bytes().split(b"\n")[:-1]
            if any(begins in line for line in lines):
                return
        assert time.monotonic() < deadline_s, "no history"
        time.sleep(0.001)


def kill_when(
    arguments: list[str | Path], home: Path, is_time: Callable[[list[dict[str, Any]]], bool]
) -> None:
    """Start a job, and kill it as soon as its history says that it is time."""
    assert is_killed(arguments, home, is_time), "the job was over before it could be killed"


def is_killed(
    arguments: list[str | Path], home: Path, is_time: Callable[[list[dict[str, Any]]], bool]
) -> bool:
    """The same of a job that may be over before; whether it was killed."""
    process = start(*arguments, "--history")
    wait_until_time(process, home, is_time)
    process.kill()
    return end(process).status == -signal.SIGKILL


def wait_until_time(
    process: subprocess.Popen[str], home: Path, is_time: Callable[[list[dict[str, Any]]], bool]
) -> None:
    """Wait until the history of a job says that it is time; or until the job is over."""
    wait_for_history(home, process)
    while process.poll() is None and not is_time(events_of(home)):
        time.sleep(0.002)


def kept(events: list[dict[str, Any]], what: str) -> int:
    """How many tasks of a kind are over."""
    ends = (event for event in events if event["event"] == "attempt_finished")
    return sum(what in event.get("kept", {}) for event in ends)


def spilled(events: list[dict[str, Any]]) -> bool:
    return kept(events, "spill") >= 4


def merged(events: list[dict[str, Any]]) -> bool:
    return kept(events, "merge") >= 1


def killed_again_and_again(
    arguments: list[str | Path], home: Path, *, took_s: float, begun: str = "job_submitted"
) -> int:
    """Run a job, killing it and those that go on with it; returns how many were killed.

    The first kill comes after an event, from which on the job can be resumed. One in four dies
    while it starts, the others soon after they have begun to write their history.
    """
    process = start(*arguments, "--history")
    wait_for_history(home, process, begun)
    killed = 0
    while killed < KILLS:
        time.sleep(random.uniform(0, took_s / 8))
        process.kill()
        done = end(process)
        if done.status != -signal.SIGKILL:
            assert is_over(done), done
            return killed
        killed += 1
        (path,) = home.glob("jobs/*/events.jsonl")
        length = path.stat().st_size
        process = start("resume", "last")
        if random.randrange(4) == 0:
            time.sleep(random.uniform(0, 0.2))
        else:
            while path.stat().st_size <= length and process.poll() is None:
                time.sleep(0.001)
    done = end(process)
    assert is_over(done), done
    return killed


def is_over(done: Done) -> bool:
    """Whether the job has come to its end: now, or just before the kill meant for it."""
    return done.status == 0 or (done.status == 1 and "it is over: succeeded" in done.stderr)


def killed_in_a_store(
    begun: Callable[..., subprocess.Popen[str]],
    command: list[str | Path],
    home: Path,
    *,
    kills: int,
    after: Callable[[], None] = lambda: None,
) -> int:
    """Kill a job, and what resumes it, so often; at last let it end. Returns how many were killed.

    `begun` starts a command; `after` looks at what each kill left.
    """
    process = begun(*command)
    wait_for_history(home, process, "job_began")
    killed = 0
    while True:
        time.sleep(random.uniform(0, 0.6 if killed else 0.1))
        if killed < kills:
            process.kill()
        _, errors = process.communicate(timeout=60)
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 0 or "it is over: succeeded" in errors, errors
            assert events_of(home)[-1]["event"] == "job_finished"
            return killed
        killed += 1
        after()
        process = begun("resume", "last")
