"""What the commands of `gristmill bench` share: how they fail, and which library they need."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from gristmill.analysis.bench.errors import BenchError, WrongOptionError, library
from gristmill.cli.failures import FAILED, WRONG, fail
from gristmill.errors import kind_of

__all__ = ["failing"]


def failing(command: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Make a command end with one paragraph where it cannot do its work, and its extra is missing.

    That is asked first: nobody should find it out after an hour of runs.
    """

    def decorate(run: Callable[..., int]) -> Callable[..., int]:
        @wraps(run)
        def asked(**values: Any) -> int:  # noqa: ANN401 - click's own values
            try:
                for name in ("numpy", "scipy", "matplotlib"):
                    library(name)
                return run(**values)
            except BenchError as error:
                fail(f"bench {command}", str(error))
                return WRONG if isinstance(error, WrongOptionError) else FAILED
            except (ValueError, OSError) as error:
                if kind_of(error) is None:
                    raise
                advice = f" What to do: see gristmill bench {command} --help."
                fail(f"bench {command}", f"{error}{'' if 'What to do: ' in str(error) else advice}")
                return WRONG if kind_of(error) == "bad_option" else FAILED

        return asked

    return decorate
