"""A job made ready to run: its input is cut, its functions are pickled.

    Spec ─▶ input.plan ─▶ splits ──────────────┐
         ─▶ functions ─pickled─▶ Definition ───┴─▶ Prepared ─▶ submitting.py

What a job's parts are, for all who look at them: its input, partitions, functions, side files.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gristmill import _core
from gristmill.locations import absolute
from gristmill.mapreduce.aggregates import Aggregate
from gristmill.mapreduce.definition import Definition, Functions, pickled, record_classes
from gristmill.mapreduce.extremes import Extreme, of_sorted
from gristmill.mapreduce.formats.format import Format, Input, Output
from gristmill.mapreduce.formats.inputs import Inputs
from gristmill.mapreduce.formats.paths import named_places
from gristmill.mapreduce.formats.plan import Plan, partitions
from gristmill.mapreduce.partitioners import Ranges
from gristmill.mapreduce.run_options import Options
from gristmill.mapreduce.source import script
from gristmill.mapreduce.spec import Spec
from gristmill.mapreduce.submit.code import code_files
from gristmill.mapreduce.submit.streams import names_of
from gristmill.names import as_name, show_path

__all__ = [
    "Prepared",
    "bare",
    "functions_of",
    "partitions_of",
    "prepare",
    "side_files",
    "source_of",
]

_NO_FILES = "its input is not in files, so a change of it would not be seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A job that is ready to begin."""

    job: Spec
    spec: dict[str, Any]
    definition: Definition
    plan: Plan
    options: Options


def prepare(
    job: Spec,
    options: Options,
    *,
    once: str | None = None,
    chain: Mapping[str, Any] | None = None,
) -> Prepared:
    """Plan a job and pickle its functions.

    Args:
        job: The job.
        options: How it is run.
        once: Why it could not be resumed.
        chain: Which job of which chain it is.

    Raises:
        TypeError: A function cannot be pickled.
        OSError: An input cannot be read, or a side file is not there.
    """
    source, output = source_of(job), job.output
    assert output is not None
    plan = source.plan(*job.split_sizes())
    files = side_files(job)
    folder = absolute(output.folder)
    if plan.files:
        _core.check_outside(named_places(plan.display), folder)
    spec = {
        "name": job.name,
        "inputs": plan.display,
        "files": plan.files,
        "side_files": list(files.values()),
        "code": code_files(),
        "once": once or _once(source, plan),
        "chain": chain,
        "splits": [{"bytes": split.bytes, "what": split.what} for split in plan.splits],
        "partitions": partitions_of(job, plan),
        "output": folder,
        "one_schema": any(one.has_schema for one in (output, *job.outputs.values())),
        **options.spec(),
    }
    definition = _definition(job, source, files, options)
    return Prepared(job=job, spec=spec, definition=definition, plan=plan, options=options)


def _once(source: Input, plan: Plan) -> str | None:
    """Why a job with this input could not be resumed, if there is a reason."""
    from gristmill.mapreduce.formats.items import Items

    if isinstance(source, Inputs):
        lasting = all(isinstance(one, (Format, Items)) for one in source.sources)
    else:
        lasting = bool(plan.files) or isinstance(source, Items)  # whose splits hold the data
    return None if lasting or not plan.splits else _NO_FILES


def _definition(job: Spec, source: Input, files: dict[str, str], options: Options) -> Definition:
    output = job.output
    assert output is not None
    outputs: dict[str, Output] = dict(job.outputs)
    return Definition(
        name=job.name,
        input=bare(source),
        output=output,
        outputs=outputs,
        files=files,
        skip_bad=job.skip_bad,
        payload=pickled(functions_of(job)),
        names=names_of(source),
        source=options.source or script(),
        classes=record_classes(),
        path=[entry or str(Path.cwd()) for entry in sys.path],
    )


def source_of(job: Spec) -> Input:
    """Return the input of a job that is not chained, or whose chain has run."""
    if isinstance(job.input, Spec):
        raise ValueError(f"cannot plan {job.name}: the job that it reads from has not run.")
    assert isinstance(job.input, Input)  # a list was made one
    return job.input


def partitions_of(job: Spec, plan: Plan) -> int:
    """Return how many partitions a job has: a function of its input and options."""
    if not job.reduces:
        return 0
    if isinstance(job.partition_by, Ranges):
        return len(job.partition_by.cuts) + 1
    of_user = not isinstance(job.reduce, Aggregate) or job.sort_by is not None
    return job.parts or partitions(plan.bytes, of_user=of_user)


def functions_of(job: Spec) -> Functions:
    """Return the user code that a job's workers run."""
    partition, reduce, combine = job.partition_by, job.reduce, job.combine
    if isinstance(reduce, Aggregate) and job.sort_by is not None:
        reduce = of_sorted(reduce)
    elif isinstance(reduce, Extreme) and not (combine or job.sort_by or job.group_by):
        combine = reduce.combine
    return Functions(
        map=job.map,
        map_batches=job.map_batches,
        setup=job.setup,
        teardown=job.teardown,
        combine=combine,
        reduce=reduce,
        reduce_batches=job.reduce_batches,
        sort_by=job.sort_by,
        group_by=job.group_by,
        partition=partition if callable(partition) else None,
        cuts=partition.cuts if isinstance(partition, Ranges) else None,
    )


def bare(source: Input) -> Input:
    """Return an input as workers need it: splits bring their data with them."""
    from gristmill.mapreduce.formats.items import Items

    if isinstance(source, Inputs):
        return replace(source, sources=tuple(map(bare, source.sources)))
    return replace(source, data=()) if isinstance(source, Items) else source


def side_files(job: Spec) -> dict[str, str]:
    """Return the paths of a job's side files by their last names.

    Raises:
        FileNotFoundError: One is not there.
        IsADirectoryError: One is a directory.
    """
    found: dict[str, str] = {}
    for file in job.files:
        path = Path(as_name(file)).absolute()
        if path.is_dir():
            raise IsADirectoryError(
                f"cannot plan the job: the side file {show_path(path)} is a directory."
                " What to do: name the files in it, or pack them into one."
            )
        if not path.is_file():
            raise FileNotFoundError(
                f"cannot plan the job: the side file {show_path(path)} does not exist."
                " What to do: check the name."
            )
        found[path.name] = str(path)
    return found
