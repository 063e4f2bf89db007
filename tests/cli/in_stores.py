"""What tests of all object stores have in common: jobs whose bytes are those of a disk."""

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from .harness import GRISTMILL, clean_environment, failure, report, run
from .resuming import Tree

#: So little memory, beside the parts that are uploaded, that 30 MB make runs.
RUNS = ("--memory", "39M", "--workers", "2")

#: How a sort has its records: in memory, in runs, in other processes.
MEMORIES = {
    "memory": ("--memory", "400M"),
    "runs": RUNS,
    "processes": ("--memory", "64M", "--runner", "processes"),
}


class ObjectBucket(Protocol):
    """A bucket of a store."""

    def url(self, key: str) -> str:
        """Return the location of an object."""
        ...

    def objects(self, key: str) -> dict[str, bytes]:
        """Return the objects right below a key, but for the proof."""
        ...

    def uploads(self) -> Sequence[object]:
        """Return what is there of uploads that are neither completed nor ended."""
        ...


def parts(folder: Path) -> Tree:
    """Return the parts of an output on a disk."""
    return {part.name: part.read_bytes() for part in folder.glob("part-*")}


def sorts_as_on_a_disk(memory: tuple[str, ...], bucket: ObjectBucket) -> None:
    """Make, sort, sort again and validate records in a bucket."""
    run("teragen", "300k", "in", "--files", "2", "--no-sync")
    run("terasort", "in", "out", "--partitions", "3", "--no-sync")
    run("teragen", "300k", bucket.url("deep/in"), "--files", "2")
    assert bucket.objects("deep/in") == parts(Path("in"))
    command = ["terasort", bucket.url("deep/in"), bucket.url("out"), *memory, "--partitions", "3"]
    run(*command)
    assert bucket.objects("out") == parts(Path("out"))
    assert "exists" in failure(*command)
    run(*command, "--overwrite")
    assert bucket.objects("out") == parts(Path("out"))
    found = report("teravalidate", bucket.url("out"), "--against", bucket.url("deep/in"))
    assert found["records"] == 300_000
    assert list(bucket.uploads()) == []


def begun(*command: str | Path) -> subprocess.Popen[str]:
    """Start a job; some of its requests are refused, or lose their reply."""
    faults = f"refused=0.08,lost=0.05,seed={random.randrange(1 << 20)}"
    return subprocess.Popen(
        [GRISTMILL, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=clean_environment(GRISTMILL_OBJECTS_FAULTS=faults),
    )
