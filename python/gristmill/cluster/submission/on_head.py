"""What the job of Ray runs on the head: starts the command, and marks each line that it writes.

    stdout ──▶ out TEXT     stderr ──▶ err TEXT     what is for the follower alone ──▶ as it is
    at the beginning ──▶ root FOLDER, which has the user's files      at the end ──▶ end CODE

Ray keeps one log of a job, without saying which line came from where. This file goes to the head
as it is, and imports the standard library alone; an older Python reads it, too, to say so.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["main"]

_OLDEST = (3, 11)
_JOB_CONFIG = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""What Ray's job tells a program that connects: the package need not go to the nodes."""

_DRIVER = """
import sys
try:
    from gristmill.cli.on_head import main
except ImportError as error:
    sys.exit(
        f"gristmill: cannot run the job on the cluster: the engine does not load on the head"
        f" ({error}). What to do: start the job on a machine that is like the head."
    )
sys.exit(main())
"""
_ON_HEAD = "GRISTMILL_ON_HEAD"
"""Says that this is the head; gristmill/history/origin.py has the same name."""

_WRONG = 2
_OF_SIGNAL = 128

_lock = threading.Lock()


def main() -> int:
    """Run the command of the package that this file is in; return its exit code.

    Example:
        >>> main.__module__  # the file runs by itself, beside what the package has
        'gristmill.cluster.submission.on_head'
    """
    folder = Path(__file__).absolute().parent
    told = json.loads((folder / "told.json").read_text(encoding="utf-8"))
    # Ray sends signals to all processes of the job: the command ends, and this one waits for it.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _nothing)
    if sys.version_info < _OLDEST:
        have = f"{sys.version_info[0]}.{sys.version_info[1]}"
        return _refused(
            f"the head has Python {have}, and Gristmill needs 3.11",
            "start the cluster with a newer Python",
        )
    here = f"{sys.platform} {os.uname().machine}"
    if here != told["platform"]:
        return _refused(
            f"the head is {here}, and what came along is for {told['platform']}",
            "start the job on a machine that is like the head",
        )
    try:
        return _run(folder, told)
    except OSError as error:
        return _refused(f"the command cannot be started on the head: {error}", "look at its disk")


def _nothing(_number: int, _frame: "FrameType | None") -> None:
    pass


def _run(folder: Path, told: "dict[str, Any]") -> int:
    """Run the command in its folder, until it ends."""
    _say("root ", str(folder / "files"))
    work = folder / told["folder"]
    work.mkdir(parents=True, exist_ok=True)
    reads, writes = os.pipe()
    waits = "variables" if told["awaits_variables"] else "-"
    process = subprocess.Popen(
        [sys.executable, "-c", _DRIVER, str(writes), waits, *told["words"]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[writes],
        cwd=str(work),
        env=_environment(folder, told),
    )
    os.close(writes)
    assert process.stdout is not None
    assert process.stderr is not None
    marked = (("out ", process.stdout), ("err ", process.stderr), ("", os.fdopen(reads, "rb")))
    readers = [threading.Thread(target=_relay, args=one) for one in marked]
    for reader in readers:
        reader.start()
    code = process.wait()
    for reader in readers:
        reader.join()
    code = code if code >= 0 else _OF_SIGNAL - code
    _say("end ", str(code))
    return code


def _environment(folder: Path, told: "dict[str, Any]") -> "dict[str, str]":
    """The variables of the command: those of the head. Those of stores come when it runs."""
    environment: dict[str, str] = dict(os.environ)
    environment[_ON_HEAD] = "1"
    roots = [str(folder / name) for name in ("lib", *told["roots"])]
    before = os.environ.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([*roots, *([before] if before else [])])
    config: dict[str, Any] = json.loads(environment.get(_JOB_CONFIG) or "{}")
    config.pop("runtime_env", None)
    environment[_JOB_CONFIG] = json.dumps(config)
    return environment


def _relay(mark: str, stream: "Iterable[bytes]") -> None:
    """Write each line of a stream, with its mark."""
    for line in stream:
        _say(mark, line.decode("utf-8", "replace").rstrip("\n"))


def _say(mark: str, text: str) -> None:
    line = text.replace("\r", " ")
    with _lock:
        sys.stdout.write(f"{mark}{line}\n")
        sys.stdout.flush()


def _refused(what: str, advice: str) -> int:
    """Say why the command does not run."""
    _say("err ", f"gristmill: cannot run the job on the cluster: {what}. What to do: {advice}.")
    _say("end ", str(_WRONG))
    return _WRONG


if __name__ == "__main__":
    sys.exit(main())
