"""`gristmill check`: is a job's output a function of its input, and if not, which function is why?

    the job as planned ────────────────────┐
    other splits                           │
    random groups of a key's values        ├─▶ the same pairs, partitions, records? else: the first
    combined, never and twice              │   stage at which they differ names the function
    values of a key in another order *     │
    attempts broken off, begun again       │
    partitions of another interpreter      │
    the engine itself                      ┘

All but the last two trials run the functions in this process, simply; so the input has to fit in
memory. Of a chain each job is checked, on what the jobs before it put out.

* Without combine= the order is promised: that of the input. Then a difference is a note, no fault.
"""

import io
import math
import pickle
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from random import Random
from time import monotonic
from typing import Any, cast

from gristmill import _core
from gristmill.mapreduce.aggregates import Aggregate
from gristmill.mapreduce.check.hash_seed_check import partitions_with_other_seed
from gristmill.mapreduce.check.naive import Circumstances, Outcome, run_naively
from gristmill.mapreduce.formats.format import Format, Output, Writer
from gristmill.mapreduce.formats.keyvalue import KeyValues, kv
from gristmill.mapreduce.functions import name_of
from gristmill.mapreduce.plain_order import plain_key
from gristmill.mapreduce.run_options import Options
from gristmill.mapreduce.shown import shown
from gristmill.mapreduce.spec import Spec
from gristmill.mapreduce.submit.job import Job
from gristmill.mapreduce.submit.launching import run_one
from gristmill.mapreduce.submit.preparing import source_of
from gristmill.mapreduce.submit.streams import with_streams_copied

__all__ = ["Difference", "Verdict", "check_output"]

Advice = dict[str, str]

SAME = "the same circumstances"
WORKERS = "workers"
INTERPRETER = "another interpreter"

_ROUNDS = 3
_SLOW_S = 1.0
"""A run of so many seconds is repeated some six times for one round of trials, as it is."""

_QUIET = Options(given={"no_sync": True}, progress=False, listed=False)
"""How jobs of a check run: no list of jobs has them."""

ROLES = ("map", "group_by", "sort_by", "partition_by", "combine", "reduce")

