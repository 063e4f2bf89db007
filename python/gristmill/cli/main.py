"""The `gristmill` program: runs a command line, whatever happens, to an exit code.

Imports come after the first line of `main`, so that Ctrl-C during them is no traceback either.
"""

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, by default this process's, and return its exit code."""
    try:
        from gristmill.cli import failures
        from gristmill.terminal import console, signals

        signals.install()
        try:
            code = _run(sys.argv[1:] if arguments is None else arguments)
            if code == failures.DONE:  # else it has been said what failed, which is enough
                console.flush()
        except BaseException as error:  # noqa: BLE001 - the edge: what gets here ends as a paragraph
            code = failures.conclude(error)
        finally:
            signals.ignore()
        console.settle()
        signals.leave()
        return code
    except KeyboardInterrupt:  # before `install`
        return 130


def _run(arguments: Sequence[str]) -> int:
    instruction = os.environ.get("_GRISTMILL_COMPLETE")
    if instruction and not arguments:  # a shell asks what could stand where its cursor is
        from gristmill.cli.completion import answer

        return answer(instruction)
    from gristmill.cli.program import run

    return run(arguments)
