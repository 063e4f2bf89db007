"""From runs to figures: for each configuration and step, what was measured, with its errors.

seconds, GB/s, TB/min       bytes: of input or output, whichever are more
CPU seconds per GB          user mode and kernel; Gristmill's own and user code's; by phase
share of the floor          what the same bytes take at the rates that the device had before the
                            round (docs/guide/bench.md), of the time that the job took
$ per TB, joules            if there are prices; where the machine says joules
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gristmill.analysis.bench.bench_request import Config, label
from gristmill.analysis.bench.prices import Prices
from gristmill.analysis.bench.results import Measured, Results
from gristmill.analysis.bench.stats import Summary, summary

__all__ = ["OUTSIDE", "Figures", "PhaseFigures", "figures_of", "floor_share", "to_json"]

_GB = 1e9
_PARTS = ("wall_s", "user_s", "sys_s", "own_s")

OUTSIDE = "outside of phases"

_TIME_MIN_S = 1e-3
"""Of a kind of work: less is an error of rounding."""
_TB_PER_MIN = 60 / 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseFigures:
    """A phase of a step."""

    name: str
    seconds: Summary
    cpu_s_per_gb: Summary | None
    kinds: dict[str, Summary] = field(default_factory=dict[str, Summary])
    """CPU seconds per GB by kind of work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """A step in a configuration."""

    config: Config
    step: str
    size_bytes: int
    seconds: Summary
    values: dict[str, Summary]
    """By name; those that are known."""
    phases: list[PhaseFigures]
    runs: list[Measured]

    def to_json(self) -> dict[str, Any]:
        """Return them as JSON has them."""
        return {
            "config": dict(self.config),
            "step": self.step,
            "bytes": self.size_bytes,
            "seconds": self.seconds.to_json(),
            **{name: value.to_json() for name, value in self.values.items()},
            "phases": [
                {
                    "name": phase.name,
                    "seconds": phase.seconds.to_json(),
                    "cpu_s_per_gb": phase.cpu_s_per_gb and phase.cpu_s_per_gb.to_json(),
                    "kinds": {name: one.to_json() for name, one in phase.kinds.items()},
                }
                for phase in self.phases
            ],
        }


def figures_of(found: Results, prices: Prices | None = None) -> list[Figures]:
    """Return the figures of all runs that count, in the order of their first run."""
    groups: dict[tuple[str, str], list[Measured]] = {}
    for run in found.runs:  # warm-up, too: it shows the order in which configurations were given
        group = groups.setdefault((label(run.config), run.step), [])
        if not run.warm_up:
            group.append(run)
    return [_figures(runs, prices) for runs in groups.values() if runs]


def to_json(found: Results, figures: Iterable[Figures]) -> dict[str, Any]:
    """Return results and their figures as one object."""
    return {
        "asked": found.asked.to_json(),
        "machine": found.machine,
        "versions": found.versions,
        "began": found.began,
        "figures": [one.to_json() for one in figures],
    }


def _figures(runs: Sequence[Measured], prices: Prices | None) -> Figures:
    first = runs[0]
    sized = all(run.size_bytes for run in runs)
    values: dict[str, Summary] = {}

    def put(name: str, of: Callable[[Measured], float | None]) -> None:
        known = [value for value in map(of, runs) if value is not None]
        if len(known) == len(runs):
            values[name] = summary(known)

    if sized:
        put("gb_per_s", lambda run: run.size_bytes / run.wall_s / _GB)
        put("tb_per_min", lambda run: run.size_bytes / run.wall_s * _TB_PER_MIN)
        put("cpu_s_per_gb", lambda run: (run.user_s + run.sys_s) / run.size_bytes * _GB)
        put("user_s_per_gb", lambda run: run.user_s / run.size_bytes * _GB)
        put("sys_s_per_gb", lambda run: run.sys_s / run.size_bytes * _GB)
        if prices is not None:
            put("usd_per_tb", lambda run: prices.usd_per_tb(run.wall_s, run.size_bytes))
    put("floor_share", floor_share)
    put("joules", lambda run: run.joules)
    return Figures(
        config=first.config,
        step=first.step,
        size_bytes=first.size_bytes,
        seconds=summary([run.wall_s for run in runs]),
        values=values,
        phases=_phases(runs),
        runs=list(runs),
    )


