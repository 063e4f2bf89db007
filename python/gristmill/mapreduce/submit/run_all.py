"""`gm.run_all`: several jobs at once, each with its share of workers and memory.

    jobs ─▶ those whose input is ready ─▶ at most as many at once as there are workers ─▶ results

Shares are even among the jobs that can run at once, so that none waits for the end of another that
it has nothing to do with. A job that reads from another of them waits for that one, which runs
once.
"""

import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Unpack

from gristmill import _core
from gristmill.amounts import parse_bytes
from gristmill.ending import ending_with_signals
from gristmill.mapreduce.formats.format import Input
from gristmill.mapreduce.results.exception_notes import tell_warnings
from gristmill.mapreduce.results.result import Result
from gristmill.mapreduce.results.tracebacks import without_our_frames
from gristmill.mapreduce.run_options import RUN, Options
from gristmill.mapreduce.spec import Spec
from gristmill.mapreduce.submit.defining import refuse_to_run
from gristmill.mapreduce.submit.job import Job
from gristmill.mapreduce.submit.launching import check_outputs, run
from gristmill.mapreduce.submit.parents import with_parents
from gristmill.mapreduce.submit.streams import check_streams
from gristmill.mapreduce.typed import RunOptions
from gristmill.signatures import takes

__all__ = ["run_all"]


@takes(RUN)
def run_all(jobs: Iterable[Job], **options: Unpack[RunOptions]) -> list[Result]:
    """Run jobs side by side; those that read from others of them, after these.

    Memory and workers are those of all jobs together. The share of each is fixed at the start:
    three jobs on two cores run two at a time with a core each, and the third when one is over.

    Args:
        jobs: Each with an output of its own.
        options: Those of `Job.run`, but for `progress`: nothing is drawn.

    Returns:
        The results, in the order of the jobs.

    Raises:
        ValueError: Two jobs write the same output, or one in another's, or one has none.
        Exception: What the first job that failed raised; the others are stopped.

    Example:
        >>> run_all([])
        []
    """
    refuse_to_run()
    try:
        results = _results(jobs, options)
    except BaseException as error:
        without_our_frames(error)
        raise
    for result in results:
        tell_warnings(result.report)
    return results


def _results(jobs: Iterable[Job], options: Mapping[str, Any]) -> list[Result]:
    given = _listed(jobs)
    _check(given)
    asked = Options(given=options, progress=False, function="gm.run_all")
    writing = _writing(given)
    with with_parents(writing):
        check_outputs(writing, asked)
        check_streams({id(job.chain()[0]): job.chain()[0] for job in given}.values())
        if not given:
            return []
        share, at_once = _shares(asked, len(given))
        with ending_with_signals():
            return _Crowd(given, share, at_once).results()


def _shares(asked: Options, jobs: int) -> tuple[Options, int]:
    """What each of the jobs is given that run at once, and how many these are."""
    is_here = asked.get("on") != "ray"
    memory = asked.get("memory")
    whole = None if memory is None else parse_bytes(memory, "memory")
    cores = asked.get("workers")
    if is_here:
        cores = cores or _core.default_workers()
        whole = _core.default_memory() if whole is None else whole
    else:
        cores = cores or _cpus_of_cluster()
    at_once = min(jobs, cores)
    memory_of_each = None if whole is None else whole // at_once
    return asked.but(memory=memory_of_each, workers=max(cores // at_once, 1)), at_once


def _cpus_of_cluster() -> int:
    """The CPUs that the nodes of the cluster have together."""
    from gristmill.cluster.connection import connected, load
    from gristmill.cluster.reserving import shares
    from gristmill.cluster.watching import draining

    ray = load()
    with connected(ray):
        return sum(workers for _, workers in shares(ray, None, draining(ray)))


def _listed(jobs: Any) -> list[Job]:  # noqa: ANN401 - what was given
    try:
        listed: list[Any] = list(jobs)
    except TypeError:
        listed = [jobs]
    for job in listed:
        if job is jobs or not isinstance(job, Job):
            raise TypeError(f"cannot run {job!r}. What to do: give a list of jobs, each a gm.Job.")
    return listed


def _check(jobs: list[Job]) -> None:
    for job in jobs:
        if job.output is None:
            raise ValueError(f"cannot run {job.name}: it has no output. What to do: give output=.")


def _writing(jobs: list[Job]) -> list[Spec]:
    """The jobs that will run and have outputs, each once: those of the list, and what they read."""
    return list({id(one): one for job in jobs for one in job.chain() if one.output}.values())


def _reading(job: Job, done: Job, form: Input) -> Job:
    """A job that reads what one in its chain has written already."""
    before = job.input
    assert isinstance(before, Job)
    return replace(job, input=form if before is done else _reading(before, done, form))


class _Crowd:
    """Jobs that run at the same time."""

    def __init__(self, jobs: list[Job], options: Options, at_once: int) -> None:
        self._jobs = jobs
        self._options = options
        self._at_once = at_once
        self._slots = threading.Semaphore(at_once)
        self._stopped = threading.Event()
        self._futures: dict[int, Future[Result]] = {}
        self._failure: BaseException | None = None

    def results(self) -> list[Result]:
        """Run them all; on Ctrl-C, or when one fails, the others are stopped."""
        with ThreadPoolExecutor(len(self._jobs)) as threads, ExitStack() as stack:
            stack.callback(self._stopped.set)
            for job in self._jobs:
                self._submit(job, threads)
            try:
                return [self._futures[id(job)].result() for job in self._jobs]
            except BaseException as error:  # noqa: BLE001 - raised again, or what it comes from
                self._stopped.set()
                raise (self._failure or error) from None

    def _submit(self, job: Job, threads: ThreadPoolExecutor) -> "Future[Result]":
        """A future for a job, after those for what it reads from: threads wait for earlier ones."""
        known = self._futures.get(id(job))
        if known is None:
            source = self._listed(job)
            before = None if source is None else self._submit(source, threads)
            known = self._futures[id(job)] = threads.submit(self._run, job, source, before)
        return known

    def _listed(self, job: Job) -> Job | None:
        """The job of the list that a job reads from, itself or through jobs that are not in it."""
        source = job.input
        while isinstance(source, Job) and not any(source is other for other in self._jobs):
            source = source.input
        return source if isinstance(source, Job) else None

    def _run(self, job: Job, source: Job | None, before: "Future[Result] | None") -> Result:
        try:
            if source is not None and before is not None:
                form = before.result().form
                assert isinstance(form, Input)
                job = _reading(job, source, form)
            with self._slots:
                if self._stopped.is_set():
                    raise KeyboardInterrupt
                return run(job, self._options, self._stopped.is_set)
        except BaseException as error:
            if not self._stopped.is_set():
                self._failure = error  # the others end because of it
                if isinstance(error, MemoryError) and self._at_once > 1:
                    error.add_note(
                        f"{self._at_once} jobs run at once, and share what gm.run_all is given:"
                        f" give it memory= for {self._at_once} such jobs, or fewer workers=."
                    )
            self._stopped.set()
            raise
