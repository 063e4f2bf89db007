"""The properties of a job as variables of its scripts, named as Hadoop names them.

my.own-property=1 ─▶ my_own_property=1;  one with an old name is there under both
"""

import getpass
import os
import re
from pathlib import Path

from gristmill.locations import is_remote
from gristmill.streaming.inputs import location
from gristmill.streaming.parse import split_commas
from gristmill.streaming.properties import PROPERTIES, names_of
from gristmill.streaming.resolved import ResolvedJob

__all__ = ["configuration", "environment"]


def configuration(resolved: ResolvedJob, maps: int) -> list[tuple[str, str]]:
    """Return the job's properties by their present names, where a debug script is to see them."""
    debug = resolved.definition["debug"]
    if debug["map"] is None and debug["reduce"] is None:
        return []
    return sorted(_properties(resolved, maps).items())


def environment(resolved: ResolvedJob, maps: int) -> list[tuple[str, str]]:
    """Return the job's properties as scripts see them: those set, and those with defaults."""
    values = _properties(resolved, maps)
    old = {
        "mapreduce.input.fileinputformat.inputdir": ("mapred.input.dir",),
        "mapreduce.output.fileoutputformat.outputdir": ("mapred.output.dir",),
        "mapreduce.job.user.name": ("user.name",),
        "mapreduce.job.working.dir": ("mapred.working.dir",),
    }
    limit: int | None = resolved.definition["truncate"]
    found = list[tuple[str, str]]()
    for name, value in values.items():
        shown = value[:limit]
        for spelling in dict.fromkeys((*names_of(name), *old.get(name, ()))):
            variable = re.sub(r"[^A-Za-z0-9]", "_", spelling)
            if "\0" not in shown:
                found.append((variable, shown))
    return found


def _properties(resolved: ResolvedJob, maps: int) -> dict[str, str]:
    values = {known.name: known.default for known in PROPERTIES if known.default}
    arguments = resolved.arguments
    values |= {name: arguments.substituted(value) for name, value in arguments.properties.items()}
    return values | {
        "mapreduce.job.maps": str(maps),
        "mapreduce.job.reduces": str(resolved.partitions),
        "mapreduce.input.fileinputformat.inputdir": _as_given(resolved.inputs),
        "mapreduce.output.fileoutputformat.outputdir": _uri(resolved.output),
        "mapreduce.job.user.name": _user(),
        "mapreduce.job.working.dir": f"file:{Path.cwd()}",
    }


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return ""


def _as_given(inputs: list[str]) -> str:
    r"""The inputs from the root on, as Hadoop has them: directories and globs are not looked into.

    Example:
        >>> _as_given(["/logs/,/more/*.gz", "s3://bucket/{a,b}"])
        'file:/logs,file:/more/*.gz,s3://bucket/{a\\,b}'
    """
    parts = [part for spec in inputs for part in split_commas(spec)]
    places = [location(part, "-input") for part in parts]
    uris = [place if is_remote(place) else _uri(os.path.normpath(place)) for place in places]
    return ",".join(uri.replace("\\", "\\\\").replace(",", "\\,") for uri in uris)


def _uri(location: str) -> str:
    return location if is_remote(location) else f"file:{location}"
