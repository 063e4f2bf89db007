"""What user code failed at, again and alone: `gristmill retry JOB`.

    <home>/jobs/<job>/failed/<task> ─▶ definition, spec ─▶ the task as a worker runs it, here:
        of a map only the record that it failed at;  of a reduce only the key, with its values

In this process, so that a debugger can be used, with the folder, the environment and the module
path that the worker had. What was kept is in failed.py.
"""

import faulthandler
import os
import resource
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, cast

from gristmill import _core
from gristmill.errors import kind_of
from gristmill.mapreduce.definition import Definition, Functions
from gristmill.mapreduce.formats.format import Input, Reader
from gristmill.mapreduce.pickling import loads
from gristmill.mapreduce.results.failed import TASK, FailedTask, Say, record_of
from gristmill.mapreduce.retry.code_patch import patched
from gristmill.mapreduce.shown import shown
from gristmill.mapreduce.submit.removing import passing_folder
from gristmill.mapreduce.worker.failures import Failure, TaskFailure, describe
from gristmill.mapreduce.worker.running import Task
from gristmill.mapreduce.worker.skipping import Skipping
from gristmill.names import to_json

__all__ = ["retry"]

_LINES = 100
"""Records, values and results that are shown, of each call."""

_GIVES = "  gives "


def retry(failed: FailedTask, say: Say, *, whole_task: bool = False) -> Failure | None:
    """Run what failed again, in this process; what is called and what comes out is said.

    Args:
        failed: What failed.
        say: Called with each line.
        whole_task: Of a map, run all records of the split.

    Returns:
        How it failed this time, if it did.
    """
    header = failed.header
    if failed.of_scripts:
        return _scripts_again(failed, say)
    how = header["how"]["processes"]
    os.environ.update(how["environment"])
    if how["folder"] is not None:
        os.chdir(how["folder"])
    definition: Definition = loads(failed.definition)
    sys.path[:] = [*definition.path, *(at for at in sys.path if at not in definition.path)]
    spec = header["spec"] | {"chunk_bytes": _chunk_bytes(header)}
    _limit(header["at"], spec["chunk_bytes"])
    try:
        definition, functions, told = patched(definition)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - what a user's module raises
        return describe(error, doing=f"load the functions of {definition.name}")
    say(told)
    with passing_folder("gristmill-retry-") as folder:
        spec |= {"places": [f"{folder}/runs"], "output": f"{folder}/out"}
        Path(folder, "runs").mkdir()
        try:
            if failed.of_map and not whole_task:
                definition = _with_one(failed, definition, functions, say)
            task = Task(definition, _told(functions, say), spec, to_json(spec))
            if definition.skip_bad:  # as tolerant, but of no record more
                task.skipping = Skipping(0, folder, 0, task.files)
            task.run()
        except TaskFailure as failure:
            return failure.failure
    return None


def _scripts_again(failed: FailedTask, say: Say) -> Failure | None:
    """Run a task with scripts again: as they are now, where they are named by their paths."""
    with passing_folder("gristmill-retry-") as folder:
        try:
            said = _core.retry_scripts(failed.folder / TASK, folder)
        except (ValueError, OSError, RuntimeError, MemoryError) as error:
            for note in getattr(error, "__notes__", ()):
                for line in note.splitlines():
                    say(line)
            return Failure(
                kind=kind_of(error) or "user_code",
                message=str(error).removeprefix("cannot ").rstrip("."),
            )
    for line in said.splitlines():
        say(line)
    return None


