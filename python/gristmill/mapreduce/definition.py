"""A job as its workers get it: one value, pickled once.

    Job ─▶ Definition ─cloudpickle─▶ bytes ─▶ worker: sys.path first, then the functions

Functions of scripts, notebooks and of `gristmill run` files go by value, those of installed
packages by name. The functions are pickled within the definition, so that a worker can open it,
look for modules where the driver would, and say in a sentence what it cannot load.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, is_dataclass
from enum import Enum
from types import ModuleType
from typing import Any

from gristmill.mapreduce.aggregates import Aggregate
from gristmill.mapreduce.formats.format import Input, Output
from gristmill.mapreduce.functions import name_of
from gristmill.mapreduce.pickling import by_value, dumps, loads
from gristmill.mapreduce.source import Source

__all__ = ["JOB_FILE", "Definition", "Functions", "known_again", "pickled", "record_classes"]

JOB_FILE = "gristmill_job_"
"""How the names of modules begin that `gristmill run` makes of job files."""


@dataclass(frozen=True, kw_only=True)
class Functions:
    """What user code a job has, and in what order; see `Job`."""

    map: Callable[..., Any] | None = None
    map_batches: Callable[..., Any] | None = None
    setup: Callable[..., Any] | None = None
    teardown: Callable[..., Any] | None = None
    combine: Callable[..., Any] | None = None
    reduce: Callable[..., Any] | Aggregate | None = None
    reduce_batches: Callable[..., Any] | None = None
    sort_by: Callable[..., Any] | None = None
    group_by: Callable[..., Any] | None = None
    partition: Callable[[Any, int], int] | None = None
    cuts: tuple[Any, ...] | None = None

    @property
    def aggregate(self) -> Aggregate | None:
        """The engine's reduction, if it is one."""
        return self.reduce if isinstance(self.reduce, Aggregate) else None

    @property
    def reduces(self) -> bool:
        """Whether there is anything to shuffle."""
        return self.reduce is not None or self.reduce_batches is not None


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A job, but for its splits."""

    name: str
    input: Input
    output: Output
    outputs: dict[str, Output]
    files: dict[str, str]
    skip_bad: int
    payload: bytes
    """The pickled `Functions`."""
    path: list[str] = field(default_factory=list[str])
    """Where the driver looks for modules."""
    classes: tuple[bytes, ...] = ()
    """Pickled classes of records, see `record_classes`."""
    names: dict[str, str] = field(default_factory=dict[str, str])
    """What users call files whose paths say nothing to them: copies of streams."""
    source: Source | None = None
    """The file that defines it."""
    record_limit: int | None = None
    """How many records of a split are mapped at most; all of them if it is `None`."""

    def functions(self) -> Functions:
        """Return the functions.

        Raises:
            ImportError: A module is not there, or anything that loading a user's module raises.
        """
        known_again(self.path, self.classes)
        return loads(self.payload)


def known_again(path: list[str], classes: tuple[bytes, ...]) -> None:
    """Look for modules where the driver does, and have its classes of records where they are."""
    for folder in path:
        if folder not in sys.path:
            sys.path.append(folder)
    for data in classes:
        with suppress(Exception):  # values of it can be pickled in another way, slowly
            _make_known(loads(data))


def record_classes() -> tuple[bytes, ...]:
    """Return the dataclasses, named tuples and enums of the script, notebook or job file, pickled.

    Workers put them where they are here. So a value of one is pickled by its class's name, in 2 µs
    and some 40 bytes; without, each would take its class with it: 800 µs and 3 kB.
    """
    found: list[bytes] = []
    for name, module in list(sys.modules.items()):
        if name == "__main__" or name.startswith(JOB_FILE):
            for made in list(vars(module).values()):
                if _is_record_class(made) and made.__module__ == name:
                    with suppress(Exception):  # whatever its attributes raise
                        found.append(dumps(made))
    return tuple(found)


def _is_record_class(made: Any) -> bool:  # noqa: ANN401 - whatever a module has
    if not isinstance(made, type):
        return False
    kind: type[object] = made
    if is_dataclass(kind) or issubclass(kind, Enum):
        return True
    return "_fields" in vars(kind) and issubclass(kind, tuple)


def _make_known(made: type) -> None:
    module = sys.modules.get(made.__module__)
    if module is None:
        module = sys.modules[made.__module__] = ModuleType(made.__module__)
        by_value(module)  # for jobs that are run in the worker
    setattr(module, made.__name__, made)


def pickled(functions: Functions) -> bytes:
    """Return the functions as bytes.

    Raises:
        TypeError: One of them holds what cannot be pickled; says which, and what.

    Example:
        >>> len(pickled(Functions(map=lambda line: [(line, 1)]))) > 0
        True
    """
    try:
        return dumps(functions)
    except Exception as error:  # pickling runs the objects' own code, which may raise anything
        raise _unpicklable(functions, error) from error


def _unpicklable(functions: Functions, error: Exception) -> TypeError:
    for role, function in vars(functions).items():
        try:
            dumps(function)
        except Exception as cause:  # noqa: BLE001 - as above
            return TypeError(
                f"cannot send {role} {name_of(function)} to the workers:"
                f" {cause}{_holder(function)}."
                " What to do: make it in setup, and keep it in context.state."
            )
    return TypeError(f"cannot send the functions to the workers: {error}.")


def _holder(function: object) -> str:
    """Which variable of the function it is, if it is one of its own."""
    import inspect

    try:
        variables = inspect.getclosurevars(function)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        return ""
    for name, value in {**variables.nonlocals, **variables.globals}.items():
        try:
            dumps(value)
        except Exception:  # noqa: BLE001 - as above
            return f" (its variable {name} holds {type(value).__name__})"
    return ""
