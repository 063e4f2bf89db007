"""The values that options of a job are given: those that make no sense are refused by name.

A wrong type is a TypeError, a wrong value a ValueError; either says which option, what it was given
and what it takes. What only the engine can know (whether memory is enough) it says itself.
"""

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from gristmill.amounts import parse_bytes, whole_number
from gristmill.mapreduce.paths import StrPath, as_paths

if TYPE_CHECKING:
    from gristmill.mapreduce.launching import Options

__all__ = ["check_options"]

_MOST_WORKERS = 1024
_MOST_ATTEMPTS = 1000
_LEAST_SECONDS, _MOST_SECONDS = 0.001, 1e9
_FLAGS = ("overwrite", "no_sync", "history", "command_line")

Spell = Callable[[str], str]


def check_options(options: "Options") -> dict[str, Any]:
    """Return what options stand for that were given in another way, such as numbers of numpy.

    Raises:
        TypeError: One is of a wrong type.
        ValueError: One makes no sense.
    """
    spell = _dashed if options.command_line else str
    _check_flags(options, spell)
    if options.worker_memory is not None:
        parse_bytes(options.worker_memory, spell("worker_memory"))
    if options.memory is not None and not isinstance(options.memory, str):
        parse_bytes(options.memory, spell("memory"))
    return {
        "workers": _count(options.workers, spell("workers"), _MOST_WORKERS),
        "attempts": _count(options.attempts, spell("attempts"), _MOST_ATTEMPTS),
        "spill_dir": _folders(options.spill_dir, spell("spill_dir")),
        "timeout_s": _seconds(options.timeout_s, spell("timeout_s")),
    }


def _count(value: object, name: str, most: int) -> int | None:
    if value is None:
        return None
    number = whole_number(value)
    if number is None or not 1 <= number <= most:
        advice = f"give a whole number from 1 to {most}"
        _refuse(name, value, advice, wrong_type=number is None)
    return number


def _seconds(value: Any, name: str) -> float | None:  # noqa: ANN401 - what was given
    if value is None:
        return None
    advice = "give seconds, from 0.001 to a billion"
    if isinstance(value, (bool, str, bytes)):
        _refuse(name, value, advice, wrong_type=True)
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    except TypeError:
        _refuse(name, value, advice, wrong_type=True)
    if not _LEAST_SECONDS <= seconds <= _MOST_SECONDS:  # nor is it, where it is no number
        _refuse(name, value, advice, wrong_type=False)
    return seconds


def _check_flags(options: "Options", spell: Spell) -> None:
    named: dict[str, object] = {name: getattr(options, name) for name in _FLAGS}
    for name, value in {**named, "progress": options.progress}.items():
        if value is not None and not isinstance(value, bool):
            _refuse(spell(name), value, "give True or False", wrong_type=True)


def _folders(value: StrPath | Iterable[StrPath] | None, name: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    folders = as_paths(value, name)
    if not all(folders):
        _refuse(name, value, "give a directory, or a list of them", wrong_type=False)
    return folders


def _dashed(name: str) -> str:
    return f"--{name.removesuffix('_s').replace('_', '-')}"


def _refuse(name: str, value: object, advice: str, *, wrong_type: bool) -> NoReturn:
    shown = repr(value)
    shown = shown if len(shown) <= 100 else f"{shown[:97]}..."
    message = f"cannot read the options: {name} is {shown}. To go on: {advice}."
    raise TypeError(message) if wrong_type else ValueError(message)
