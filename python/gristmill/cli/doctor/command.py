"""The command line of `gristmill doctor`."""

import os

import click

from gristmill import _core
from gristmill.cli.doctor.verdicts import Check
from gristmill.cli.failures import DONE, FAILED, Refused
from gristmill.cli.generated import JobCommand, Places, files
from gristmill.cluster import node_checks
from gristmill.cluster.node_checks import NodeCheckRequest
from gristmill.names import to_json
from gristmill.terminal import console, signals
from gristmill.units import show_count

__all__ = ["doctor"]

_FIELDS = ("check", "node", "verdict", "found", "expected", "advice")


def _run(paths: tuple[str, ...], on: str, spill_dir: tuple[str, ...], *, as_json: bool) -> int:
    if "" in (*paths, *spill_dir):
        raise Refused("a path is empty", "name a directory")
    if on == "local" and not paths and not spill_dir:
        paths = (".",)  # where outputs, and runs beside them, go by default
    located = [_core.as_location(path) for path in paths]
    asked = NodeCheckRequest(
        paths=tuple(_absolute(path) for path in located if not _core.is_remote(path)),
        places=tuple(path for path in located if _core.is_remote(path)),
        spill_dir=tuple(map(_absolute, spill_dir)),
    )
    title, checks = _on_ray(asked) if on == "ray" else _here(asked)
    if as_json:
        console.put(to_json([{name: getattr(one, name) for name in _FIELDS} for one in checks]))
    else:
        from gristmill.cli.doctor.table import say_checks

        say_checks(title, checks)
    return FAILED if any(check.verdict == "wrong" for check in checks) else DONE


def _here(asked: NodeCheckRequest) -> tuple[str, list[Check]]:
    from gristmill.cli.doctor.findings import of_machine

    return "This machine", of_machine(node_checks.machine_found(asked), asked)


def _on_ray(asked: NodeCheckRequest) -> tuple[str, list[Check]]:
    from gristmill.cli.doctor.findings import of_cluster

    try:
        with signals.deferred() as pending:
            found = node_checks.cluster_found(asked, pending.check)
    except (ValueError, OSError) as error:
        what, _, advice = str(error).partition(" What to do: ")
        what = what.removeprefix("cannot run the job on the cluster: ").rstrip(".")
        expected, advice = "a Ray cluster", advice.rstrip(".")
        return "No Ray cluster", [
            Check("cluster", node_checks.HERE, "wrong", what, expected, advice),
        ]
    nodes = show_count(len(found.nodes), "node")
    idle = f" (and {show_count(len(found.idle), 'node')} without CPUs)" if found.idle else ""
    return f"Ray cluster {found.address}: {nodes}{idle}", of_cluster(found, asked)


def _absolute(path: str) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - links stay


doctor = JobCommand(
    name="doctor",
    help="Check that jobs can run: versions, clocks, processors, memory, open files, room for"
    " runs and shared directories. On a cluster, also check that agents reach each other. Files"
    " that it writes are removed at the end. The exit code is 1 if something is wrong.",
    short_help="Check that jobs can run here, or on a Ray cluster, and say what to do",
    params=[
        click.Argument(
            ["paths"], nargs=-1, required=False, metavar="[PATH]...", type=str, shell_complete=files
        ),
        click.Option(
            ["--on"],
            type=Places(["local", "ray"]),
            default="local",
            help="What to check: this machine, or all nodes of a Ray cluster (the one of"
            " RAY_ADDRESS, or of this machine).  [default: local]",
        ),
        click.Option(
            ["--spill-dir", "spill_dir"],
            multiple=True,
            metavar="PATH",
            help="A directory for sorted runs, as for jobs; repeatable.  [default: the"
            " temporary directory of each node; on this machine, none]",
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="Print the checks as a JSON list."),
    ],
    callback=_run,
    example="gristmill doctor --on ray --spill-dir /local/disk /shared",
    arguments=[("PATH...", "Directories that jobs read and write; also in S3 and HDFS.")],
)
