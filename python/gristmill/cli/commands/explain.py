"""`gristmill explain COMMAND …`: the plan of a job, without doing it.

    command line of the job ──▶ engine's plan ─┐
    a try of the output's device, a second ────┴──▶ a page for people, or --json

The plan comes from the same code that the job follows; what the device gives is measured now.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from gristmill import _core
from gristmill.cli.environment import environment_note
from gristmill.cli.failures import DONE, FAILED, WRONG, Refused, as_typed, fail
from gristmill.cli.generated import JobCommand, command_of, help_options
from gristmill.cli.groups import CommandGroup
from gristmill.cli.render.shuffle_lines import shuffle_lines
from gristmill.cli.runner import check_paths
from gristmill.cluster import planned, where_tasks_run
from gristmill.columnar import as_csv
from gristmill.errors import is_of_system, kind_of, option_of
from gristmill.locations import is_remote
from gristmill.names import from_json, to_json
from gristmill.options import HISTORY, Value, commands, spec
from gristmill.terminal import console
from gristmill.units import show_bytes, show_count, show_rate, show_seconds

__all__ = ["explain"]

_ELSEWHERE = {
    "run": "gristmill run FILE --explain says what a job of your own functions would do",
    "streaming": "add --explain to the command line of gristmill streaming",
}
"""Commands that explain their jobs themselves."""
_PROBE_BYTES = 128_000_000
_MODES = {"memory": "in memory", "runs": "in runs on disk", "maps": "by maps alone"}

Plan = dict[str, Any]


class _Explain(CommandGroup):
    """A group with the commands that have a plan; they take the options of the job."""

    def __init__(self) -> None:
        super().__init__(
            name="explain",
            help="Show the plan of a job, without running it: stages, memory, disk space, time.",
        )

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the commands that have a plan."""
        return [command.name for command in commands().values() if command.explained]

    def advice(self, name: str) -> str:
        """Return how other jobs are explained."""
        return _ELSEWHERE.get("run" if name.endswith(".py") else name, "")

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command that explains `cmd_name`."""
        found = commands().get(cmd_name)
        if found is None or not found.explained:
            return None
        job = command_of(found)
        return JobCommand(
            name=cmd_name,
            help=f"Show the plan of this {cmd_name}, without running it.",
            params=[option for option in job.params if option.name != HISTORY.name],
            callback=partial(_explain, cmd_name),
            example=found.example.replace("gristmill ", "gristmill explain ", 1),
            arguments=job.arguments,
            context_settings=help_options(found),
        )


explain = _Explain()


def _explain(command: str, *, as_json: bool, **values: Value) -> int:
    check_paths(command, values)
    if values.get("check"):
        raise Refused("a check has no plan: it reads the input once", "leave -c out")
    try:
        cluster = planned(values)
        with as_csv(commands()[command], values) as tables:
            asked = values if tables is None else {**tables.values, "output": values["output"]}
            plan: Plan = from_json(
                _core.explain(spec(command, asked), cluster=cluster, command_line=True)
            )
            if tables is not None:
                plan["streams"] = list(map(tables.told, plan["streams"]))
    except (ValueError, OSError, MemoryError, ImportError) as error:
        if is_of_system(error):
            raise
        kind = kind_of(error)
        fail(f"explain {command}", f"{as_typed(error)}{environment_note(kind, option_of(error))}")
        return WRONG if kind in (None, "bad_option") else FAILED
    plan["rates"] = _rates(plan, _output_place(plan))
    plan["floor_s"] = _floor_s(plan)
    for store in plan["stores"]:
        store["floor_s"] = _store_floor_s(store)
    plan["refusal"] = _refusal(plan)
    if as_json:
        console.put(to_json(plan))
    else:
        console.say(*_page(plan))
    return FAILED if plan["refusal"] else DONE


def _output_place(plan: Plan) -> str | None:
    """Where the output goes; `None` where it goes to a stream, which is on no disk."""
    return next((disk["path"] for disk in plan["disks"] if disk["purpose"] == "output"), None)


def _rates(plan: Plan, place: str | None) -> dict[str, float] | None:
    """Bytes per second of the output's device; `None` where it cannot be tried."""
    if place is None or plan["streams"] or plan["nodes"] or is_remote(place):
        return None
    try:
        write, read, cached = _core.device_rates(Path(place), _PROBE_BYTES, 2)
    except OSError:
        return None
    return {"write": write, "read": read, "cached_read": cached}


