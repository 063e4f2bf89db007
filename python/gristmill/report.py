"""The report of a job, typed.

The engine's `JobReport` (crates/engine/src/jobs/report.rs) field by field: its JSON is what
`--json` prints and what these classes are made from. A field that only one side has is an error,
which tests/test_api.py finds before a user does.
"""

from dataclasses import asdict, dataclass, field
from typing import Literal, Self

from gristmill.names import from_json, to_json

__all__ = ["Failure", "JobReport", "Phase", "Status"]

Status = Literal["succeeded", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A stage of a job: what it took."""

    name: str
    """Its name, such as `map`."""
    tasks: int
    """Its tasks; 0 of a step that is not a stage of tasks."""
    wall_s: float
    """Seconds from its beginning to its end."""
    user_s: float
    """CPU seconds in user mode: of this process, and of the workers and scripts below it."""
    sys_s: float
    """CPU seconds in the kernel, likewise."""
    own_s: float = 0.0
    """Of both together, those of this process alone."""
    read_bytes: int = 0
    """Bytes that these processes read from devices."""
    write_bytes: int = 0
    """Bytes that they wrote to devices."""
    machine: dict[str, float] = field(default_factory=dict[str, float])
    """CPU seconds of the machine: user, sys, iowait, steal, idle."""
    slots: int = 1
    """Tasks that could run at the same time; 1 of a step."""
    processors: int = 1
    """Processors that these could use."""
    running_s: float = 0.0
    """Seconds of all attempts together."""
    user_code: bool = False
    """Whether tasks ran user code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What made a job fail."""

    kind: str
    """The stable name of the kind of error, such as `disk_full`."""
    message: str
    """One paragraph for people."""
    context: dict[str, str] = field(default_factory=dict[str, str])
    """Where it happened: file, offset, record and the like, by name."""
    details: dict[str, str] = field(default_factory=dict[str, str])
    """What is too long for a paragraph: `traceback`, `stderr`, `stack`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """What a job did, used and proved.

    Example:
        >>> report = JobReport.refused("job_1", "teragen", "cannot read the options: no rows.")
        >>> report.status, report.error.kind, report.records
        ('failed', 'bad_option', 0)
        >>> JobReport.from_json(report.to_json()) == report
        True
    """

    job_id: str
    """The job's name."""
    command: str
    """Its command."""
    status: Status
    """How it ended."""
    wall_s: float = 0.0
    """Seconds from beginning to end."""
    user_s: float = 0.0
    """CPU seconds in user mode: of this process, and of the workers and scripts below it."""
    sys_s: float = 0.0
    """CPU seconds in the kernel, likewise."""
    peak_anon_bytes: int = 0
    """Peak of the process's anonymous and shared memory, with that of its workers or scripts."""
    peak_mapped_bytes: int = 0
    """Peak of its mapped files: page cache that happens to be mapped."""
    budget_peak_bytes: int = 0
    """Peak of what was reserved from the budget."""
    memory_bytes: int = 0
    """The budget."""
    workers: int = 0
    """Tasks at once."""
    input_bytes: int = 0
    """Bytes read."""
    output_bytes: int = 0
    """Bytes of output."""
    bytes_per_s: float = 0.0
    """Bytes a second, from beginning to end: of the output, or of a longer input."""
    durable: bool | None = None
    """Whether the job waited until its output was durable; `null` if it has no output."""
    records: int = 0
    """Records of the output (of the input, where there is no output)."""
    duplicate_keys: int = 0
    """Records that the order cannot tell from the one before: of a sort by `-k`, equal lines."""
    checksum: str = "0"
    """The sum of the records' CRC-32s, in hexadecimal."""
    parts: int = 0
    """Part files."""
    phases: tuple[Phase, ...] = ()
    """The stages, in order."""
    counters: dict[str, int] = field(default_factory=dict[str, int])
    """Counters by Hadoop's names."""
    user_counters: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """The counters of user code: groups, and in them names."""
    report: tuple[str, ...] = ()
    """Lines of a validator's report."""
    left_out: tuple[str, ...] = ()
    """Of a sort of tables: the first rows that were left out, at most 20, each with its place."""
    misorders: int = 0
    """Records or files out of order that a validator found."""
    history: str | None = None
    """The directory of the job's history, if one is kept."""
    warnings: tuple[str, ...] = ()
    """What went not as it should, and did no harm to the job."""
    notices: tuple[str, ...] = ()
    """What the user was told before the job's tasks began."""
    error: Failure | None = None
    """What went wrong, if anything did."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the report that the engine wrote as `text`."""
        fields = from_json(text)
        fields["phases"] = tuple(Phase(**phase) for phase in fields["phases"])
        fields["report"] = tuple(fields["report"])
        fields["left_out"] = tuple(fields["left_out"])
        fields["warnings"] = tuple(fields["warnings"])
        fields["notices"] = tuple(fields["notices"])
        fields["error"] = fields["error"] and Failure(**fields["error"])
        return cls(**fields)

    @classmethod
    def refused(
        cls,
        job_id: str,
        command: str,
        message: str,
        option: str | None = None,
        *,
        kind: str = "bad_option",
    ) -> Self:
        """Return the report of a job that never began, for its options made no sense, or so.

        Args:
            job_id: The job's name.
            command: Its command.
            message: What is wrong, as a paragraph.
            option: The option that is wrong, if it is known.
            kind: What kind of thing went wrong, by the engine's name for it.
        """
        details = {} if option is None else {"option": option}
        error = Failure(kind=kind, message=message, details=details)
        status = "cancelled" if kind == "cancelled" else "failed"
        return cls(job_id=job_id, command=command, status=status, error=error)

    def to_json(self) -> str:
        """Return the report as one line of JSON, in the engine's form."""
        return to_json(asdict(self))
