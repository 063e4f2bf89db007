"""The commands of the engine's table as Python functions.

    jobs::commands() ──▶ a signature, a docstring ──▶ gristmill.sort(...), gristmill.terasort(...)
                     └─▶ functions.pyi, for editors and type checkers (`make format` writes it)

An option has the name and the default that it has on the command line; `None` leaves the default to
the engine.
"""

import inspect
import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterable
from typing import cast

from gristmill.columnar import as_csv
from gristmill.job import run
from gristmill.locations import in_home
from gristmill.names import StrPath
from gristmill.options import HISTORY, Command, Option, Value, commands
from gristmill.report import JobReport
from gristmill.signatures import item, parameter, type_of

_RAISES = """\
    ValueError: An option makes no sense, or the input is not what the job needs.
    FileNotFoundError: An input does not exist.
    FileExistsError: The output exists.
    MemoryError: `memory` is too small.
    OSError: An input cannot be read, or the output cannot be written."""


_OF_JOBS = (
    "An input may be a `gm.Job`, which runs first. Without an `output` it writes its records as a"
    " table for this command alone."
)


def _function(command: Command) -> Callable[..., JobReport]:
    signature = inspect.Signature([parameter(option) for option in (*command.options, HISTORY)])

    def function(*args: Value, **kwargs: Value) -> JobReport:
        given = signature.bind(*args, **kwargs).arguments
        if not _reads_jobs(command) or "gristmill.mapreduce.submit.job" not in sys.modules:
            return run_it(given)  # there can be no job among them
        from gristmill.mapreduce.submit.as_input import jobs_run

        with jobs_run(command, given) as read:
            return run_it(read)

    def run_it(given: dict[str, Value]) -> JobReport:
        history = bool(given.pop("history", False))
        values = {
            option.name: _plain(option, given[option.name])
            for option in command.options
            if given.get(option.name) is not None
        }
        if command.name == "resume":
            from gristmill.history.dead_chain import dead_chain  # few functions need them

            if (chain := dead_chain(str(values["job_id"]))) is not None:
                from gristmill.mapreduce.submit.resuming import resume_chain

                return resume_chain(chain).report
        return _run(command, values, history=history)

    function.__name__ = function.__qualname__ = command.function
    function.__doc__ = _docstring(command)
    function.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess] - PEP 362
    return function


def _reads_jobs(command: Command) -> bool:
    """Whether its inputs may be jobs: those of a command over tables."""
    return any(option.name == "csv" for option in command.options)


def _run(command: Command, values: dict[str, Value], *, history: bool) -> JobReport:
    with as_csv(command, values) as tables:
        if tables is None:
            return run(command.name, values, history=history)
        try:
            report = run(command.name, tables.values, history=history, check=tables.check)
        except (ValueError, OSError) as error:
            told = [tables.told(one) if isinstance(one, str) else one for one in error.args]
            error.args = tuple(told)
            raise
        tables.check()
        return tables.publish(report)


def _plain(option: Option, value: Value) -> Value:
    """A value as the engine takes it."""
    if option.kind in ("paths", "path_list", "text_list"):
        value = [value] if isinstance(value, (str, bytes, os.PathLike)) else value
    if option.kind == "paths" and isinstance(value, (list, tuple)) and not value:
        raise ValueError(
            f"cannot read the options: {option.name} is empty. What to do: name a file."
        )
    if option.kind in ("paths", "path_list") and isinstance(value, Iterable):
        return [in_home(path) for path in cast("Iterable[StrPath]", value)]
    if option.kind == "path" and isinstance(value, (str, bytes, os.PathLike)):
        return in_home(value)
    if option.kind in ("bytes", "rows", "number"):
        return str(value)  # beyond 64 bits, and negative ones, get the engine's own words
    return value


def _docstring(command: Command) -> str:
    options = "\n".join(item(option) for option in (*command.options, HISTORY))
    told = [command.details, _OF_JOBS] if _reads_jobs(command) else [command.details]
    details = "".join(f"\n\n{textwrap.fill(text, 96)}" for text in told if text)
    example = textwrap.indent(command.python.strip("\n"), "    ")
    return (
        f"{command.help}{details}\n\nArgs:\n{options}\n\n"
        f"Returns:\n    The job's report.\n\nRaises:\n{_RAISES}\n\nExample:\n{example}\n"
    )


def stub() -> str:
    """Return the text of functions.pyi.

    Example:
        >>> "def terasort(" in stub()
        True
    """
    head = (
        "# Made by `make format` from the engine's table of commands; not to be edited.\n"
        "from collections.abc import Iterable, Mapping\nfrom typing import Literal\n\n"
        "from gristmill.mapreduce.submit.job import Job\n"
        "from gristmill.names import StrPath\nfrom gristmill.report import JobReport\n\n"
        f"__all__ = {json.dumps(sorted(command.function for command in commands().values()))}\n"
    )
    return head + "".join(f"\n{_stub_of(command)}" for command in commands().values()) + _STUB_TAIL


_STUB_TAIL = "\ndef stub() -> str: ...\n"


def _stub_of(command: Command) -> str:
    parameters: list[str] = []
    for option in (*command.options, HISTORY):
        if not option.positional and "*" not in parameters:
            parameters.append("*")
        kind = _typed(option)
        if _reads_jobs(command) and option.positional and option.name != "output":
            kind = kind.replace("StrPath", "StrPath | Job")
        parameters.append(f"{option.name}: {kind}")
    listed = "".join(f"    {parameter},\n" for parameter in parameters)
    doc = textwrap.indent(f'r"""{_docstring(command)}"""', "    ")
    return f"def {command.function}(\n{listed}) -> JobReport:\n{doc}\n"


def _typed(option: Option) -> str:
    kind = type_of(option)
    if option.kind in ("choice", "flag"):
        return f"{kind} = ..."
    return f"{kind} | None = ..." if option.default else kind


__all__: list[str] = []
__all__.extend(command.function for command in commands().values())  # pyright: ignore[reportUnsupportedDunderAll] - the stub lists them
globals().update({command.function: _function(command) for command in commands().values()})
