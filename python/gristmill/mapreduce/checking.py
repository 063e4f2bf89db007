"""`gristmill check`: is a job's output a function of its input?

    the job as planned ──────────────┐
    other splits                     │
    0, 1, 2 passes of the combiner   ├─▶ the same records in the same parts? else: which, and when
    values of a key in another order │
    attempts broken off, begun again │
    the engine itself                ┘

All but the last trial run the functions in this process, simply; so the input has to fit in memory.
"""

import io
import pickle
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from gristmill import _core
from gristmill.mapreduce.aggregates import Aggregate
from gristmill.mapreduce.failures import shown
from gristmill.mapreduce.formats import Output, Writer
from gristmill.mapreduce.job import Job
from gristmill.mapreduce.keyvalue import KeyValues
from gristmill.mapreduce.launching import Options, run_one, source_of
from gristmill.mapreduce.naive import Circumstances, Outcome, run_naively

__all__ = ["Difference", "Verdict", "check_output"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What two trials do not agree about."""

    trial: str
    """The trial that differs from the job as planned."""
    place: str
    """Which record of which output."""
    planned: str
    """The record of the job as planned; what it was instead if there is none."""
    found: str
    """That of the trial."""
    advice: str
    """What such a difference means mostly."""

    def __str__(self) -> str:
        return (
            f"the output differs with {self.trial}: {self.place} is {self.found}, and"
            f" {self.planned} as planned. {self.advice}"
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check has found."""

    trials: list[str] = field(default_factory=list[str])
    """The trials that were run."""
    differences: list[Difference] = field(default_factory=list[Difference])
    """What differs, the first difference of each trial."""

    @property
    def deterministic(self) -> bool:
        """Whether no trial differs."""
        return not self.differences


def check_output(job: Job, *, rounds: int = 3, seed: int = 0, engine: bool = True) -> Verdict:
    """Run a job under circumstances that should not matter.

    Args:
        job: It reads from files or items.
        rounds: How many trials of each kind.
        seed: Of what is drawn by chance; the same seed gives the same trials.
        engine: Whether the job is also run in workers, as `Job.run` does.

    Returns:
        Which trials there were, and what differs.

    Raises:
        Exception: Whatever a function of the job raises.
    """
    job = replace(job, skip_bad=0)
    planned = run_naively(job)
    verdict = Verdict()
    for trial, advice in _trials(job, rounds, Random(seed)):  # noqa: S311 - nothing is secret
        verdict.trials.append(trial.name)
        _compare(verdict, trial.name, advice, planned, run_naively(job, trial))
    if engine:
        verdict.trials.append("workers")
        _compare_engine(verdict, job, planned)
    return verdict


def _trials(job: Job, rounds: int, random: Random) -> Iterator[tuple[Circumstances, str]]:
    yield (
        Circumstances(name="the same circumstances"),
        "It changes from run to run: look for time, random numbers, the order of sets, state that"
        " functions keep in globals.",
    )
    size = max(source_of(job).plan(*job.split_sizes()).bytes, 1)
    for _ in range(rounds):
        most = random.randrange(max(size // 20, 1), size + 1)
        yield (
            Circumstances(name=f"splits of {most} bytes", split_max=most, order=_fork(random)),
            "The functions know where the input was cut: look for state that they keep from one"
            " record to the next.",
        )
    if job.combine is not None:
        for passes in (0, 2):
            yield (
                Circumstances(name=f"{passes} passes of combine", combine_passes=passes),
                "combine has to give values such that reduce gives the same whether they were"
                " combined never, once or twice.",
            )
    if job.reduces and not isinstance(job.reduce, Aggregate):
        for _ in range(rounds):
            yield (
                Circumstances(name="values in another order", permute=_fork(random)),
                "reduce depends on the order of a key's values, which is that of the input unless"
                " sort_by says more: sums of floats do, and lists of values.",
            )
    for _ in range(rounds):
        yield (
            Circumstances(name="attempts killed and begun again", kill=_fork(random)),
            "What an attempt did that was killed is still seen: look for state in globals, and"
            " for files that functions write themselves.",
        )


def _fork(random: Random) -> Random:
    return Random(random.random())  # noqa: S311 - nothing is secret


def _compare(verdict: Verdict, trial: str, advice: str, planned: Outcome, found: Outcome) -> None:
    outputs = [(f"part {at}", part) for at, part in enumerate(planned.parts)]
    outputs += [(f"output {name}", records) for name, records in planned.named.items()]
    others = [*found.parts, *found.named.values()]
    for (name, expected), got in zip(outputs, others, strict=True):
        difference = _first_difference(expected, got)
        if difference is not None:
            at, mine, theirs = difference
            verdict.differences.append(
                Difference(
                    trial=trial,
                    place=f"record {at} of {name}",
                    planned=mine,
                    found=theirs,
                    advice=advice,
                )
            )
            return


def _first_difference(expected: list[Any], got: list[Any]) -> tuple[int, str, str] | None:
    for at in range(max(len(expected), len(got))):
        mine, theirs = (
            (shown(records[at]), _settled(records[at])) if at < len(records) else ("none", b"")
            for records in (expected, got)
        )
        if mine != theirs:
            return at, mine[0], theirs[0]
    return None


def _compare_engine(verdict: Verdict, job: Job, planned: Outcome) -> None:
    """Against the engine; whose hash is another one, so that parts are put together first."""
    with tempfile.TemporaryDirectory(prefix="gristmill-check-") as folder:
        job = replace(job, output=_Anything((f"{folder}/out",)), outputs=_anything(job.outputs))
        result = run_one(job, Options(progress=False, no_sync=True), once="it was a check")
        found = Outcome([_ordered(result.read())])
        found.named.update((name, _ordered(result.read(name))) for name in job.outputs)
    mine = Outcome([_ordered(record for part in planned.parts for record in part)])
    mine.named.update((name, _ordered(records)) for name, records in planned.named.items())
    advice = "In workers the functions see something else than here: look for state of the machine."
    _compare(verdict, "workers", advice, mine, found)


def _ordered(records: Iterable[Any]) -> list[Any]:
    return sorted(records, key=_settled)


def _settled(record: object) -> bytes:
    """Bytes that are equal for equal records.

    Those of the shuffle are not: where an object comes twice, pickle notes that it is the same one.
    """
    data = io.BytesIO()
    pickler = pickle.Pickler(data, protocol=5)
    pickler.fast = True  # without such notes
    try:
        pickler.dump(record)
    except Exception:  # noqa: BLE001 - a class that has no name, or a list that holds itself
        return _core.encode(record)
    return data.getvalue()


def _anything(outputs: Iterable[str]) -> dict[str, Output]:
    return {name: _Anything(()) for name in outputs}


@dataclass(frozen=True)
class _Anything(KeyValues):
    """Key/value files whose values are records of any kind."""

    def writer(self, path: str) -> Writer:
        return _AnyWriter(super().writer(path))

    def open_file(self, path: str) -> Iterator[Any]:
        return (record for _, record in super().open_file(path))


@dataclass(frozen=True, slots=True)
class _AnyWriter:
    writer: Writer

    def write(self, record: Any) -> None:  # noqa: ANN401 - that is the point
        self.writer.write((None, record))

    def close(self) -> int:
        return self.writer.close()
