"""Runs the `gristmill` program as a user does, and looks at what it leaves behind.

Every run is checked for two things whatever the test is about: no traceback on stderr, and with
--json exactly one object on stdout.
"""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

GRISTMILL = Path(sys.executable).with_name("gristmill")

RECORD_BYTES = 100

# prctl(2): drop a capability that a program run by root would otherwise have.
_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE = 1
_CAP_DAC_READ_SEARCH = 2


@dataclass(frozen=True)
class Done:
    """A run that is over."""

    status: int
    stdout: str
    stderr: str


def run(
    *arguments: str | Path,
    status: int = 0,
    cwd: Path | None = None,
    preexec: Callable[[], None] | None = None,
    **environment: str,
) -> Done:
    """Run a command line to its end, and expect an exit status."""
    done = subprocess.run(
        [GRISTMILL, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        cwd=cwd,
        env=clean_environment(**environment),
        preexec_fn=preexec,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == status, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
    return Done(done.returncode, done.stdout, done.stderr)


def report(
    *arguments: str | Path,
    status: int = 0,
    cwd: Path | None = None,
    preexec: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """Run with --json; returns the one object on stdout."""
    return only_object(run(*arguments, "--json", status=status, cwd=cwd, preexec=preexec).stdout)


def only_object(stdout: str) -> dict[str, Any]:
    """Return the JSON object that is all of `stdout`."""
    assert stdout.endswith("}\n"), stdout
    assert stdout.count("\n") == 1, stdout
    return json.loads(stdout)


def failure(
    *arguments: str | Path,
    status: int = 1,
    cwd: Path | None = None,
    preexec: Callable[[], None] | None = None,
    **environment: str,
) -> str:
    """Run what must fail; returns the one paragraph on stderr that says why."""
    done = run(*arguments, status=status, cwd=cwd, preexec=preexec, **environment)
    command = f"gristmill {arguments[0]}: "
    assert done.stderr.startswith(command), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.removeprefix(command)


def start(*arguments: str | Path, stdout: int | IO[Any] = subprocess.PIPE) -> subprocess.Popen[str]:
    """Start a command line, with Ctrl-C as in a terminal: also where our parent ignores it."""
    return subprocess.Popen(
        [GRISTMILL, *map(str, arguments)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=clean_environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )


def end(process: subprocess.Popen[str], timeout_s: float = 60.0) -> Done:
    """Wait for the end of what was started."""
    stdout, stderr = process.communicate(timeout=timeout_s)
    assert "Traceback" not in stderr, stderr
    return Done(process.returncode, stdout, stderr)


def wait_for_job(output: Path, process: subprocess.Popen[str], timeout_s: float = 20.0) -> None:
    """Wait until a job to `output` has begun, which is when its folder is there; or is over."""
    deadline_s = time.monotonic() + timeout_s
    while not job_folders(output) and process.poll() is None:
        assert time.monotonic() < deadline_s, "no job began"
        time.sleep(0.002)


def job_folders(output: Path) -> list[Path]:
    """The folders of jobs to `output`, alive or dead."""
    return list(output.parent.glob(f".{output.name}.gristmill-*"))


def clean_environment(**more: str) -> dict[str, str]:
    """This process's environment without options for Gristmill.

    But for its home, and without those that forbid Python to keep what it compiled, which every
    start would redo, and to buffer what it writes, which users' Python does.
    """
    unwanted = re.compile("GRISTMILL_(?!HOME$)|PYTHONDONTWRITEBYTECODE|PYTHONUNBUFFERED")
    kept = {name: value for name, value in os.environ.items() if not unwanted.match(name)}
    return {**kept, **more}


def without_privileges() -> None:
    """In a child, before it runs the program: root, too, may open only what its mode allows."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
            assert libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0


def names(folder: Path) -> list[str]:
    """All names in a folder, hidden ones too."""
    return sorted(path.name for path in folder.iterdir())


def parts(folder: Path) -> list[Path]:
    """The part files of an output."""
    return sorted(folder.glob("part-*"))


def content(folder: Path) -> bytes:
    """The records of an output, part after part."""
    return b"".join(part.read_bytes() for part in parts(folder))


def records_of(data: bytes) -> list[bytes]:
    """Cut into records."""
    return [data[at : at + RECORD_BYTES] for at in range(0, len(data), RECORD_BYTES)]


def is_whole(output: Path, part_count: int) -> bool:
    """Whether `output` is there; if it is, it must be complete."""
    if not output.exists():
        return False
    found = names(output)
    assert "_SUCCESS" in found, found
    assert len(parts(output)) == part_count, found
    return True


def wait_until_asleep(process: subprocess.Popen[Any], for_s: float = 1.0) -> None:
    """Wait until a process has asked for no processor for so long.

    One that starts does not sleep as long as a second, however little of a processor it gets.
    """
    since_s = time.monotonic()
    while time.monotonic() - since_s < for_s:
        assert process.poll() is None, process.communicate()
        if not _asleep(process.pid):
            since_s = time.monotonic()
        time.sleep(0.02)


def _asleep(pid: int) -> bool:
    """Whether no thread of a process asks for a processor, or waits for a device."""
    try:
        stats = [(task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):  # a thread has ended meanwhile
        return False
    return all(stat.rpartition(")")[2].split()[0] == "S" for stat in stats)
