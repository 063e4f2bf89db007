"""Which run comes when: rounds, in which the configurations take turns.

    round 0   A B C   warm-up
    round 1   B C A
    round 2   C A B   ...

A machine that drifts drifts for all configurations alike, so runs of one round can be paired. Each
configuration stands at each place equally often.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gristmill.analysis.bench.bench_request import Config

__all__ = ["Turn", "turns"]


@dataclass(frozen=True, slots=True)
class Turn:
    """A configuration in a round; those that are measured are numbered from 1."""

    round: int
    config: Config
    warm_up: bool


def turns(configs: Sequence[Config], warm_up: int, repeat: int) -> Iterator[Turn]:
    """Return all turns, in their order.

    Example:
        >>> [turn.config["w"] for turn in turns([{"w": "1"}, {"w": "2"}], 0, 2)]
        ['1', '2', '2', '1']
    """
    for number in range(warm_up + repeat):
        first = number % len(configs)
        for config in (*configs[first:], *configs[:first]):
            yield Turn(number - warm_up + 1, config, number < warm_up)
