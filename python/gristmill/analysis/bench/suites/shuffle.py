"""`shuffle`: records of ten files go to 80 partitions, with next to no work at either end.

    native   terasort in worker processes, which share no memory: all records go by sorted runs
    plasma   the test of Plasma MapReduce: a key of 16 bits, by functions of Python (plasma_job.py)

Source: the shuffle of Plasma MapReduce 0.6, whose files and partitions these are.
"""

from collections.abc import Sequence
from pathlib import Path

from gristmill.analysis.bench.bench_request import BenchRequest, Config
from gristmill.analysis.bench.suites.suite import Step, Suite, command_line

__all__ = ["SUITE"]

_FILES, _PARTITIONS = "10", "80"
_JOB = str(Path(__file__).with_name("plasma_job.py"))


def _prepare(asked: BenchRequest, _config: Config, folder: str) -> Sequence[Step]:
    data = f"{folder}/data"
    words = command_line("teragen", asked, {"no-sync": "on"})
    return (
        Step(name="make", words=(*words, "--files", _FILES, str(asked.rows), data), makes=data),
    )


def _steps(asked: BenchRequest, config: Config, folder: str) -> Sequence[Step]:
    data, out = f"{folder}/data", f"{folder}/shuffled"
    native = command_line("terasort", asked, {"runner": "processes", **config})
    plasma = command_line("run", asked, config)
    return (
        Step(
            name="native",
            words=(*native, "--partitions", _PARTITIONS, data, out),
            reads=(data,),
            makes=out,
        ),
        Step(
            name="plasma",
            words=(*plasma, _JOB, "--input", f"{data}/part-*", "--output", out),
            reads=(data,),
            makes=out,
        ),
    )


SUITE = Suite(commands=("terasort", "run"), rows=1_000_000, steps=_steps, prepare=_prepare)
