"""Which loss explains how runs scale: the one whose cost changes most with p.

A run costs p times its seconds for each unit of work. Where runs scale linearly, that is the same
at every p. A loss costs p times its seconds, too: one that rises with p makes the curve flatter,
one that falls makes it superlinear. Of several runs at one p the median counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from gristmill.analysis.runs import Run

__all__ = ["Cause", "cause_of"]

_SHARE_MIN = 0.15
"""Of the cost of a run: what changes less is no cause that a fit could see."""

_OF_OTHERS = frozenset({"machine"})
"""Not of the job: named only if nothing of the job is a cause."""

WORDS = {
    "retries": "attempts that failed or were killed, and were done again",
    "stragglers": "single tasks that took much longer than the others",
    "serial": "steps in which fewer slots work than there are",
    "segments": "too many small segments",
    "memory": "memory that does not hold the data: they are written and read again",
    "device": "waiting for the device",
    "processors": "fewer processors than workers",
    "machine": "other programs, or the host, that took processors",
    "cpu": "CPU seconds for the same work",
}
"""The losses, in words that follow a verb."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What explains how runs scale."""

    name: str
    """One of the losses, or `none`."""
    share: float = 0.0
    """Of the cost of a run where it is largest: how much it changes."""
    at: str = ""
    """Where it is largest: `small p` or `large p`."""
    sentence: str = ""
    """In words."""


def cause_of(runs: Sequence[Run]) -> Cause:
    """Return what explains how runs with several p scale.

    Example:
        >>> runs = [Run(p=p, seconds=8 / p + 1, wastes={"serial": 1 - 1 / p}) for p in (1, 2, 4)]
        >>> cause_of(runs).sentence
        'At large p: steps in which fewer slots work than there are (25% of the cost at p = 4).'
        >>> cause_of([Run(p=p, seconds=8 / p) for p in (1, 2, 4)]).name
        'none'
    """
    ps = sorted({run.p for run in runs})
    names = list(dict.fromkeys(name for run in runs for name in run.wastes))
    found = [_change(name, runs, ps) for name in names]
    found = [one for one in found if one.share >= _SHARE_MIN]
    own = [one for one in found if one.name not in _OF_OTHERS]
    if not (own or found):
        return Cause(name="none", sentence="No loss changes much with p.")
    return max(own or found, key=lambda one: one.share)


def _change(name: str, runs: Sequence[Run], ps: Sequence[float]) -> Cause:
    """How much the cost of a loss changes with p, as a part of what a run costs."""
    costs = {
        p: median(_cost(run, run.wastes.get(name, 0.0)) for run in runs if run.p == p) for p in ps
    }
    whole = {p: median(_cost(run, run.seconds) for run in runs if run.p == p) for p in ps}
    most = max(ps, key=lambda p: costs[p])
    share = (costs[most] - min(costs.values())) / whole[most]
    at = "small p" if costs[ps[0]] > costs[ps[-1]] else "large p"
    told = f"{costs[most] / whole[most]:.0%} of the cost at p = {most:g}"
    sentence = f"At {at}: {WORDS.get(name, name)} ({told})."
    return Cause(name=name, share=share, at=at, sentence=sentence)


def _cost(run: Run, seconds: float) -> float:
    return run.p * seconds / run.work
