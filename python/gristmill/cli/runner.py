"""Runs one job for the command line: progress drawn, signals heard, the outcome said.

    begin ──▶ wait, 20 looks a second: a signal? cancel; draw progress ──▶ report
    report ──▶ stdout: one JSON object, or a summary;  stderr: what failed;  exit code

A signal does not break off the wait: the job is asked to end, and ends when it has cleaned up.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gristmill import _core, job
from gristmill.cli.environment import environment_note
from gristmill.cli.failures import (
    DASH,
    DONE,
    FAILED,
    QUIET,
    WRONG,
    Refused,
    as_typed,
    fail,
    with_advice,
)
from gristmill.columnar import as_csv
from gristmill.errors import kind_of, option_of, typed
from gristmill.options import Option, Value, commands
from gristmill.parents import parents_made
from gristmill.terminal import console, signals
from gristmill.terminal.progress import progress_bar

if TYPE_CHECKING:  # its classes take memory that the budget of a job is to have
    from gristmill.columnar.tables import Tables
    from gristmill.report import JobReport

__all__ = ["check_paths", "run_command", "run_job"]


def run_command(command: str, *, as_json: bool, history: bool = False, **values: Value) -> int:
    """Run a command of the table as the user asked; returns the exit code.

    How the job ended decides, not whether a signal came: a job that was asked to end when its
    output had its name already has succeeded.
    """
    check_paths(command, values)
    name = click.get_current_context().info_name or command  # `grep` of `grep --counts`
    if commands()[command].prints(values) and as_json:
        fail(command, "cannot read the options: --json and the records both want standard output.")
        return WRONG
    _tell_of_terminal(command, values)
    with signals.deferred() as pending:
        report = run_job(command, values, pending, quiet=as_json, history=history)
        signals.ignore()
    for warning in report.warnings:
        console.note(f"gristmill: {warning}")
    if as_json:
        from gristmill.cli.render.summary import json_of

        console.put(json_of(report))
    else:
        from gristmill.cli.render.summary import say_outcome

        given = _options_of(report) if command == "resume" else values
        say_outcome(report, given)
        if command == "resume" and report.error is None:
            console.note(_resumed(report, given))
    if report.error is None:
        _hint(name, report, values)
        return DONE
    if report.error.kind == "reader_gone":
        return signals.exit_code(signal.SIGPIPE)  # quietly, as others do that write to a pipe
    kind = report.error.kind
    if kind == "disorder" and click.get_current_context().meta.get(QUIET):
        return FAILED
    note = environment_note(kind, report.error.details.get("option"))
    fail(name, f"{with_advice(kind, report.error.message)}{note}")
    if report.status == "cancelled" and pending.signum is not None:
        return signals.exit_code(pending.signum)
    if command == "sort" and values["check"] and kind != "disorder":
        return WRONG  # as GNU sort has it: 1 says that the input is not in order
    return WRONG if kind == "bad_option" else FAILED


def _tell_of_terminal(command: str, values: Mapping[str, Value]) -> None:
    """Say that a job waits for what the user types; `sort` has said so already."""
    if command != "sort" and values.get("inputs") == () and console.is_terminal(sys.stdin):
        console.note(f"gristmill {command}: reading from the terminal; Ctrl-D ends it")


def _hint(name: str, report: "JobReport", values: Mapping[str, Value]) -> None:
    """Say of a pattern that matched nothing that it may be meant in another syntax."""
    if "pattern" not in values or report.counters.get("MAP_OUTPUT_RECORDS"):
        return
    from gristmill.cli.gnu.grep_words import hint_at_basic

    if not values["fixed_strings"]:
        shown = f"{name} --counts" if name == "grep" else name
        hint_at_basic(shown, "nothing matched", [os.fsencode(str(values["pattern"]))])


def _resumed(report: "JobReport", given: Mapping[str, Value]) -> str:
    """What `gristmill resume` has done."""
    tasks = report.counters.get("KEPT_TASKS", 0)
    kept = f"{tasks} tasks were done already" if tasks != 1 else "1 task was done already"
    output = given.get("output")
    written = "" if output is None else f"; {output} is written"
    return f"gristmill: resumed {report.job_id} ({report.command}): {kept}{written}"


def check_paths(command: str, values: Mapping[str, Value]) -> None:
    """Refuse paths that can only be a mistake: empty ones, and `-` where streams are not read."""
    for option in commands()[command].options:
        value = values[option.name]
        if value == "" and option.kind == "path":
            raise Refused(f"the path of {_shown(option)} is empty", "name a file or a directory")
        if option.kind in ("paths", "path_list") and isinstance(value, tuple) and "" in value:
            raise Refused(f"a path of {_shown(option)} is empty", "name a file or a directory")
        given = value if isinstance(value, tuple) else (value,)
        if "-" in given and _reads_files_alone(command, option):
            raise Refused(
                f"{_shown_name(command)} reads files, not standard input (-)",
                "save it to a file first, and name that; ./- is a file of this name",
            )
    if not commands()[command].writes_streams and values.get("output") == "-":
        raise Refused("the output is a directory, not standard output (-)", DASH)


def _reads_files_alone(command: str, option: Option) -> bool:
    is_input = option.positional and option.kind in ("path", "paths") and option.name != "output"
    return is_input and not commands()[command].reads_streams


def _shown_name(command: str) -> str:
    return "grep --counts" if command == "matchcount" else command


def _shown(option: Option) -> str:
    if option.positional:
        name = option.name.upper()
        return name.removesuffix("S") if option.kind == "paths" else name
    return f"--{option.dashed}"


def _options_of(report: "JobReport") -> Mapping[str, Value]:
    """The options of a job that another process began, as its history has them."""
    if report.error is not None or report.history is None:
        return {}
    from gristmill.history import load

    given: Mapping[str, Value] = load(Path(report.history)).options
    return {"check": False, "no_sync": False, "output": None, **given}


def run_job(
    command: str,
    values: Mapping[str, Value],
    pending: signals.Pending,
    *,
    quiet: bool,
    history: bool = False,
) -> "JobReport":
    """Run a job to its end, which a pending signal brings near; returns its report."""
    report = _run_job(command, values, pending, quiet=quiet, history=history)
    if report.error is None:
        return report
    from dataclasses import replace  # memory of the process counts while a job runs

    said = replace(report.error, message=as_typed(report.error.message))
    return replace(report, error=said)


def _run_job(
    command: str,
    values: Mapping[str, Value],
    pending: signals.Pending,
    *,
    quiet: bool,
    history: bool,
) -> "JobReport":
    job_id = job.new_job_id()
    try:
        placed = job.placed_for(command, values, job_id, check=pending.check, tell=_tell)
        above = parents_made(values.get("output"))
        csv = as_csv(commands()[command], values, partial(_stops, pending))
        with above, csv as tables:
            asked = values if tables is None else tables.values
            check = _nothing if tables is None else tables.check
            with _seen(command, asked, pending, quiet=quiet) as seen, placed as cluster:
                running = job.begin(
                    command, seen, job_id, history=history, command_line=True, cluster=cluster
                )
                report = _to_end(running, pending, check, quiet=quiet)
            return report if tables is None else _of_tables(report, tables, quiet=quiet)
    except (ValueError, ImportError) as error:  # pyarrow may not be installed
        what, option, kind = typed(error), option_of(error), kind_of(error) or "bad_option"
    except OSError as error:  # of a cluster; a job says in its report what went wrong
        what, option, kind = typed(error), None, kind_of(error) or "io"
    except signals.Interrupted:
        what, option, kind = "cannot finish the job: it was cancelled.", None, "cancelled"
    from gristmill.report import JobReport

    return JobReport.refused(job_id, command, what, option, kind=kind)


def _seen(
    command: str, values: Mapping[str, Value], pending: signals.Pending, *, quiet: bool
) -> AbstractContextManager[Mapping[str, Value]]:
    """The options of a job; on a cluster, without streams to read."""
    reads = commands()[command].reads_streams and "inputs" in values
    if not reads or values.get("on") != "ray":
        return nullcontext(values)
    from gristmill.cli.on_cluster.node_streams import seen_by_nodes

    return seen_by_nodes(values, partial(_stops, pending), quiet=quiet)


def _stops(pending: signals.Pending) -> bool:
    """Raise `Interrupted` if a signal has come."""
    pending.check()
    return False


def _nothing() -> None:
    """A job over no Parquet has nothing to be checked meanwhile."""


def _of_tables(report: "JobReport", tables: "Tables", *, quiet: bool) -> "JobReport":
    """Publish the Parquet of a job that has succeeded; of another tell why, in the user's names.

    Raises:
        ValueError: An input cannot be read to its end, or the output makes no table.
        OSError: The same of files.
    """
    tables.check()
    if report.error is None:
        with progress_bar(quiet=quiet) as progress:
            return tables.publish(report, partial(progress.show, "to Parquet"))
    from dataclasses import replace

    return replace(report, error=replace(report.error, message=tables.told(report.error.message)))


def _fails(check: Callable[[], None]) -> bool:
    try:
        check()
    except (ValueError, OSError):  # raised again once the job has ended
        return True
    return False


def _tell(sentence: str) -> None:
    console.note(f"gristmill: {sentence}")


def _tell_all(running: _core.Job, *, silent: bool) -> None:
    notices = running.notices()
    if not silent:
        console.tell(notices)


def _to_end(
    running: _core.Job, pending: signals.Pending, check: Callable[[], None], *, quiet: bool
) -> "JobReport":
    context = click.get_current_context(silent=True)
    is_silent = context is not None and bool(context.meta.get(QUIET))
    with progress_bar(quiet=quiet) as progress:
        while not running.wait(job.TICK_S):
            if pending.signum is not None or _fails(check):
                running.cancel()
            _tell_all(running, silent=is_silent)
            name, _, done_bytes, bytes_in_all = running.progress()
            progress.show(name, done_bytes, bytes_in_all, running.nodes())
    _tell_all(running, silent=is_silent)
    from gristmill.report import JobReport

    return JobReport.from_json(running.report())
