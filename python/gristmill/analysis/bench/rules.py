"""For which category of the sort benchmark a run would count, and why not.

Source: the rules of sortbenchmark.org: records of 100 bytes with keys of 10; input and output are
files on secondary storage, the output made by the run; the time includes the program's start; order
and checksum are validated. Indy may assume keys that are uniform; Daytona must take skewed ones in
no more than twice the time.

What a program cannot know (who sells the hardware, who watched the run) is said as a condition.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gristmill.analysis.bench.bench_request import Config
from gristmill.analysis.bench.figures import Figures
from gristmill.analysis.bench.results import Measured, Results

__all__ = ["Rule", "Verdict", "judged"]

_TB = 10**12
_GRAY_BYTES = 100 * _TB
_MINUTE_S = 60.0
_JOULE_RECORDS = (10**8, 10**9, 10**10, 10**12)
_SKEW_MAX = 2.0
_IN_MEMORY = ("tmpfs", "ramfs")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, and whether the runs keep it; `None` where nobody can tell from them."""

    text: str
    kept: bool | None
    found: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A category, and what stands against it."""

    category: str
    would_count: bool
    rules: list[Rule]

    @property
    def broken(self) -> list[Rule]:
        """The rules that are not kept."""
        return [rule for rule in self.rules if rule.kept is False]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)


def judged(found: Results, figures: Sequence[Figures]) -> list[Verdict]:
    """Return a verdict for each category; none of results that are not those of a sort."""
    sorts = [one for one in figures if one.step == "terasort"]
    if found.asked.suite != "sort" or not sorts:
        return []
    best = min(
        (one for one in sorts if one.config.get("skew", "off") == "off"),
        key=lambda one: one.seconds.mean,
        default=sorts[0],
    )
    common = _common(found, best, figures)
    return [
        _verdict(category, [*common, *own(found, best, sorts)])
        for category, own in _CATEGORIES.items()
    ]


def _verdict(category: str, rules: list[Rule]) -> Verdict:
    return Verdict(category, not any(rule.kept is False for rule in rules), rules)


def _common(found: Results, best: Figures, figures: Sequence[Figures]) -> list[Rule]:
    system = str(found.machine.get("file_system"))
    lazy = [run for run in best.runs if run.report.get("durable") is False]
    validated = [
        run
        for one in figures
        if one.step == "teravalidate" and one.config == best.config
        for run in one.runs
    ]
    cached = found.asked.cache == "warm"
    return [
        Rule("records have 100 bytes, keys 10", True, "made by teragen"),
        Rule(
            "input and output are files on secondary storage",
            system not in _IN_MEMORY,
            f"file system {system}",
        ),
        Rule(
            "the input is not in memory when the run starts",
            not cached,
            "it was in the page cache: run with --cache cold" if cached else "--cache cold",
        ),
        Rule(
            "the run makes the output files, and they are durable at its end",
            not lazy,
            "--no-sync leaves them in memory" if lazy else "synced",
        ),
        Rule("the time includes the start of the program", True, "from its start to its exit"),
        _checksum_rule(best.runs, validated),
        Rule(
            "hardware and operating system are sold unmodified",
            None,
            "no program can tell: state it in the entry",
        ),
    ]


def _checksum_rule(sorted_runs: Sequence[Measured], validated: Sequence[Measured]) -> Rule:
    text = "order and checksum are validated"
    checks = {run.round: run.report for run in validated}
    bad = [
        run.round
        for run in sorted_runs
        if run.round not in checks
        or checks[run.round].get("misorders", 0)
        or checks[run.round].get("checksum") != run.report.get("checksum")
    ]
    if bad:
        return Rule(text, False, f"not of round {', '.join(map(str, bad))}")
    return Rule(text, True, f"all {len(sorted_runs)} runs, as valsort does")


def _size_rule(size_bytes: int) -> Rule:
    return Rule(
        "at least 100 TB are sorted", size_bytes >= _GRAY_BYTES, f"{size_bytes / _TB:.6g} TB"
    )


def _gray(_found: Results, best: Figures, _sorts: Sequence[Figures]) -> list[Rule]:
    return [_size_rule(best.size_bytes), _layout(best)]


def _cloud(_found: Results, best: Figures, _sorts: Sequence[Figures]) -> list[Rule]:
    priced = best.values.get("usd_per_tb")
    return [
        _size_rule(best.size_bytes),
        Rule(
            "the cost is that of a public cloud",
            None if priced else False,
            f"$ {priced.mean:.3g} per TB: state whose prices" if priced else "no --prices",
        ),
    ]


def _minute(_found: Results, best: Figures, _sorts: Sequence[Figures]) -> list[Rule]:
    seconds = best.seconds.median
    return [
        Rule("it takes no more than 60 s", seconds <= _MINUTE_S, f"median {seconds:.3f} s"),
        _layout(best),
    ]


def _joule(found: Results, best: Figures, _sorts: Sequence[Figures]) -> list[Rule]:
    joules = best.values.get("joules")
    return [
        Rule(
            "10^8, 10^9, 10^10 or 10^12 records are sorted",
            found.asked.rows in _JOULE_RECORDS,
            f"{found.asked.rows:,} records",
        ),
        Rule(
            "a meter measures the power of the whole machine at the wall",
            False,
            "not measured" if joules is None else "the joules are the processors' own count",
        ),
    ]


def _indy(_found: Results, best: Figures, _sorts: Sequence[Figures]) -> list[Rule]:
    skewed = best.config.get("skew", "off") == "on"
    return [Rule("Indy: keys are uniform", not skewed, "skewed" if skewed else "uniform")]


def _daytona(_found: Results, best: Figures, sorts: Sequence[Figures]) -> list[Rule]:
    rest = _without_skew(best.config)
    skewed = [
        one for one in sorts if one.config.get("skew") == "on" and _without_skew(one.config) == rest
    ]
    text = "Daytona: skewed keys take no more than twice the time"
    if not skewed or best.config.get("skew", "off") == "on":
        return [Rule(text, False, "not measured: run with --vary skew=off,on")]
    times = skewed[0].seconds.mean / best.seconds.mean
    return [Rule(text, times <= _SKEW_MAX, f"{times:.2f} times")]


def _without_skew(config: Config) -> dict[str, str]:
    return {name: value for name, value in config.items() if name != "skew"}


def _layout(best: Figures) -> Rule:
    layout = best.config.get("layout", "hadoop")
    return Rule("records are binary", layout != "ascii", f"layout {layout}")


_Own = Callable[[Results, Figures, Sequence[Figures]], list[Rule]]


def _with(own: _Own, division: _Own) -> _Own:
    return lambda found, best, sorts: [*own(found, best, sorts), *division(found, best, sorts)]


_CATEGORIES: dict[str, _Own] = {
    f"{name}, {division}": _with(own, rule)
    for name, own in (
        ("GraySort", _gray),
        ("CloudSort", _cloud),
        ("MinuteSort", _minute),
        ("JouleSort", _joule),
    )
    for division, rule in (("Indy", _indy), ("Daytona", _daytona))
}
