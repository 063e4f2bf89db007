"""The jobs as functions, and what they share: a job begun, waited for, and its report.

    options ──spec──▶ _core.Job, on a native thread ──wait──▶ JobReport, or a built-in exception

The functions have the options of the engine's table (plan/table.rs), by the same names and with the
same defaults; `None` leaves the default to the engine. The command line begins its jobs here too,
but waits for them in its own way (cli/runner.py): it has signals and a progress bar to look after.
"""

import os
import time
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Literal

from gristmill import _core
from gristmill.errors import attach_report
from gristmill.history.home import jobs_folder
from gristmill.options import StrPath, Value, spec
from gristmill.report import JobReport

__all__ = [
    "TICK_S",
    "begin",
    "new_job_id",
    "resume",
    "sort",
    "teragen",
    "terasort",
    "teravalidate",
]

Layout = Literal["hadoop", "gensort", "ascii"]

TICK_S = 0.05
"""How often whoever waits for a job looks up; the end of a job is noticed at once all the same."""

_numbers = count(1)


def sort(
    inputs: StrPath | Iterable[StrPath] = (),
    *,
    output: StrPath | None = None,
    format: str = "lines",  # noqa: A002 - as the option is called everywhere else
    reverse: bool = False,
    unique: bool = False,
    stable: bool = False,
    check: bool = False,
    memory: int | str | None = None,
    workers: int | None = None,
    spill_dir: StrPath | Iterable[StrPath] | None = None,
    no_sync: bool = False,
    history: bool = False,
) -> JobReport:
    r"""Sort lines, or records of one length, as LC_ALL=C sort does; files of any size.

    Args:
        inputs: A file, a directory whose files are read (not those whose names begin with `_` or
            `.`), or several of them; `-`, or none, is standard input.
        output: The file to write; replaced at once if it exists, also if it is an input.
            By default standard output.
        format: What a record is: `lines`, `fixed:LEN` or `fixed:LEN:KEYLEN` (bytes).
        reverse: Larger keys first.
        unique: Of records with equal keys, only the first.
        stable: Leave records with equal keys in input order; else all their bytes decide.
        check: Sort nothing: raise `ValueError` unless the input is in order.
        memory: Most memory that the job may use, in bytes or as `"8G"`; by default 60 % of what
            is available.
        workers: How many tasks run at once; by default one for each core. The output does not
            depend on it.
        spill_dir: Where sorted runs go when the input is larger than memory: one directory or
            several, of which the first with room is used; by default beside the output.
        no_sync: Do not wait until the output is durable.
        history: Keep the job's history also if the job takes less than a second.

    Returns:
        The job's report.

    Raises:
        ValueError: An option makes no sense, an input holds no whole records, it changed, or it
            is not in order.
        FileNotFoundError: An input does not exist.
        MemoryError: `memory` is too small.
        OSError: An input cannot be read or `output` cannot be written.

    Example:
        >>> import tempfile, gristmill
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "words")
        ...     _ = path.write_text("pear\nfig\napple\nfig\n")
        ...     report = gristmill.sort(path, output=path, unique=True)
        ...     path.read_text().split(), report.records, report.duplicate_keys
        (['apple', 'fig', 'pear'], 3, 1)
    """
    return _run(
        "sort",
        {
            "inputs": _paths(inputs),
            "output": output,
            "format": format,
            "reverse": reverse,
            "unique": unique,
            "stable": stable,
            "check": check,
            "memory": _amount(memory),
            "workers": workers,
            "spill_dir": None if spill_dir is None else _paths(spill_dir),
            "no_sync": no_sync,
        },
        history=history,
    )


