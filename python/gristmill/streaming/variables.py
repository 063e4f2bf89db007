"""The properties of a job as variables of its scripts, named as Hadoop names them.

my.own-property=1 ─▶ my_own_property=1;  one with an old name is there under both
"""

import getpass
import re
from pathlib import Path

from gristmill.locations import is_remote
from gristmill.streaming.properties import PROPERTIES, names_of
from gristmill.streaming.resolved import ResolvedJob

__all__ = ["configuration", "environment"]


def configuration(resolved: ResolvedJob, inputs: list[str], maps: int) -> list[tuple[str, str]]:
    """Return the job's properties by their present names, where a debug script is to see them."""
    debug = resolved.definition["debug"]
    if debug["map"] is None and debug["reduce"] is None:
        return []
    return sorted(_properties(resolved, inputs, maps).items())


def environment(resolved: ResolvedJob, inputs: list[str], maps: int) -> list[tuple[str, str]]:
    """Return the job's properties as scripts see them: those set, and those with defaults."""
    values = _properties(resolved, inputs, maps)
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


def _properties(resolved: ResolvedJob, inputs: list[str], maps: int) -> dict[str, str]:
    values = {known.name: known.default for known in PROPERTIES if known.default}
    arguments = resolved.arguments
    values |= {name: arguments.substituted(value) for name, value in arguments.properties.items()}
    return values | {
        "mapreduce.job.maps": str(maps),
        "mapreduce.job.reduces": str(resolved.partitions),
        "mapreduce.input.fileinputformat.inputdir": ",".join(map(_uri, inputs)),
        "mapreduce.output.fileoutputformat.outputdir": _uri(resolved.output),
        "mapreduce.job.user.name": _user(),
        "mapreduce.job.working.dir": f"file:{Path.cwd()}",
    }


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return ""


def _uri(location: str) -> str:
    return location if is_remote(location) else f"file:{location}"
