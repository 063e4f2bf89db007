"""Jobs as inputs of the functions of commands: `gm.join(job, "cities.csv", by="id", output=...)`.

A job with an output runs, and the command reads its directory. One without writes a table to a
folder that goes with the process: rows are CSV, or objects where the command is given `jsonl=True`.
"""

from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, cast

from gristmill.locations import in_home, workplace
from gristmill.mapreduce.formats.jsonlines import jsonl
from gristmill.mapreduce.formats.table_csv import Csv, csv
from gristmill.mapreduce.formats.tables import Parquet
from gristmill.mapreduce.submit.job import Job
from gristmill.mapreduce.submit.removing import passing_folder
from gristmill.options import Command

__all__ = ["jobs_run"]

_SHARED = ("on", "nodes", "workers", "memory", "spill_dir", "store_option")
"""Options of a command that its jobs have, too."""


@contextmanager
def jobs_run(command: Command, given: Mapping[str, Any]) -> Generator[dict[str, Any]]:
    """Run the jobs that are inputs of a command.

    Args:
        command: The command.
        given: Its options.

    Yields:
        The options, with what the jobs have written in their places.

    Raises:
        TypeError: The command reads no table, and a job has no output.
        Exception: As `Job.run`.

    Example:
        >>> from gristmill.options import commands
        >>> with jobs_run(commands()["sort"], {"inputs": "a.txt"}) as given:
        ...     given
        {'inputs': 'a.txt'}
    """
    found = dict(given)
    options = {name: given[name] for name in _SHARED if given.get(name) is not None}
    with ExitStack() as held:
        for option in command.options:
            if option.positional and option.name != "output" and option.name in given:
                value = given[option.name]
                if isinstance(value, Job):
                    found[option.name] = _written(held, command, found, value, options)
                elif isinstance(value, (list, tuple)):
                    several = cast("list[object]", value)
                    found[option.name] = [
                        _written(held, command, found, one, options)
                        if isinstance(one, Job)
                        else one
                        for one in several
                    ]
        yield found


def _written(
    held: ExitStack, command: Command, given: dict[str, Any], job: Job, options: dict[str, Any]
) -> str:
    """Run a job; returns where its output is. Says in `given` what that is, if we choose it."""
    if job.output is None:
        if not any(option.name == "csv" for option in command.options):
            raise TypeError(
                f"cannot run {job.name} for gristmill.{command.function}: it has no output, and the"
                " command reads no table. What to do: give the job output=, such as gm.text(...)."
            )
        output = given.get("output")
        folder = str(workplace("out" if output in (None, "-") else in_home(output), []))
        made = held.enter_context(passing_folder(".gristmill-job-", folder))
        as_objects = bool(given.get("jsonl"))
        given["csv"] = not as_objects
        job = replace(job, output=(jsonl if as_objects else csv)(f"{made}/out"))
    elif isinstance(job.output, (Csv, Parquet)):
        given["csv"] = True
    job.run(**options)
    assert job.output is not None
    return job.output.folder