def _chunk_bytes(header: dict[str, Any]) -> int:
    """Memory for pairs: less than a worker's limit, which the job's memory may exceed by far."""
    chunk, most = header["spec"]["chunk_bytes"], header["at"]["memory_bytes"]
    return int(chunk if most is None else min(chunk, most // 4))


def _limit(at: dict[str, Any], chunk_bytes: int) -> None:
    """What ended the worker shall end this process too, and say where it stands.

    The memory for pairs is reserved as a whole, so that it counts beside that of user code.
    """
    faulthandler.enable()
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)  # what is printed before that is seen
    if at["how"] == "hung" and at["timeout_s"] is not None:
        faulthandler.dump_traceback_later(at["timeout_s"], exit=True)
    if at["how"] == "memory" and at["memory_bytes"] is not None:
        with suppress(ValueError, OSError):  # a hard limit below it
            held = _data_bytes() + at["memory_bytes"] + chunk_bytes
            resource.setrlimit(
                resource.RLIMIT_DATA, (held, resource.getrlimit(resource.RLIMIT_DATA)[1])
            )


def _data_bytes() -> int:
    """The private memory of this process, as the limit of it counts."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    found = [int(line.split()[1]) << 10 for line in lines if line.startswith("VmData:")]
    return found[0] if found else 0


def _with_one(
    failed: FailedTask, definition: Definition, functions: Functions, say: Say
) -> Definition:
    """The job, but its input is the record that failed; all of it, if no record is to blame."""
    one = record_of(failed, definition, functions, say)
    if one is None:
        return definition
    return replace(definition, input=cast("Input", _Opened(definition.input, one)))


@dataclass(frozen=True, slots=True)
class _Opened:
    """An input that is open already."""

    given: Input
    reader: Reader

    def __str__(self) -> str:
        return str(self.given)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the rest is the input's
        return getattr(self.given, name)

    def open(self, what: dict[str, Any], *, tolerant: bool = False) -> Reader:
        del what, tolerant
        return self.reader

    def open_batches(self, what: dict[str, Any]) -> Reader:
        del what
        return self.reader


# --- what is said ---


def _told(functions: Functions, say: Say) -> Functions:
    """The functions, but that they say what they give; a reduce also what it gets."""
    reduce = functions.reduce
    return replace(
        functions,
        map=functions.map and _telling(functions.map, say),
        map_batches=functions.map_batches and _telling(functions.map_batches, say),
        reduce=_telling_reduce(reduce, say) if callable(reduce) else reduce,
        reduce_batches=functions.reduce_batches and _telling_batches(functions.reduce_batches, say),
    )


def _telling(function: Callable[..., Any], say: Say) -> Callable[..., Any]:
    @wraps(function)
    def called(*given: Any, **context: Any) -> Any:  # noqa: ANN401 - the user's
        return _each(function(*given, **context), say, _GIVES)

    return called


def _telling_reduce(function: Callable[..., Any], say: Say) -> Callable[..., Any]:
    @wraps(function)
    def called(key: Any, values: Iterator[Any], **context: Any) -> Any:  # noqa: ANN401
        say(f"key {shown(key)}")
        return _each(function(key, _each(values, say, "  value "), **context), say, _GIVES)

    return called


def _telling_batches(function: Callable[..., Any], say: Say) -> Callable[..., Any]:
    @wraps(function)
    def called(batches: Iterator[Any], **context: Any) -> Any:  # noqa: ANN401 - the user's
        return _each(function(_each(batches, say, ""), **context), say, _GIVES)

    return called


def _each(found: Any, say: Say, title: str) -> Any:  # noqa: ANN401 - the user's
    """What was given: said one by one as it is taken, or, where it is no iterator, at once."""
    if isinstance(found, Iterator):
        return _taken(cast("Iterator[Any]", found), say, title)
    if isinstance(found, list):
        list(_taken(cast("list[Any]", found), say, title))
    elif found is None or (isinstance(found, tuple) and not found):
        say(f"{title}nothing")
    else:
        say(f"{title}{shown(found)}")
    return cast("Any", found)


def _taken(found: Iterable[Any], say: Say, title: str) -> Iterator[Any]:
    number = -1
    for number, one in enumerate(found):
        if number < _LINES:
            say(f"{title}{shown(one)}")
        elif number == _LINES:
            say(f"{title}...")
        yield one
    if number < 0 and title == _GIVES:
        say(f"{title}nothing")
