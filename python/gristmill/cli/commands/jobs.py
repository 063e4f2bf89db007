"""`gristmill jobs`: what jobs there were, and what became of them.

    jobs            a line for each        jobs show ID    one of them, with what held it back
    jobs watch ID   one as it runs         jobs prune      removes those that are long over

A history that cannot be read gets a line that says so; the other jobs are listed all the same.
"""

import fcntl
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import click

from gristmill import _core
from gristmill.cli.failures import DONE, FAILED, fail
from gristmill.cli.generated import count, job_ids
from gristmill.cli.groups import CommandGroup
from gristmill.cli.render.job_shown import began, few, printable, shown
from gristmill.history import Follower, JobHistory, find_job, job_folders, load
from gristmill.history.brief import load_brief
from gristmill.history.chains import dead_chain_of, named_places
from gristmill.history.home import EVENTS, NoSuchJobError, newest_first, without_history
from gristmill.history.limits import uses
from gristmill.history.logs import printed
from gristmill.history.model import JobState
from gristmill.names import to_json
from gristmill.terminal import console
from gristmill.units import show_bytes, show_count, show_rate, show_seconds

__all__ = ["failing", "jobs"]

_STATES = get_args(JobState)
_EVERY_S = 0.5
_DAY_S = 86_400

JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
ID = click.argument("job_id", metavar="ID", shell_complete=job_ids)


def _days(value: str | float) -> float:
    """Read a number of days. Click's own error would call it a FLOAT."""
    try:
        days = float(value)
    except ValueError:
        days = -1.0
    if not days >= 0:
        raise click.BadParameter(f"{str(value)!r} is not a number of days, from 0 on")
    return days


def failing(run: Callable[..., int]) -> Callable[..., int]:
    """Make a command fail with one paragraph if a job is not found, or its history not readable."""

    def command(**values: Any) -> int:  # noqa: ANN401 - click's own values
        try:
            return run(**values)
        except (NoSuchJobError, ValueError) as error:
            path = click.get_current_context().command_path
            fail(path.partition(" ")[2], str(error.args[0]))
            return FAILED

    command.__doc__ = run.__doc__
    command.__name__ = run.__name__
    return command


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.option("--state", type=click.Choice(_STATES), help="Only jobs in this state.")
@click.option("--command", "of_command", metavar="NAME", help="Only jobs of this command.")
@click.option("--limit", metavar="N", type=count, help="Only the N latest.")
@JSON
@click.pass_context
def jobs(
    context: click.Context,
    state: str | None,
    of_command: str | None,
    limit: int | None,
    as_json: bool,
) -> int:
    """List the jobs whose histories are kept.

    Gristmill keeps the history of a job that took a second or more, that failed in user code, whose
    user code printed something, or that ran with --history. A job is `dead` if its process was
    killed before the job ended. It `ended early` if the reader of its output went away, as head
    does.

    ID is a job's name, a part of it that no other job has, or `last`.
    """
    if context.invoked_subcommand is not None:
        return DONE
    chosen = (
        (folder, history)
        for folder, history in map(_loaded, newest_first())
        if (state is None or _state(history) == state)
        and (of_command is None or _command(history) == of_command)
    )
    found = list(islice(chosen, limit))[::-1]
    if as_json:
        console.put(to_json([_brief(folder, history) for folder, history in found]))
    elif found:
        table = _table([_line(folder, history) for folder, history in found])
        console.say(*(_cut(line) for line in table))
        dead = [job for _, job in found if isinstance(job, JobHistory) and job.resumable]
        if dead:
            count = "dead job" if len(dead) == 1 else f"{len(dead)} dead jobs"
            name = dead[-1].job_id if len(dead) == 1 else "ID"
            console.note(f"{count} can be resumed: gristmill resume {name}")
    else:
        console.note("no such jobs")
    return DONE


@jobs.command()
@ID
@click.option("--logs", is_flag=True, help="Show what its tasks printed instead.")
@JSON
@failing
def show(job_id: str, *, logs: bool, as_json: bool) -> int:
    """Show a job: what it did, what held each phase back, its counters."""
    folder = find_job(job_id)
    history = load(folder)
    if logs:
        _say_logs(folder, history, as_json)
    elif as_json:
        fields = asdict(history)
        fields["uses"] = [use.fields() for use in uses(history)]
        fields["counters"] = history.counters()
        fields |= {name: getattr(history, name) for name in ("wall_s", "cpu_s", "processes_s")}
        fields |= {"name": history.name, "inputs": history.inputs, "output": history.output}
        console.put(to_json(fields))
    else:
        console.say(*shown(history))
    return DONE


