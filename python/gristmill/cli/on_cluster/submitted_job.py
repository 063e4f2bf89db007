"""`gristmill run` on the head of a cluster: the job's file, its modules and side files go along.

The file is loaded here, too: so it is known what it imports, and which side files it names.
"""

from pathlib import Path
from typing import Any

import click

from gristmill.cli.failures import Refused
from gristmill.cli.on_cluster.rebuilt import rebuilt
from gristmill.cluster.packing import of_user
from gristmill.cluster.submission.package import Command
from gristmill.locations import absolute
from gristmill.mapreduce.formats.format import Format
from gristmill.mapreduce.formats.inputs import Inputs
from gristmill.mapreduce.submit.code import code_files
from gristmill.mapreduce.submit.job import Job
from gristmill.mapreduce.submit.loading import load_job
from gristmill.mapreduce.submit.preparing import side_files

__all__ = ["of_run"]


def of_run(context: click.Context) -> Command:
    """Return what `gristmill run` is on the head.

    Args:
        context: The command line, as click has read it.

    Raises:
        click.UsageError: It asks for what is done in this process alone.
        ValueError: The file defines no job.
        OSError: The file, or a side file, does not exist.
    """
    given = context.params
    if given["only"] is not None:
        raise Refused("--only maps a record in this process", "leave out --on", context)
    settings = dict(one.partition("=")[::2] for one in given["settings"])
    named = {"inputs": given["inputs"], "output": given["output"]}
    job = load_job(given["file"], name=given["name"], settings=settings, **named)
    files = {str(given["file"].absolute())}
    for one in job.chain():
        files.update(side_files(one).values())
    folders = of_user(code_files())
    for found in folders.values():
        files.update(map(str, found))
    changed: dict[str, Any] = {
        "inputs": tuple(map(_input, given["inputs"])) or _own_inputs(job),
        "spill_dir": tuple(map(absolute, given["spill_dir"] or ())),
    }
    if job.output is not None:
        changed["output"] = absolute(job.output.folder)
    words = rebuilt(context, changed)
    roots = [str(folder) for folder in folders if folder != Path(given["file"]).absolute().parent]
    return Command(["run", *words], sorted(files), roots)


def _input(text: str) -> str:
    """An `--input`, from the root on."""
    tag, equals, path = text.partition("=")
    return f"{tag}={absolute(path)}" if equals and tag.isidentifier() else absolute(text)


def _own_inputs(job: Job) -> tuple[str, ...]:
    """The inputs of the job itself, where one of them is relative to this folder."""
    source = job.chain()[0].input
    several = source.sources if isinstance(source, Inputs) else [source]
    formats = [one for one in several if isinstance(one, Format)]
    if all(absolute(path) == path for one in formats for path in one.paths):
        return ()
    tags = [f"{one.tag_of({})}=" if isinstance(source, Inputs) else "" for one in formats]
    return tuple(
        f"{tag}{absolute(path)}"
        for tag, one in zip(tags, formats, strict=True)
        for path in one.paths
    )
