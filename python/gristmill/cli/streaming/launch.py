"""A job with scripts, from its command line to its exit code.

    ResolvedJob ─files─▶ _core.plan_streaming ─splits─▶ _core.Job, _core.Executor.scripts
                                                            └─▶ JobReport

Exit codes are Hadoop's: 0 done, 1 failed, 5 the output exists or the input does not; and 2 for a
command line that cannot be honoured.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from gristmill import _core
from gristmill.cli.failures import ADDRESS, DONE, FAILED, WRONG, as_typed, fail
from gristmill.cluster import placed, planned, where_tasks_run
from gristmill.cluster.user_code import UserCode
from gristmill.errors import kind_of
from gristmill.history.origin import place
from gristmill.job import TICK_S, new_job_id
from gristmill.links import why_missing
from gristmill.locations import is_remote
from gristmill.mapreduce.kinds import is_dict
from gristmill.mapreduce.results.exception_notes import retry_note
from gristmill.mapreduce.submit.code import files_below
from gristmill.mapreduce.submit.explained_stores import explained_store
from gristmill.names import from_json, show_text, to_json
from gristmill.options import Option, user_code
from gristmill.report import JobReport
from gristmill.store_options import with_store_options
from gristmill.streaming.client_log import ClientLog, PlainLog
from gristmill.streaming.counters import counter_lines
from gristmill.streaming.explain import explained
from gristmill.streaming.first_line import cannot_start, selects_nothing
from gristmill.streaming.inputs import InputMissingError, Listed, look
from gristmill.streaming.page import help_text
from gristmill.streaming.parse import Arguments, WrongCommandError, parse, told
from gristmill.streaming.resolved import ResolvedJob, resolve
from gristmill.streaming.unnamed_hdfs import hdfs_folder, stands_for_folder
from gristmill.streaming.variables import configuration, environment
from gristmill.terminal import console, signals
from gristmill.terminal.progress import progress_bar
from gristmill.units import show_bytes, show_count

__all__ = ["main"]

OUTPUT_EXISTS = INPUT_MISSING = 5

_LOG_EVERY_S = 1.0
"""Seconds between two looks at how far a job is, where each is a line of a log."""


def main(words: Sequence[str], *, as_hadoop: bool = False) -> int:
    """Run `gristmill streaming` with these arguments; returns the exit code.

    Args:
        words: The arguments.
        as_hadoop: Whether to say how far the job is as `hadoop jar` does, on terminals too.
    """
    try:
        arguments = parse(words)
        if not words or arguments.has("help") or arguments.has("info"):
            console.say(*help_text().splitlines())
            return DONE if words else WRONG
        if ":" in (on := arguments.last("on") or ""):
            raise WrongCommandError(f"--on takes no address such as {on}. What to do: {ADDRESS}")
        with with_store_options(arguments.options.get("store-option")):
            return _run(resolve(arguments), as_hadoop=as_hadoop)
    except WrongCommandError as error:
        fail("streaming", told(error))
        return WRONG
    except InputMissingError as error:
        fail("streaming", f"{error.strerror}: {error.filename}.{_more(error)}")
        return INPUT_MISSING
    except ValueError as error:
        if kind_of(error) is None:
            raise
        fail("streaming", _typed(error))
        return WRONG
    except OSError as error:  # of a store that does not answer
        fail("streaming", _typed(error))
        return FAILED


def _typed(error: Exception | str) -> str:
    return as_typed(error, [one.name for one in user_code()])


def _more(error: InputMissingError) -> str:
    """What more there is to say of an input that is not there; Hadoop's sentence stays."""
    path = str(error.filename)
    if stands_for_folder(path):
        return (
            f" No name node is configured, so hdfs:/// is the directory {hdfs_folder()} here. What"
            " to do: name hdfs://HOST:PORT/PATH, or set HADOOP_CONF_DIR to a directory whose"
            " core-site.xml has an fs.defaultFS of hdfs://."
        )
    return f" It {why_missing(path)}." if os.path.islink(path) else ""  # noqa: PTH114 - of any text