def _say_logs(folder: Path, history: JobHistory, as_json: bool) -> None:
    """Print the stdout and stderr of each attempt, one after the other."""
    if as_json:
        console.say(to_json([asdict(found) for found in printed(folder)]))
        return
    phases = {(at.task, at.attempt): (at.phase, at.outcome) for at in history.attempts}
    for found in printed(folder):
        phase, outcome = phases.get((found.task, found.attempt), ("", None))
        for name, text in (("stdout", found.stdout), ("stderr", found.stderr)):
            if text:
                title = f"{phase} task {found.task}, attempt {found.attempt + 1}".strip()
                console.say(f"{title} ({outcome or 'running'}), {name}:")
                console.say(*(f"  {line}" for line in text.splitlines()))


@jobs.command()
@ID
@failing
def watch(job_id: str) -> int:
    """Watch a job until it is over; the exit code is 1 if it does not succeed."""
    follower = Follower(find_job(job_id))
    if console.is_terminal(sys.stdout):
        _watch_live(follower)
    else:
        _watch_lines(follower)
    history = follower.history
    console.say(_ended(history))
    return DONE if history.state == "succeeded" else FAILED


@jobs.command()
@click.option(
    "--older-than",
    "days",
    metavar="DAYS",
    type=_days,
    default=30.0,
    show_default=True,
    help="Only jobs that ended at least this many days ago; 0 for all that ended.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and remove nothing.")
@JSON
@failing
def prune(days: float, dry_run: bool, as_json: bool) -> int:
    """Remove the histories of jobs that are over, and what dead jobs left.

    A dead job leaves hidden directories beside its output and in its spill directories. If the job
    can be resumed, they are removed together with its history. If it cannot, they are removed
    whatever its age.
    """
    gone: list[str] = []
    left: list[str] = []
    for folder in job_folders():
        try:
            old = time.time() - (folder / EVENTS).stat().st_mtime >= days * _DAY_S
            of_job = _remove(folder, dry_run=dry_run, history=old)
        except FileNotFoundError:
            continue  # another prune was faster
        except (OSError, ValueError) as error:
            console.note(f"gristmill jobs prune: {folder.name} stays: {error}")
            continue
        if of_job is not None:
            gone += [folder.name] if old else []
            left += of_job
    for folder in without_history():
        with suppress(FileNotFoundError):  # likewise
            if time.time() - folder.stat().st_mtime >= days * _DAY_S:
                if not dry_run:
                    shutil.rmtree(folder)
                gone.append(folder.name)
    if as_json:
        console.put(to_json({"removed": gone, "folders": left, "dry_run": dry_run}))
    else:
        console.say(*gone, *left)
        amounts = [show_count(len(gone), "job")] if gone or not left else []
        amounts += [show_count(len(left), "hidden directory")] if left else []
        of_whom = "a dead job" if len(left) == 1 else "dead jobs"
        of_dead = f" of {of_whom}" if left and not gone else ""
        console.note(f"{' and '.join(amounts)}{of_dead} {'would go' if dry_run else 'removed'}")
    return DONE


def _remove(folder: Path, *, dry_run: bool, history: bool) -> list[str] | None:
    """Remove what a dead job left, and with `history` the history; links are not followed.

    If the history stays, what a dead job left stays too, unless the job cannot be resumed.

    Returns:
        The hidden folders that the job had left; None if the job is alive, and all stays.
    """
    if folder.is_symlink():
        return None
    with (folder / EVENTS).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        left = _left_by(folder, dry_run=dry_run, resumable=history)
        if history and not dry_run:
            shutil.rmtree(folder)
    return left


def _left_by(folder: Path, *, dry_run: bool, resumable: bool) -> list[str]:
    """Remove what a dead job left; the caller has locked its history.

    Args:
        folder: The folder of its history.
        dry_run: Whether to remove nothing.
        resumable: Whether to remove also what the job could be resumed from.
    """
    try:
        history = load_brief(folder, live=False)
    except ValueError:
        return _core.clear_left(folder, dry_run=dry_run) if resumable else []
    chain = dead_chain_of(history)
    if chain is not None and not resumable:
        return []
    left: list[str] = []
    if history.state == "dead":
        other = history.program != _core.VERSION  # that version may be able to resume it
        code_may_return = history.code_gone  # when its disk is mounted again
        if not resumable and (other or history.resumable or code_may_return):
            return []
        left = _core.clear_left(folder, dry_run=dry_run)
    if chain is not None and (dry_run or chain.remove()):
        left.append(str(chain.path))
    return left


