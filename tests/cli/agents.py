"""The agents of jobs on a cluster, as tests find and disturb them."""

import json
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gristmill import _core

PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); import _core; "
    "_core.run_agent(sys.stdin.readline(), lambda said: print(said, flush=True))"
)


def agents_of(spill: Path) -> dict[int, Path]:
    """The processes of agents that have a folder in a directory, and that folder."""
    folders = {folder.name: folder for folder in spill.glob(".gristmill-spill-*")}
    found: dict[int, Path] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"run_agent" not in (process / "cmdline").read_bytes():
                continue
            for lock in (process / "fd").iterdir():
                target = lock.readlink()
                if target.name == "lock" and target.parent.name in folders:
                    found[int(process.name)] = target.parent
    return found


def wait_for_agents(spill: Path, count: int = 1, timeout_s: float = 90) -> dict[int, Path]:
    """Wait until so many agents have begun."""
    deadline_s = time.monotonic() + timeout_s
    while len(found := agents_of(spill)) < count:
        assert time.monotonic() < deadline_s, f"{found} have begun"
        time.sleep(0.01)
    return found


def wait_until_gone(spill: Path, timeout_s: float = 20, *, killed: int = 0) -> None:
    """Wait until nothing of agents is in a directory but the folders of those that were killed."""
    deadline_s = time.monotonic() + timeout_s
    while len(list(spill.iterdir())) > killed or agents_of(spill):
        assert time.monotonic() < deadline_s, (list(spill.rglob("*")), agents_of(spill))
        time.sleep(0.05)


def wait_until_ended(spill: Path, timeout_s: float = 40) -> None:
    """Wait until no agent has a folder in a directory."""
    deadline_s = time.monotonic() + timeout_s
    while found := agents_of(spill):
        assert time.monotonic() < deadline_s, found
        time.sleep(0.05)


#: A process whose mount namespace has an empty folder over one of the machine's.
WITHOUT = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"']


@contextmanager
def one_agent(
    spill: Path,
    token: str = "secret",
    *,
    number: int = 0,
    workers: int = 1,
    without: Path | None = None,
    before: Sequence[str] = (),
    tls: dict[str, str] | None = None,
) -> Generator[dict[str, Any]]:
    """An agent that belongs to no job, and may not see a folder; what it said of itself.

    Its command may begin with other words. One with TLS reads runs of others over the network only.
    """
    spec = {
        "job_id": "job_alone",
        "agent": number,
        "token": token,
        "workers": workers,
        "host": "127.0.0.1",
        "spill_dir": [str(spill)],
        "reads_files": tls is None,
        "tls": tls,
    }
    core = Path(_core.__file__ or "").parent
    hiding = [] if without is None else [*WITHOUT, str(without)]
    process = subprocess.Popen(
        [*before, *hiding, sys.executable, "-I", "-S", "-c", PROGRAM, str(core)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(spec) + "\n")
        process.stdin.flush()
        yield json.loads(process.stdout.readline())
    finally:
        process.stdin.close()
        try:
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.stdout.close()


@contextmanager
def some_agents(spill: Path, *, without: Path | None = None) -> Generator[_core.Cluster]:
    """Two agents, the second of which may not see a folder; what a job is told of them."""
    with (
        one_agent(spill) as first,
        one_agent(spill, number=1, without=without) as second,
    ):
        yield _core.Cluster(json.dumps({"token": "secret", "agents": [first, second]}))