def floor_share(run: Measured) -> float | None:
    """Return the share of a run's time that its reads and writes alone would have taken.

    `None` where the device's rates are not known, or the job did not wait until its output was
    durable: then its writes went to memory.

    Example:
        >>> report = {"counters": {"DEVICE_BYTES_READ": 10**9, "FILE_BYTES_READ": 10**9}}
        >>> device = {"read": 1e9, "write": 1e9, "cached": 1e10}
        >>> floor_share(Measured(round=1, config={}, step="x", wall_s=4.0, device=device,
        ...     report=report))
        0.25
    """
    counters: dict[str, int] = run.report.get("counters", {})
    device_read = counters.get("DEVICE_BYTES_READ")
    if run.device is None or device_read is None or run.report.get("durable") is False:
        return None
    cached = max(counters.get("FILE_BYTES_READ", 0) - device_read, 0)
    written = counters.get("FILE_BYTES_WRITTEN", 0)
    rates = run.device
    floor_s = device_read / rates["read"] + cached / rates["cached"] + written / rates["write"]
    return floor_s / run.wall_s


def _phases(runs: Sequence[Measured]) -> list[PhaseFigures]:
    """Those that all runs have; a phase may come several times: then their sum."""
    each = [_by_name(run.report.get("phases", [])) for run in runs]
    sizes = [run.size_bytes for run in runs]
    found: list[PhaseFigures] = []
    for name in each[0]:
        if not all(name in phases for phases in each):
            continue
        parts = [phases[name] for phases in each]
        kinds = {
            "user mode": [part["user_s"] for part in parts],
            "kernel": [part["sys_s"] for part in parts],
            "Gristmill": [part["own_s"] for part in parts],
            "workers and scripts": [
                max(part["user_s"] + part["sys_s"] - part["own_s"], 0.0) for part in parts
            ],
        }
        cpu = [part["user_s"] + part["sys_s"] for part in parts]
        found.append(
            PhaseFigures(
                name=name,
                seconds=summary([part["wall_s"] for part in parts]),
                cpu_s_per_gb=_per_gb(cpu, sizes),
                kinds={
                    kind: one
                    for kind, values in kinds.items()
                    if max(values) >= _TIME_MIN_S and (one := _per_gb(values, sizes)) is not None
                },
            )
        )
    return [*found, *_outside(runs, each, sizes)]


def _outside(
    runs: Sequence[Measured], each: Sequence[dict[str, dict[str, float]]], sizes: Sequence[int]
) -> list[PhaseFigures]:
    """What no phase has: the start of the program, and its end."""
    if not all(each):
        return []
    sums = [
        {part: sum(phase[part] for phase in phases.values()) for part in _PARTS} for phases in each
    ]
    pairs = list(zip(runs, sums, strict=True))
    user = [max(run.user_s - inside["user_s"], 0.0) for run, inside in pairs]
    kernel = [max(run.sys_s - inside["sys_s"], 0.0) for run, inside in pairs]
    cpu = [ours + theirs for ours, theirs in zip(user, kernel, strict=True)]
    kinds = {
        name: one
        for name, values in (("user mode", user), ("kernel", kernel))
        if (one := _per_gb(values, sizes)) is not None
    }
    seconds = [max(run.wall_s - inside["wall_s"], 0.0) for run, inside in pairs]
    return [
        PhaseFigures(
            name=OUTSIDE, seconds=summary(seconds), cpu_s_per_gb=_per_gb(cpu, sizes), kinds=kinds
        )
    ]


def _by_name(phases: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for phase in phases:
        total = found.setdefault(phase["name"], dict.fromkeys(_PARTS, 0.0))
        for part in total:
            total[part] += phase.get(part, 0.0)
    return found


def _per_gb(values: Sequence[float], sizes: Sequence[int]) -> Summary | None:
    if not all(sizes):
        return None
    return summary([value / size * _GB for value, size in zip(values, sizes, strict=True)])
