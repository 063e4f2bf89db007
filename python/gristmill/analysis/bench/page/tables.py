"""The tables and lists of the page, as HTML."""

import html
from collections.abc import Sequence
from typing import Any

from gristmill.analysis.bench.bench_request import label
from gristmill.analysis.bench.figures import Figures
from gristmill.analysis.bench.results import Results
from gristmill.analysis.bench.rules import Rule, Verdict
from gristmill.analysis.bench.stats import Summary, three_digits
from gristmill.units import show_bytes, show_count

__all__ = ["facts", "figure_table", "measuring", "phase_table", "rules_of", "run_table"]

_VALUES = (
    ("gb_per_s", "GB/s"),
    ("tb_per_min", "TB/min"),
    ("cpu_s_per_gb", "CPU s/GB"),
    ("floor_share", "share of floor"),
    ("usd_per_tb", "$/TB"),
    ("joules", "joules"),
)

Rows = list[list[str]]


def facts(found: Results) -> str:
    """Return what was measured, and on what."""
    asked, machine = found.asked, found.machine
    said: dict[str, Any] = {
        "data": f"{asked.rows:,} rows" if asked.rows else None,
        "rounds": f"{asked.repeat} measured, {asked.warm_up} before them as warm-up",
        "input": f"{asked.cache} at the start of each step",
        "options": label(asked.options),
        "varied": "; ".join(f"{name}: {', '.join(values)}" for name, values in asked.vary.items()),
        "processor": f"{machine.get('processor')}, {machine.get('processors')} of them",
        "memory": show_bytes(machine.get("memory_bytes", 0)),
        "file system": machine.get("file_system"),
        "kernel": machine.get("kernel"),
        "versions": label(found.versions).replace("=", " ").replace(",", ", "),
        "began": found.began,
    }
    return _list({name: str(value) for name, value in said.items() if value})


def figure_table(figures: Sequence[Figures]) -> str:
    """Return a row for each configuration and step."""
    shown = [value for value in _VALUES if any(value[0] in one.values for one in figures)]
    head = ["step", "configuration", "size", "n", "seconds", "error", "median", "interval"]
    rows = [[*head, *(title for _, title in shown)]]
    for one in figures:
        rows.append(
            [
                one.step,
                label(one.config),
                show_bytes(one.size_bytes) if one.size_bytes else "",
                str(one.seconds.n),
                _mean(one.seconds),
                _relative(one.seconds),
                f"{one.seconds.median:.3f}",
                _interval(one.seconds, 3),
                *(_mean(one.values.get(name)) for name, _ in shown),
            ]
        )
    return _table(rows, texts=2)


def phase_table(figures: Sequence[Figures]) -> str:
    """Return a row for each phase of each step."""
    kinds = list(
        dict.fromkeys(kind for one in figures for phase in one.phases for kind in phase.kinds)
    )
    rows = [["step", "configuration", "phase", "seconds", "error", "CPU s/GB", *kinds]]
    for one in figures:
        for phase in one.phases:
            rows.append(
                [
                    one.step,
                    label(one.config),
                    phase.name,
                    _mean(phase.seconds),
                    _relative(phase.seconds),
                    _mean(phase.cpu_s_per_gb),
                    *(_mean(phase.kinds.get(kind)) for kind in kinds),
                ]
            )
    return _table(rows, texts=3)


def rules_of(verdicts: Sequence[Verdict]) -> str:
    """Return what the sort benchmark's rules say; nothing where there is no sort."""
    if not verdicts:
        return ""
    shared = _shared(verdicts)
    items = "".join(_category(verdict, shared) for verdict in verdicts)
    return (
        '<section aria-labelledby="h-rules"><h2 id="h-rules">The sort benchmark</h2>'
        "<p>Rules of all categories:</p>"
        f"<ul>{''.join(map(_rule, shared))}</ul>{items}</section>"
    )


