"""A job's first worker, which starts and imports what tasks need while the job is planned.

Job.run, gristmill run ─▶ begin_worker ─▶ a worker that waits ─▶ the job's first task

It is imported before all else that a run needs, so it imports little itself.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from gristmill import _core, worker

if TYPE_CHECKING:
    from gristmill.mapreduce.run_options import Options

__all__ = ["begin_worker"]


def begin_worker(options: "Options") -> None:
    """Start a worker, unless one waits, or the job runs on a cluster.

    Options of stores make another command: the job then starts its workers itself.
    """
    if options.get("on") == "ray" or options.get("store_option"):
        return
    with suppress(OSError):  # such as a current folder that is gone: the job says so
        program, arguments, environment, folder, scratch = worker.command()
        _core.prepare_worker(
            [program, *arguments], environment=environment, folder=folder, scratch=scratch
        )