def _floor_s(plan: Plan) -> float | None:
    """Seconds for the plan's reads and writes alone, one after another, at the device's rates.

    Of a job that user code decides about, as far as they are known.
    """
    if plan["rates"] is None:
        return None
    reads = sum(stage["reads"] or 0 for stage in plan["stages"])
    writes = sum(stage["writes"] or 0 for stage in plan["stages"])
    return reads / plan["rates"]["read"] + writes / plan["rates"]["write"]


def _store_floor_s(store: dict[str, Any]) -> float | None:
    """Seconds for a store's bytes alone, at the rate of a short try."""
    if store["tried"] is None or store["bytes"] is None:
        return None
    return store["tried"]["latency_s"] + store["bytes"] / store["tried"]["read"]


def _refusal(plan: Plan) -> str | None:
    """Why the job would be refused for want of disk space, if it would."""
    outputs = [disk for disk in plan["disks"] if disk["purpose"] == "output"]
    spills = [disk for disk in plan["disks"] if disk["purpose"] != "output"]
    for disks in (outputs, spills):
        frees = [disk["free"] for disk in disks]
        known = disks and disks[0]["needs"] is not None
        if known and None not in frees and sum(frees) < disks[0]["needs"]:
            first = disks[0]
            needs = f"{first['purpose']} needs {show_bytes(first['needs'])} in {first['path']}"
            return f"{needs}, and {show_bytes(sum(frees))} are free"
    return None


def _page(plan: Plan) -> list[str]:
    return [
        f"{plan['command']} {_MODES[plan['mode']]}: {plan['reason']}",
        "",
        *_facts(plan),
        "",
        f"  {'stage':<12} {'tasks':>6} {'reads':>10} {'writes':>10}",
        *(
            f"  {stage['name']:<12} {_cell(plan, stage['tasks'], str):>6}"
            f" {_cell(plan, stage['reads'], show_bytes):>10}"
            f" {_cell(plan, stage['writes'], show_bytes):>10}"
            for stage in plan["stages"]
        ),
        "",
        *_apart(shuffle_lines(plan["shuffles"])),
        f"  {_memory_head(plan):<46} {'at most':>10}",
        *(f"  {part['name']:<46} {show_bytes(part['bytes']):>10}" for part in plan["reservations"]),
        "",
        *_disks(plan),
        *_stores(plan["stores"]),
        _time(plan),
        *dict.fromkeys(f"Note: {disk['notice']}" for disk in plan["disks"] if disk["notice"]),
        *([f"It would be refused: {plan['refusal']}."] if plan["refusal"] else []),
    ]


def _memory_head(plan: Plan) -> str:
    """What is planned is the budget, divided up: a small job does not use all of it."""
    return f"memory, out of the budget of {show_bytes(plan['memory_bytes'])}"


def _facts(plan: Plan) -> list[str]:
    records = "" if plan["records"] is None else f", {show_count(plan['records'], 'record')}"
    files = show_count(plan["files"], "file")
    parts = show_count(plan["parts"], "file") if plan["parts"] else "files as the records say"
    ranges = f", {show_count(plan['buckets'], 'range')} of keys" if plan["buckets"] else ""
    workers = show_count(plan["workers"], "worker")
    known = f"{show_bytes(plan['input_bytes'])} in {files}{records}"
    if plan["compressed"]:
        part = "" if plan["compressed"] == plan["files"] else f"{plan['compressed']:,} of them "
        known += f", {part}compressed: how much they hold is not known"
    streams = [f"{name}, whose length is not known" for name in plan["streams"]]
    lines = [
        f"  input        {'; '.join([known] * (plan['files'] > 0) + streams)}",
        f"  output       {parts}{ranges}",
        f"  budget       {show_bytes(plan['memory_bytes'])} for {workers} in"
        f" {where_tasks_run(plan)}",
    ]
    if plan["runs"] and not plan["streams"] and not plan["compressed"]:
        passes = f"{plan['passes']:,} pass{'' if plan['passes'] == 1 else 'es'}"
        lines.append(
            f"  runs         {plan['runs']:,}, merged {plan['fan_in']} at once at most,"
            f" {passes} before the last merge"
        )
    if plan["runs"] and plan["compress_runs"] != "none":
        lines.append(
            f"  compression  {plan['compress_runs']}, of runs; bytes are counted before it"
        )
    return lines


