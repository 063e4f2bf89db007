"""What `gristmill jobs show` says of a job: what it was, how it went, what held each phase back.

The lines tell what the history has; `jobs show --json` gives all of it.
"""

import json
from datetime import datetime

from gristmill.cli.render.node_lines import node_lines
from gristmill.cli.render.shuffle_lines import shuffle_lines
from gristmill.history import JobHistory
from gristmill.history.chains import dead_chain_of, named_places
from gristmill.history.limits import named_uses
from gristmill.history.model import Attempt
from gristmill.history.page.page_data import in_processes, read_of
from gristmill.history.proof import proved
from gristmill.history.shuffle import shuffle_cost
from gristmill.names import quote, show_text, show_texts
from gristmill.units import show_bytes, show_count, show_rate, show_seconds

__all__ = ["began", "few", "printable", "shown"]

_INPUTS_MAX = 5


def began(history: JobHistory) -> str:
    """Return when it began, by the clock of this machine."""
    return f"{datetime.fromtimestamp(history.unix_ms / 1000):%Y-%m-%d %H:%M:%S}"


def few(names: list[str], most: int) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(printable, names[:most])) + more


def printable(text: str) -> str:
    """Return the text on one line: what a terminal would obey is shown as an escape."""
    text = show_text(text)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shown(history: JobHistory) -> list[str]:
    """Return the lines of a job."""
    report = history.report
    lines = [
        f"{history.command} {history.job_id}: {history.state}",
        f"began {began(history)}, took {show_seconds(history.wall_s)}{in_processes(history)},"
        f" Gristmill {history.program}",
        *_what_it_was(history),
    ]
    if history.error:
        lines.append(history.error)
    if history.resumed_ms:
        times = ", ".join(show_seconds(t_ms / 1000) for t_ms in history.resumed_ms)
        kept = sum(phase.kept for phase in history.phases)
        lines.append(f"resumed after {times}; {show_count(kept, 'task')} not done again")
    if dead_chain_of(history):
        which = "its process" if history.state == "dead" else "the process of its chain of jobs"
        lines.append(f"{which} died; gristmill resume {history.job_id} resumes the chain")
    elif history.resumable:
        lines.append(f"its process died; gristmill resume {history.job_id} resumes it")
    elif history.code_gone:
        lines.append("its process died; what is needed to resume it is gone from beside its output")
    lines += _what_it_did(history)
    if history.state == "succeeded":
        lines.append(f"proved: {proved(history.command, report)}")
    if history.plan:
        lines.append(f"plan: {history.plan.get('mode')}: {history.plan.get('reason')}")
    lines += ["", "phases, and what held each back:"]
    lines += [
        f"  {name:<12} {show_seconds(use.seconds):>8}  {use.limit}"
        f" ({use.busy:.0%} of the processors,".replace("%", " %")
        + f" reads {show_rate(use.read_rate, 1)}, writes {show_rate(use.write_rate, 1)})"
        for name, use in named_uses(history)
    ]
    lines += _shuffle(history)
    lines += node_lines(history)
    failed = [a for a in history.attempts if a.outcome in ("failed", "killed")]
    if failed:
        killed = sum(attempt.outcome == "killed" for attempt in failed)
        lines += ["", f"{show_count(len(failed) - killed, 'attempt')} failed, {killed} killed:"]
        lines += [
            f"  task {a.task} attempt {a.attempt + 1}{_on(a)} {a.outcome}: {a.error}"
            for a in failed[:10]
        ]
    lines += _left_out(history)
    counters = history.counters()
    if counters:
        lines += ["", f"{'counter':<28}{'map':>16}{'reduce':>16}{'total':>16}"]
        lines += [
            f"{name:<28}" + "".join(f"{'-' if n is None else f'{n:,}':>16}" for n in sides)
            for name, sides in counters.items()
        ]
    return lines + _user_counters(history)


def _what_it_did(history: JobHistory) -> list[str]:
    """How much it worked on; of a job that did not come to its end, what it has read."""
    if history.state in ("failed", "cancelled"):
        return [f"read {read_of(history)}"]
    if not history.report:
        return []
    work = history.work_bytes
    return [
        f"{show_count(history.number('records'), 'record')}, {show_bytes(work)},"
        f" {show_rate(work, history.wall_s)}"
        f" with {show_count(history.number('workers'), 'worker')},"
        f" peak memory {show_bytes(history.number('peak_anon_bytes'))}"
    ]


def _shuffle(history: JobHistory) -> list[str]:
    """What each plan of the shuffle would cost, and what it cost."""
    cost = shuffle_cost(history)
    return ["", *shuffle_lines(history.plan["shuffles"], cost)] if cost else []


def _left_out(history: JobHistory) -> list[str]:
    """The rows of a table that were left out, the first of them."""
    named: list[str] = history.report.get("left_out", [])
    if not named:
        return []
    rows = history.report.get("counters", {}).get("SKIPPED_RECORDS", len(named))
    which = f"; the first {len(named)}" if rows > len(named) else ""
    head = f"{show_count(rows, 'row')} left out{which}:"
    return ["", head, *(f"  {printable(text)}" for text in named)]


def _user_counters(history: JobHistory) -> list[str]:
    """The job's own counters, below the totals of the table, under the names of their groups."""
    lines: list[str] = []
    for group, counters in history.user_counters().items():
        lines.append(printable(group))
        for name, total in counters.items():
            lines.append(f"  {printable(name):<58}{total:>16,}")
    return lines


def _on(attempt: Attempt) -> str:
    return f" on {attempt.node}" if attempt.node else ""


def _what_it_was(history: JobHistory) -> list[str]:
    """What the user asked for, and where."""
    host = f" on {history.host}" if history.host else ""
    facts = {
        "name": history.name,
        "command": " ".join(map(quote, history.argv)),
        "directory": f"{history.cwd}{host}" if history.cwd else "",
        "inputs": few(named_places(history, history.inputs), _INPUTS_MAX),
        "output": "".join(named_places(history, [history.output])),
        "options": ", ".join(
            name if value is True else f"{name} {_option(value)}"
            for name, value in history.other_options().items()
        ),
        "resume": f"not possible: {history.once}" if history.once else "",
    }
    return [f"  {name:<10} {printable(fact)}" for name, fact in facts.items() if fact]


def _option(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(show_texts(value), ensure_ascii=False)