_CHANGES = (
    "It changes from run to run: look for time, random numbers, the order of sets, and state that"
    " functions keep in globals."
)
_CUT = (
    "It sees where the input was cut: look for state that it keeps from one record to the next, and"
    " for the number of the task or record."
)
_STATE = "Look for state that it keeps from one call to the next."
_ORDER = (
    "It depends on the order of a key's values, which combine does not keep: lists of values do,"
    " and so do first and last values."
)
_PROMISED = (
    "depends on the order of a key's values. That is the order of the input, of several inputs that"
    " of the list: the output changes if records change places"
)
_SORTED = (". With sort_by= it does not", ": those that sort_by calls equal")
_NOTHING = "the output is empty: {} put out nothing. Does it lack a yield or a return?"
_NO_INPUT = "the output is empty, as the input has no records"
_COMBINE = (
    "It is not associative: what reduce gives must not depend on which of a key's values were"
    " combined together, once, twice or never. A mean of means does; combine sums and counts."
)
_COMMUTES = (
    "It is not commutative: what reduce gives must not depend on the order in which values are"
    " combined."
)
_KILLED = (
    "What a killed attempt did is still seen: look for state in globals, for the number of the"
    " attempt, and for files that functions write themselves."
)
_MACHINE = (
    "In workers the functions see something else than here: look for the order of sets, the"
    " environment, and other state of the machine."
)
_HASHES = (
    "In another process it sends the same key elsewhere: look for hash() of text, which differs"
    " from process to process; zlib.crc32(key.encode()) does not."
)
_ROUNDED = (
    "Only the last digits of floats differ, as a sum of floats depends on the order in which they"
    " are added: gm.sum, gm.mean and math.fsum are exact."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What two trials do not agree about."""

    function: str
    """The function to blame, such as `combine mean`."""
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
            f"{self.function}: the output differs with {self.trial}: {self.place} is {self.found},"
            f" and {self.planned} as planned. {self.advice}"
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check has found."""

    trials: list[str] = field(default_factory=list[str])
    """The trials that were run."""
    differences: list[Difference] = field(default_factory=list[Difference])
    """What differs, the first difference of each trial."""
    notes: list[str] = field(default_factory=list[str])
    """What is no fault, and yet worth knowing."""

    @property
    def deterministic(self) -> bool:
        """Whether no trial differs."""
        return not self.differences

    def add(self, other: "Verdict", which: str) -> None:
        """Add what was found of one job of a chain, with which it is."""
        self.trials.extend(f"{trial}{which}" for trial in other.trials)
        for one in other.differences:
            self.differences.append(replace(one, function=f"{one.function}{which}"))
        self.notes.extend(f"{note}{which}" for note in other.notes)


def check_output(
    job: Job, *, rounds: int | None = None, seed: int = 0, engine: bool = True
) -> Verdict:
    """Run a job under circumstances that should not matter.

    Args:
        job: Of a chain the last job; each is checked.
        rounds: How many trials of each kind; by default 3, or 1 of a job that takes over a second.
        seed: Of what is drawn by chance; the same seed gives the same trials.
        engine: Whether the job is also run in workers, as `Job.run` does.

    Returns:
        Which trials there were, and what differs.

    Raises:
        Exception: Whatever a function of the job raises.
    """
    jobs = [replace(one, skip_bad=0) for one in job.chain()]
    whole = Verdict()
    with tempfile.TemporaryDirectory(prefix="gristmill-check-") as folder, ExitStack() as streams:
        before: Output | None = None
        for number, one in enumerate(jobs):
            read = one if before is None else replace(one, input=before)
            read = streams.enter_context(with_streams_copied(read, tempfile.gettempdir()))
            verdict = _checked(read, rounds, seed, engine=engine)
            which = f" (job {number + 1} of {len(jobs)}, {one.name})" if len(jobs) > 1 else ""
            whole.add(verdict, which)
            if number < len(jobs) - 1:
                before = _ran(read, f"{folder}/{number}")
    return whole


def _ran(job: Spec, folder: str) -> Output:
    """What a job put out, for the next one of its chain."""
    output = job.output.at(folder) if isinstance(job.output, Format) else kv(folder)
    run_one(replace(job, output=output), _QUIET, once="it was a check")
    return output


def _checked(job: Spec, rounds: int | None, seed: int, *, engine: bool) -> Verdict:
    began = monotonic()
    planned = run_naively(job)
    if rounds is None:
        rounds = _ROUNDS if monotonic() - began < _SLOW_S else 1
    verdict = Verdict()
    if not any(planned.parts) and not any(planned.named.values()):
        role = "reduce" if planned.mapped else "map"
        verdict.notes.append(_NOTHING.format(_named(job, role)) if planned.read else _NO_INPUT)
    for trial in _trials(job, rounds, Random(seed)):  # noqa: S311 - nothing is secret
        if trial.if_none_differed and not verdict.deterministic:
            continue
        verdict.trials.append(trial.how.name)
        if trial.promised:
            _note_order(verdict, job, trial, planned)
            continue
        expected = planned if trial.against is None else run_naively(job, trial.against)
        _compare(verdict, job, trial, expected, run_naively(job, trial.how))
        if trial.how.name == SAME and not verdict.deterministic:
            return verdict  # whatever else is tried differs for this reason alone
    if engine:
        if callable(job.partition_by) and job.reduces:
            verdict.trials.append(INTERPRETER)
            _compare_partitions(verdict, job, planned)
        verdict.trials.append(WORKERS)
        _compare_engine(verdict, job, planned)
    return verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    how: Circumstances
    advice: Advice
    """What it means, of each role whose function may be to blame."""
    suspect: str = "reduce"
    """The role to blame where all stages before the reduce agree."""
    against: Circumstances | None = None
    """What it is compared with in the place of the plan."""
    if_none_differed: bool = False
    """Whether it says nothing once another trial has differed."""
    promised: bool = False
    """Whether what it changes is promised, so that a difference is no fault."""

    @property
    def same_groups(self) -> bool:
        """Whether the same values are combined as in the plan."""
        how = self.how
        return how.split_max is None and how.regroup is None and how.combine_passes == 1


def _trials(job: Spec, rounds: int, random: Random) -> Iterator[_Trial]:
    yield _Trial(how=Circumstances(name=SAME), advice=dict.fromkeys(ROLES, _CHANGES))
    combines = job.combine is not None
    suspect = "combine" if combines else "reduce"
    size = max(source_of(job).plan(*job.split_sizes()).bytes, 1)
    for _ in range(rounds):
        most = random.randrange(max(size // 20, 1), size + 1)
        how = Circumstances(name=f"splits of {most} bytes", split_max=most, order=_fork(random))
        advice = dict.fromkeys(ROLES, _STATE) | {"combine": _COMBINE, "map": _CUT}
        yield _Trial(how=how, advice=advice, suspect=suspect)
    if job.reduces and not isinstance(job.reduce, Aggregate):
        for _ in range(rounds):
            permute, plain = _fork(random), Circumstances(combine_passes=0)
            how = replace(plain, name="values in another order", permute=permute)
            against, advice = plain if combines else None, {"reduce": _ORDER}
            yield _Trial(how=how, advice=advice, against=against, promised=not combines)
    if combines:
        yield from _of_combine(rounds, random)
    for _ in range(rounds):
        how = Circumstances(name="attempts killed and begun again", kill=_fork(random))
        yield _Trial(how=how, advice=dict.fromkeys(ROLES, _KILLED))


def _of_combine(rounds: int, random: Random) -> Iterator[_Trial]:
    for passes in (0, 2):
        how = Circumstances(name=f"{passes} passes of combine", combine_passes=passes)
        yield _Trial(how=how, advice={"combine": _COMBINE}, suspect="combine")
    for _ in range(rounds):
        how = Circumstances(name="random groups of values combined", regroup=_fork(random))
        yield _Trial(how=how, advice={"combine": _COMBINE}, suspect="combine")
    for _ in range(rounds):
        how = Circumstances(
            name="random groups of values combined, in random orders",
            regroup=_fork(random),
            shuffle=True,
        )
        advice = {"combine": _COMMUTES}
        yield _Trial(how=how, advice=advice, suspect="combine", if_none_differed=True)


def _fork(random: Random) -> Random:
    return Random(random.random())  # noqa: S311 - nothing is secret


def _note_order(verdict: Verdict, job: Spec, trial: _Trial, planned: Outcome) -> None:
    """Note that the reduction depends on the order of values, if it does; once."""
    if any(_PROMISED in note for note in verdict.notes):
        return
    found, how = Verdict(), ""
    try:
        _compare(found, job, trial, planned, run_naively(job, trial.how))
    except Exception as error:  # noqa: BLE001 - code that relies on what it may rely on
        how = f", and raises {type(error).__name__} in another one"
    if how or not found.deterministic:
        more = how or _SORTED[job.sort_by is not None]
        verdict.notes.append(f"{_named(job, 'reduce')} {_PROMISED}{more}.")


def _compare(verdict: Verdict, job: Spec, trial: _Trial, planned: Outcome, found: Outcome) -> None:
    outputs = [(f"part {at}", part) for at, part in enumerate(planned.parts)]
    outputs += [(f"output {name}", records) for name, records in planned.named.items()]
    others = [*found.parts, *found.named.values()]
    for (name, expected), got in zip(outputs, others, strict=True):
        at = _first_difference(expected, got)
        if at is None:
            continue
        at_work = trial.how.name != WORKERS  # there only the output is seen
        role = _blamed(planned, found, trial) if at_work else "map"
        mine, theirs = (records[at] if at < len(records) else _NONE for records in (expected, got))
        rounded = _nearly(mine, theirs)
        verdict.differences.append(
            Difference(
                function=_named(job, role) if at_work else "the job",
                trial=trial.how.name,
                place=f"record {at} of {name}",
                planned=shown(mine),
                found=shown(theirs),
                advice=_ROUNDED if rounded else trial.advice.get(role, _STATE),
            )
        )
        return


class _Missing:
    def __repr__(self) -> str:
        return "none"


_NONE = _Missing()


def _blamed(planned: Outcome, found: Outcome, trial: _Trial) -> str:
    """The role of the first function whose result differs between the plan and a trial."""
    pairs = [(pair.key, pair.value) for pair in planned.mapped]
    others = [(pair.key, pair.value) for pair in found.mapped]
    if not (planned.mapped or found.mapped) or _first_difference(pairs, others) is not None:
        return "map"
    for name, records in planned.named_by_map.items():
        if _first_difference(records, found.named_by_map[name]) is not None:
            return "map"
    for mine, theirs in zip(planned.mapped, found.mapped, strict=True):
        if mine.order[0] != theirs.order[0]:
            return "group_by"
        if mine.order[2] != theirs.order[2]:
            return "sort_by"
    if planned.partition != found.partition:
        return "partition_by"
    if trial.same_groups:
        pairs, others = (
            [(pair.key, pair.value) for pair in outcome.combined] for outcome in (planned, found)
        )
        return "reduce" if _first_difference(pairs, others) is None else "combine"
    return trial.suspect


def _named(job: Spec, role: str) -> str:
    """A role and the function that the job has for it."""
    if role in ("map", "reduce") and getattr(job, role) is None:
        role += "_batches"
    function = getattr(job, role)
    if isinstance(function, Aggregate):
        return f"{role} {function.name}"
    return role if function is None else f"{role} {name_of(function)}"


def _first_difference(expected: list[Any], got: list[Any]) -> int | None:
    if len(expected) == len(got) and _settled(expected) == _settled(got):
        return None
    for at in range(max(len(expected), len(got))):
        mine, theirs = (
            _settled(records[at]) if at < len(records) else b"" for records in (expected, got)
        )
        if mine != theirs:
            return at
    return None


def _nearly(mine: Any, theirs: Any) -> bool:  # noqa: ANN401 - any record
    """Whether two records are the same but for the last digits of floats."""
    if isinstance(mine, float) and isinstance(theirs, float):
        return math.isclose(mine, theirs, rel_tol=1e-9)
    if type(mine) is not type(theirs):
        return False
    if isinstance(mine, (list, tuple)):
        parts, others = cast("list[Any]", mine), cast("list[Any]", theirs)
        return len(parts) == len(others) and all(map(_nearly, parts, others))
    if isinstance(mine, dict):
        known, found = cast("dict[Any, Any]", mine), cast("dict[Any, Any]", theirs)
        return known.keys() == found.keys() and all(_nearly(known[k], found[k]) for k in known)
    return _settled(mine) == _settled(theirs)


def _compare_partitions(verdict: Verdict, job: Spec, planned: Outcome) -> None:
    """Whether the partitioner sends each key where it does in an interpreter with other hashes."""
    function = job.partition_by
    assert callable(function)
    at = {pair.order[0]: number for number, pair in enumerate(planned.mapped)}
    keys = [plain_key(planned.mapped[number].group) for number in at.values()]
    others = partitions_with_other_seed(function, keys, len(planned.parts))
    if others is None:
        return  # it raises there: the workers will say so
    for key, number, other in zip(keys, at.values(), others, strict=True):
        if planned.partition[number] != other:
            verdict.differences.append(
                Difference(
                    function=_named(job, "partition_by"),
                    trial=INTERPRETER,
                    place=f"the partition of key {shown(key)}",
                    planned=shown(planned.partition[number]),
                    found=shown(other),
                    advice=_HASHES,
                )
            )
            return


def _compare_engine(verdict: Verdict, job: Spec, planned: Outcome) -> None:
    """Against the engine; whose hash is another one, so that parts are put together first."""
    with tempfile.TemporaryDirectory(prefix="gristmill-check-") as folder:
        job = replace(job, output=_Anything((f"{folder}/out",)), outputs=_anything(job.outputs))
        result = run_one(job, _QUIET, once="it was a check")
        found = Outcome([_ordered(result.read())])
        found.named.update((name, _ordered(result.read(name))) for name in job.outputs)
    mine = Outcome([_ordered(record for part in planned.parts for record in part)])
    mine.named.update((name, _ordered(records)) for name, records in planned.named.items())
    trial = _Trial(how=Circumstances(name=WORKERS), advice={"map": _MACHINE})
    _compare(verdict, job, trial, mine, found)


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
