"""What `run` and `check` share: arguments that name a job, and how a failure is said."""

from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from gristmill.cli.apart import apart
from gristmill.cli.environment import environment_note
from gristmill.cli.failures import DASH, FAILED, WRONG, Refused, as_typed, fail
from gristmill.errors import is_of_system, kind_of, option_of, report_of
from gristmill.mapreduce.source import Source
from gristmill.mapreduce.submit.loading import load_job
from gristmill.shadows import shadows_in
from gristmill.terminal import console

__all__ = ["in_child", "job_options", "on_job", "said"]

Command = Callable[..., int]


def job_options(command: Command) -> Command:
    """Add the arguments by which a job is named."""
    for decorate in (
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="NAME=VALUE",
            help="Pass VALUE to the parameter NAME of the function that makes the job; repeatable.",
        ),
        click.option(
            "--output", metavar="PATH", help="The output directory, instead of the job's own."
        ),
        click.option(
            "--input",
            "inputs",
            multiple=True,
            metavar="[TAG=]PATH",
            help="Read this instead of the job's own input: a file, a directory or a pattern;"
            " repeatable. TAG= says which of several inputs.",
        ),
        click.option(
            "--job",
            "name",
            default="job",
            metavar="NAME",
            help="The name of the job, or of the function that makes it, in FILE.  [default: job]",
        ),
        click.argument("file", type=click.Path(path_type=Path)),
    ):
        command = decorate(command)
    return command


def on_job(command: Command) -> Command:
    """Give a command the job that its arguments name, and where it is defined."""

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
        if rest["as_json"]:
            console.keep_stdout()
        given = _given(inputs, output, settings)
        source = Source.of(
            str(file), name=name, settings=given, inputs=tuple(inputs), output=output
        )  # before it is loaded: the code is what it was, or older
        job = load_job(file, name=name, settings=given, inputs=inputs, output=output)
        return command(job=job, file=file, source=source, **rest)

    return run


def _given(
    inputs: tuple[str, ...], output: str | None, settings: tuple[str, ...]
) -> dict[str, str]:
    """The settings by their names; refuses what can only be a mistake."""
    given: dict[str, str] = {}
    if output == "-":
        raise Refused("a job writes a directory, not standard output (--output -)", DASH)
    if output == "":
        raise Refused("the path of --output is empty", "name a directory")
    if "" in inputs:
        raise Refused("a path of --input is empty", "name a file, a directory or a pattern")
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not key.isidentifier() or not equals:
            raise click.BadParameter(f"{setting!r} is not NAME=VALUE", param_hint="--set")
        given[key] = value
    return given


def said(command: str) -> Callable[[Command], Command]:
    """Say in one paragraph, and what is known beside it, why a command failed."""

    def decorate(function: Command) -> Command:
        @wraps(function)
        def run(**arguments: Any) -> int:  # noqa: ANN401 - click's
            try:
                return function(**arguments)
            except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
                if is_of_system(error) or (isinstance(error, MemoryError) and not kind_of(error)):
                    raise  # for the edge of the program to say
                fail(
                    command,
                    f"{as_typed(error)}{environment_note(kind_of(error), option_of(error))}",
                )
                shadows = shadows_in(str(error)) if isinstance(error, ImportError) else []
                for note in (*getattr(error, "__notes__", ()), *shadows):
                    console.note(*note.split("\n"))
                return FAILED if _is_failure(error) else WRONG

        return run

    return decorate


def in_child(command: str) -> Callable[[Command], Command]:
    """Run a command in a child process: it calls user code, which may end its process."""

    def decorate(function: Command) -> Command:
        @wraps(function)
        def run(**arguments: Any) -> int:  # noqa: ANN401 - click's
            return apart(command, partial(function, **arguments))

        return run

    return decorate


def _is_failure(error: Exception) -> bool:
    """Whether a job failed, or would have; else the command line is what is wrong."""
    told = kind_of(error) not in (None, "bad_option", "not_found")
    return told or report_of(error) is not None or isinstance(error, FileExistsError)
