"""What a history says of a job: its phases, attempts and samples, and what follows from them.

reader.py puts it together from the engine's events. Times are milliseconds of the job. What has not
ended has no end.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from gristmill import _core
from gristmill.history.nodes import NodeRead, NodeSample
from gristmill.names import to_json
from gristmill.report import Phase

__all__ = ["OWN_CODE", "Attempt", "JobHistory", "JobState", "PhaseSpan", "Sample"]

JobState = Literal["running", "succeeded", "ended early", "failed", "cancelled", "dead"]
"""How a job stands; it ended early if the reader of its pipe went away, as in `| head`."""

OWN_CODE = frozenset({"mapreduce", "streaming"})
"""The commands of jobs with user code."""

_RECORDS = ("MAP_INPUT_RECORDS", "REDUCE_INPUT_RECORDS", "MAP_OUTPUT_RECORDS", "SPILLED_RECORDS")
"""The counters of an attempt that say how many records it worked on: the first that it has."""

_REDUCE_PHASES = frozenset({"merge runs", "merge", "regroup", "reduce"})


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
    """When it ended."""
    used: Phase | None = None
    """What it used, as the job's report says it; earlier versions did not keep it."""


@dataclass(slots=True, kw_only=True)
class Attempt:
    """An attempt at a task. Times are milliseconds of the job."""

    task: int
    """The task's number in the job."""
    attempt: int
    """0 for the first try; texts and pages count from 1."""
    phase: str
    """The phase it belongs to."""
    node: str = ""
    """The node of the cluster that it ran on; empty of a job on one machine."""
    input: str = ""
    """What it works on, in words; empty where that is not known."""
    start_ms: int
    """When it began."""
    end_ms: int | None = None
    """When it ended."""
    outcome: str | None = None
    """How: `succeeded`, `failed`, `killed`."""
    error: str | None = None
    """Why it failed."""
    bytes: int = 0
    """Bytes that it has worked on; 0 where that is not known."""
    counters: dict[str, int] = field(default_factory=dict[str, int])
    """What it did, by Hadoop's names."""

    @property
    def records(self) -> int | None:
        """Records that it has worked on, or made out of nothing, where its counters tell."""
        return next((self.counters[name] for name in _RECORDS if name in self.counters), None)