def _run(resolved: ResolvedJob, *, as_hadoop: bool) -> int:
    arguments = resolved.arguments
    if arguments.has("explain"):
        return _explain(resolved)
    found = _found(resolved)
    files = [name for name, _ in found]
    if _exists(resolved.output) and not arguments.has("overwrite"):
        console.note(
            f"gristmill streaming: Output directory {resolved.output} already exists. What to do: "
            f"name another"
            " one, or add --overwrite."
        )
        return OUTPUT_EXISTS
    hopeless = [] if arguments.last("on") == "ray" else cannot_start(resolved.definition)
    if hopeless:
        console.note(*(f"gristmill streaming: {said}" for said in hopeless))
        return FAILED
    if arguments.has("background"):
        return _in_background(arguments)
    try:
        planned = _planned(resolved, found)
    except (OSError, ValueError) as error:
        fail("streaming", _typed(error))
        return FAILED
    splits: list[dict[str, Any]] = planned["splits"]
    definition = resolved.definition | {
        "input_classes": planned["classes"],
        "environment": environment(resolved, len(splits)),
        "debug": resolved.definition["debug"]
        | {"properties": configuration(resolved, len(splits))},
    }
    if arguments.has("verbose"):
        console.note(*explained(resolved, len(splits)))
    else:
        console.note(*(f"gristmill streaming: {remark}" for remark in resolved.remarks))
    spec = _spec(resolved, files, splits) | {"code": _code(definition)}
    only = arguments.last("only-split")
    if only is not None:
        spec |= _only(only, spec, definition)
    if not _makes_parent(resolved.output):
        return FAILED
    return _wait(arguments, spec, definition, as_hadoop=as_hadoop)


def _found(resolved: ResolvedJob) -> list[tuple[str, Listed | None]]:
    """The files that the inputs lead to, and what their store said of them."""
    return look(
        resolved.inputs, recursive=resolved.recursive, ignore_folders=resolved.ignore_folders
    )


def _planned(resolved: ResolvedJob, found: list[tuple[str, Listed | None]]) -> dict[str, Any]:
    """The splits of the files, and what they hold."""
    listed = {number: known for number, (_, known) in enumerate(found) if known is not None}
    request = resolved.request | {"files": [name for name, _ in found], "found": listed}
    _check_text(request)
    return from_json(_core.plan_streaming(to_json(request)))


def _spec(resolved: ResolvedJob, files: list[str], splits: list[dict[str, Any]]) -> dict[str, Any]:
    """The job for the engine, but for the files of its code."""
    arguments = resolved.arguments
    attempts, reduce_attempts = resolved.attempts
    return {
        "command": "streaming",
        "name": resolved.name,
        "inputs": resolved.inputs,
        "files": files,
        "code": [],
        "splits": splits,
        "partitions": resolved.partitions,
        "output": resolved.output,
        "attempts": attempts,
        "reduce_attempts": reduce_attempts,
        **resolved.blocks,
        **({"compress_runs": resolved.compress_runs} if resolved.compress_runs else {}),
        **{one.name: _given(arguments, one) for one in user_code() if arguments.has(one.dashed)},
        **resolved.max_failed_percent,
        **resolved.speculative,
    }


def _explain(resolved: ResolvedJob) -> int:
    """Say what each option was taken to mean, for people or as JSON."""
    lines = explained(resolved)
    try:
        lines += _of_places(resolved)
    except (OSError, ValueError) as error:
        fail("streaming", _typed(error))
        return FAILED
    if resolved.arguments.has("json"):
        console.put(to_json({"explained": [line.split(None, 1) for line in lines]}))
    else:
        console.say(*lines)
    return DONE


def _of_places(resolved: ResolvedJob) -> list[str]:
    """What a job has of a cluster, and which stores it asks; one of this machine has none."""
    on = resolved.arguments.last("on")
    if on != "ray" and not any(map(is_remote, [*resolved.inputs, resolved.output])):
        return []
    found = _found(resolved)
    files = [name for name, _ in found]
    spec = _spec(resolved, files, _planned(resolved, found)["splits"])
    cluster, told = planned(spec), to_json({"mapreduce": spec})
    plan = from_json(_core.explain(told, cluster=cluster, command_line=True))
    lines: list[str] = []
    if plan["nodes"]:
        workers, memory = show_count(plan["workers"], "worker"), show_bytes(plan["memory_bytes"])
        lines.append(f"cluster      {memory} for {workers} in {where_tasks_run(plan)}")
    return lines + [f"store        {explained_store(store)}" for store in plan["stores"]]


