"""What a command says of its job without --json.

Of teragen and terasort: on stdout, a few lines for people. Of teravalidate: on stdout, its report,
line for line as Hadoop's TeraValidate writes it, and on stderr one line that says how things stand.
Of cp: what was copied; of its dry run a line for each file, and on stderr their number.
Of those that can write to stdout, sort and distinct: nothing but to a person at a terminal, on
stderr. Of user code: what it did, and its counters; of scripts, on stderr, as Hadoop does.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gristmill.names import to_json
from gristmill.options import Value, commands
from gristmill.report import JobReport
from gristmill.terminal import console
from gristmill.units import WORTH_A_RATE_BYTES, show_bytes, show_count, show_rate, show_seconds

__all__ = ["chain_lines", "cost_lines", "json_of", "say_done", "say_outcome"]


def say_outcome(report: JobReport, values: Mapping[str, Value]) -> None:
    """Say what a job did, or as much of it as it did before it failed."""
    if report.command in ("mapreduce", "streaming"):
        _say_own_code(report, values)
    elif report.command == "teravalidate":
        console.say(*(line for entry in report.report for line in entry.split("\n")))
        if report.error is None:
            console.note(_verdict(report), *cost_lines(report)[:1])
    elif report.command == "cp":
        _say_copied(report, values)
    elif commands()[report.command].writes_streams:
        is_whole = report.error is None and not values.get("check")
        if is_whole and console.is_terminal(sys.stderr):
            console.note(*_written_whole(report), *_limits(report, values))
    elif report.error is None:
        durable = "durable" if report.durable else "not waited until durable"
        console.say(
            f"{show_count(report.records, 'record')}, {show_bytes(report.output_bytes)},"
            f" in {show_count(report.parts, 'file')} of {values['output']}, {durable}",
            _proof(report),
            *cost_lines(report),
            *_limits(report, values),
        )


def _say_copied(report: JobReport, values: Mapping[str, Value]) -> None:
    """Of a dry run, a line for each file; else what was copied."""
    if report.report:
        console.say(*report.report)
    if report.error is not None:
        return
    counters = report.counters
    there = counters.get("SKIP", 0)
    same = f", {show_count(there, 'file')} there already" if there else ""
    gone = counters.get("DELETED_FILES", 0)
    removed = f", {show_count(gone, 'name')} removed" if gone else ""
    copied = f"{show_count(report.records, 'file')}, {show_bytes(counters['BYTESCOPIED'])}"
    if report.durable is None:
        console.note(f"{copied} to copy to {values['output']}{same}")
        return
    durable = "durable" if report.durable else "not waited until durable"
    console.say(
        f"{copied} copied to {values['output']}{same}{removed}, {durable}",
        *cost_lines(report),
        *_limits(report, values),
    )


def json_of(report: JobReport, of_chain: Sequence[tuple[str, JobReport]] = ()) -> str:
    """Return a job's report as `--json` prints it: the engine's, with what held each phase back.

    Args:
        report: Its report.
        of_chain: Of a chain, the names and reports of all its jobs.
    """
    fields = _fields_of(report)
    if of_chain:
        fields["chain"] = [{"name": name, **_fields_of(one)} for name, one in of_chain]
    return to_json(fields)


def _fields_of(report: JobReport) -> dict[str, Any]:
    from gristmill.history.causes import use_of

    fields = asdict(report)
    for phase, use in zip(fields["phases"], map(use_of, report.phases), strict=True):
        phase |= {"busy": round(use.busy, 3), "cause": use.cause}
    return fields


def _say_own_code(report: JobReport, values: Mapping[str, Value]) -> None:
    """As `gristmill run` and `gristmill streaming` say it; here the job was resumed."""
    if report.error is not None:
        from gristmill.mapreduce.results.exception_notes import failure_notes

        for note in failure_notes(report.error, report.job_id):
            console.note(*note.split("\n"))
    elif report.command == "streaming":
        from gristmill.streaming.counters import counter_lines

        console.note(*counter_lines(report, values["output"]))
    else:
        say_done(report, values["output"])


def say_done(
    report: JobReport,
    output: object,
    left_out: Mapping[str, int] | None = None,
    of_chain: Sequence[tuple[str, JobReport]] = (),
) -> None:
    """Say what a job of Python functions did.

    Args:
        report: Its report.
        output: Its output.
        left_out: How many bad records it and those of its chain before it left out, by the
            directories that keep them.
        of_chain: Of a chain, the names and reports of all its jobs.
    """
    from gristmill.cli.render.bottlenecks import limit_lines
    from gristmill.mapreduce.results.result import LEFT_OUT

    skipped = sum(report.counters.get(name, 0) for name in LEFT_OUT)
    places = left_out or ({str(output): skipped} if skipped else {})
    written = _written(report, output, with_bad=str(output) in places)
    costs = chain_lines(of_chain) if of_chain else [*cost_lines(report), *limit_lines(report)]
    console.say(f"{written}{_but(places)}", *costs)
    for place, number in places.items():
        kept = f"kept in {place}/_bad-*" if place else "kept nowhere"
        console.say(f"{show_count(number, 'bad record')} left out, {kept}")
    for group, counters in report.user_counters.items():
        console.say(f"{group}: " + ", ".join(f"{name} {n:,}" for name, n in counters.items()))


def _written(report: JobReport, output: object, *, with_bad: bool) -> str:
    """What a job wrote, without the bad records that it kept there."""
    from gristmill.mapreduce.results.result import parts_of

    size, files = report.output_bytes, report.parts
    if with_bad:
        with suppress(OSError, ValueError):  # the report says nearly as much
            bad = [part for part in parts_of(str(output)) if part.is_bad]
            size -= sum(part.bytes for part in bad)
            files -= len(bad)
    what = f"{show_count(report.records, 'record')}, {show_bytes(size)}"
    return f"{what}, in {show_count(files, 'file')} of {output}"


def _but(places: Mapping[str, int]) -> str:
    skipped = sum(places.values())
    return f"; {skipped:,} left out" if skipped else ""


def _limits(report: JobReport, values: Mapping[str, Value]) -> list[str]:
    from gristmill.cli.render.bottlenecks import bottleneck_lines

    output = values["output"]
    folder = Path(output).parent if isinstance(output, str) else Path()
    return bottleneck_lines(report, folder) if report.command in ("sort", "terasort") else []


def _written_whole(report: JobReport) -> list[str]:
    what = f"{show_count(report.records, 'record')}, {show_bytes(report.output_bytes)}"
    if report.command != "sort":
        return [f"{what}, {_proof(report)}", *cost_lines(report)]
    spilled = report.counters.get("SPILLED_RUNS", 0)
    proof = f"in order, checksum {report.checksum}, {show_count(spilled, 'run')}"
    return [f"{what}, {proof}", *cost_lines(report)]


def cost_lines(report: JobReport) -> list[str]:
    """Return what the job took: time and CPU time, memory."""
    work_bytes = max(report.input_bytes, report.output_bytes)
    cpu_s = report.user_s + report.sys_s
    if work_bytes < WORTH_A_RATE_BYTES:  # starting up is most of it
        cpu = f", {cpu_s:.2f} CPU seconds"
    else:
        cpu = f", {cpu_s / work_bytes * 1e9:.2f} CPU seconds per GB"
    rate = f": {show_rate(report.bytes_per_s, 1)}" if work_bytes else ""
    # Workers have memory of their own, beside what the budget is for.
    of = "with workers, budget" if report.command == "mapreduce" else "of"
    return [
        f"{show_seconds(report.wall_s)}{rate} with {show_count(report.workers, 'worker')}{cpu}",
        f"peak memory {show_bytes(report.peak_anon_bytes)} {of} {show_bytes(report.memory_bytes)},"
        f" mapped files apart ({show_bytes(report.peak_mapped_bytes)})",
    ]


def chain_lines(of_chain: Sequence[tuple[str, JobReport]]) -> list[str]:
    """Return what each job of a chain took, and all of them together."""
    lines: list[str] = []
    for number, (name, report) in enumerate(of_chain, 1):
        took, memory = cost_lines(report)
        lines.append(f"job {number}, {name}: {took}, {memory.partition(' with')[0]}")
    reports = [report for _, report in of_chain]
    wall_s = sum(report.wall_s for report in reports)
    cpu_s = sum(report.user_s + report.sys_s for report in reports)
    return [*lines, f"in all {show_seconds(wall_s)}, {cpu_s:.2f} CPU seconds"]


def _proof(report: JobReport) -> str:
    from gristmill.history.proof import proved

    if report.command == "teragen":
        return f"checksum {report.checksum}"
    return f"proved: {proved(report.command, asdict(report))}"


def _verdict(report: JobReport) -> str:
    return (
        f"in order: {show_count(report.records, 'record')},"
        f" {show_count(report.duplicate_keys, 'duplicate key')}, checksum {report.checksum}"
    )
