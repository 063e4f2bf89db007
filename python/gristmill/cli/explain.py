"""`gristmill explain sort …` and `gristmill explain terasort …`: the plan, without doing it.

    command line of the job ──▶ engine's plan ─┐
    a try of the output's device, a second ────┴──▶ a page for people, or --json

The plan comes from the same code that the job follows; what the device gives is measured now.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

import click

from gristmill import _core
from gristmill.cli import console
from gristmill.cli.failures import DONE, FAILED, WRONG, fail
from gristmill.cli.generated import HISTORY, JobCommand, command_of
from gristmill.options import Value, commands, spec
from gristmill.units import show_bytes, show_count, show_rate, show_seconds

__all__ = ["Explain"]

_EXPLAINED = ("sort", "terasort")
_PROBE_BYTES = 128_000_000
_MODES = {"memory": "memory", "runs": "runs on disk"}

Plan = dict[str, Any]


class Explain(click.Group):
    """A group with the commands that have a plan; they take the options of the job."""

    def __init__(self) -> None:
        super().__init__(
            name="explain",
            help="Say what a sort would do: passes, memory, disk space, time; without doing it.",
        )

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the commands that have a plan."""
        return list(_EXPLAINED)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command that explains `cmd_name`."""
        found = commands().get(cmd_name) if cmd_name in _EXPLAINED else None
        if found is None:
            return None
        job = command_of(found)
        return JobCommand(
            name=cmd_name,
            help=f"Say what the same {cmd_name} would do, without doing it.",
            params=[option for option in job.params if option is not HISTORY],
            callback=partial(_explain, cmd_name),
            example=found.example.replace("gristmill ", "gristmill explain ", 1),
            arguments=job.arguments,
        )


def _explain(command: str, *, as_json: bool, **values: Value) -> int:
    try:
        plan: Plan = json.loads(_core.explain(spec(command, values), command_line=True))
    except (ValueError, OSError, MemoryError) as error:
        fail(f"explain {command}", str(error))
        return WRONG if "cannot read the options" in str(error) else FAILED
    plan["rates"] = _rates(Path(plan["disks"][0]["path"]))
    plan["floor_s"] = _floor_s(plan)
    plan["refusal"] = _refusal(plan)
    if as_json:
        console.say(json.dumps(plan))
    else:
        console.say(*_page(plan))
    return FAILED if plan["refusal"] else DONE


def _rates(folder: Path) -> dict[str, float] | None:
    """Bytes per second of the output's device; `None` where it cannot be tried."""
    try:
        write, read, cached = _core.device_rates(folder, _PROBE_BYTES, 2)
    except OSError:
        return None
    return {"write": write, "read": read, "cached_read": cached}


def _floor_s(plan: Plan) -> float | None:
    """Seconds for the plan's reads and writes alone, one after another, at the device's rates."""
    if plan["rates"] is None:
        return None
    reads = sum(stage["reads"] for stage in plan["stages"])
    writes = sum(stage["writes"] for stage in plan["stages"])
    return reads / plan["rates"]["read"] + writes / plan["rates"]["write"]


def _refusal(plan: Plan) -> str | None:
    """Why the job would be refused for want of disk space, if it would."""
    outputs = [disk for disk in plan["disks"] if disk["purpose"] == "output"]
    spills = [disk for disk in plan["disks"] if disk["purpose"] != "output"]
    for disks in (outputs, spills):
        frees = [disk["free"] for disk in disks]
        if disks and None not in frees and sum(frees) < disks[0]["needs"]:
            first = disks[0]
            needs = f"{first['purpose']} needs {show_bytes(first['needs'])} in {first['path']}"
            return f"{needs}, and {show_bytes(sum(frees))} are free"
    return None


def _page(plan: Plan) -> list[str]:
    return [
        f"{plan['command']} in {_MODES[plan['mode']]}: {plan['reason']}",
        "",
        *_facts(plan),
        "",
        f"  {'stage':<12} {'tasks':>6} {'reads':>10} {'writes':>10}",
        *(
            f"  {stage['name']:<12} {stage['tasks']:>6} {show_bytes(stage['reads']):>10}"
            f" {show_bytes(stage['writes']):>10}"
            for stage in plan["stages"]
        ),
        "",
        f"  {'memory for':<46} {'bytes':>10}",
        *(f"  {part['name']:<46} {show_bytes(part['bytes']):>10}" for part in plan["reservations"]),
        "",
        f"  {'disk for':<46} {'needs':>10} {'free':>10}",
        *(_disk(disk) for disk in plan["disks"]),
        "",
        _time(plan),
        *([f"It would be refused: {plan['refusal']}."] if plan["refusal"] else []),
    ]


def _facts(plan: Plan) -> list[str]:
    records = "" if plan["records"] is None else f", {show_count(plan['records'], 'record')}"
    files, parts = show_count(plan["files"], "file"), show_count(plan["parts"], "file")
    ranges, workers = show_count(plan["buckets"], "range"), show_count(plan["workers"], "worker")
    lines = [
        f"  input        {show_bytes(plan['input_bytes'])} in {files}{records}",
        f"  output       {parts}, {ranges} of keys",
        f"  budget       {show_bytes(plan['memory_bytes'])} for {workers}",
    ]
    if plan["runs"]:
        passes = show_count(plan["passes"], "pass").replace("passs", "passes")
        lines.append(
            f"  runs         {plan['runs']:,}, merged {plan['fan_in']} at once at most,"
            f" {passes} before the last merge"
        )
    return lines


def _disk(disk: dict[str, Any]) -> str:
    free = "unknown" if disk["free"] is None else show_bytes(disk["free"])
    label = f"{disk['purpose']} ({disk['path']})"
    return f"  {label:<46} {show_bytes(disk['needs']):>10} {free:>10}"


def _time(plan: Plan) -> str:
    if plan["rates"] is None:
        return "The output's device could not be tried: no time is predicted."
    rates = plan["rates"]
    return (
        f"At least {show_seconds(plan['floor_s'])} for reads and writes one after another:"
        f" the device reads {show_rate(rates['read'], 1)} and writes {show_rate(rates['write'], 1)}"
        f" now (the page cache gives {show_rate(rates['cached_read'], 1)})."
    )
