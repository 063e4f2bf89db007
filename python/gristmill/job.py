"""A job, begun and waited for.

    options ──spec──▶ _core.Job, on a native thread ──wait──▶ JobReport, or a built-in exception

The Python functions of the commands (functions.py) run their jobs here. The command line begins its
jobs here, too, but waits for them in its own way (cli/runner.py): it has signals and a progress bar
to look after.
"""

import os
import time
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from gristmill import _core
from gristmill.cluster import placed
from gristmill.cluster.user_code import UserCode
from gristmill.ending import cancel, ending_with_signals
from gristmill.errors import attach_report
from gristmill.history.origin import place
from gristmill.names import from_json
from gristmill.options import Value, spec
from gristmill.parents import parents_made

if TYPE_CHECKING:  # its classes take memory that the budget of a job is to have
    from gristmill.report import JobReport

__all__ = ["TICK_S", "begin", "new_job_id", "placed_for", "run"]

TICK_S = 0.05
"""Seconds between two looks at signals and progress; the end of a job is noticed at once."""

_QUIET_S = 10.0
"""How long a file may be awaited without a word."""

_numbers = count(1)
_processes: dict[int, str] = {}


def _process() -> str:
    """64 random bits in decimal digits, as Hadoop has digits there."""
    return f"{int.from_bytes(os.urandom(8)):020}"


def new_job_id(*, as_hadoop: bool = False) -> str:
    """Return a name for a job: when it begins (UTC), the process, and its number in the process.

    The process has 64 random bits: in two containers the same number may be that of two processes.

    Args:
        as_hadoop: In two parts, as Hadoop's are, for programs that look for them.
    """
    now = time.strftime("%Y%m%d%H%M%S", time.gmtime())
    process = _processes.setdefault(os.getpid(), _process())  # a fork has its own
    number = next(_numbers)
    if as_hadoop:
        return f"job_{now}{process}_{number:04}"
    return f"job_{now}_{process}" + (f"_{number}" if number > 1 else "")


def begin(
    command: str,
    values: Mapping[str, Value],
    job_id: str,
    *,
    history: bool = False,
    command_line: bool = False,
    cluster: _core.Cluster | None = None,
) -> _core.Job:
    """Begin a job.

    Args:
        command: Its name in the engine's table.
        values: Its options.
        job_id: Its name.
        history: Whether its history is kept even if it is short.
        command_line: Whether errors name options as the command line does.
        cluster: The agents that it runs in, as `gristmill.cluster.placed` has them.

    Raises:
        ValueError: An option makes no sense.
    """
    return _core.Job(
        spec(command, values),
        job_id,
        place(keep_short=history),
        cluster=cluster,
        command_line=command_line,
    )


@contextmanager
def placed_for(
    command: str,
    values: Mapping[str, Value],
    job_id: str,
    *,
    check: Callable[[], None] = lambda: None,
    tell: Callable[[str], None] = lambda _: None,
) -> Generator[_core.Cluster | None]:
    """Begin the agents that a job asks for, and end them after it: see `gristmill.cluster.placed`.

    A job that is resumed has those of the job that it resumes.

    Raises:
        ValueError: An option makes no sense.
        OSError: The cluster cannot be reached.
    """
    code, options = UserCode(), dict[str, Any](values)
    if command == "resume":
        told = None
        with suppress(ValueError, OSError):  # the command itself says so
            told = _core.resumed_agents(place(keep_short=True), str(values["job_id"]))
        if told is None:
            yield None
            return
        found = from_json(told)
        job_id = found["job_id"]
        options = {"on": "ray"}
        options |= {name: found[name] for name in ("workers", "nodes", "memory", "spill_dir")}
        code = _code_of(found["code"])
    with placed(options, job_id, code=code, check=check, tell=tell) as cluster:
        yield cluster


def _code_of(found: dict[str, Any] | None) -> UserCode:
    """The code of a job that is resumed; the engine refuses it if files of it are gone."""
    if found is None:
        return UserCode(resumes=True)
    modules, files = (
        tuple(path for path in found[name] if os.path.exists(path))  # noqa: PTH110 - any bytes
        for name in ("modules", "files")
    )
    return UserCode(modules if found["is_python"] else None, files, resumes=True)


def run(
    command: str,
    values: Mapping[str, Value],
    *,
    history: bool = False,
    check: Callable[[], None] = lambda: None,
) -> "JobReport":
    """Run a job to its end, also when Ctrl-C, a signal or an exception comes in between.

    Args:
        command: Its name in the engine's table.
        values: Its options.
        history: Whether its history is kept even if it is short.
        check: Raises what ends it, if there is something.

    Raises:
        OSError: Or another built-in exception, which says how the job failed.
    """
    job_id = new_job_id()
    above = parents_made(values.get("output"))
    placed = placed_for(command, values, job_id, tell=_tell)
    with ending_with_signals(), above, placed as cluster:
        job = begin(command, values, job_id, history=history, cluster=cluster)
        return _run_to_end(job, check)


def _tell(sentence: str) -> None:
    warnings.warn(sentence, RuntimeWarning, stacklevel=2)


def _run_to_end(job: _core.Job, check: Callable[[], None]) -> "JobReport":
    told: set[str] = set()
    try:
        while not job.wait(TICK_S):
            check()
            for path, waited_s in _core.files_awaited(_QUIET_S):
                if path not in told:
                    told.add(path)
                    _tell(f"waiting {waited_s:.0f} s for {path}")
    except BaseException as error:
        cancel(job, error, _tell)
        raise
    from gristmill.report import JobReport

    report = JobReport.from_json(job.report())
    try:
        job.raise_failure()
    except BaseException as error:
        attach_report(error, report)
        raise
    return report
