"""The runs of jobs that a user names: found, read, and those refused that cannot be compared.

    find ──▶ files ──▶ read ──▶ Read (a Run and its command) ┐
                          └───▶ why it is no measurement     ┴──▶ runs, or one paragraph

A refusal ends the command where the job itself was named. Of a folder or a command, the job is left
out, and `note` gets a line.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from gristmill.analysis.histories.find import JHIST, Found, Read, all_jobs, find
from gristmill.analysis.histories.jhist import read_jhist
from gristmill.analysis.histories.to_runs import run_of, why_not
from gristmill.analysis.runs import Run
from gristmill.errors import ours
from gristmill.history.brief import load_brief
from gristmill.history.reader import load
from gristmill.names import show_path, show_text
from gristmill.units import show_count

__all__ = ["runs_of"]

_LINES_MAX = 10
"""Of jobs that are left out, so many are told one by one."""

_WASTE_MAX = 0.99
"""Of a run's time: some of it was work."""


def runs_of(
    names: Sequence[str] = (),
    *,
    command: str | None = None,
    per_node: bool = False,
    note: Callable[[str], None] | None = None,
) -> list[Run]:
    """Return the runs of jobs, in the order of the names; of a folder, by file name.

    Args:
        names: Jobs by id, part of an id, `last`, or the name that they were given; `events.jsonl`
            and `.jhist` files; folders with such files. Without names: all jobs of this user.
        command: Only jobs of this command (of Hadoop: jobs of this name).
        per_node: Whether p is the number of nodes, not of workers.
        note: Gets a line for each job that is left out.

    Raises:
        LookupError: There is no such job or file.
        ValueError: A job cannot be compared, or no job is left; one paragraph with its name.
        ModuleNotFoundError: A `.jhist` file is binary, and `gristmill[analysis]` is not installed.

    Example:
        >>> import gristmill, os, tempfile
        >>> with tempfile.TemporaryDirectory() as home:
        ...     os.environ["GRISTMILL_HOME"] = home
        ...     for workers in (1, 2):
        ...         data = f"{home}/data{workers}"
        ...         _ = gristmill.teragen("1k", data, workers=workers, history=True)
        ...     runs = runs_of(command="teragen")
        >>> [run.p for run in runs], list(runs[0].phases), runs[0].work
        ([1.0, 2.0], ['generate', 'commit'], 100000.0)
    """
    found = _distinct(one for name in names for one in find(name)) if names else all_jobs()
    say = note or _say_nothing
    found = [one for one in found if command is None or one.is_named or _may_be_of(one, command)]
    reads = [_read(one, per_node=per_node) for one in found]
    chosen = [one for one in reads if command is None or _is_of(one, command)]
    _refuse_named(chosen, command)
    _say_left_out([one for one in chosen if one.run is None], say)
    used = [one for one in chosen if one.run is not None]
    _refuse_mixture(used, say)
    if not used:
        raise ours(ValueError(_none_left(names, command, chosen)), "bad_input")
    return _with_cpu(used)


def _say_nothing(_line: str) -> None:
    pass


def _distinct(found: Iterable[Found]) -> list[Found]:
    """Each file once, however often it was named."""
    files: dict[Path, Found] = {}
    for one in found:
        path = one.path.resolve()
        if path not in files or one.is_named:
            files[path] = one
    return list(files.values())


def _may_be_of(found: Found, command: str) -> bool:
    """Whether a job may be one of that command, from its first line: the rest may be megabytes."""
    if found.path.suffix == JHIST:
        return True
    try:
        return load_brief(found.path.parent).command in (command, "")
    except (ValueError, OSError):
        return True  # what is wrong with it is told when it is read


def _read(found: Found, *, per_node: bool) -> Read:
    if found.path.suffix == JHIST:
        return _of_hadoop(found, per_node=per_node)
    try:
        history = load(found.path.parent)
    except (ValueError, OSError) as error:
        return Read(found, "", None, f"its history cannot be read: {error}")
    problem = why_not(history)
    run = (
        None
        if problem
        else run_of(history, f"{found.job}, {show_path(found.path)}", per_node=per_node)
    )
    cpu_s = float(history.report.get("user_s", 0)) + float(history.report.get("sys_s", 0))
    return Read(found, history.command, run, problem or "", cpu_s or None)


