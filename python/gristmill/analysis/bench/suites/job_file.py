"""A job file of the user: `gristmill run FILE`, with an output of the benchmark's own."""

from collections.abc import Sequence
from pathlib import Path

from gristmill.analysis.bench.bench_request import BenchRequest, Config
from gristmill.analysis.bench.suites.suite import Step, Suite, command_line

__all__ = ["SUITE"]


def _steps(asked: BenchRequest, config: Config, folder: str) -> Sequence[Step]:
    out = f"{folder}/out"
    words = [*command_line("run", asked, config), asked.suite, "--output", out]
    for name, values in (("--input", asked.inputs), ("--set", asked.settings)):
        for value in values:
            words += [name, value]
    reads = tuple(one.partition("=")[2] or one for one in asked.inputs)
    return (Step(name=Path(asked.suite).stem, words=tuple(words), reads=reads, makes=out),)


SUITE = Suite(commands=("run",), rows=0, steps=_steps)
