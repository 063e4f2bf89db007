"""What `run` and `check` share: arguments that name a job, and how a failure is said."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from gristmill.cli import console
from gristmill.cli.failures import FAILED, WRONG, fail
from gristmill.errors import report_of
from gristmill.mapreduce.job import Job
from gristmill.mapreduce.loading import load_job

__all__ = ["job_options", "on_job", "said"]

Command = Callable[..., int]


def job_options(command: Command) -> Command:
    """Add the arguments by which a job is named."""
    for decorate in (
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="NAME=VALUE",
            help="What the function that makes the job is given.",
        ),
        click.option("--output", metavar="PATH", help="Where to write, in place of the job's own."),
        click.option(
            "--input",
            "inputs",
            multiple=True,
            metavar="PATH",
            help="What to read, in place of the job's own.",
        ),
        click.option(
            "--job",
            "name",
            default="job",
            metavar="NAME",
            help="What the job is called in the file.  [default: job]",
        ),
        click.argument("file", type=click.Path(path_type=Path)),
    ):
        command = decorate(command)
    return command


def on_job(command: Command) -> Command:
    """Give a command the job that its arguments name, and the file that defines it."""

    @wraps(command)
    def run(
        *,
        file: Path,
        name: str,
        inputs: tuple[str, ...],
        output: str | None,
        settings: tuple[str, ...],
        **rest: Any,  # noqa: ANN401 - the command's own
    ) -> int:
        return command(job=_loaded(file, name, inputs, output, settings), file=file, **rest)

    return run


def _loaded(
    file: Path, name: str, inputs: tuple[str, ...], output: str | None, settings: tuple[str, ...]
) -> Job:
    given: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not key.isidentifier() or not equals:
            raise click.BadParameter(f"{setting!r} is not NAME=VALUE", param_hint="--set")
        given[key] = value
    return load_job(file, name=name, settings=given, inputs=inputs, output=output)


def said(command: str) -> Callable[[Command], Command]:
    """Say in one paragraph, and what is known beside it, why a command failed."""

    def decorate(function: Command) -> Command:
        @wraps(function)
        def run(**arguments: Any) -> int:  # noqa: ANN401 - click's
            try:
                return function(**arguments)
            except (ValueError, TypeError, OSError, ImportError) as error:
                if isinstance(error, OSError) and not str(error).startswith("cannot "):
                    raise  # of the system, for the edge of the program to say
                fail(command, str(error))
                for note in getattr(error, "__notes__", ()):
                    console.note(note)
                began = report_of(error) is not None or isinstance(error, FileExistsError)
                return FAILED if began else WRONG

        return run

    return decorate