def measuring(found: Results, figures: Sequence[Figures]) -> str:
    """Return what the measuring itself cost, and what else ran."""
    runs = list(found.counted())
    wall = sum(run.wall_s for run in runs)
    own = sum(run.own_cpu_s for run in runs)
    others = [run.load.get("others_s", 0.0) / run.wall_s for run in runs]
    steal = [run.load.get("steal_s", 0.0) / run.wall_s for run in runs]
    said = {
        "the benchmark itself": f"{own:.4f} s of CPU in {wall:.3f} s of runs: {own / wall:.3%}"
        " of the time. It waits while a run is measured.",
        "other programs": f"{max(others):.2f} processors at most during a run",
        "the host": f"took {max(steal):.2f} processors at most for other machines",
        "load before a run": f"{max(run.load.get('before', 0.0) for run in runs):.2f} at most",
    }
    devices = [run.device for run in runs if run.device]
    if devices:
        said["the device"] = "; ".join(
            f"{name} {show_bytes(min(each))}/s to {show_bytes(max(each))}/s"
            for name in ("write", "read", "cached")
            if (each := [one[name] for one in devices])
        )
    if any("floor_share" in one.values for one in figures):
        said["share of floor"] = (
            "the time that the same reads and writes take alone, at the rates of the device before"
            " the round, of the time of the run"
        )
    if any(run.joules is not None for run in runs):
        said["joules"] = "what the processors count themselves (RAPL): no power at the wall"
    return _list(said)


def run_table(found: Results) -> str:
    """Return a row for each run, warm-up too."""
    rows = [["began", "round", "step", "configuration", "seconds", "user s", "system s", "load"]]
    for run in found.runs:
        rows.append(
            [
                run.began,
                f"{run.round}, warm-up" if run.warm_up else str(run.round),
                run.step,
                label(run.config),
                f"{run.wall_s:.3f}",
                f"{run.user_s:.2f}",
                f"{run.sys_s:.2f}",
                f"{run.load.get('before', 0.0):.2f}",
            ]
        )
    return _table(rows, texts=4)


def _shared(verdicts: Sequence[Verdict]) -> list[Rule]:
    return [rule for rule in verdicts[0].rules if all(rule in one.rules for one in verdicts)]


def _category(verdict: Verdict, shared: Sequence[Rule]) -> str:
    """A category: its own rules; what those of all say of it is in its heading."""
    if verdict.would_count:
        head = '<span class="yes">would count</span>, if what is to be stated holds'
    else:
        rules = show_count(len(verdict.broken), "rule")
        head = f'<span class="no">would not count</span>: {rules} not kept'
    own = [rule for rule in verdict.rules if rule not in shared]
    reasons = "".join(map(_rule, own))
    return f"<h3>{html.escape(verdict.category)}: {head}</h3><ul>{reasons}</ul>"


def _rule(rule: Rule) -> str:
    word, kind = {
        True: ("kept", "yes"),
        False: ("not kept", "no"),
        None: ("to be stated", "soft"),
    }[rule.kept]
    return (
        f'<li><span class="{kind}">{word}</span>: {html.escape(rule.text)}'
        f' <span class="soft">({html.escape(rule.found)})</span></li>'
    )


def _mean(value: Summary | None) -> str:
    """With as many digits behind the point as the mean has with three in all."""
    if value is None:
        return ""
    mean = three_digits(value.mean)
    if value.stderr is None:
        return mean
    digits = len(mean.partition(".")[2])
    return f"{mean} ± {value.stderr:.1e}" if "e" in mean else f"{mean} ± {value.stderr:.{digits}f}"


def _relative(value: Summary) -> str:
    return "" if value.relative_percent is None else f"{value.relative_percent:.1f} %"


def _interval(value: Summary, digits: int) -> str:
    if value.interval is None:
        return ""
    low, high = value.interval
    return f"{low:.{digits}f} to {high:.{digits}f}"


def _list(said: dict[str, str]) -> str:
    pairs = (f"<dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd>" for k, v in said.items())
    return f"<dl>{''.join(pairs)}</dl>"


def _table(rows: Rows, *, texts: int) -> str:
    """A table in a box that scrolls; a column that is empty is left out."""
    kept = [place for place in range(len(rows[0])) if any(row[place] for row in rows[1:])]

    def line(tag: str, row: Sequence[str]) -> str:
        cells = (
            f"<{tag}{'' if place < texts else ' class=number'}>{html.escape(row[place])}</{tag}>"
            for place in kept
        )
        return f"<tr>{''.join(cells)}</tr>"

    body = "".join(line("td", row) for row in rows[1:])
    head = line("th", rows[0])
    return f'<div class="wide"><table><thead>{head}</thead><tbody>{body}</tbody></table></div>'
