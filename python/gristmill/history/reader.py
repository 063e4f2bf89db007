"""Reads a job's history: the engine's events, put together to what became of phases and attempts.

Also while it is written, also after a crash: a last line that is not whole is left out, what has
not ended has no end. Events and fields of later minor versions are left alone.
"""

import fcntl
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gristmill.history.home import EVENTS

__all__ = [
    "Attempt",
    "Follower",
    "JobHistory",
    "JobState",
    "PhaseSpan",
    "Sample",
    "is_live",
    "load",
]

VERSION = 1
"""The version of the format that is read."""

JobState = Literal["running", "succeeded", "failed", "cancelled", "dead"]

_RESUMABLE = frozenset({"sort", "teragen", "terasort"})

_OWN_CODE = frozenset({"mapreduce", "streaming"})

_REDUCE_PHASES = frozenset({"merge runs", "merge", "reduce"})


@dataclass(slots=True, kw_only=True)
class PhaseSpan:
    """A phase: a stage of tasks, or a step between stages. Times are milliseconds of the job."""

    name: str
    """Its name."""
    tasks: int
    """Its tasks; 0 where it has none."""
    bytes: int
    """Bytes that they work on."""
    start_ms: int
    """When it began."""
    kept: int = 0
    """Tasks that were over already, as a process that was killed had done them."""
    end_ms: int | None = None
    """When the next one began, or the job ended."""


@dataclass(slots=True, kw_only=True)
class Attempt:
    """An attempt at a task. Times are milliseconds of the job."""

    task: int
    """The task's number in the job."""
    attempt: int
    """0 for the first try."""
    phase: str
    """The phase it belongs to."""
    start_ms: int
    """When it began."""
    end_ms: int | None = None
    """When it ended."""
    outcome: str | None = None
    """How: `succeeded`, `failed`, `killed`."""
    error: str | None = None
    """Why it failed."""
    counters: dict[str, int] = field(default_factory=dict[str, int])
    """What it did, by Hadoop's names."""


@dataclass(slots=True, kw_only=True)
class Sample:
    """What the job and the machine had used so far at a time (docs/internals/history.md)."""

    t_ms: int
    """When."""
    user_s: float = 0.0
    """CPU seconds of the process in user code."""
    sys_s: float = 0.0
    """CPU seconds of the process in the kernel."""
    machine: dict[str, float] = field(default_factory=dict[str, float])
    """CPU seconds of the machine: user, sys, iowait, steal, idle."""
    anon_bytes: int = 0
    """Anonymous and shared memory, with that of workers and scripts."""
    mapped_bytes: int = 0
    """Mapped files."""
    budget_bytes: int = 0
    """What is reserved of the budget."""
    disk_read_bytes: int = 0
    """Bytes read from devices."""
    disk_write_bytes: int = 0
    """Bytes written to them."""
    net_rx_bytes: int = 0
    """Bytes received."""
    net_tx_bytes: int = 0
    """Bytes sent."""
    done_bytes: int = 0
    """Bytes that the phase's tasks have worked on."""


