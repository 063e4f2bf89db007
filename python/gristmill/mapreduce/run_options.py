"""Run options, which say how a job is run: values that make no sense are refused by name.

    user_code(), the engine's ─┬─▶ RUN ──▶ Job.run, Job.explain, gm.run_all;  `gristmill run`
    those of worker processes ─┘      └──▶ typed.py, for type checkers

A wrong type is a TypeError, a wrong value a ValueError; either says which option, what it was given
and what it takes. What only the engine can know (whether memory is enough) it says itself.
"""

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, cast

from gristmill.amounts import parse_bytes, whole_number
from gristmill.mapreduce.formats.paths import StrPath, as_paths
from gristmill.mapreduce.source import Source
from gristmill.options import HISTORY, Option, user_code
from gristmill.signatures import refuse_unknown, typed_dict

__all__ = ["RUN", "Options", "typed_module"]

_ATTEMPTS = Option(
    "attempts",
    "count",
    "4",
    "How often a task is tried before the job fails. An exception that comes twice at the same"
    " record ends the job at once.",
)

_SPECULATIVE = Option(
    "speculative",
    "flag",
    "on",
    "Begin a second attempt at a slow task on another node of a cluster; the first to end counts."
    " Turn it off if your functions have effects besides their output, such as in a database.",
)

_OF_WORKERS = (
    Option("timeout_s", "seconds", "600", "Stop a worker if one record takes longer than this."),
    Option(
        "worker_memory", "bytes", "not limited", "Most memory of one worker process, such as 2G."
    ),
)

_RUNNER_HELP = (
    "Where Gristmill's own work runs: in threads of this process, or in worker processes. Your"
    " functions run in worker processes either way. The output does not depend on it."
)


def _worded(option: Option) -> Option:
    """An option of the engine, as it is for jobs with functions."""
    return option._replace(help=_RUNNER_HELP) if option.name == "runner" else option


_OF_ENGINE = (*map(_worded, user_code()), _ATTEMPTS, _SPECULATIVE)

RUN = (*_OF_ENGINE, *_OF_WORKERS, HISTORY)
"""The options of a job of user code that is run."""

_KINDS = {option.name: option for option in RUN}
_COUNT_MAX = {"nodes": 100_000, "workers": 1024, "attempts": 1000}
_TIME_MIN_S, _TIME_MAX_S = 0.001, 1e9

Spell = Callable[[str], str]


