"""Files that define a job, for `gristmill run` and `gristmill check`.

    job = gm.Job(...)                      the job
    def job(input="in/", n="10"): ...      or a function that makes it, of settings: --set n=20

The file runs as a module of its name, whose functions go to the workers by value; what it imports
from beside itself, workers find there too.
"""

import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from gristmill.links import why_missing
from gristmill.mapreduce.definition import JOB_FILE
from gristmill.mapreduce.pickling import by_value
from gristmill.mapreduce.shown import shown, text_of
from gristmill.mapreduce.submit.defining import RunsItself, defining
from gristmill.mapreduce.submit.job import Job
from gristmill.mapreduce.worker.failures import user_frames
from gristmill.names import quote

__all__ = ["load_job"]

_FRAMES = 20


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
                f" one. What to do: write def {name}({', '.join(given)}): return gm.Job(...)."
            )
        job = found
    elif callable(found):
        job, inputs, output = _made(found, path, given, inputs, output)
    else:
        raise ValueError(f"cannot run {path}: {_no_job(module, name)}.")
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
        known = f"set one of {', '.join(parameters)}" if parameters else "leave --set out"
        raise ValueError(
            f"cannot set {', '.join(unknown)}: the function {make.__name__} of {path} has no such"
            f" settings. What to do: {known}."
        )
    if "input" in parameters and inputs:
        given["input"] = inputs[0] if len(inputs) == 1 else list(inputs)
        inputs = ()
    if "output" in parameters and output is not None:
        given["output"] = output
        output = None
    missing = [name for name in _needed(parameters.values()) if name not in given]
    if missing:
        raise ValueError(
            f"cannot run {path}: the function {make.__name__} needs a value for"
            f" {' and '.join(missing)}. What to do: give {' '.join(map(_how_given, missing))}."
        )
    try:
        job = make(**given)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        raise _unloadable(path, error) from error
    if not isinstance(job, Job):
        raise ValueError(
            f"cannot run {path}: the function {make.__name__} returned {shown(job)}, not a gm.Job."
            " What to do: return gm.Job(...)."
        )
    return job, inputs, output


def _needed(parameters: Iterable[inspect.Parameter]) -> list[str]:
    """The names of the parameters without which a function cannot be called."""
    several = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [
        one.name
        for one in parameters
        if one.default is inspect.Parameter.empty and one.kind not in several
    ]


def _how_given(name: str) -> str:
    return f"--{name} PATH" if name in ("input", "output") else f"--set {name}=VALUE"


def _no_job(module: ModuleType, name: str) -> str:
    """What a file has in the place of a job, and what to do about it."""
    jobs = [other for other, value in vars(module).items() if isinstance(value, Job)]
    advice = f"write {name} = gm.Job(...), or name another with --job"
    if jobs:
        advice = f"give --job {jobs[0]}" if len(jobs) == 1 else f"give --job: {', '.join(jobs)}"
    if not hasattr(module, name):
        return f"it does not define {name}. What to do: {advice}"
    found = getattr(module, name)
    return f"{name} is {shown(found)}, not a gm.Job. What to do: {advice}"


def _module(path: Path) -> ModuleType:
    _check_file(path)
    folder = str(path.absolute().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = f"{JOB_FILE}{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(
            f"cannot run {path}: it is not a Python file. What to do: name a .py file."
        )
    module = module_from_spec(spec)
    sys.modules[name] = module  # as dataclasses and pickle expect
    try:
        with defining():
            spec.loader.exec_module(module)
    except RunsItself as error:
        raise _runs_itself(path, error) from error
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        raise _unloadable(path, error) from error
    by_value(module)
    return module


def _check_file(path: Path) -> None:
    """Refuse what cannot be a file that defines a job.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is something else than a file.
    """
    if path.is_file():
        return
    if path.is_dir():
        jobs = sorted(file.name for file in path.glob("*.py"))
        name = jobs[0] if len(jobs) == 1 else "job.py"
        raise ValueError(
            f"cannot run {path}: it is a directory. What to do: name a Python file in it, such as"
            f" {path / name}."
        )
    if path.exists():
        raise ValueError(
            f"cannot run {path}: it is not a regular file. What to do: name a .py file."
        )
    raise FileNotFoundError(
        f"cannot run {path}: it {why_missing(path)}. What to do: check the name."
    )


def _runs_itself(path: Path, error: BaseException) -> ValueError:
    frames = user_frames(error.__traceback__)
    line = next((frame.lineno for frame in frames if Path(frame.filename) == path.absolute()), None)
    place = "" if line is None else f" (line {line})"
    return ValueError(
        f"cannot run {path}: it runs its job itself{place}. What to do: put job.run() under"
        f' `if __name__ == "__main__":`, or start it with python {quote(str(path))}.'
    )


def _unloadable(path: Path, error: BaseException) -> ValueError:
    """What is wrong, and as a note the way there: from the file through the modules it imports."""
    if isinstance(error, KeyboardInterrupt) and type(error) is not KeyboardInterrupt:
        raise error  # the user's Ctrl-C, which the command line has a type for; else the file's own
    frames = user_frames(error.__traceback__)
    frames = [frame for frame in frames if "importlib" not in frame.filename]
    place = f" (line {frames[-1].lineno} of {frames[-1].filename})" if frames else ""
    if isinstance(error, SyntaxError) and error.lineno is not None:
        place = f" (line {error.lineno} of {error.filename})"
    called = f"{type(error).__name__}: {text_of(error)}".rstrip(".: ")
    found = ValueError(f"cannot load {path}{place}: {called}.")
    if frames:
        way = "".join(traceback.format_list(frames[-_FRAMES:]))
        found.add_note(f"In your code:\n{way.rstrip()}")
    return found
