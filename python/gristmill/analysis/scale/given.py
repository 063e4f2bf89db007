"""Runs from sequences, as Python code gives them: checked item by item."""

import math
from collections.abc import Mapping, Sequence

from gristmill.analysis.runs import Run
from gristmill.analysis.scale.limits import beyond, longer, shortened

__all__ = ["runs_of"]


def runs_of(
    p: Sequence[float],
    seconds: Sequence[float] | None,
    throughput: Sequence[float] | None,
    work: Sequence[float] | None,
    phases: Mapping[str, Sequence[float]] | None,
    *,
    weak: bool,
) -> list[Run]:
    """Return a run for each item.

    Raises:
        ValueError: Lengths differ, or an item is no positive number.

    >>> runs_of([1, 2], None, [5.0, 10.0], None, None, weak=False)[1].rate
    10.0
    """
    if (seconds is None) == (throughput is None):
        raise ValueError("give either seconds or throughput")
    if weak and work is not None:
        raise ValueError("give either work or weak=True: work says how much each run did")
    columns = _columns(p, seconds, throughput, work)
    of_phases = dict(phases or {})
    if of_phases and throughput is not None:
        raise ValueError("phases are seconds, so give seconds, not throughput")
    for name, column in {**columns, **of_phases}.items():
        if len(column) != len(p):
            raise ValueError(f"{name} has {len(column)} items, and p has {len(p)}")
        _check(name, column, also_zero=name in of_phases)
    for name, column in of_phases.items():
        for at, (took, whole) in enumerate(zip(column, columns["seconds"], strict=True)):
            if longer(float(took), float(whole)):
                raise ValueError(f"{name}, item {at}: {took:g} s, and the run took {whole:g} s")
    return [
        _run(at, columns, {name: float(column[at]) for name, column in of_phases.items()}, weak)
        for at in range(len(p))
    ]


def _columns(
    p: Sequence[float],
    seconds: Sequence[float] | None,
    throughput: Sequence[float] | None,
    work: Sequence[float] | None,
) -> dict[str, Sequence[float]]:
    given = {"p": p, "seconds": seconds, "throughput": throughput, "work": work}
    return {name: column for name, column in given.items() if column is not None}


def _run(
    at: int, columns: Mapping[str, Sequence[float]], phases: Mapping[str, float], weak: bool
) -> Run:
    of = {name: float(column[at]) for name, column in columns.items()}
    work = of.get("work", of["p"] if weak else 1.0)
    seconds = of["seconds"] if "seconds" in of else work / of["throughput"]
    return Run(p=of["p"], seconds=seconds, work=work, phases=phases, source=f"item {at}")


def _check(name: str, column: Sequence[float], *, also_zero: bool) -> None:
    for at, value in enumerate(column):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number) or number < 0 or (number == 0 and not also_zero):
            wanted = "a number from 0 on" if also_zero else "a number above 0"
            raise ValueError(f"{name}, item {at}: {shortened(value)} is not {wanted}")
        wrong = beyond(name, number)
        if wrong is not None:
            raise ValueError(f"item {at}: {wrong}")