def teragen(
    rows: int | str,
    output: StrPath,
    *,
    layout: Layout = "hadoop",
    skew: bool = False,
    start: int | str = 0,
    files: int | None = None,
    memory: int | str | None = None,
    workers: int | None = None,
    overwrite: bool = False,
    no_sync: bool = False,
    history: bool = False,
) -> JobReport:
    """Make records of the sort benchmark: 100 bytes each, the first ten the key.

    Args:
        rows: How many records, such as `1000` or `"10m"`.
        output: The directory to make.
        layout: Bytes after the key: as Hadoop's TeraGen, as gensort 1.5, or as gensort -a (text).
        skew: Let keys share prefixes, as `gensort -s` does.
        start: The number of the first record.
        files: How many part files; by default one for each 256 MB.
        memory: Most memory that the job may use, in bytes or as `"8G"`; by default 60 % of what
            is available.
        workers: How many tasks run at once; by default one for each core.
        overwrite: Replace `output` if it exists.
        no_sync: Do not wait until the output is durable.
        history: Keep the job's history also if the job takes less than a second.

    Returns:
        The job's report.

    Raises:
        ValueError: An option makes no sense.
        FileExistsError: `output` exists.
        OSError: `output` cannot be written.

    Example:
        >>> import tempfile, gristmill
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     report = gristmill.teragen("1k", f"{folder}/data")
        >>> report.records, report.checksum
        (1000, '1f9ffe645ec')
    """
    return _run(
        "teragen",
        {
            "rows": str(rows),
            "output": output,
            "layout": layout,
            "skew": skew,
            "start": str(start),
            "files": files,
            "memory": _amount(memory),
            "workers": workers,
            "overwrite": overwrite,
            "no_sync": no_sync,
        },
        history=history,
    )


def terasort(
    inputs: StrPath | Iterable[StrPath],
    output: StrPath,
    *,
    partitions: int | None = None,
    memory: int | str | None = None,
    workers: int | None = None,
    spill_dir: StrPath | Iterable[StrPath] | None = None,
    overwrite: bool = False,
    no_sync: bool = False,
    history: bool = False,
) -> JobReport:
    """Sort 100-byte records by their first ten bytes, and prove the result.

    Args:
        inputs: A file, a directory whose files are read (not those whose names begin with `_` or
            `.`), or several of them.
        output: The directory to make.
        partitions: How many part files the output is cut into; by default one for each 256 MB.
        memory: Most memory that the job may use, in bytes or as `"8G"`; by default 60 % of what
            is available.
        workers: How many tasks run at once; by default one for each core. The output does not
            depend on it.
        spill_dir: Where sorted runs go when the input is larger than memory: one directory or
            several, of which the first with room is used; by default beside the output.
        overwrite: Replace `output` if it exists, in one exchange of names.
        no_sync: Do not wait until the output is durable.
        history: Keep the job's history also if the job takes less than a second.

    Returns:
        The job's report.

    Raises:
        ValueError: An option makes no sense, an input holds no whole records, or it changed.
        FileNotFoundError: An input does not exist.
        FileExistsError: `output` exists.
        MemoryError: `memory` is too small.
        OSError: An input cannot be read or `output` cannot be written.

    Example:
        >>> import tempfile, gristmill
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = gristmill.teragen("1k", f"{folder}/data")
        ...     report = gristmill.terasort(f"{folder}/data", f"{folder}/sorted", memory="100M")
        >>> report.duplicate_keys, report.checksum == made.checksum
        (0, True)
    """
    return _run(
        "terasort",
        {
            "inputs": _paths(inputs),
            "output": output,
            "partitions": partitions,
            "memory": _amount(memory),
            "workers": workers,
            "spill_dir": None if spill_dir is None else _paths(spill_dir),
            "overwrite": overwrite,
            "no_sync": no_sync,
        },
        history=history,
    )


