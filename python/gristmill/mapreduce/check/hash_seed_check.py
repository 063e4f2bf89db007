"""What a partitioner says in another interpreter, in which `hash` of text is another one.

    keys, partitions ─▶ python, another PYTHONHASHSEED ─▶ the number of each key's partition

Workers have hashes of their own, so that a partitioner that asks `hash` sends a key here or there.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gristmill.mapreduce.pickling import dumps, loads

__all__ = ["partitions_with_other_seed"]

_PROGRAM = """
import os, pickle, sys
answers = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # user code may print
sys.path[:], function, keys, partitions = pickle.load(sys.stdin.buffer)
function = pickle.loads(function)
pickle.dump([function(key, partitions) for key in pickle.loads(keys)], answers)
"""


def partitions_with_other_seed(
    partition: Callable[[Any, int], int], keys: list[Any], partitions: int
) -> list[int] | None:
    """Return what a partitioner says of keys there; `None` if it cannot be run.

    Example:
        >>> partitions_with_other_seed(lambda key, parts: len(key) % parts, ["a", "bb"], 2)
        [1, 0]
    """
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    path = [entry or str(Path.cwd()) for entry in sys.path]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        input=dumps((path, dumps(partition), dumps(keys), partitions)),
        env={**os.environ, "PYTHONHASHSEED": seed},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    return loads(done.stdout) if done.returncode == 0 else None