def _given(arguments: Arguments, option: Option) -> bool | int | str | list[str]:
    """The value of an option that all jobs have: the last one, or of folders all."""
    name, values = option.dashed, arguments.options[option.dashed]
    match option.kind:
        case "flag":
            return True
        case "count":
            number = _count(values[-1])
            if number is None:
                raise WrongCommandError(f"--{name} {values[-1]} is not a number of {name}")
            return number
        case "pairs":
            return values
        case "path_list":  # from the root on: scripts are run in folders there, and told of them
            if not all(values):
                raise WrongCommandError(f"--{name} `` names nothing")
            return [os.path.abspath(folder) for folder in values]  # noqa: PTH100 - links stay
        case _:
            return values[-1]


def _code(definition: dict[str, Any]) -> list[str]:
    """The files that decide what the scripts do: those shipped, and those named by whole paths."""
    shipped = [path for _, path in (*definition["links"], *definition["archives"])]
    steps = [definition[name] for name in ("map", "combine", "reduce")]
    words: list[str] = []
    for step in filter(is_dict, steps):
        words += step.get("script", ())
    named = [word for word in words if Path(word).is_absolute() and Path(word).is_file()]
    partitioner = definition["partitioner"]
    if is_dict(partitioner) and "total" in partitioner:
        named.append(partitioner["total"])
    return files_below([*shipped, *named])


def _only(only: str, spec: dict[str, Any], definition: dict[str, Any]) -> dict[str, Any]:
    """What is different of a job that runs one split's mapper alone."""
    splits = spec["splits"]
    number = _count(only)
    if number is None or number >= len(splits):
        raise WrongCommandError(
            f"--only-split {only}: the job's splits are numbered from 0 to {len(splits) - 1}"
        )
    chosen = splits[number]
    definition["again"] = ""
    definition["combine"] = None
    definition["skipping"] = None
    return {
        "splits": [chosen | {"what": chosen["what"] | {"number": number}}],
        "partitions": 0,
        "attempts": 1,
        "map_failures_percent": 0,
        "overwrite": True,
        "output": f"{spec['output']}-split-{only}",
    }


def _count(text: str) -> int | None:
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else None


_NAMES = frozenset(
    {"files", "links", "archives", "environment", "variables", "search", "again", "debug", "folder"}
    | {"script", "total"}
)
"""What names, commands and variables are given as: bytes go through. All else is text."""


def _check_text(value: object) -> None:
    """Refuse text that is not UTF-8 where the engine works with characters, as in separators."""
    match value:
        case str():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                shown = show_text(value[:60])
                raise WrongCommandError(f"`{shown}` is not UTF-8, which it must be here") from error
        case dict():
            for name, part in cast("dict[str, object]", value).items():
                if name not in _NAMES:
                    _check_text(part)
        case list() | tuple():
            for part in cast("list[object]", value):
                _check_text(part)
        case _:
            pass


def _exists(output: str) -> bool:
    return _core.exists(output) if is_remote(output) else Path(output).exists()


def _makes_parent(output: str) -> bool:
    """Make the directory of the output, as Hadoop does; where that cannot be, say why."""
    if is_remote(output):
        return True
    try:
        Path(output).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        is_file = isinstance(error, FileExistsError)
        reason = "it is a file" if is_file else (error.strerror or "").lower()
        console.note(
            f"gristmill streaming: cannot make the directory of -output {output}: {reason} "
            f"(file {error.filename})."
            " What to do: name an output in a directory that you may write."
        )
        return False
    return True


