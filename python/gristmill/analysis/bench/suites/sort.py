"""`sort`: TeraGen, TeraSort and TeraValidate, as the sort benchmark has them.

The three checksums must be the same. `--vary skew=off,on` adds the skewed keys of Daytona's rule.
"""

from collections.abc import Sequence

from gristmill.analysis.bench.bench_request import BenchRequest, Config
from gristmill.analysis.bench.suites.suite import Step, Suite, command_line

__all__ = ["SUITE"]


def _steps(asked: BenchRequest, config: Config, folder: str) -> Sequence[Step]:
    data, ordered = f"{folder}/data", f"{folder}/sorted"

    def words(command: str, *arguments: str) -> tuple[str, ...]:
        return (*command_line(command, asked, config), *arguments)

    return (
        Step(name="teragen", words=words("teragen", str(asked.rows), data), makes=data),
        Step(name="terasort", words=words("terasort", data, ordered), reads=(data,), makes=ordered),
        Step(name="teravalidate", words=words("teravalidate", ordered), reads=(ordered,)),
    )


SUITE = Suite(
    commands=("teragen", "terasort", "teravalidate"), rows=10_000_000, steps=_steps, proves=True
)
