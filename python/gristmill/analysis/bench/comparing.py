"""Two results, and whether the second is faster, slower or no different, with the interval.

    A, B ──▶ the same configuration and step in both ──▶ ratio of times B / A, with its interval
         ──▶ slower: all of it above 1;  faster: all of it below 1;  no difference: 1 is within

Intervals hold together: with k comparisons, each is one of 1 - 0.05 / k (Bonferroni), so that
all of them are right in 95 of 100 comparisons of the whole. Runs of one folder took turns: they are
paired by their rounds. Results of other work, or of another machine, are refused: a ratio of theirs
would say nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gristmill.analysis.bench.bench_request import Config, label, parse_vary
from gristmill.analysis.bench.errors import BenchError
from gristmill.analysis.bench.machine import SAME
from gristmill.analysis.bench.results import Measured, Results, read_results
from gristmill.analysis.bench.stats import CONFIDENCE, Ratio, ratio

__all__ = ["Comparison", "Side", "compare", "noted", "read_side"]

Verdict = Literal["faster", "slower", "no difference", "too few runs"]

_WORK = ("suite", "rows", "sizes", "cache", "inputs", "settings")
"""What must have been asked for alike."""


@dataclass(frozen=True, slots=True)
class Side:
    """Results, or those of some of their configurations."""

    results: Results
    only: Config

    def runs(self) -> dict[tuple[str, str], list[Measured]]:
        """Return the runs that count, by what is left of their configuration, and their step."""
        found: dict[tuple[str, str], list[Measured]] = {}
        for run in self.results.counted():
            if all(run.config.get(name) == value for name, value in self.only.items()):
                left = {name: run.config[name] for name in run.config if name not in self.only}
                found.setdefault((label(left), run.step), []).append(run)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A step of both."""

    config: str
    step: str
    n: tuple[int, int]
    seconds: tuple[float, float]
    """Means."""
    ratio: Ratio

    @property
    def verdict(self) -> Verdict:
        """Return what can be said."""
        return _verdict(self.ratio)

    def is_slower_beyond(self, tolerance: float) -> bool:
        """Whether the interval says that B is slower by more than a share of A's time.

        Example:
            >>> ratio = Ratio(1.2, (1.1, 1.3), True)
            >>> found = Comparison(config="", step="x", n=(5, 5), seconds=(1, 1.2), ratio=ratio)
            >>> found.verdict, found.is_slower_beyond(0.05), found.is_slower_beyond(0.15)
            ('slower', True, False)
        """
        return self.ratio.interval is not None and self.ratio.interval[0] > 1 + tolerance

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        low, high = self.ratio.interval or (None, None)
        return {
            "config": self.config,
            "step": self.step,
            "n": list(self.n),
            "seconds": list(self.seconds),
            "ratio": self.ratio.value,
            "low": low,
            "high": high,
            "paired": self.ratio.paired,
            "verdict": self.verdict,
        }


def read_side(text: str) -> Side:
    """Return the results that `FOLDER` or `FOLDER:NAME=VALUE,...` names.

    Raises:
        BenchError: There are none.
    """
    folder, colon, chosen = text.rpartition(":")
    if not colon or "=" not in chosen or Path(text, "machine.json").exists():
        return _counted(Side(read_results(Path(text)), {}), text)
    only = {name: values[0] for name, values in parse_vary(chosen.split(",")).items()}
    return _counted(Side(read_results(Path(folder)), only), text)


def compare(one: Side, other: Side) -> list[Comparison]:
    """Return the comparison of each step that both have.

    Raises:
        BenchError: They are of other work, or of another machine; says what differs.
    """
    _check_same(one.results, other.results)
    before, after = one.runs(), other.runs()
    if one.results.folder.resolve() == other.results.folder.resolve() and one.only == other.only:
        raise BenchError(
            "cannot compare results with themselves."
            " What to do: name two directories, or two configurations of one: RESULTS:workers=1."
        )
    shared = [key for key in before if key in after]
    if not shared or before.keys() != after.keys():
        lone = sorted(before.keys() ^ after.keys())
        raise BenchError(
            "cannot compare the results: they have other configurations or steps"
            f" ({', '.join(' '.join(filter(None, key)) for key in lone)} in one of them only)."
            " What to do: name one of each: RESULTS:NAME=VALUE."
        )
    turns = one.results.folder.resolve() == other.results.folder.resolve()
    confidence = 1 - (1 - CONFIDENCE) / len(shared)
    return [
        _comparison(key, before[key], after[key], turns=turns, confidence=confidence)
        for key in shared
    ]


def noted(one: Results, other: Results) -> list[str]:
    """Return what differs and may be the cause of a difference."""
    return [
        _differing(name, ours, theirs)
        for ours, theirs in (
            (one.versions, other.versions),
            ({"kernel": one.machine.get("kernel")}, {"kernel": other.machine.get("kernel")}),
            (one.asked.options, other.asked.options),
        )
        for name in sorted({*ours, *theirs})
        if ours.get(name) != theirs.get(name)
    ]


def _comparison(
    key: tuple[str, str],
    before: Sequence[Measured],
    after: Sequence[Measured],
    *,
    turns: bool,
    confidence: float,
) -> Comparison:
    if turns:
        rounds = {run.round for run in before} & {run.round for run in after}
        before, after = _of_rounds(before, rounds), _of_rounds(after, rounds)
    ours, theirs = [run.wall_s for run in before], [run.wall_s for run in after]
    return Comparison(
        config=key[0],
        step=key[1],
        n=(len(ours), len(theirs)),
        seconds=(sum(ours) / len(ours), sum(theirs) / len(theirs)),
        ratio=ratio(ours, theirs, paired=turns, confidence=confidence),
    )


def _of_rounds(runs: Iterable[Measured], rounds: set[int]) -> list[Measured]:
    return sorted((run for run in runs if run.round in rounds), key=lambda run: run.round)


def _verdict(found: Ratio) -> Verdict:
    match found.interval:
        case None:
            return "too few runs"
        case (low, _) if low > 1:
            return "slower"
        case (_, high) if high < 1:
            return "faster"
        case _:
            return "no difference"


def _check_same(one: Results, other: Results) -> None:
    pairs: list[tuple[Mapping[str, Any], Mapping[str, Any], Sequence[str]]] = [
        (_work(one), _work(other), _WORK),
        (one.machine, other.machine, SAME),
    ]
    differ = [
        _differing(name, ours, theirs)
        for ours, theirs, names in pairs
        for name in names
        if ours.get(name) != theirs.get(name)
    ]
    if differ:
        raise BenchError(
            f"cannot compare the results: {'; '.join(differ)}."
            " What to do: run both with the same options on the same machine."
        )


def _work(results: Results) -> dict[str, Any]:
    """What was asked for; a job file is the same in another folder."""
    asked = results.asked.to_json()
    return {**asked, "suite": Path(asked["suite"]).name}


def _differing(name: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    first, second = _shown(ours.get(name)), _shown(theirs.get(name))
    return f"{name} is {first} in the first, {second} in the second"


def _counted(side: Side, text: str) -> Side:
    if not side.runs():
        configs = sorted({label(run.config) for run in side.results.counted()} - {""})
        has = f"; it has {', '.join(configs)}" if configs else ""
        raise BenchError(
            f"cannot compare {text}: no run of it counts{has}."
            " What to do: run the benchmark to its end, or name a configuration that it has."
        )
    return side


def _shown(value: object) -> str:
    return "missing" if value is None else repr(value) if isinstance(value, str) else str(value)