def _of_hadoop(found: Found, *, per_node: bool) -> Read:
    try:
        return read_jhist(found, per_node=per_node)
    except ModuleNotFoundError as error:
        message = f"cannot read {show_path(found.path)}: {error.msg}."
        raise ours(ModuleNotFoundError(message, name=error.name), "not_found") from error


def _with_cpu(used: list[Read]) -> list[Run]:
    """The runs; each loses the CPU seconds that the same work took beyond the least of all runs."""
    runs = [(one.run, one.cpu_s) for one in used if one.run is not None]
    each = [cpu_s / run.work for run, cpu_s in runs if cpu_s is not None]
    if len(each) < len(runs):  # not all of them say
        return _tidy([run for run, _ in runs])
    least = min(each)
    more = [((cpu_s or 0.0) - least * run.work) / run.p for run, cpu_s in runs]
    return _tidy(
        [
            replace(run, wastes={**run.wastes, "cpu": cpu})
            for (run, _), cpu in zip(runs, more, strict=True)
        ]
    )


def _tidy(runs: list[Run]) -> list[Run]:
    """Together no more than the time of a run, each in its turn; none that no run has."""
    had = {name for run in runs for name, seconds in run.wastes.items() if seconds > 0}
    tidied: list[Run] = []
    for run in runs:
        left = run.seconds * _WASTE_MAX
        wastes: dict[str, float] = {}
        for name, seconds in run.wastes.items():
            if name in had:
                wastes[name] = min(max(seconds, 0.0), left)
                left -= wastes[name]
        tidied.append(replace(run, wastes=wastes))
    return tidied


def _is_of(read: Read, command: str) -> bool:
    return read.command in (command, "") or read.found.is_named


def _refuse_named(chosen: list[Read], command: str | None) -> None:
    """Of jobs that were named one by one each must be a measurement."""
    for one in chosen:
        if not one.found.is_named:
            continue
        problem = one.problem
        if not problem and command is not None and one.command != command:
            problem = f"it is a job of {one.command}, not of {command}"
        if problem:
            where = show_path(one.found.path)
            message = (
                f"cannot take {one.found.job} as a measurement: {problem} (file {where})."
                " What to do: leave it out, or run it again from its beginning to its end."
            )
            raise ours(ValueError(message), "bad_input")


def _say_left_out(left: list[Read], say: Callable[[str], None]) -> None:
    for one in left[:_LINES_MAX]:
        say(f"left out: {one.found.job}: {one.problem}")
    if len(left) > _LINES_MAX:
        say(f"left out: {len(left) - _LINES_MAX:,} more")


def _kind(read: Read) -> str:
    """What jobs of a curve have in common: their command.

    Hadoop knows names of jobs alone, and runs of one program may have several: files that were
    named one by one are taken as the user's word.
    """
    is_given = read.found.is_named and read.found.path.suffix == JHIST
    return "Hadoop" if is_given else read.command


def _refuse_mixture(used: list[Read], say: Callable[[str], None]) -> None:
    """Times of different commands make no curve."""
    kinds = Counter(map(_kind, used))
    names = list(dict.fromkeys(one.command for one in used))
    if len(kinds) == 1 and len(names) > 1:
        say(f"jobs of different names are taken as runs of one program: {', '.join(names)}")
    if len(kinds) > 1:
        told = ", ".join(f"{show_count(n, 'job')} of {name}" for name, n in kinds.items())
        named: dict[str, str] = {}
        for one in used:
            named.setdefault(_kind(one), one.found.job)
        first = " and ".join(f"{job} is of {name}" for name, job in list(named.items())[:2])
        message = (
            f"cannot compare jobs of different commands: there are {told} ({first}). What to do:"
            f" name jobs of one command, or add --command {kinds.most_common(1)[0][0]}."
        )
        raise ours(ValueError(message), "bad_input")


def _none_left(names: Sequence[str], command: str | None, chosen: list[Read]) -> str:
    where = f"in {', '.join(map(show_text, names))}" if names else "of this user"
    of = f" of {command}" if command else ""
    if not chosen:
        return (
            f"cannot find runs: there are no jobs{of} {where}. What to do: run them with --history"
            " (`gristmill jobs` lists them)."
        )
    first = chosen[0]
    return (
        f"cannot find runs: {show_count(len(chosen), 'job')}{of} {where} cannot be used; of"
        f" {first.found.job}: {first.problem}. What to do: run the jobs to their end, with"
        " --history."
    )
