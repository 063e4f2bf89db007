"""json.md: what `--json` prints, command by command, from the classes that are printed."""

from typing import get_args

from gristmill.cli.doctor.verdicts import Verdict
from reference import json_measured as measured
from reference.markdown import code, document, plain, table
from reference.sources import python_fields, rust_fields

__all__ = ["BUILD", "CHECK", "DEMO", "EXPLAIN", "JOBS", "PRUNE", "SHOWN", "page"]

_INTRODUCTION = """\
A command with `--json` prints one JSON value in one line, on standard output (`grep`: on standard
error; `sort` needs `-o`), whatever happens:
also where the job failed, and where the command line was refused. A command that could not do its
work, and has no report, prints
`{"status": "failed", "exit_code": 1, "error": {"message": "..."}}`.
`run --explain` prints the plan of `gristmill explain`, with the job's `name`, and in `then` the
names of the other jobs of a chain; `streaming --explain` has pairs of a name and a text, in
`explained`. Messages for people go to standard error. Fields may be added in later versions; none
changes its meaning. Bytes and milliseconds are whole numbers, seconds have fractions (`_s`). A name
of a file
that is not UTF-8 has `\\udcXX` for a byte XX, as in Python."""

JOBS = {
    "job_id": "The job's name.",
    "command": "Its command.",
    "name": "What it was named by its user; may be empty.",
    "inputs": "Its inputs, as they were given.",
    "output": "Its output, as it was given.",
    "state": "`running`, `succeeded`, `ended early` (the reader of its output went away), "
    "`failed`, `cancelled`, `dead`; `unreadable`, with `error`, of a history that cannot be read.",
    "resumable": "Whether `gristmill resume` takes it.",
    "began_unix_ms": "When it began, in milliseconds since 1970.",
    "wall_s": "How long it has taken.",
    "input_bytes": "Bytes read; `null` where that is not known.",
    "records": "Records; `null` where that is not known.",
}
"""An entry of `gristmill jobs --json`."""

PRUNE = {
    "removed": "The jobs whose histories were removed.",
    "folders": "The directories of dead jobs that were removed.",
    "dry_run": "Whether nothing was removed in fact.",
}
CHECK = {
    "deterministic": "Whether no trial differs.",
    "trials": "The trials that were run.",
    "differences": "What differs, the first difference of each trial.",
    "notes": "Sentences on what is not a fault: an order that is relied on, an empty output.",
}
BUILD = {
    "version": "The version.",
    "commit": "The commit that was built, with `+changes` if its sources differ; `null` where it "
    "is not known.",
    "profile": "`release`, or `debug`, which is many times slower.",
    "target": "The platform that it was built for.",
    "features": "The stores of others that it has.",
    "python": "The version of Python.",
    "packages": "Packages found here that formats and commands use.",
}
EXPLAIN = {
    "rates": "Bytes per second of the output's device, measured now; `null` where that cannot be.",
    "floor_s": "Seconds that reading and writing alone take at these rates.",
    "refusal": "Why the job would be refused, as a paragraph; `null` where it would not.",
}
"""What `gristmill explain --json` adds to the plan."""
DEMO = {
    "gb_per_s": "Gigabytes per second of the sort.",
    "share_of_floor": "The floor's time, divided by that of the sort.",
    "cpu_s_per_gb": "CPU seconds of the sort for each gigabyte.",
    "floor": "Seconds of a cached read and of a direct write of the same bytes.",
    "same_bytes_with_one_worker": "Always `true`: else the demo fails.",
    "steps": "The reports of the other jobs.",
}
"""What `gristmill demo --json` has under `demo`."""
SHOWN = {
    "wall_s": "Seconds that it took in all its processes, or has taken so far.",
    "cpu_s": "CPU seconds of all its processes.",
    "processes_s": "Seconds of each process: several of a resumed job.",
}
"""What `gristmill jobs show --json` has beside the history."""
_PHASE = [("busy", "The share of its processors that it used."), ("cause", "What held it back.")]
_NODE = [
    ("check", "What was looked at."),
    ("node", "Where."),
    ("verdict", f"{', '.join(f'`{verdict}`' for verdict in get_args(Verdict))}."),
    ("found", "What there is."),
    ("expected", "What is needed."),
    ("advice", "What to do; empty where nothing is."),
]


