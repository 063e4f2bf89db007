"""User functions as the tasks call them: with or without a context, generator or not.

    def f(record)                 ─▶ f(record)
    def f(record, context)        ─▶ f(record, context=the task's)        told by the name

The tasks iterate over what a function returns. A generator needs no check. Any other result is
checked first: a tuple or a str in place of a list of records would be taken apart without an error.
"""

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from types import FunctionType
from typing import Any

from gristmill.mapreduce.context import Context
from gristmill.mapreduce.kinds import is_batch

__all__ = [
    "PAIRS",
    "ContractError",
    "bound",
    "can_be_called",
    "name_of",
    "place_of",
    "records_of",
    "signature_of",
    "taken",
    "takes_context",
]

PAIRS = "pairs of a key and a value"
"""What a map must return if the job reduces."""

_SINGLE = (str, bytes, bytearray, dict, tuple)
"""Types that can be iterated over, but are one value to a user."""


class ContractError(TypeError):
    """A user function returned something else than the job expects."""

    gristmill_kind = "user_code"

    def __init__(self, what: str, advice: str = "") -> None:
        super().__init__(f"{what}. What to do: {advice}." if advice else what)
        self.what = what
        """What is wrong with it."""
        self.advice = advice
        """What to do about it, if there is something."""


def name_of(function: object) -> str:
    """Return the name by which a user knows a function.

    Example:
        >>> name_of(len), name_of(partial(len))
        ('len', 'len')
    """
    while isinstance(function, partial):
        function = function.func  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    name = getattr(function, "__qualname__", None) or type(function).__name__  # pyright: ignore[reportUnknownArgumentType]
    return str(name).rsplit("<locals>.", 1)[-1]


def place_of(function: object) -> str:
    """Return the file and line of a function, in brackets; `""` if it is not written in Python.

    Example:
        >>> place_of(len), "functions.py, line " in place_of(partial(name_of))
        ('', True)
    """
    while True:
        inner = getattr(function, "func", None) or getattr(function, "__wrapped__", None)
        if inner is None:
            break
        function = inner
    code = getattr(function, "__code__", None)
    return "" if code is None else f" ({code.co_filename}, line {code.co_firstlineno})"


def takes_context(function: Callable[..., Any]) -> bool:
    """Whether a function takes `context`, or wraps one that does and takes keywords.

    Example:
        >>> takes_context(lambda record, context: ...), takes_context(len)
        (True, False)
    """
    names = _plain_parameters(function)
    if names is not None:
        return "context" in names
    own = signature_of(function)
    if own is None:
        return False
    if all(one.kind is not one.VAR_KEYWORD for one in own.parameters.values()):
        return "context" in own.parameters
    wrapped = signature_of(inspect.unwrap(function))
    return wrapped is not None and any(
        "context" in taken and taken["context"].kind is not inspect.Parameter.VAR_KEYWORD
        for taken in (own.parameters, wrapped.parameters)
    )


def _plain_parameters(function: Callable[..., Any]) -> tuple[str, ...] | None:
    """The names of the parameters, without a signature; None if only a signature tells them all.

    Each task asks. A signature takes 20 µs, as long as to load the functions of a small job.
    """
    if type(function) is not FunctionType or function.__dict__:  # where decorators put others
        return None
    code = function.__code__
    if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return None
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    """Return the signature of a function itself, not of one that it wraps; None if unknown.

    Example:
        >>> str(signature_of(lambda record: ...)), signature_of(int.from_bytes) is None
        ('(record)', False)
    """
    try:
        return inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError, NameError):  # some builtins do not say; nor do some annotations
        return None


def can_be_called(signature: inspect.Signature, count: int, *, with_context: bool = False) -> bool:
    """Whether a function takes `count` arguments, and a `context` if it gets one.

    Example:
        >>> can_be_called(inspect.signature(lambda key, value: ...), 2)
        True
    """
    named = {"context": None} if with_context else {}
    try:
        signature.bind(*[None] * count, **named)
    except TypeError:
        return False
    return True


def taken(signature: inspect.Signature) -> str:
    """Return the names of the parameters.

    Example:
        >>> taken(inspect.signature(lambda key, value: ...))
        '(key, value)'
    """
    return f"({', '.join(signature.parameters)})"


def bound(function: Callable[..., Any], context: Context) -> Callable[..., Any]:
    """Return a function as the tasks call it: with its `context` bound, if it takes one."""
    return partial(function, context=context) if takes_context(function) else function


def records_of(
    function: Callable[..., Any], role: str, expected: str
) -> Callable[..., Iterable[Any]]:
    """Return a function that checks its result: records to iterate over, or a `ContractError`.

    Args:
        function: The user's, with its context.
        role: The option of the job that it is, such as `map`.
        expected: What it should return, in words.

    Example:
        >>> records_of(lambda line: None, "map", PAIRS)("a")
        ()
        >>> try:
        ...     records_of(lambda line: (line, 1), "map", PAIRS)("a")
        ... except ContractError as error:
        ...     print(error.what)
        map <lambda> returned one pair, ('a', 1)
    """
    if inspect.isgeneratorfunction(function):
        return function

    def checked(*arguments: Any) -> Iterable[Any]:  # noqa: ANN401 - the user's
        found = function(*arguments)
        if _is_nothing(found):
            return ()
        if is_batch(found):
            return (found,)
        if role == "map" and _is_pair_of(found, expected):
            raise ContractError(
                f"map {name_of(function)} returned one pair, {_short(found)}",
                f"return [{_short(found)}], or yield it",
            )
        if isinstance(found, _SINGLE) or not isinstance(found, Iterable):
            kind = type(found).__name__  # pyright: ignore[reportUnknownArgumentType]
            raise ContractError(
                f"{role} {name_of(function)} returned {_short(found)}, {_with_article(kind)}:"  # pyright: ignore[reportUnknownArgumentType]
                f" {expected} are expected",
                "yield each of them, or return a list",
            )
        return found  # pyright: ignore[reportUnknownVariableType]

    checked.__wrapped__ = function  # pyright: ignore[reportFunctionMemberAccess] - for place_of
    return checked


def _with_article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _is_nothing(found: object) -> bool:
    """Whether there are no records; without `==`, which arrays and frames overload."""
    return found is None or (isinstance(found, tuple) and not found)


def _is_pair_of(found: object, expected: str) -> bool:
    """Whether a map returned one pair, where a list of pairs is expected."""
    return expected == PAIRS and isinstance(found, tuple) and len(found) == 2  # pyright: ignore[reportUnknownArgumentType]


def _short(value: object) -> str:
    import reprlib

    return reprlib.repr(value)
