"""Reads a job's history: the engine's events, put together to what became of phases and attempts.

Also while it is written, also after a crash: a last line that is not whole is left out, what has
not ended has no end. Events and fields of later minor versions are left alone.
"""

import fcntl
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from gristmill import _core
from gristmill.history.chains import ChainFolder
from gristmill.history.home import EVENTS
from gristmill.history.model import OWN_CODE, Attempt, JobHistory, JobState, PhaseSpan, Sample
from gristmill.history.nodes import NodeRead, NodeSample
from gristmill.names import from_json
from gristmill.report import Phase

__all__ = ["Follower", "is_code_gone", "is_live", "load", "take_line"]

VERSION = 1
"""The version of the format that is read."""


def is_live(folder: Path) -> bool:
    """Whether the job of a folder is alive: its process holds a lock as long as it is."""
    with (folder / EVENTS).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


class Follower:
    """Reads a history as it grows: each update takes the lines that have come to an end since.

    Raises:
        ValueError: A line is damaged, or a later version wrote it.
        OSError: The file cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offset = 0
        self._line = 0
        self._running: dict[tuple[int, int], Attempt] = {}
        self.history = JobHistory(job_id=folder.name)

    def update(self) -> JobHistory:
        """Return the history as it stands now."""
        live = is_live(self._folder)  # before the events: the job may end meanwhile
        for line in self._lines():
            take_line(self.history, line, f"line {self._line}", self._folder, self._running)
        if self.history.state == "running" and not live:
            self.history.state = "dead"
            self.history.code_gone = is_code_gone(self.history, self._folder)
        return self.history

    def _lines(self) -> Iterator[bytes]:
        with (self._folder / EVENTS).open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # it is being written, or its writer died
                self._offset += len(line)
                self._line += 1
                yield line


def is_code_gone(history: JobHistory, folder: Path) -> bool:
    """Whether a dead job's own code was kept beside its output, and is there no more.

    Of a job of a chain also the code of those behind it.
    """
    chain = ChainFolder.named_by(history)
    if chain is not None and not chain.is_there():
        return True
    return history.keeps_code and history.command in OWN_CODE and _core.is_code_gone(folder)


def load(folder: Path) -> JobHistory:
    """Return the history in a job's folder.

    Raises:
        ValueError: A line is damaged, or a later version wrote it.
        OSError: It cannot be read.

    Example:
        >>> import gristmill, os, tempfile
        >>> from gristmill.history import find_job
        >>> with tempfile.TemporaryDirectory() as home:
        ...     os.environ["GRISTMILL_HOME"] = home
        ...     made = gristmill.teragen("1k", f"{home}/data", history=True)
        ...     found = load(find_job(made.job_id))
        >>> found.command, found.state, [phase.name for phase in found.phases]
        ('teragen', 'succeeded', ['generate', 'commit'])
    """
    return Follower(folder).update()


def take_line(
    history: JobHistory,
    line: bytes,
    where: str,
    folder: Path,
    running: dict[tuple[int, int], Attempt] | None = None,
) -> None:
    """Add the event of a line to a history; `running` are the attempts that have not ended.

    Raises:
        ValueError: It is damaged, or a later version wrote it; says where.
    """
    try:
        _take(history, {} if running is None else running, from_json(line))
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else f"{error}"
        message = f"cannot read a history: {where}: {what} (file {folder / EVENTS})"
        raise ValueError(message) from error


def _take(
    history: JobHistory, running: dict[tuple[int, int], Attempt], event: dict[str, Any]
) -> None:
    t_ms = history.end_ms = int(event["t_ms"])
    match event["event"]:
        case "job_submitted":
            _submitted(history, event)
        case "job_planned" | "job_began":
            history.plan = event.get("plan", history.plan)
            history.keeps_code |= "definition" in event
        case "phase_started":
            _begin_phase(history, event, t_ms)
        case "attempt_started":
            attempt = _begun(event, t_ms)
            history.attempts.append(attempt)
            running[attempt.task, attempt.attempt] = attempt
        case "attempt_finished":
            _ended(running.pop((event["task"], event["attempt"]), None), event, t_ms)
        case "job_resumed":
            _resumed(history, running, t_ms)
        case "phase_finished":
            _phase_used(history, event, t_ms)
        case "job_finished":
            _end_phase(history, t_ms)
            history.report = event["report"]
            history.state = _final_state(event)
        case _:
            _noted(history, event)


def _final_state(event: dict[str, Any]) -> JobState:
    error: dict[str, Any] = event["report"].get("error") or {}
    return "ended early" if error.get("kind") == "reader_gone" else event["status"]


def _noted(history: JobHistory, event: dict[str, Any]) -> None:
    """Take what changes nothing of how the job stands; what a later version added is left alone."""
    if event["event"] == "run_spilled":
        history.runs.append({name: event[name] for name in ("task", "path", "records", "bytes")})
    elif event["event"] == "sample":
        sample = Sample(**_known(Sample, event))
        sample.nodes = [NodeSample(**_known(NodeSample, node)) for node in event.get("nodes", [])]
        history.samples.append(sample)
    elif event["event"] == "runs_read":
        history.reads = [NodeRead(**_known(NodeRead, read)) for read in event["read"]]


def _known(kind: type[Sample | NodeSample | NodeRead], event: dict[str, Any]) -> dict[str, Any]:
    """The fields of an event that this version knows."""
    return {one.name: event[one.name] for one in fields(kind) if one.name in event}


def _begun(event: dict[str, Any], t_ms: int) -> Attempt:
    fields = {name: event[name] for name in ("task", "attempt", "phase")}
    node, text = event.get("node", ""), event.get("input", "")
    return Attempt(start_ms=t_ms, node=node, input=text, **fields)


def _ended(attempt: Attempt | None, event: dict[str, Any], t_ms: int) -> None:
    if attempt is not None:
        attempt.end_ms, attempt.outcome = t_ms, event["outcome"]
        attempt.error = event.get("error")
        attempt.bytes = event.get("bytes", 0)
        attempt.counters = event.get("counters", {})


def _resumed(history: JobHistory, running: dict[tuple[int, int], Attempt], t_ms: int) -> None:
    """Another process went on: what ran in the one before was killed with it."""
    history.resumed_ms.append(t_ms)
    for attempt in running.values():
        attempt.end_ms, attempt.outcome = t_ms, "killed"
        attempt.error = "its process was killed"
    running.clear()


def _submitted(history: JobHistory, event: dict[str, Any]) -> None:
    if event["version"] > VERSION:
        message = f"it has version {event['version']}; this program reads {VERSION}"
        raise ValueError(message)
    history.job_id = event["job_id"]
    history.command = event["command"]
    given: dict[str, Any] = event["spec"] or {}
    # Jobs with scripts have the options of those with functions.
    history.options = given.get(history.command) or given.get("mapreduce") or {}
    history.unix_ms = event["unix_ms"]
    history.program = event["program"]
    history.argv = list(map(str, event.get("argv", [])))
    history.host = str(event.get("host", ""))
    history.cwd = str(event.get("cwd", ""))


def _begin_phase(history: JobHistory, event: dict[str, Any], t_ms: int) -> None:
    _end_phase(history, t_ms)
    fields = {name: event[name] for name in ("name", "tasks", "bytes")}
    kept = event.get("kept", 0)
    history.phases.append(PhaseSpan(start_ms=t_ms, kept=kept, **fields))


def _end_phase(history: JobHistory, t_ms: int) -> None:
    if history.phases and history.phases[-1].end_ms is None:
        history.phases[-1].end_ms = t_ms


def _phase_used(history: JobHistory, event: dict[str, Any], t_ms: int) -> None:
    """Take what a phase used, as its process counted it at its end."""
    if not history.phases or history.phases[-1].name != event["name"]:
        return
    _end_phase(history, t_ms)
    phase = history.phases[-1]
    known: dict[str, Any] = {
        one.name: event[one.name] for one in fields(Phase) if one.name in event
    }
    known["tasks"] = phase.tasks
    phase.used = Phase(**known)
