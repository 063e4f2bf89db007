"""The job of benchmarks/scaling.py: words of blocks that a device sends, counted.

    line "ready 3"    the worker joins its control group, and waits until all workers have
    line "block 17"   the worker reads the block with a time limit, and counts its words

A read that takes longer raises: the attempt fails and is tried again, in a new worker process. A
process joins its control group, a quarter of a processor, before it does anything else: its start
is outside. Nothing is kept from task to task: a task has functions of its own.
"""

import os
import re
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import gristmill as gm

BEGIN_LIMIT_S = 30.0
"""So long a worker waits for the others: a run in which one does not start is to fail."""


def join(group: str, caps: str) -> None:
    """Be limited from now on, as scaling_caps.py says."""
    own = Path(group) / f"worker-{os.getpid()}"
    if own.exists():
        return
    own.mkdir()
    for name, _, limit in (cap.partition("=") for cap in caps.split(",")):
        (own / name).write_text(limit)
    (own / "cgroup.procs").write_text(str(os.getpid()))


def ask(port: int, command: str, limit_s: float) -> bytes:
    """Send the device a command, and return the answer.

    Raises:
        TimeoutError: It did not come within the limit.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=limit_s) as connection:
        connection.sendall(f"{command}\n".encode())
        try:
            return receive(connection, int.from_bytes(receive(connection, 8), "little"))
        except TimeoutError:
            message = f"the device did not answer {command!r} within {limit_s} s"
            raise TimeoutError(message) from None


def receive(connection: socket.socket, size: int) -> bytes:
    found = bytearray(size)
    left = memoryview(found)
    while left:
        got = connection.recv_into(left)
        if got == 0:
            raise ConnectionError("the device closed the connection")
        left = left[got:]
    return bytes(found)


def job(port: str = "0", group: str = "", caps: str = "", limit: str = "1") -> gm.Job:
    def count_words(line: str) -> Iterator[tuple[str, int]]:
        join(group, caps)
        what, number = line.split()
        if what == "ready":
            ask(int(port), "ready", BEGIN_LIMIT_S)
            return
        block = ask(int(port), f"read {number}", float(limit))
        for word, count in Counter(re.findall(rb"\w+", block)).items():
            yield word.decode(), count

    def add(word: str, counts: Iterator[int]) -> Iterator[tuple[str, int]]:
        yield word, sum(counts)

    return gm.Job(
        gm.text("in.txt"), map=count_words, reduce=add, output=gm.tsv("out"), parts=8,
        split_min=100, split_max=100,
    )  # fmt: skip