def page() -> str:
    """Return the page."""
    return document(
        "JSON output",
        _INTRODUCTION,
        "## JobReport",
        "Printed by `sort`, `wordcount`, `teragen`, `terasort`, `teravalidate`, `cp`, `resume`, "
        "`run`, `streaming` and `demo`; in Python, what the functions return.",
        _fields(python_fields("report.py", "JobReport")),
        "`run` of a chain, and `resume` of one, print the report of the last job, and in `chain`"
        " the reports of all its jobs, in order, each with the job's `name`. Where one failed there"
        " is its report alone; "
        "the `context` of its `error` says which it is, as `job of the chain`.",
        "### An entry of `phases`",
        _fields([*python_fields("report.py", "Phase"), *_PHASE]),
        "### `error`",
        _fields(python_fields("report.py", "Failure")),
        "## gristmill demo",
        "The report of the sort, and under `demo`:",
        _fields(DEMO.items()),
        "## gristmill explain",
        _fields([*rust_fields("plan/explain.rs", "Explanation"), *EXPLAIN.items()]),
        *_parts_of_plan(),
        "## gristmill jobs",
        "A list of:",
        _fields(JOBS.items()),
        "## gristmill jobs show",
        "The history, put together; the file itself is described in "
        "[internals](../internals/history.md).",
        _fields([*python_fields("history/model.py", "JobHistory"), *SHOWN.items()]),
        "### An entry of `attempts`",
        _fields(python_fields("history/model.py", "Attempt")),
        "### An entry of `samples`",
        _fields(python_fields("history/model.py", "Sample")),
        "### With `--logs`",
        "A list of:",
        _fields(python_fields("history/logs.py", "Printed")),
        "## gristmill jobs prune",
        _fields(PRUNE.items()),
        "## gristmill check",
        _fields(CHECK.items()),
        "### An entry of `differences`",
        _fields(python_fields("mapreduce/check/determinism.py", "Difference")),
        "## gristmill doctor",
        "A list of:",
        _fields(_NODE),
        "## gristmill grep",
        "With `--json` the summary goes to standard error, since matches go to standard output:",
        _fields(measured.GREP.items()),
        "## gristmill bench run, gristmill bench report",
        "`bench report` adds `rules`.",
        _fields(measured.BENCH.items()),
        "### An entry of `figures`",
        "Beside these it has each figure that its step has: `gb_per_s`, `tb_per_min`, "
        "`cpu_s_per_gb`, `user_s_per_gb`, `sys_s_per_gb`, `floor_share`, `usd_per_tb`, `joules`. "
        "`seconds` and these are summaries.",
        _fields(measured.FIGURES.items()),
        "### A summary",
        _fields(measured.SUMMARY.items()),
        "### An entry of `rules`",
        _fields(measured.RULE.items()),
        "## gristmill bench compare",
        _fields(measured.COMPARE.items()),
        "### An entry of `comparisons`",
        _fields(measured.COMPARISON.items()),
        "## gristmill scale fit, gristmill scale run",
        _fields(measured.FIT.items()),
        "### A figure, such as `sigma`",
        _fields(measured.ESTIMATE.items()),
        "### `cause`",
        _fields(measured.CAUSE.items()),
        "## gristmill --version",
        _fields(BUILD.items()),
    )


def _parts_of_plan() -> list[str]:
    parts = {
        "An entry of `reservations`": "PlannedMemory",
        "An entry of `stages`": "PlannedStage",
        "An entry of `disks`": "PlannedDisk",
        "An entry of `stores`": "PlannedStore",
        "`copies` of such an entry": "PlannedCopies",
    }
    return [
        text
        for heading, struct in parts.items()
        for text in (
            f"### {heading}",
            _fields(rust_fields("plan/explain.rs", struct)),
        )
    ]


def _fields(fields: "object") -> str:
    rows = [[code(name), plain(text)] for name, text in fields]  # type: ignore[attr-defined]
    return table(["field", "what it is"], rows)
