"""A prepared job, run by the engine and waited for.

Prepared ─▶ _core.Job: a native thread, workers ─▶ JobReport, or what made the job fail
"""

import atexit
import hashlib
from collections.abc import Callable

from gristmill import _core, worker
from gristmill.amounts import parse_bytes
from gristmill.cluster import placed
from gristmill.cluster.user_code import UserCode
from gristmill.ending import cancel
from gristmill.errors import attach_report
from gristmill.history.origin import place
from gristmill.job import TICK_S, new_job_id, placed_for
from gristmill.job import begin as begin_command
from gristmill.mapreduce.pickling import dumps
from gristmill.mapreduce.results.exception_notes import tell_failure
from gristmill.mapreduce.run_options import Options
from gristmill.mapreduce.submit.preparing import Prepared
from gristmill.names import to_json
from gristmill.report import JobReport

__all__ = ["Stop", "begin", "resume_dead", "run_prepared"]

Stop = Callable[[], bool]
"""Whether a job that runs shall end; first asked when it has begun to run."""

_BAR_AFTER_S = 2.0

_TIMEOUT_S = 600.0
"""As Hadoop's `mapreduce.task.timeout`."""

atexit.register(_core.dismiss_workers)


def run_prepared(prepared: Prepared, stop: Stop, job_id: str | None = None) -> JobReport:
    """Run a job to its end, also when Ctrl-C or another exception comes in between.

    Raises:
        Exception: What made the job fail, with the report and what else is known.
    """
    job_id = job_id or new_job_id()
    spec, options = prepared.spec, prepared.options
    code = UserCode(tuple(spec["code"]), tuple(spec["side_files"]))
    check, tell = _check_of(stop), _tell_of(options)
    with placed(options.given, job_id, code=code, check=check, tell=tell) as cluster:
        return _run_to_end(begin(prepared, job_id, cluster), options, stop)


def resume_dead(job_id: str, options: Options, stop: Stop) -> JobReport:
    """Resume a job whose process was killed, as `run_prepared` runs one.

    Raises:
        Exception: What made the job fail, or why it is refused.
    """
    given = {"job_id": job_id}
    check, tell = _check_of(stop), _tell_of(options)
    with placed_for("resume", given, new_job_id(), check=check, tell=tell) as cluster:
        native = begin_command(
            "resume", given, new_job_id(), command_line=options.command_line, cluster=cluster
        )
        return _run_to_end(native, options, stop)


def _check_of(stop: Stop) -> Callable[[], None]:
    """What ends the wait for a cluster."""

    def check() -> None:
        if stop():
            raise KeyboardInterrupt

    return check


def _tells(options: Options) -> bool:
    """Whether the job may write sentences to stderr."""
    return options.progress is not False or options.command_line


def _tell_of(options: Options) -> Callable[[str], None]:
    """What writes sentences to stderr, where the job may."""

    def tell(sentence: str) -> None:
        from gristmill.terminal import console

        if _tells(options):
            console.tell([sentence])

    return tell


def _run_to_end(native: "_core.Job", options: Options, stop: Stop) -> JobReport:
    try:
        _wait(native, options.progress, stop, telling=_tells(options))
    except BaseException as error:
        cancel(native, error, _tell_of(options))
        raise
    report = JobReport.from_json(native.report())
    try:
        native.raise_failure()
    except BaseException as error:
        attach_report(error, report)
        tell_failure(error, report)
        raise
    return report


def begin(prepared: Prepared, job_id: str, cluster: "_core.Cluster | None" = None) -> "_core.Job":
    """Begin a job, in these agents if it runs on a cluster.

    Raises:
        ValueError: An option makes no sense.
    """
    spec = to_json({"mapreduce": prepared.spec})
    work = _work(dumps(prepared.definition), prepared.options)
    return _core.Job(
        spec,
        job_id,
        place(keep_short="history" in prepared.options.given) if prepared.options.listed else None,
        work=work,
        cluster=cluster,
        command_line=prepared.options.command_line,
    )


def _work(definition: bytes, options: Options) -> "_core.Executor":
    """Processes for a job's functions, started as this one was."""
    program, arguments, environment, folder, scratch = options.worker or worker.command()
    limit, timeout_s = options.get("worker_memory"), options.get("timeout_s")
    return _core.Executor(
        [program, *arguments],
        definition,
        hashlib.sha256(definition).digest(),
        environment=environment,
        folder=folder,
        scratch=scratch,
        workers=options.get("workers") or _core.default_workers(),
        timeout_s=_TIMEOUT_S if timeout_s is None else timeout_s,
        worker_memory=None if limit is None else parse_bytes(limit, "worker_memory"),
    )


def _wait(native: "_core.Job", progress: bool | None, stop: Stop, *, telling: bool) -> None:
    from gristmill.terminal import console
    from gristmill.terminal.progress import progress_bar

    quiet, anywhere = progress is False, progress is True
    with progress_bar(quiet=quiet, first_s=_BAR_AFTER_S, anywhere=anywhere) as bar:
        over = False
        while not over:
            if stop():
                native.cancel()
            over = native.wait(TICK_S)
            if telling:
                console.tell(native.notices())
            name, _, done_bytes, bytes_in_all = native.progress()
            bar.show(name, done_bytes, bytes_in_all, native.nodes())
