"""`gristmill bench compare A B`: whether B is faster or slower than A, for people and for CI."""

import json

import click

from gristmill.cli.bench.common import failing
from gristmill.cli.failures import DONE, FAILED
from gristmill.cli.generated import JobCommand, files
from gristmill.terminal import console

__all__ = ["compare"]


@failing("compare")
def _run(first: str, second: str, tolerance: float, *, as_json: bool) -> int:
    from gristmill.analysis.bench import comparing
    from gristmill.cli.bench.table import aligned

    one, other = comparing.read_side(first), comparing.read_side(second)
    found = comparing.compare(one, other)
    notes = comparing.noted(one.results, other.results)
    slower = [pair for pair in found if pair.is_slower_beyond(tolerance / 100)]
    if as_json:
        said = {
            "comparisons": [pair.to_json() for pair in found],
            "differences": notes,
            "tolerance_percent": tolerance,
            "slower_beyond_tolerance": bool(slower),
        }
        console.put(json.dumps(said))
        return FAILED if slower else DONE
    rows = [["step", "configuration", "n", "first", "second", "ratio", "interval", "verdict"]]
    for pair in found:
        low_high = pair.ratio.interval
        rows.append(
            [
                pair.step,
                pair.config,
                f"{pair.n[0]}, {pair.n[1]}",
                f"{pair.seconds[0]:.3f} s",
                f"{pair.seconds[1]:.3f} s",
                f"{pair.ratio.value:.3f}",
                "" if low_high is None else f"{low_high[0]:.3f} to {low_high[1]:.3f}",
                pair.verdict,
            ]
        )
    configs = any(row[1] for row in rows[1:])
    if not configs:
        rows = [[row[0], *row[2:]] for row in rows]
    console.say(*aligned(rows, texts=2 if configs else 1))
    how = "paired by rounds" if found[0].ratio.paired else "not paired"
    console.say("", f"Ratios are second / first, {how}; all intervals hold together with 95 %.")
    console.say(*(f"{note}." for note in notes))
    return FAILED if slower else DONE


def _percent(value: str | float) -> float:
    try:
        percent = float(value)
    except ValueError:
        percent = -1.0
    if not 0 <= percent < float("inf"):
        raise click.BadParameter(f"{str(value)!r} is not a number of percent, from 0 on")
    return percent


compare = JobCommand(
    name="compare",
    help="Say of two results whether the second is faster or slower than the first, or that there"
    " is no difference to be seen. The exit code is 1 if a step is slower by more than"
    " --tolerance.",
    short_help="Say whether one result is faster or slower than another",
    params=[
        click.Argument(["first"], metavar="A", shell_complete=files),
        click.Argument(["second"], metavar="B", shell_complete=files),
        click.Option(
            ["--tolerance"],
            default=0.0,
            metavar="PERCENT",
            type=_percent,
            help="How much slower B may be, beyond its interval, before the exit code is 1."
            "  [default: 0]",
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="Print the verdicts as JSON."),
    ],
    callback=_run,
    example="gristmill bench compare results:workers=1 results:workers=2",
    arguments=[
        ("A, B", "Directories of results; with :NAME=VALUE, one of their configurations."),
    ],
)
