"""`split-size`: the same sort with splits of 32 MB to 1 GB: which size is best for a storage."""

from collections.abc import Mapping, Sequence

from gristmill.analysis.bench.bench_request import BenchRequest, Config
from gristmill.analysis.bench.suites.suite import Step, Suite, command_line

__all__ = ["SUITE"]

_SIZES = ("32M", "64M", "128M", "256M", "512M", "1G")


def _vary(_asked: BenchRequest) -> Mapping[str, tuple[str, ...]]:
    return {"split-size": _SIZES}


def _prepare(asked: BenchRequest, _config: Config, folder: str) -> Sequence[Step]:
    data = f"{folder}/data"
    words = (*command_line("teragen", asked, {"no-sync": "on"}), str(asked.rows), data)
    return (Step(name="make", words=words, makes=data),)


def _steps(asked: BenchRequest, config: Config, folder: str) -> Sequence[Step]:
    data, ordered = f"{folder}/data", f"{folder}/sorted"
    words = (*command_line("terasort", asked, config), data, ordered)
    return (Step(name="terasort", words=words, reads=(data,), makes=ordered),)


SUITE = Suite(commands=("terasort",), rows=10_000_000, steps=_steps, prepare=_prepare, vary=_vary)