@dataclass(slots=True, kw_only=True)
class Sample:
    """What the job and the machine had used so far at a time (docs/internals/history.md)."""

    t_ms: int
    """When."""
    user_s: float = 0.0
    """CPU seconds in user mode: of the process, and of the workers and scripts below it."""
    sys_s: float = 0.0
    """CPU seconds in the kernel, likewise."""
    own_s: float | None = None
    """CPU seconds of the process alone; `null` in histories of versions that counted no others."""
    machine: dict[str, float] = field(default_factory=dict[str, float])
    """CPU seconds of the machine: user, sys, iowait, steal, idle."""
    anon_bytes: int = 0
    """Anonymous and shared memory, with that of workers and scripts."""
    mapped_bytes: int = 0
    """Mapped files."""
    budget_bytes: int = 0
    """What is reserved of the budget."""
    disk_read_bytes: int = 0
    """Bytes that these processes read from devices."""
    disk_write_bytes: int = 0
    """Bytes written to them."""
    net_rx_bytes: int = 0
    """Bytes received."""
    net_tx_bytes: int = 0
    """Bytes sent."""
    done_bytes: int = 0
    """Bytes that the phase's tasks have worked on."""
    nodes: list[NodeSample] = field(default_factory=list[NodeSample])
    """What each node of a cluster had used, where the sample says it."""


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
    argv: list[str] = field(default_factory=list[str])
    """The command line, without secrets; empty where that is not known."""
    host: str = ""
    """The machine that it was begun on."""
    cwd: str = ""
    """The directory that it was begun in."""
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
    reads: list[NodeRead] = field(default_factory=list[NodeRead])
    """Which nodes of a cluster read runs of which, once the job is over."""
    runs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The sorted runs that it wrote: task, path, records, bytes."""
    keeps_code: bool = False
    """Whether the job keeps a copy of its user code while it runs."""
    code_gone: bool = False
    """For a dead job: whether this copy is gone. It was in the job directory."""
    resumed_ms: list[int] = field(default_factory=list[int])
    """When other processes resumed it."""
    report: dict[str, Any] = field(default_factory=dict[str, Any])
    """Its report, once it is over."""

    @property
    def name(self) -> str:
        """The user's name for it, if it has one."""
        return str(self.options.get("name") or "")

    @property
    def inputs(self) -> list[str]:
        """What it reads, as the user gave it."""
        given: list[str] = self.options.get("inputs") or []
        one: str | None = self.options.get("input")
        return [str(name) for name in ([one] if one else given)]

    @property
    def output(self) -> str:
        """What it writes, as the user gave it; empty where it has no output."""
        return str(self.options.get("output") or "")

    def other_options(self) -> dict[str, Any]:
        """Return the options that were given beside name, inputs and output."""
        return {
            name: value
            for name, value in self.options.items()
            if name not in ("name", "command", "inputs", "input", "output", "once", "chain")
            and value not in (None, False, [], "")
        }

    @property
    def once(self) -> str:
        """Why no other process could resume it; empty where one could, as far as it says."""
        return str(self.options.get("once") or "")

    @property
    def resumable(self) -> bool:
        """Whether `gristmill resume` can resume it, as far as its options and the disk tell."""
        if self.state != "dead" or self.code_gone:
            return False
        name = "mapreduce" if self.command in OWN_CODE else self.command
        spec = to_json({name: self.options})
        program, keeps = self.program, self.keeps_code
        return _core.why_not_resumed(spec, program=program, keeps_code=keeps) is None

    @property
    def resumed(self) -> bool:
        """Whether a second process ended it; of a job that is over its report tells, too."""
        return bool(self.resumed_ms) or "KEPT_TASKS" in self.report.get("counters", {})

    @property
    def wall_s(self) -> float:
        """Seconds that it took in all its processes, or has taken so far."""
        of_all = self.end_ms / 1000
        return of_all if self.resumed else float(self.report.get("wall_s", of_all))

    @property
    def processes_s(self) -> list[float]:
        """Seconds of each of the processes that it took."""
        ends = [*self.resumed_ms, self.end_ms]
        return [(end - begin) / 1000 for begin, end in zip([0, *ends], ends, strict=False)]

    @property
    def cpu_s(self) -> float:
        """CPU seconds of all its processes; of one that was killed, up to its last sample."""
        used = sum(float(self.report.get(name) or 0) for name in ("user_s", "sys_s"))
        for begin, end in pairwise([-1, *self.resumed_ms]):
            of_one = [one for one in self.samples if begin <= one.t_ms < end]
            if of_one:
                first, last = of_one[0], of_one[-1]
                used += last.user_s + last.sys_s - first.user_s - first.sys_s
        return used

    def number(self, name: str) -> int:
        """Return a number of the report; 0 where it has none, as another version's may."""
        return int(self.report.get(name) or 0)

    @property
    def work_bytes(self) -> int:
        """Bytes that it worked on: of its input or of its output, whichever are more."""
        return max(self.number("input_bytes"), self.number("output_bytes"))

    def read_so_far(self) -> tuple[int, int]:
        """Return how many records and bytes of the input its tasks have read, or are reading.

        Records are those of tasks that are done; the report of a job that failed has neither.
        """
        done: dict[int, Attempt] = {}
        for attempt in self.attempts:
            if attempt.phase in _REDUCE_PHASES or attempt.phase == "sample":
                continue
            known = done.get(attempt.task)
            if known is None or known.bytes < attempt.bytes or attempt.outcome == "succeeded":
                done[attempt.task] = attempt
        records = sum(attempt.counters.get("MAP_INPUT_RECORDS", 0) for attempt in done.values())
        return records, sum(attempt.bytes for attempt in done.values())

    @property
    def error(self) -> str | None:
        """Why it failed, in a paragraph."""
        failure: dict[str, Any] | None = self.report.get("error")
        return failure.get("message") if failure else None

    @property
    def runs_user_code(self) -> bool:
        """Whether it is a job of user code, in workers or scripts."""
        return self.command in OWN_CODE

    def counters(self) -> dict[str, tuple[int | None, int | None, int]]:
        """Return each counter as Hadoop lays them out: map, reduce, total.

        Map and reduce are None where it is not known which had how much: they add up to the total,
        or they are not told.
        """
        found: dict[str, list[int]] = {}
        for attempt in self.attempts:
            side = 1 if attempt.phase in _REDUCE_PHASES else 0
            for name, amount in attempt.counters.items():
                found.setdefault(name, [0, 0])[side] += amount
        totals: dict[str, int] = {name: sum(sides) for name, sides in found.items()}
        totals |= self.report.get("counters", {})
        table: dict[str, tuple[int | None, int | None, int]] = {}
        for name, total in sorted(totals.items()):
            on_map, on_reduce = _sides(name, total, found.get(name))
            table[name] = (on_map, on_reduce, total)
        return table

    def user_counters(self) -> dict[str, dict[str, int]]:
        """Return the counters of the job's functions or scripts: groups, and in them names."""
        found: dict[str, dict[str, int]] = self.report.get("user_counters") or {}
        return found


def _sides(name: str, total: int, found: list[int] | None) -> tuple[int, int] | tuple[None, None]:
    """What of a counter belongs to maps, and what to reduces, if they add up to the total."""
    if found is not None and sum(found) == total:
        return found[0], found[1]
    if total == 0:
        return 0, 0
    of_reduces = name.startswith(("REDUCE_", "SHUFFLE")) or name.endswith(("_REDUCES", "_SHUFFLE"))
    if of_reduces:
        return 0, total
    if name.startswith("MAP_") or name.endswith("_MAPS"):
        return total, 0
    return None, None
