"""`gristmill bench report RESULTS`: figures as one HTML page."""

import json
from pathlib import Path

import click

from gristmill.cli.bench.common import failing
from gristmill.cli.failures import DONE
from gristmill.cli.generated import JobCommand
from gristmill.terminal import console

__all__ = ["report"]


@failing("report")
def _run(results: Path, output: Path | None, prices: Path | None, *, as_json: bool) -> int:
    from gristmill.analysis.bench.errors import BenchError
    from gristmill.analysis.bench.figures import figures_of, to_json
    from gristmill.analysis.bench.prices import read_prices
    from gristmill.analysis.bench.results import read_results
    from gristmill.analysis.bench.rules import judged

    found = read_results(results)
    figures = figures_of(found, prices and read_prices(prices))
    if not figures:
        raise BenchError(
            f"cannot draw {results}: no run of it counts. What to do: run the benchmark to its end."
        )
    if as_json:
        verdicts = [verdict.to_json() for verdict in judged(found, figures)]
        console.put(json.dumps({**to_json(found, figures), "rules": verdicts}))
        return DONE
    from gristmill.analysis.bench.page import render

    page = render(found, figures)
    if output == Path("-"):
        console.put(page)
        return DONE
    path = output or results / "report.html"
    path.write_text(page, encoding="utf-8")
    console.say(str(path))
    return DONE


report = JobCommand(
    name="report",
    help="Draw results as one HTML page, which needs no network: figures with their errors, plots,"
    " and for which category of the sort benchmark a run would count, and why not.",
    short_help="Draw results as one HTML page",
    params=[
        click.Argument(["results"], metavar="RESULTS", type=click.Path(path_type=Path)),
        click.Option(
            ["-o", "--output"],
            metavar="FILE",
            type=click.Path(dir_okay=False, path_type=Path),
            help="The file to write; `-` for standard output.  [default: RESULTS/report.html]",
        ),
        click.Option(
            ["--prices"],
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="A file that says what an hour costs (usd_per_hour = 0.34), for dollars per TB.",
        ),
        click.Option(
            ["--json", "as_json"], is_flag=True, help="Print figures and rules as JSON instead."
        ),
    ],
    callback=_run,
    example="gristmill bench report results -o report.html",
    arguments=[("RESULTS", "A directory that `gristmill bench run` wrote.")],
)