def _nothing() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a job is run, whatever it is; see `Job.run`."""

    given: Mapping[str, Any] = field(default_factory=_nothing)
    """Those of `RUN` that were given, by their names."""
    progress: bool | None = None
    command_line: bool = False
    """Whether errors name options as the command line does."""
    source: Source | None = None
    """The file that defines the job, where that is not the script that runs."""
    function: str = "Job.run"
    """The function that was given them."""
    listed: bool = True
    """Whether the job may be kept in the list of jobs."""
    worker: tuple[str, list[str], dict[str, str], str, str] | None = None
    """How a worker is started, where not as one of this process: see `gristmill.worker.command`."""

    def __post_init__(self) -> None:
        if self.progress is not None:
            _flag(self.progress, "progress")
        beside = ("progress",) if self.function == "Job.run" else ()
        refuse_unknown(self.function, self.given, (*beside, *_KINDS))
        checked = {name: _checked(name, value, self.spell) for name, value in self.given.items()}
        given = {
            name: value for name, value in checked.items() if not _is_default(_KINDS[name], value)
        }
        object.__setattr__(self, "given", given)

    def get(self, name: str) -> Any:  # noqa: ANN401 - the option's
        """Return the value of an option, if it was given."""
        return self.given.get(name)

    def spell(self, name: str) -> str:
        """Return the name of an option as errors have it."""
        return f"--{_KINDS[name].dashed}" if self.command_line else name

    def but(self, **changed: Any) -> "Options":  # noqa: ANN401 - the options'
        """Return the same options with some of `RUN` changed."""
        return replace(self, given={**self.given, **changed})

    @property
    def spill_dirs(self) -> list[str]:
        """Where runs go, if that was given."""
        return self.spec().get("spill_dir", [])

    def spec(self) -> dict[str, Any]:
        """Return those that were given, as the engine takes them."""
        return {
            option.name: _for_engine(option, self.given[option.name])
            for option in _OF_ENGINE
            if option.name in self.given
        }


def _is_default(option: Option, value: object) -> bool:
    return value is None or (option.kind == "flag" and value is option.is_on)


def _for_engine(option: Option, value: Any) -> object:  # noqa: ANN401 - the option's
    match option.kind:
        case "bytes":
            return f"{value}"
        case "path_list":
            return [os.path.abspath(folder) for folder in value]  # noqa: PTH100 - links stay
        case _:
            return value


def _checked(name: str, value: Any, spell: Spell) -> Any:  # noqa: ANN401 - what was given
    """What a value stands for that may have been given in another way, such as a number of numpy.

    Raises:
        TypeError: It is of a wrong type.
        ValueError: It makes no sense.
    """
    option = _KINDS[name]
    if value is None:
        return None
    match option.kind:
        case "flag":
            return _flag(value, spell(name))
        case "count":
            return _count(value, spell(name), _COUNT_MAX.get(name))
        case "bytes":
            if option in _OF_WORKERS or not isinstance(value, str):  # text the engine reads
                parse_bytes(value, spell(name))
            return value
        case "path_list":
            return _folders(value, spell(name))
        case "pairs":
            return _pairs(value, spell(name))
        case "seconds":
            return _seconds(value, spell(name))
        case _:  # the engine's to say
            return value


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        _refuse(name, value, "give True or False", wrong_type=True)
    return value


def _count(value: object, name: str, most: int | None) -> int:
    number = whole_number(value)
    if number is None or number < 1 or (most is not None and number > most):
        advice = f"give a whole number from 1 {'on' if most is None else f'to {most}'}"
        _refuse(name, value, advice, wrong_type=number is None)
    return number


def _seconds(value: Any, name: str) -> float:  # noqa: ANN401 - what was given
    advice = "give seconds, from 0.001 to a billion"
    if isinstance(value, (bool, str, bytes)):
        _refuse(name, value, advice, wrong_type=True)
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    except TypeError:
        _refuse(name, value, advice, wrong_type=True)
    if not _TIME_MIN_S <= seconds <= _TIME_MAX_S:  # nor is it, where it is not a number
        _refuse(name, value, advice, wrong_type=False)
    return seconds


def _folders(value: StrPath | Iterable[StrPath], name: str) -> tuple[str, ...] | None:
    return as_paths(value, name) or None


def _pairs(value: Mapping[str, object] | Iterable[str], name: str) -> dict[str, str] | None:
    if isinstance(value, Mapping):
        given = cast("Mapping[str, object]", value)
        return {f"{key}": f"{text}" for key, text in given.items()} or None
    if isinstance(value, str):
        value = [value]
    pairs: dict[str, str] = {}
    for word in value:
        key, equals, text = word.partition("=")
        if not equals:
            _refuse(name, word, "give KEY=VALUE", wrong_type=False)
        pairs[key] = text
    return pairs or None


def _refuse(name: str, value: object, advice: str, *, wrong_type: bool) -> NoReturn:
    shown = repr(value)
    shown = shown if len(shown) <= 100 else f"{shown[:97]}..."
    message = f"cannot read the options: {name} is {shown}. What to do: {advice}."
    raise TypeError(message) if wrong_type else ValueError(message)


def typed_module() -> str:
    """Return the text of typed.py.

    Example:
        >>> "class RunOptions(TypedDict" in typed_module()
        True
    """
    head = (
        '"""The types of run options; made by `make format` from run_options.py, not edited."""\n\n'
        "from collections.abc import Iterable, Mapping\nfrom typing import Literal, TypedDict\n\n"
        "from gristmill.names import StrPath\n\n"
        '__all__ = ["RunOptions"]\n'
    )
    options = typed_dict("RunOptions", "Options of a job of user code that is run.", RUN)
    return f"{head}\n\n{options}\n"