def _wait(
    arguments: Arguments, spec: dict[str, Any], definition: dict[str, Any], *, as_hadoop: bool
) -> int:
    _check_text(definition)
    told, asked = to_json(definition), to_json({"mapreduce": spec})
    job_id = new_job_id(as_hadoop=as_hadoop)
    quiet = arguments.has("json")
    reduces = spec["partitions"] > 0
    log = ClientLog(console.note, job_id, reduces=reduces) if as_hadoop else PlainLog(console.note)
    shipped = [*definition["links"], *definition["archives"]]
    code = UserCode(files=tuple(file for _, file in shipped))
    with signals.deferred() as pending:
        try:
            with placed(spec, job_id, code=code, check=pending.check, tell=console.note) as cluster:
                job = _core.Job(
                    asked,
                    job_id,
                    place(keep_short=arguments.has("history")),
                    work=_core.Executor.scripts(told),
                    cluster=cluster,
                    command_line=True,
                )
                if isinstance(log, ClientLog) and not quiet:
                    _log(job, pending, log)
                else:
                    _show(job, pending, quiet=quiet)
        except signals.Interrupted as error:
            return signals.exit_code(error.signum)
        except (OSError, ValueError) as error:
            fail("streaming", _typed(error))
            return WRONG if isinstance(error, ValueError) else FAILED
        signals.ignore()
    report = JobReport.from_json(job.report())
    for warning in report.warnings:
        log.warn(warning)
    if quiet:
        from gristmill.cli.render.summary import json_of

        console.put(json_of(report))
    elif report.error is None:
        log.succeeded(_left_out(report, spec, definition["skipping"]))
        console.note(*counter_lines(report, spec["output"], timed=log.timed))
    if report.error is None:
        return DONE
    _tell(report, definition, log)
    if report.status == "cancelled" and pending.signum is not None:
        return signals.exit_code(pending.signum)
    if report.error.kind == "exists":
        return OUTPUT_EXISTS
    return WRONG if report.error.kind == "bad_option" else FAILED


def _show(job: _core.Job, pending: signals.Pending, *, quiet: bool) -> None:
    """Wait for a job, and show how far it is."""
    with progress_bar(quiet=quiet) as progress:
        while not job.wait(TICK_S):
            if pending.signum is not None:
                job.cancel()
            console.tell(job.notices())
            name, _, done_bytes, all_bytes = job.progress()
            progress.show(name, done_bytes, all_bytes, job.nodes())
    console.tell(job.notices())


def _log(job: _core.Job, pending: signals.Pending, log: ClientLog) -> None:
    """Wait for a job, and say how far it is as Hadoop does."""
    log.begin()
    next_s = 0.0
    while not job.wait(TICK_S):
        if pending.signum is not None:
            job.cancel()
        for notice in job.notices():
            log.warn(notice)
        if (now_s := time.monotonic()) >= next_s:
            next_s = now_s + _LOG_EVERY_S
            name, _, done_bytes, all_bytes = job.progress()
            log.show(name, done_bytes, all_bytes)
    for notice in job.notices():
        log.warn(notice)


def _left_out(report: JobReport, spec: dict[str, Any], skipping: dict[str, Any] | None) -> str:
    """How many bad records there were, and where they are."""
    amounts = {
        what: report.counters.get(name, 0)
        for what, name in (("record", "MAP_SKIPPED_RECORDS"), ("group", "REDUCE_SKIPPED_GROUPS"))
    }
    if skipping is None or not any(amounts.values()):
        return ""
    counts = ", ".join(show_count(count, f"bad {what}") for what, count in amounts.items())
    folder = skipping["folder"]
    within = not str(folder).startswith("/")
    kept = f"kept in {spec['output'] + '/' if within else ''}{folder}" if folder else "kept nowhere"
    return f"{counts} left out, {kept}"


def _tell(report: JobReport, definition: dict[str, Any], log: PlainLog) -> None:
    """Say why a job has failed, and what to do."""
    error = report.error
    assert error is not None
    log.failed(report.status, _typed(error.message))
    said = error.details.get("stderr")
    if said and "\n" in said:
        console.note("What it said last:", *(f"    {line}" for line in said.split("\n")))
    debugged = error.details.get("debug script")
    if debugged:
        console.note(
            "What its debug script says:", *(f"    {line}" for line in debugged.split("\n"))
        )
    if error.kind == "user_code" and definition["exit_matters"]:
        console.note(*selects_nothing(definition))
    if "retry" in error.details:
        console.note(retry_note(report.job_id))
    elif "again" in error.details:
        console.note(f"To try it again alone: {error.details['again']}")
    log.close()


def _in_background(arguments: Arguments) -> int:
    words = [word for word in arguments.words if word not in ("-background", "--background")]
    command = [sys.executable, "-m", "gristmill", "streaming", *words]
    begun = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    console.note(f"Job is running in background: process {begun.pid}. See gristmill jobs.")
    return DONE
