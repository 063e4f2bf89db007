"""`gristmill scale run`: measure a job with each p, then fit.

Runs are processes of their own (gristmill.analysis.scale.measuring); this file says what is run and
tells how it goes. Two values of p carry no law: their times are shown, and that is no failure.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gristmill.analysis.runs import Run
from gristmill.analysis.scale.crowding import crowded, uncrowded
from gristmill.cli.failures import DONE, FAILED, Refused, fail
from gristmill.cli.generated import JobCommand
from gristmill.cli.numbers import whole_number
from gristmill.cli.scale.shared import FIT_OPTIONS, Wanted, check_targets, fitted
from gristmill.names import show_path
from gristmill.terminal import console
from gristmill.terminal.signals import Interrupted
from gristmill.units import show_count, show_seconds

if TYPE_CHECKING:
    from gristmill.analysis.scale.measuring import Measuring

__all__ = ["run"]

_NUMBER = re.compile("[0-9]{1,9}")
_TERASORT = ("terasort", "{data}", "{out}")


def _list(_: click.Context, __: click.Parameter, value: str | None) -> list[int]:
    """Values of p, as they are typed: 1,2,4."""
    words = [] if value is None else value.split(",")
    found = [int(word) for word in words if _NUMBER.fullmatch(word)]
    if len(found) != len(words) or 0 in found:
        raise click.BadParameter(f"{value!r} is not a list of whole numbers above 0, such as 1,2,4")
    if len(set(found)) != len(found):
        raise click.BadParameter(f"{value!r} has a number twice; --repeat says how often each runs")
    return found


def _run(
    command: tuple[str, ...],
    workers: list[int],
    nodes: list[int],
    repeat: int,
    warm_up: int,
    rows: str,
    directory: Path,
    *,
    weak: bool,
    keep_data: bool,
    **options: Any,  # noqa: ANN401 - those of a fit
) -> int:
    from gristmill.analysis.scale.measuring import Measuring, RunFailedError, job_commands
    from gristmill.analysis.scale.needs import require

    if bool(workers) == bool(nodes):
        raise Refused("give either --workers or --nodes", "name the values of p: --workers 1,2,4")
    words = _words(command)
    wanted = Wanted(**options)
    measuring = Measuring(
        folder=directory,
        command=words,
        by="workers" if workers else "nodes",
        each_p=workers or nodes,
        repeat=repeat,
        warm_up=warm_up,
        rows=rows if any("{data}" in word for word in words) else None,
        weak=weak,
    )
    if measuring.is_program and not any("{p}" in word for word in words):
        raise Refused(
            f"{words[0]!r} is not a job of gristmill ({', '.join(job_commands())}), so it is a"
            " program, and no word of it has {p}",
            "write {p} where the program takes the number of its workers, such as: -- gristmill"
            " grep the books/ --workers {p}",
        )
    if weak and measuring.rows is None:
        raise Refused(
            "--weak makes the data, and the command has its own", "write {data} for its input"
        )
    try:
        require("scipy", "numpy")
        check_targets(wanted)
        _measure(measuring)
        measuring.clear(keep_data=keep_data)
        return _told(measuring, wanted)
    except (ValueError, ModuleNotFoundError, RunFailedError) as error:
        fail("scale run", str(error))
        _say_data(measuring)
        return FAILED


def _words(command: tuple[str, ...]) -> tuple[str, ...]:
    """The words to run: TeraSort by default, `run FILE` for a job file."""
    if not command:
        return _TERASORT
    return ("run", *command) if command[0].endswith(".py") else command


def _measure(measuring: "Measuring") -> None:
    due = measuring.due()
    said = crowded(measuring.each_p, os.cpu_count() if measuring.by == "workers" else None)
    if said is not None and due:
        console.note(f"gristmill scale run: {said}: they cannot be faster.")
    all_of_it = len(measuring.turns())
    if len(due) < all_of_it:
        kept = show_count(all_of_it - len(due), "run")
        console.note(f"{kept} of {all_of_it} are in {show_path(measuring.folder)} already")
    try:
        for at, (turn, seconds) in enumerate(measuring.run(due), 1):
            which = "warm-up" if turn.warm_up else f"round {turn.round}"
            console.note(f"{at:>4}/{len(due)}  {which:<9} p = {turn.p:<4} {show_seconds(seconds)}")
    except Interrupted:
        console.note("interrupted: the runs so far are kept, and the same command continues them")
        _say_data(measuring)
        raise


def _say_data(measuring: "Measuring") -> None:
    """After an early end: the generated data stay, for they may have taken long."""
    left = measuring.data_left()
    if left is not None:
        console.note(
            f"the generated data stay in {show_path(left)} for the next time; remove that directory"
            " if you do not measure again"
        )


def _told(measuring: "Measuring", wanted: Wanted) -> int:
    from gristmill.analysis.scale.measuring import FILE
    from gristmill.analysis.scale.reading import read

    path = measuring.folder / FILE
    data = read(path)
    asked = [run for run in data.runs if run.p in measuring.each_p]
    runs, said = uncrowded(asked, data.processors)
    if said is not None:
        console.note(f"gristmill scale run: {said}.")
    if fitted("scale run", runs, data.measured, wanted, refusal_fails=False):
        console.note(f"the runs are in {show_path(path)}")
        return DONE
    if not wanted.as_json:
        _say_times(runs)
    console.note(f"the runs are done, and are in {show_path(path)}")
    return DONE


def _say_times(runs: Sequence[Run]) -> None:
    from gristmill.cli.scale.text import times_lines

    console.say(*times_lines(runs))


run = JobCommand(
    name="run",
    help="Run a job with each number of workers or nodes, again and again in mixed order, then fit"
    " the Universal Scalability Law to the times. Without a command it is TeraSort of generated"
    " records. Each run is a process and is kept in DIR/runs.jsonl at once; the same command"
    " continues what was broken off, and adds more values or rounds. Needs gristmill[analysis].",
    short_help="Run a job with each number of workers or nodes, then fit",
    params=[
        click.Argument(["command"], nargs=-1, required=False, metavar="[-- COMMAND]...", type=str),
        click.Option(
            ["--workers"],
            metavar="LIST",
            callback=_list,
            help="How many workers the runs have, such as 1,2,4,8.",
        ),
        click.Option(
            ["--nodes"],
            metavar="LIST",
            callback=_list,
            help="Instead, how many nodes of a cluster; the command says --on ray.",
        ),
        click.Option(
            ["--repeat"],
            type=whole_number(1, 10_000),
            default=6,
            metavar="N",
            help="How many rounds are measured; each has every value once.  [default: 6]",
        ),
        click.Option(
            ["--warm-up"],
            type=whole_number(0, 100),
            default=1,
            metavar="N",
            help="How many rounds before them do not count.  [default: 1]",
        ),
        click.Option(
            ["--rows"],
            default="10m",
            metavar="ROWS",
            help="How many records of 100 bytes are made for {data}.  [default: 10m]",
        ),
        click.Option(
            ["--weak"],
            is_flag=True,
            help="Make ROWS for each worker or node, not in all (weak scaling).",
        ),
        click.Option(
            ["--dir", "directory"],
            type=click.Path(file_okay=False, path_type=Path),
            default="scale-runs",
            metavar="DIR",
            help="Where the runs are kept, and data and outputs lie meanwhile (in gristmill-scale)."
            "  [default: scale-runs]",
        ),
        click.Option(
            ["--keep-data"], is_flag=True, help="Leave the generated data in DIR/gristmill-scale."
        ),
        *FIT_OPTIONS,
    ],
    callback=_run,
    example="gristmill scale run --workers 1,2,4,8 --repeat 6 -- wordcount books/ {out}",
    arguments=[
        (
            "COMMAND",
            "A command of gristmill, a job file, or a program that takes {p}. {data} stands for the"
            " generated records, {out} for an output that is removed after each run.",
        )
    ],
)
