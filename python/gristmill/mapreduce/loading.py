"""Files that define a job, for `gristmill run` and `gristmill check`.

    job = gm.Job(...)                      the job
    def job(input="in/", n="10"): ...      or a function that makes it, of settings: --set n=20

The file runs as a module of its name, whose functions go to the workers by value; what it imports
from beside itself, workers find there too.
"""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from gristmill.mapreduce.definition import JOB_FILE
from gristmill.mapreduce.failures import user_frames
from gristmill.mapreduce.job import Job
from gristmill.mapreduce.pickling import by_value

__all__ = ["load_job"]


def load_job(
    path: Path,
    *,
    name: str = "job",
    settings: Mapping[str, str] | None = None,
    inputs: Sequence[str] = (),
    output: str | None = None,
) -> Job:
    """Return the job that a file defines.

    Args:
        path: The file.
        name: What the job, or the function that makes it, is called in it.
        settings: What the function is given, by the names of its parameters.
        inputs: What to read in the place of the job's own input; given to the function if it has a
            parameter `input`.
        output: Where to write, likewise.

    Raises:
        ValueError: The file cannot be loaded, defines no such job, or takes no such settings.
        FileNotFoundError: The file does not exist.
    """
    module = _module(path)
    found = getattr(module, name, None)
    given: dict[str, Any] = dict(settings or {})
    if isinstance(found, Job):
        if given:
            raise ValueError(
                f"cannot set {', '.join(given)}: {path} defines a job, not a function that makes"
                f" one. To go on: write def {name}({', '.join(given)}): return gm.Job(...)."
            )
        job = found
    elif callable(found):
        job, inputs, output = _made(found, path, given, inputs, output)
    else:
        raise ValueError(
            f"cannot run {path}: it defines no {name}. To go on: write {name} = gm.Job(...), or"
            " name another with --job."
        )
    if inputs:
        job = job.with_input(list(inputs))
    return job if output is None else job.with_output(output)


def _made(
    make: Callable[..., Any],
    path: Path,
    given: dict[str, Any],
    inputs: Sequence[str],
    output: str | None,
) -> tuple[Job, Sequence[str], str | None]:
    """The job that a function makes, and what of `--input` and `--output` it did not take."""
    parameters = inspect.signature(make).parameters
    any_name = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    unknown = [name for name in given if name not in parameters and not any_name]
    if unknown:
        known = ", ".join(parameters) or "none"
        raise ValueError(
            f"cannot set {', '.join(unknown)}: the job of {path} has no such settings."
            f" To go on: it has {known}."
        )
    if "input" in parameters and inputs:
        given["input"] = inputs[0] if len(inputs) == 1 else list(inputs)
        inputs = ()
    if "output" in parameters and output is not None:
        given["output"] = output
        output = None
    try:
        job = make(**given)
    except (Exception, SystemExit) as error:
        raise _unloadable(path, error) from error
    if not isinstance(job, Job):
        raise ValueError(
            f"cannot run {path}: what should make a job returned {job!r}."
            " To go on: return gm.Job(...)."
        )
    return job, inputs, output


def _module(path: Path) -> ModuleType:
    if not path.is_file():
        raise FileNotFoundError(f"cannot run {path}: there is no such file.")
    folder = str(path.absolute().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = f"{JOB_FILE}{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"cannot run {path}: it is no Python file. To go on: name a .py file.")
    module = module_from_spec(spec)
    sys.modules[name] = module  # as dataclasses and pickle expect
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _unloadable(path, error) from error
    by_value(module)
    return module


def _unloadable(path: Path, error: BaseException) -> ValueError:
    frames = user_frames(error.__traceback__)
    frames = [frame for frame in frames if "importlib" not in frame.filename]
    place = f" (line {frames[-1].lineno} of {frames[-1].filename})" if frames else ""
    if isinstance(error, SyntaxError) and error.lineno is not None:
        place = f" (line {error.lineno} of {error.filename})"
    text = " ".join(str(error).split())
    return ValueError(f"cannot load {path}: {type(error).__name__}: {text}{place}.")
