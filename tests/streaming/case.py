"""A job that Hadoop and Gristmill both run, and how what they give is compared."""

import shlex
from dataclasses import dataclass

__all__ = ["Case", "job"]

_SHORT = {
    "COUNT": "-mapper ./words.py -reducer ./count.py",
    "MAPRED.": "org.apache.hadoop.mapred.",
    "LIB.": "org.apache.hadoop.mapred.lib.",
    "IO.": "org.apache.hadoop.io.",
}


@dataclass(frozen=True)
class Case:
    """A job, and how the two outputs are compared."""

    name: str
    words: tuple[str, ...]
    code: int = 0
    unordered: bool = False
    """Equal keys come in no particular order in Hadoop."""
    decoded: bool = False
    """Parts are compressed or sequence files: what is in them is compared."""
    counters: bool = True


def job(
    name: str,
    words: str,
    *,
    code: int = 0,
    unordered: bool = False,
    decoded: bool = False,
    counters: bool = True,
) -> Case:
    """A case, its words written as for a shell."""
    for short, whole in _SHORT.items():
        words = words.replace(short, whole)
    cut = shlex.split(words)
    if "-output" not in cut:
        cut += ["-output", "{out}"]
    return Case(name, tuple(cut), code, unordered, decoded, counters)
