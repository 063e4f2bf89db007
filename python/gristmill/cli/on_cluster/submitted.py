"""A command line that names a dashboard: it runs on the head of that cluster, and is followed here.

    words ─▶ submitted_words.py: what they mean there ─▶ package ─▶ Ray's job ─▶ follow
    out ─▶ stdout    err ─▶ stderr    at ─▶ a bar here    end ─▶ the exit code

Ctrl-C stops the job, and waits for its end.
"""

import json
import shlex
from typing import Any

import click

from gristmill.cli.failures import FAILED, WRONG, fail
from gristmill.cli.on_cluster.submitted_words import Meant, meant
from gristmill.cluster.submission.address import Submitted
from gristmill.cluster.submission.dashboard import Dashboard
from gristmill.cluster.submission.following import Ended, follow
from gristmill.cluster.submission.package import packaged
from gristmill.errors import is_of_system, kind_of
from gristmill.terminal import console, signals
from gristmill.terminal.progress import Progress, progress_bar

__all__ = ["run_there"]

_STOP_S = 60
"""How long Ray leaves a job that is stopped: its agents remove their runs."""

_PYTHON = (
    "root=$(sed -n 's#.* \\(/.*\\)/lib/python[^/]*/site-packages/ray/_raylet.so$#\\1#p'"
    " /proc/$PPID/maps | head -n 1); python=$root/bin/python;"
    ' [ -n "$root" ] && [ -x "$python" ] || python=python3; exec "$python" on_head.py'
)
"""What the shell of Ray's job runs: the Python that Ray runs in, which PATH need not have."""


def run_there(program: click.Group, given: Submitted) -> int:
    """Run a command line on the head of a cluster; return its exit code.

    Args:
        program: All commands.
        given: The command line.
    """
    name = given.words[0]
    try:
        there = meant(program, given)
        dashboard = Dashboard(given.address)
        with signals.deferred() as pending:
            return _run(there, dashboard, pending)
    except signals.Interrupted as error:
        fail(name, "cannot finish the job: it was cancelled.")
        return signals.exit_code(error.signum)
    except (ValueError, TypeError, OSError) as error:
        if is_of_system(error):
            raise
        fail(name, str(error))
        for note in getattr(error, "__notes__", ()):
            console.note(*note.split("\n"))
        return FAILED if kind_of(error) == "io" else WRONG


def _run(there: Meant, dashboard: Dashboard, pending: signals.Pending) -> int:
    name, command, quiet = there
    dashboard.check_version()
    pending.check()
    package = packaged(command)
    if not dashboard.has(package.name):
        pending.check()
        dashboard.put(package.name, package.content)
    pending.check()
    job = dashboard.submit(_request(name, package.name))
    console.note(f"gristmill: {job} runs on the head of {dashboard.address}")
    with progress_bar(quiet=quiet) as progress:
        shown = _Shown(progress, dashboard.address, job)
        try:
            ended = follow(dashboard, job, shown, lambda: pending.signum is not None)
        except OSError as error:
            if pending.signum is None:
                raise
            signals.ignore()
            fail(name, str(error))
            return signals.exit_code(pending.signum)
    signals.ignore()
    if name != "jobs":
        shown.say_home()
    return _code(name, job, ended, pending)


def _request(name: str, package: str) -> dict[str, Any]:
    """What Ray is asked for. It shows all of this to all who see the dashboard."""
    return {
        "entrypoint": _PYTHON,
        "runtime_env": {
            "working_dir": f"gcs://{package}",
            "env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": str(_STOP_S)},
        },
        "metadata": {"job_name": f"gristmill {name}"},
    }


def _code(name: str, job: str, ended: Ended, pending: signals.Pending) -> int:
    """The exit code of a job that has ended."""
    if ended.code is not None:
        was_stopped = ended.state.status == "STOPPED" and pending.signum is not None
        return signals.exit_code(pending.signum or 0) if was_stopped and ended.code else ended.code
    if pending.signum is not None:
        fail(name, "cannot finish the job: it was cancelled.")
        return signals.exit_code(pending.signum)
    said = ended.state.message.strip().splitlines()
    why = f" ({said[0].rstrip('.')})" if said else ""
    fail(
        name,
        f"cannot finish the job: {job} ended on the head before its command did{why}. What to do:"
        " look at the memory of the head, and run the job again.",
    )
    return FAILED


class _Shown:
    """Shows here what the command says there."""

    def __init__(self, progress: Progress, address: str, job: str) -> None:
        self._progress = progress
        self._address = address
        self._job = job
        self._home: dict[str, str] | None = None
        self._root = ""

    def line(self, mark: str, text: str) -> None:
        """Show a line of the job; what Ray itself writes into the log is nothing for users."""
        match mark:
            case "out":
                self._progress.close()
                console.put(self._as_here(text))
            case "err":
                self._progress.close()
                console.note(self._as_here(text))
            case "root":
                self._root = text
            case "at":
                stage, done_bytes, bytes_in_all, nodes, tasks = json.loads(text)
                self._progress.show(stage, done_bytes, bytes_in_all, (nodes, tasks))
            case "home":
                self._home = json.loads(text)
            case _:
                pass

    def _as_here(self, text: str) -> str:
        """A line with the user's files under the names that they have here."""
        return text.replace(self._root, "") if self._root else text

    def stopping(self) -> None:
        """Say that the job has been asked to end."""
        self._progress.close()
        console.note(f"gristmill: {self._job} is being stopped")

    def say_home(self) -> None:
        """Say where the history of the job is."""
        if self._home is None:
            return
        again = shlex.join(["gristmill", "jobs", "--on", self._address])
        console.note(
            f"gristmill: its history stays on the head, {self._home['host']}, in"
            f" {self._home['folder']}, if it took a second or had --history: {again}"
        )