@dataclass(slots=True, kw_only=True)
class JobHistory:
    """What became of a job."""

    job_id: str
    """Its name."""
    command: str = ""
    """Its command."""
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    """Its options, as they were given."""
    unix_ms: int = 0
    """When it began, in milliseconds since 1970."""
    program: str = ""
    """The version of Gristmill."""
    state: JobState = "running"
    """How it stands."""
    end_ms: int = 0
    """The time of its last event."""
    plan: dict[str, Any] = field(default_factory=dict[str, Any])
    """What `explain` said of it."""
    phases: list[PhaseSpan] = field(default_factory=list[PhaseSpan])
    """Its phases, in order."""
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    """All attempts at tasks, in the order in which they began."""
    samples: list[Sample] = field(default_factory=list[Sample])
    """What it used, about twice a second."""
    runs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The sorted runs that it wrote: task, path, records, bytes."""
    keeps_code: bool = False
    """Whether what its own code is, if it has some, is kept as long as it runs."""
    resumed_ms: list[int] = field(default_factory=list[int])
    """When other processes went on with it."""
    report: dict[str, Any] = field(default_factory=dict[str, Any])
    """Its report, once it is over."""

    @property
    def resumable(self) -> bool:
        """Whether `gristmill resume` can go on with it, as far as its options tell."""
        if self.state != "dead":
            return False
        if self.command in _OWN_CODE:
            return self.keeps_code
        if self.command not in _RESUMABLE:
            return False
        streams = (None, "-")
        return self.command != "sort" or (
            self.options.get("output") not in streams
            and "-" not in (self.options.get("inputs") or ["-"])
            and not self.options.get("check")
        )

    @property
    def wall_s(self) -> float:
        """Seconds that it took, or has taken so far."""
        return float(self.report.get("wall_s", self.end_ms / 1000))

    def number(self, name: str) -> int:
        """Return a number of the report; 0 where it has none, as another version's may."""
        return int(self.report.get(name) or 0)

    @property
    def work_bytes(self) -> int:
        """Bytes that it worked on: of its input or of its output, whichever are more."""
        return max(self.number("input_bytes"), self.number("output_bytes"))

    @property
    def error(self) -> str | None:
        """Why it failed, in a paragraph."""
        failure: dict[str, Any] | None = self.report.get("error")
        return failure.get("message") if failure else None

    def counters(self) -> dict[str, tuple[int, int, int]]:
        """Return each counter as Hadoop lays them out: map, reduce, total.

        A counter that no task has, but the job as a whole, has a total only.
        """
        found: dict[str, list[int]] = {}
        for attempt in self.attempts:
            side = 1 if attempt.phase in _REDUCE_PHASES else 0
            for name, amount in attempt.counters.items():
                found.setdefault(name, [0, 0])[side] += amount
        table = {name: (a, b, a + b) for name, (a, b) in found.items()}
        for name, total in self.report.get("counters", {}).items():
            on_map, on_reduce = found.get(name, [0, 0])
            table[name] = (on_map, on_reduce, max(total, on_map + on_reduce))
        return dict(sorted(table.items()))


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
            try:
                _take(self.history, self._running, json.loads(line))
            except KeyError as error:
                raise ValueError(self._damage(f"no {error}")) from error
            except (ValueError, TypeError, AttributeError) as error:
                raise ValueError(self._damage(str(error))) from error
        if self.history.state == "running" and not live:
            self.history.state = "dead"
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

    def _damage(self, what: str) -> str:
        return f"cannot read a history: line {self._line}: {what} (file {self._folder / EVENTS})"


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
            fields = {name: event[name] for name in ("task", "attempt", "phase")}
            attempt = Attempt(start_ms=t_ms, **fields)
            history.attempts.append(attempt)
            running[attempt.task, attempt.attempt] = attempt
        case "attempt_finished":
            _ended(running.pop((event["task"], event["attempt"]), None), event, t_ms)
        case "job_resumed":
            _resumed(history, running, t_ms)
        case "run_spilled":
            history.runs.append(
                {name: event[name] for name in ("task", "path", "records", "bytes")}
            )
        case "sample":
            known = {name: event[name] for name in Sample.__slots__ if name in event}
            history.samples.append(Sample(**known))
        case "job_finished":
            _end_phase(history, t_ms)
            history.state = event["status"]
            history.report = event["report"]
        case _:
            pass  # of a later version


def _ended(attempt: Attempt | None, event: dict[str, Any], t_ms: int) -> None:
    if attempt is not None:
        attempt.end_ms, attempt.outcome = t_ms, event["outcome"]
        attempt.error = event.get("error")
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


def _begin_phase(history: JobHistory, event: dict[str, Any], t_ms: int) -> None:
    _end_phase(history, t_ms)
    fields = {name: event[name] for name in ("name", "tasks", "bytes")}
    kept = event.get("kept", 0)
    history.phases.append(PhaseSpan(start_ms=t_ms, kept=kept, **fields))


def _end_phase(history: JobHistory, t_ms: int) -> None:
    if history.phases:
        history.phases[-1].end_ms = t_ms
