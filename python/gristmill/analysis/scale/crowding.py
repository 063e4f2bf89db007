"""Runs with more workers than the machine has processors: they measure the machine, not the job.

Beyond its processors a machine is no faster, whatever the job: a law that such points are given
takes that for contention of the job.
"""

from collections.abc import Iterable, Sequence

from gristmill.analysis.runs import Run

__all__ = ["crowded", "uncrowded"]

_POINTS_MIN = 3


def crowded(each_p: Iterable[float], processors: int | None) -> str | None:
    """Say which values of p are more workers than processors; `None` where none is.

    Example:
        >>> crowded([1, 2, 3, 4], 2)
        "p = 3, 4 are more workers than the machine's 2 processors"
        >>> crowded([1, 2], 2)
    """
    beyond = [p for p in sorted(set(each_p)) if processors is not None and p > processors]
    if not beyond:
        return None
    values = ", ".join(f"{p:g}" for p in beyond)
    verb = "is" if len(beyond) == 1 else "are"
    count = "1 processor" if processors == 1 else f"{processors} processors"
    return f"p = {values} {verb} more workers than the machine's {count}"


def uncrowded(runs: Sequence[Run], processors: int | None) -> tuple[Sequence[Run], str | None]:
    """Return the runs that a law is fitted to, and what there is to say of the others.

    They are left out where enough values of p are left without them.

    Example:
        >>> runs = [Run(p=p, seconds=9 / p) for p in (1, 2, 3, 4)]
        >>> [run.p for run in uncrowded(runs, 3)[0]], len(uncrowded(runs, 2)[0])
        ([1, 2, 3], 4)
    """
    said = crowded((run.p for run in runs), processors)
    if said is None or processors is None:
        return runs, None
    kept = [run for run in runs if run.p <= processors]
    if len({run.p for run in kept}) >= _POINTS_MIN:
        return kept, f"{said}: they are left out of the fit"
    return runs, (
        f"{said}: what the fit finds there is the number of processors, and no law of the job."
        " Measure on a machine with more"
    )
