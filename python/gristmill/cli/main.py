"""The `gristmill` program: runs a command line, whatever happens, to an exit code.

Imports come after the first line of `main`, so that Ctrl-C during them is no traceback either.
"""

import gc
import os
import sys
from collections.abc import Sequence

__all__ = ["main", "program"]

_NEW_OBJECTS = 5_000
"""After so many the garbage is collected: Python's 700 are reached 60 times by what is imported.

With 50,000 the program has 260 kB more when a job begins, which are not the job's then.
"""


def program() -> int:
    """Run this process's command line, and end the process with its exit code.

    Nothing is left to be done by then, and what Python would take down piece by piece, in a seventh
    of the time of a short command, goes with the process. But user code may have begun threads, or
    asked to be called at the end; and so may Ray.
    """
    gc.set_threshold(_NEW_OBJECTS)
    code = main()
    if not {"gristmill.mapreduce", "ray"} & sys.modules.keys():
        os._exit(code)
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, by default this process's, and return its exit code."""
    try:
        from gristmill.cli import failures
        from gristmill.terminal import console, signals

        signals.install()
        failures.begin()
        arguments = sys.argv[1:] if arguments is None else arguments
        try:
            code = _run(arguments)
            if code == failures.DONE:  # else it has been said what failed, which is enough
                console.flush()
        except BaseException as error:  # noqa: BLE001 - the edge: what gets here ends as a paragraph
            code = failures.conclude(error)
        finally:
            signals.ignore()
        failures.put_failure(arguments, code)
        console.settle()
        signals.leave()
        _leave_ray(code)
        return code
    except KeyboardInterrupt:  # before `install`
        return 130


def _leave_ray(code: int) -> None:
    """End at once if a thread waits for a cluster that is gone: the end of Ray could crash."""
    head = sys.modules.get("gristmill.cluster.head")
    if head is not None and head.ray_is_called():
        os._exit(code)


def _run(arguments: Sequence[str]) -> int:
    instruction = os.environ.get("_GRISTMILL_COMPLETE")
    if instruction and not arguments:  # a shell asks what could stand where its cursor is
        from gristmill.cli.commands.completion import answer

        return answer(instruction)
    from gristmill.cli.program import run

    return run(arguments)