def _cell(plan: Plan, number: int | None, show: Callable[[int], str]) -> str:
    """A number that follows from the length of the input, if that is known."""
    return "?" if plan["streams"] or number is None else show(number)


def _apart(lines: list[str]) -> list[str]:
    """Lines, and an empty one after them."""
    return [*lines, ""] if lines else []


def _disks(plan: Plan) -> list[str]:
    """What is needed on disks of this machine."""
    near = [disk for disk in plan["disks"] if not is_remote(disk["path"])]
    if not near:
        return []
    header = f"  {'disk for':<46} {'needs':>10} {'free':>10}"
    return [header, *(_disk(plan, disk) for disk in near), *_passes(near), ""]


def _passes(disks: list[dict[str, Any]]) -> list[str]:
    """What merge passes have to do with the space for runs."""
    added = max((disk["passes"] or 0 for disk in disks), default=0)
    if not added:
        return []
    return [
        f"  {show_bytes(added)} of it while merge passes write new runs: the old ones go afterwards"
    ]


def _disk(plan: Plan, disk: dict[str, Any]) -> str:
    free = "unknown" if disk["free"] is None else show_bytes(disk["free"])
    label = f"{disk['purpose']} ({disk['path']})"
    return f"  {label:<46} {_cell(plan, disk['needs'], show_bytes):>10} {free:>10}"


def _stores(stores: list[dict[str, Any]]) -> list[str]:
    """What stores of others are asked, and how they answer now."""
    if not stores:
        return []
    lines = [f"  {'store for':<46} {'bytes':>10} {'requests':>10}"]
    for store in stores:
        size = "?" if store["bytes"] is None else show_bytes(store["bytes"])
        requests = "?" if store["requests"] is None else f"{store['requests']:,}"
        label = f"{store['purpose']} ({store['place']})"
        lines.append(f"  {label:<46} {size:>10} {requests:>10}")
    for store in stores:
        if (copies := store["copies"]) is not None:
            files, size = show_count(copies["files"], "file"), show_bytes(copies["bytes"])
            said = "" if copies["proved"] else "; it gives no checksum of copies"
            lines.append(
                f"  {store['place']} copies {files} itself, {size}: none of it comes here{said}"
            )
    lines.append("")
    for store in stores:
        if (tried := store["tried"]) is not None:
            least = "" if store["floor_s"] is None else f"At least {show_seconds(store['floor_s'])}"
            told = f" to read from {store['place']}: it" if least else f"{store['place']}"
            answer = f"{tried['latency_s'] * 1000:.1f} ms"
            rate = show_rate(tried["read"], 1)
            lines.append(f"{least}{told} answers in {answer} and sends {rate} now.")
    return lines


def _time(plan: Plan) -> str:
    if plan["streams"]:
        return "No time is predicted: the length of the input is not known."
    if plan["nodes"]:
        return "No time is predicted: the disks of nodes are not tried."
    if (place := _output_place(plan)) is None:
        return "No time is predicted: the output is a stream, whose reader sets the pace."
    if is_remote(place):
        return "No time is predicted for the output: to try its store would write there."
    if plan["rates"] is None:
        return "The output's device could not be tried: no time is predicted."
    rates = plan["rates"]
    unknown = any(stage["writes"] is None for stage in plan["stages"])
    what = "the reads of the input" if unknown else "reads and writes one after another"
    return (
        f"At least {show_seconds(plan['floor_s'])} for {what}:"
        f" the device reads {show_rate(rates['read'], 1)} and writes {show_rate(rates['write'], 1)}"
        f" now (the page cache gives {show_rate(rates['cached_read'], 1)})."
    )
