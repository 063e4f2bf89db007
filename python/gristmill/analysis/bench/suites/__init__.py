"""The suites: what each prepares, and which processes it measures in a round.

A suite is a file here with `SUITE`, and its line in `SUITES`. A job file of the user is one more.
"""

from importlib import import_module
from pathlib import Path

from gristmill.analysis.bench.errors import WrongOptionError
from gristmill.analysis.bench.suites.suite import Suite

__all__ = ["SUITES", "suite_of"]

SUITES = {
    "sort": "make, sort and validate records of the sort benchmark",
    "io": "write files, durable and lazily, and read them",
    "wordcount": "count words of generated text",
    "shuffle": "cut records into 80 partitions, natively and with functions of Python",
    "split-size": "sort with splits of 32 MB to 1 GB",
}
"""What each does."""


def suite_of(name: str) -> Suite:
    """Return a suite by its name, or the one of a job file.

    Raises:
        WrongOptionError: There is none.

    Example:
        >>> suite_of("sort").commands
        ('teragen', 'terasort', 'teravalidate')
    """
    if name in SUITES:
        return import_module(f"{__name__}.{name.replace('-', '_')}").SUITE
    if name.endswith(".py"):
        if not Path(name).is_file():
            raise WrongOptionError(
                f"cannot run the benchmark: {name}: no such file."
                " What to do: name a file that defines a job, or a suite."
            )
        from gristmill.analysis.bench.suites.job_file import SUITE

        return SUITE
    raise WrongOptionError(
        f"cannot run the benchmark: there is no suite {name!r}."
        f" What to do: name one of {', '.join(SUITES)}, or a job file (job.py)."
    )