# --- lines ---


def _loaded(folder: Path) -> tuple[Path, JobHistory | str]:
    try:
        return folder, load_brief(folder)
    except (ValueError, OSError) as error:
        return folder, str(error)


def _state(history: JobHistory | str) -> str:
    return history.state if isinstance(history, JobHistory) else "unreadable"


def _command(history: JobHistory | str) -> str:
    return history.command if isinstance(history, JobHistory) else ""


def _brief(folder: Path, history: JobHistory | str) -> dict[str, Any]:
    if isinstance(history, str):
        return {"job_id": folder.name, "state": "unreadable", "error": history}
    return {
        "job_id": history.job_id,
        "command": history.command,
        "name": history.name,
        "inputs": history.inputs,
        "output": history.output,
        "state": history.state,
        "resumable": history.resumable,
        "began_unix_ms": history.unix_ms,
        "wall_s": history.wall_s,
        "input_bytes": history.report.get("input_bytes"),
        "records": history.report.get("records"),
    }


def _line(folder: Path, history: JobHistory | str) -> list[str]:
    if isinstance(history, str):
        return [folder.name, "", "", "unreadable", "", "", "", "", ""]
    report = history.report
    return [
        history.job_id,
        history.command,
        printable(history.name),
        history.state,
        began(history),
        show_seconds(history.wall_s),
        show_bytes(history.work_bytes) if report else "",
        few(named_places(history, history.inputs), 1),
        *map(printable, named_places(history, [history.output])),
    ]


def _cut(line: str) -> str:
    """Cut a line to the width of the terminal; to a file or a pipe it goes whole."""
    if not console.is_terminal(sys.stdout):
        return line
    columns = shutil.get_terminal_size().columns
    return line if len(line) <= columns else f"{line[: columns - 1]}…"


def _table(rows: list[list[str]]) -> list[str]:
    head = ["JOB", "COMMAND", "NAME", "STATE", "BEGAN", "TOOK", "DATA", "INPUT", "OUTPUT"]
    rows = [head, *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


# --- watching ---


def _ended(history: JobHistory) -> str:
    why = f": {history.error}" if history.error else ""
    return f"{history.command} {history.job_id}: {history.state}{why}"


def _now(history: JobHistory) -> str:
    """One line on the progress of a job."""
    if not history.phases:
        return "not begun"
    phase = history.phases[-1]
    of_phase = [attempt for attempt in history.attempts if attempt.phase == phase.name]
    done = sum(attempt.outcome == "succeeded" for attempt in of_phase)
    line = f"{show_seconds(history.end_ms / 1000)}  {phase.name}"
    if phase.tasks:
        line += f"  {done}/{show_count(phase.tasks, 'task')}"
    if len(history.samples) > 1:
        before, now = history.samples[-2:]
        between = max(now.t_ms - before.t_ms, 1) / 1000
        cpu = (now.user_s + now.sys_s - before.user_s - before.sys_s) / between
        read = now.disk_read_bytes - before.disk_read_bytes
        written = now.disk_write_bytes - before.disk_write_bytes
        if phase.bytes:
            line += f"  {min(now.done_bytes / phase.bytes, 1):.0%}".replace("%", " %")
        line += (
            f"  {cpu:.1f} processors  {show_bytes(now.anon_bytes)}"
            f"  reads {show_rate(read, between)}  writes {show_rate(written, between)}"
        )
    return line


def _watch_lines(follower: Follower) -> None:
    """Print a line whenever a phase begins."""
    said = 0
    while True:
        history = follower.update()
        for phase in history.phases[said:]:
            console.say(f"{show_seconds(phase.start_ms / 1000)}  {phase.name}")
        said = len(history.phases)
        if history.state != "running":
            return
        time.sleep(_EVERY_S)


def _watch_live(follower: Follower) -> None:
    """Show the phases that are over, and one line that changes."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(), refresh_per_second=4) as live:
        while True:
            history = follower.update()
            over = [
                f"{phase.name:<12} {show_seconds((phase.end_ms - phase.start_ms) / 1000):>8}"
                for phase in history.phases
                if phase.end_ms is not None
            ]
            now = [_now(history)] if history.state == "running" else []
            live.update(Text("\n".join([f"{history.command} {history.job_id}", *over, *now])))
            if history.state != "running":
                return
            time.sleep(_EVERY_S)
