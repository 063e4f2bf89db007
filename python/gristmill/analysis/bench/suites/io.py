"""`io`: how fast a place takes files of a size, and gives them back.

    teragen, durable and lazily ──▶ files of that size        (the write test)
    grep for what is not there  ──▶ the same files            (the read test)
    records in order, prepared  ──▶ teravalidate              (another, which checks what it reads)

There are as many files as have all rows (256 MB), but no more than a thousand, and at least one.
Files that `teravalidate` reads come from a sort, so each is only about as long as asked for. `grep`
takes no options of stores: where they are given, its test is left out.
"""

from collections.abc import Mapping, Sequence

from gristmill.analysis.bench.bench_request import BenchRequest, Config
from gristmill.analysis.bench.suites.suite import Step, Suite, command_line

__all__ = ["SIZES", "SUITE"]

SIZES = (4_000, 1_000_000, 64_000_000)
"""Of files, if none was asked for."""

_NOT_THERE = "no such words"
_FILES_MAX = 1000
_RECORD_BYTES = 100


def _vary(asked: BenchRequest) -> Mapping[str, tuple[str, ...]]:
    return {"size": tuple(map(str, asked.sizes or SIZES))}


def _files(asked: BenchRequest, config: Config) -> tuple[str, str]:
    """Rows and files."""
    size = int(config["size"])
    files = max(1, min(_FILES_MAX, asked.rows * _RECORD_BYTES // size))
    return str(max(files * size // _RECORD_BYTES, files)), str(files)


def _prepare(asked: BenchRequest, config: Config, folder: str) -> Sequence[Step]:
    rows, files = _files(asked, config)
    made, ordered = f"{folder}/made-{config['size']}", f"{folder}/read-{config['size']}"
    lazily = {**config, "no-sync": "on"}
    make = (*command_line("teragen", asked, lazily), "--files", files, rows, made)
    sort = (*command_line("terasort", asked, lazily), "--partitions", files, made, ordered)
    return (
        Step(name="make", words=make, makes=made),
        Step(name="sort", words=sort, makes=ordered),
    )


def _steps(asked: BenchRequest, config: Config, folder: str) -> Sequence[Step]:
    rows, files = _files(asked, config)
    written, ordered = f"{folder}/written", f"{folder}/read-{config['size']}"

    def write(lazy: str) -> tuple[str, ...]:
        words = command_line("teragen", asked, {**config, "no-sync": lazy})
        return (*words, "--files", files, rows, written)

    read = (*command_line("teravalidate", asked, config), ordered)
    steps = [
        Step(name="write-durable", words=write("off"), makes=written),
        Step(name="write-lazy", words=write("on"), makes=written),
        Step(name="read", words=read, reads=(ordered,)),
    ]
    if not asked.store_options:
        made = f"{folder}/made-{config['size']}"
        steps.append(
            Step(name="grep", words=_grep(asked, config, made), reads=(made,), searches=True)
        )
    return steps


def _grep(asked: BenchRequest, config: Config, folder: str) -> tuple[str, ...]:
    """Its command line; the table of jobs does not have it."""
    workers = {**asked.options, **config}.get("workers")
    more = () if workers is None else ("--workers", workers)
    return ("grep", *more, "--text", "--count", "--no-filename", "-F", _NOT_THERE, folder)


SUITE = Suite(
    commands=("teragen", "teravalidate"), rows=2_560_000, steps=_steps, prepare=_prepare, vary=_vary
)
