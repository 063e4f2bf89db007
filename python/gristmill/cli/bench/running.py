"""`gristmill bench run SUITE`: runs a benchmark, and prints its figures."""

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gristmill.amounts import parse_bytes
from gristmill.analysis.bench.bench_request import BenchRequest, Cache, parse_rows, parse_vary
from gristmill.analysis.bench.errors import WrongOptionError
from gristmill.analysis.bench.suites import SUITES, suite_of
from gristmill.cli.bench.common import failing
from gristmill.cli.failures import DONE
from gristmill.cli.generated import JobCommand, Places, count, files
from gristmill.cli.numbers import whole_number
from gristmill.terminal import console

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ["run"]

_OPTIONS = ("workers", "memory", "runner", "on")


def _suites(
    context: click.Context, argument: click.Parameter, incomplete: str
) -> "list[CompletionItem[str]]":
    """Suites that begin so; else it is a job file."""
    from click.shell_completion import CompletionItem

    found = [
        CompletionItem(name, help=what)
        for name, what in SUITES.items()
        if name.startswith(incomplete)
    ]
    return found or files(context, argument, incomplete)


@failing("run")
def _run(**given: Any) -> int:  # noqa: ANN401 - click's own values
    from gristmill.analysis.bench.figures import figures_of, to_json
    from gristmill.analysis.bench.prices import read_prices
    from gristmill.analysis.bench.session import Session

    asked, prices = _asked(**given), given["prices"] and read_prices(given["prices"])
    name = Path(asked.suite).stem
    folder: Path = given["output"] or Path(f"bench-{name}")
    directory = given["directory"] or str(folder)
    told = console.note if given["as_json"] else console.say
    try:
        found = Session(asked, directory, folder, told).run()
    except KeyboardInterrupt:
        with suppress(OSError):  # of stderr: the exit code says it, too
            console.note(
                f"gristmill bench run: interrupted; the runs that are over are in {folder}."
                " What to do: run the same command again, which continues from there."
            )
        raise
    figures = figures_of(found, prices)
    if given["as_json"]:
        console.put(json.dumps(to_json(found, figures)))
    else:
        from gristmill.cli.bench.table import figure_lines

        console.say("", *figure_lines(figures), "", f"results: {folder}")
    return DONE


def _asked(
    *,
    suite: str,
    rows: str | None,
    size: tuple[str, ...],
    repeat: int,
    warm_up: int,
    cache: Cache,
    vary: tuple[str, ...],
    store_option: tuple[str, ...],
    inputs: tuple[str, ...],
    settings: tuple[str, ...],
    **given: Any,  # noqa: ANN401 - click's own values
) -> BenchRequest:
    options = {name: str(given[name]) for name in _OPTIONS if given[name] is not None}
    return BenchRequest(
        suite=suite,
        rows=suite_of(suite).rows if rows is None else parse_rows(rows),
        sizes=tuple(_size(one) for several in size for one in several.split(",")),
        repeat=repeat,
        warm_up=warm_up,
        cache=cache,
        options=options,
        store_options=store_option,
        vary=parse_vary(vary),
        inputs=inputs,
        settings=settings,
    )


def _size(text: str) -> int:
    try:
        size = parse_bytes(text, "--size")
    except ValueError as error:
        raise WrongOptionError(str(error)) from error
    if not _SIZE_MIN_BYTES <= size <= _SIZE_MAX_BYTES:
        raise WrongOptionError(
            f"cannot read the options: --size is {text!r}, which is not from 4k to 10G."
            " What to do: write for example --size 4k,1M,64M."
        )
    return size


_SIZE_MIN_BYTES, _SIZE_MAX_BYTES = 4000, 10 << 30

_LISTED = "; ".join(f"{name}: {about}" for name, about in SUITES.items())

run = JobCommand(
    name="run",
    help="Run a suite of jobs, or a job file, several times. Print the times with their errors."
    " Each run is a process of its own. Configurations that --vary names take turns. Run the same"
    " command again to finish an interrupted series. A greater --repeat adds rounds.",
    short_help="Run a suite of jobs several times, and print the times",
    params=[
        click.Argument(["suite"], metavar="SUITE", shell_complete=_suites),
        click.Option(
            ["--rows"],
            metavar="ROWS",
            help="How many records to make; for wordcount, how many lines."
            "  [default: 10m; for io 2.56m; for wordcount and shuffle 1m]",
        ),
        click.Option(
            ["--size"],
            multiple=True,
            metavar="SIZE,...",
            help="Sizes of files of the suite io, from 4k to 10G.  [default: 4k,1M,64M]",
        ),
        click.Option(
            ["--repeat"],
            default=5,
            metavar="N",
            type=count,
            help="How many rounds are measured.  [default: 5]",
        ),
        click.Option(
            ["--warm-up"],
            default=1,
            metavar="N",
            type=whole_number(0, 1000),
            help="How many rounds run first, to warm up; they do not count.  [default: 1]",
        ),
        click.Option(
            ["--vary"],
            multiple=True,
            metavar="NAME=V,V,...",
            help="Let configurations take turns: each value of an option of the suite's commands,"
            " such as workers=1,2 or no-sync=on,off; or python=PATH,PATH, the programs of two"
            " builds. Repeatable.",
        ),
        click.Option(
            ["--cache"],
            type=click.Choice(["warm", "cold", "dropped"]),
            default="warm",
            help="warm: read the input of a step into the page cache before it. cold: remove it"
            " from the page cache. dropped: drop all caches of the machine (root only)."
            "  [default: warm]",
        ),
        click.Option(["--workers"], metavar="N", type=count, help="How many tasks run at once."),
        click.Option(["--memory"], metavar="SIZE", help="Most memory that each job may use."),
        click.Option(
            ["--runner"],
            type=click.Choice(["threads", "processes"]),
            help="Where the tasks of each job run.",
        ),
        click.Option(
            ["--on"],
            type=Places(["local", "ray"]),
            help="Whether the jobs run here or on a Ray cluster.",
        ),
        click.Option(
            ["--dir", "directory"],
            metavar="PATH",
            help="Where bench makes a directory for its data, which it removes at the end: a"
            " directory, or a place in S3 or HDFS.  [default: the directory of results]",
        ),
        click.Option(
            ["--store-option"],
            multiple=True,
            metavar="KEY=VALUE",
            help="How S3 is reached, as for jobs; repeatable.",
        ),
        click.Option(
            ["--input", "inputs"],
            multiple=True,
            metavar="PATH",
            help="What a job file reads instead of its own input; repeatable.",
        ),
        click.Option(
            ["--set", "settings"],
            multiple=True,
            metavar="NAME=VALUE",
            help="A parameter of the function that makes the job of a job file; repeatable.",
        ),
        click.Option(
            ["--prices"],
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="A file that says what an hour costs (usd_per_hour = 0.34), for dollars per TB.",
        ),
        click.Option(
            ["-o", "--output"],
            metavar="RESULTS",
            type=click.Path(file_okay=False, path_type=Path),
            help="The directory of results.  [default: bench-SUITE]",
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="Print the figures as JSON."),
    ],
    callback=_run,
    example="gristmill bench run sort --rows 10m --repeat 5 --vary workers=1,2 -o results",
    arguments=[("SUITE", f"A job file (job.py), or one of these. {_LISTED}.")],
)