def teravalidate(
    input: StrPath,  # noqa: A002 - as the option is called everywhere else
    *,
    against: StrPath | None = None,
    memory: int | str | None = None,
    workers: int | None = None,
    history: bool = False,
) -> JobReport:
    """Check that the files of a directory are in order, and sum the checksums of their records.

    Args:
        input: The directory to check.
        against: What it must be a permutation of: a file, a directory, or a checksum in
            hexadecimal.
        memory: Most memory that the job may use, in bytes or as `"8G"`; by default 60 % of what
            is available.
        workers: How many tasks run at once; by default one for each core.
        history: Keep the job's history also if the job takes less than a second.

    Returns:
        The job's report. Its `report` holds the lines that Hadoop's TeraValidate writes.

    Raises:
        ValueError: The files are not in order, or no permutation of `against`; `report_of` the
            exception says more. Or an option makes no sense.
        FileNotFoundError: There are no such files.
        OSError: A file cannot be read.

    Example:
        >>> import tempfile, gristmill
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = gristmill.teragen("1k", f"{folder}/data")
        ...     try:
        ...         gristmill.teravalidate(f"{folder}/data")
        ...     except ValueError as error:
        ...         gristmill.report_of(error).misorders
        483
    """
    return _run(
        "teravalidate",
        {
            "input": input,
            "against": against,
            "memory": _amount(memory),
            "workers": workers,
        },
        history=history,
    )


def resume(job_id: str, *, history: bool = False) -> JobReport:
    """Go on with a job whose process was killed, from what it had done; the output is the same.

    The job is that of the history in `$GRISTMILL_HOME`, with the options that it was begun with,
    in the directory that it was begun in; if it has code of yours, with that code as it was.

    Args:
        job_id: The job's name, a part of it that no other job has, or `last`.
        history: Has no effect: the job's history is kept, since it is what it is resumed from.

    Returns:
        The job's report; its times are of this process.

    Raises:
        ValueError: The job is over, or cannot be resumed; an input or the job's code changed since;
            or the history is none that the job wrote.
        PermissionError: Somebody else may have written what is kept of the job's code.
        FileNotFoundError: There is no such job, or several, or an input does not exist any more.
        FileExistsError: The job is alive.
        OSError: As those of the job itself.

    Example:
        >>> import os, tempfile, gristmill
        >>> with tempfile.TemporaryDirectory() as home:
        ...     os.environ["GRISTMILL_HOME"] = home
        ...     made = gristmill.teragen("1k", f"{home}/data", history=True)
        ...     try:
        ...         gristmill.resume("last")
        ...     except ValueError as error:
        ...         print(str(error).partition(" (")[0])
        cannot go on with a job: it is over: succeeded
    """
    return _run("resume", {"job_id": job_id}, history=history)


def new_job_id() -> str:
    """Return a name for a job: when it begins (UTC), the process, and the how manyth job in it."""
    now = time.strftime("%Y%m%d%H%M%S", time.gmtime())
    number = next(_numbers)
    return f"job_{now}_{os.getpid():04}" + (f"_{number}" if number > 1 else "")


def begin(
    command: str,
    values: Mapping[str, Value],
    job_id: str,
    *,
    history: bool = False,
    command_line: bool = False,
) -> _core.Job:
    """Begin a job.

    Args:
        command: Its name in the engine's table.
        values: Its options.
        job_id: Its name.
        history: Whether its history is kept even if it is short.
        command_line: Whether errors name options as the command line does.

    Raises:
        ValueError: An option makes no sense.
    """
    return _core.Job(
        spec(command, values),
        job_id,
        jobs_folder(),
        keep_short=history,
        command_line=command_line,
    )


def _run(command: str, values: Mapping[str, Value], *, history: bool) -> JobReport:
    """Run a job to its end, also when Ctrl-C or another exception comes in between."""
    job = begin(command, values, new_job_id(), history=history)
    try:
        while not job.wait(TICK_S):
            pass
    except BaseException:
        job.cancel()
        while not job.wait(TICK_S):
            pass
        raise
    report = JobReport.from_json(job.report())
    try:
        job.raise_failure()
    except BaseException as error:
        attach_report(error, report)
        raise
    return report


def _paths(given: StrPath | Iterable[StrPath]) -> Iterable[StrPath]:
    return [given] if isinstance(given, (str, os.PathLike)) else given


def _amount(value: int | str | None) -> str | None:
    """An amount as text: numbers beyond 64 bits, and negative ones, get the engine's own words."""
    return None if value is None else str(value)
