"""Options as parameters of Python functions: signatures, docstrings, types.

Option ──▶ inspect.Parameter, an item of "Args:"       at runtime: help(), notebooks
       └──▶ `memory: int | str | None`                 in stubs: editors and type checkers
"""

import inspect
import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import TypeVar, cast

from gristmill.options import Option

__all__ = [
    "item",
    "known_options",
    "parameter",
    "refuse_unknown",
    "takes",
    "type_of",
    "typed_dict",
]

_Function = TypeVar("_Function", bound=Callable[..., object])

_TYPES = {
    "flag": "bool",
    "count": "int",
    "bytes": "int | str",
    "rows": "int | str",
    "number": "float | str",
    "path": "StrPath",
    "paths": "StrPath | Iterable[StrPath]",
    "path_list": "StrPath | Iterable[StrPath]",
    "pairs": "Mapping[str, str] | Iterable[str]",
    "text": "str",
    "text_list": "str | Iterable[str]",
    "seconds": "float",
}
"""The types of values, as stubs have them."""

_WIDTH = 96


def parameter(option: Option) -> inspect.Parameter:
    """Return an option as a parameter; `None` leaves its default to the engine."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    if not option.positional:
        kind = inspect.Parameter.KEYWORD_ONLY
    default = {"flag": option.is_on, "choice": option.default}.get(option.kind)
    if not option.default:
        default = inspect.Parameter.empty
    return inspect.Parameter(option.name, kind, default=default)


def item(option: Option, indent: str = "    ") -> str:
    """Return what a docstring says of an option."""
    text = option.help
    if option.default and option.kind != "flag":
        text = f"{text.rstrip('.')}. By default {option.default}."
    return textwrap.fill(
        f"{option.name}: {text}",
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}    ",
    )


def type_of(option: Option) -> str:
    """Return the type of an option's value, as a stub has it."""
    if option.kind == "choice":
        words = ", ".join(f'"{word}"' for word in option.choices)
        return f"Literal[{words}]"
    return _TYPES[option.kind]


def takes(options: Sequence[Option]) -> Callable[[_Function], _Function]:
    """Return a decorator for a function with `**options`: it shows them, one by one.

    In its docstring they take the place of the item `options: ...`.
    """

    def shown(function: _Function) -> _Function:
        signature = inspect.signature(function)
        named = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        signature = signature.replace(parameters=[*named, *map(parameter, options)])
        function.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess] - PEP 362
        function.__doc__ = _with_items(function.__doc__ or "", options)
        return function

    return shown


def _with_items(doc: str, options: Sequence[Option]) -> str:
    lines: list[str] = []
    for line in doc.splitlines():
        if line.strip().startswith("options: "):
            indent = line[: -len(line.lstrip())]
            lines += [item(option, indent) for option in options]
        else:
            lines.append(line)
    return "\n".join(lines)


_ELSEWHERE = {
    "combiner": "combine",
    "inputs": "input",
    "key": "group_by",
    "mapper": "map",
    "num_partitions": "parts",
    "partitioner": "partition_by",
    "partitions": "parts",
    "reducer": "reduce",
    "sep": "delimiter",
}
"""Options of other libraries, and what they are called here."""


_OF_JOB = ("split_max", "split_min", "parts", "skip_bad")
"""Options of `gm.Job` that other functions are given by mistake."""


def refuse_unknown(function: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Refuse options that a function does not have, and name what was meant.

    Raises:
        TypeError: There is one.

    Example:
        >>> try:
        ...     refuse_unknown("gm.Job", ["mapper"], ["map", "reduce"])
        ... except TypeError as error:
        ...     print(str(error).partition(": ")[2])
        gm.Job has no option mapper. What to do: give map, if you mean that.
    """
    from difflib import get_close_matches

    for name in given:
        if name in known:
            continue
        near = [_ELSEWHERE.get(name, "")] if _ELSEWHERE.get(name) in known else []
        near = near or get_close_matches(name, known, 1)
        if name in _OF_JOB:
            advice = f"give {name} to gm.Job, to which it belongs"
        elif near:
            advice = f"give {near[0]}, if you mean that"
        else:
            advice = f"give some of {', '.join(known)}"
        raise TypeError(
            f"cannot read the options: {function} has no option {name}. What to do: {advice}."
        )


def known_options(function: _Function) -> _Function:
    """Return a function of the package that refuses options which it does not have by their names.

    Example:
        >>> @known_options
        ... def tsv(paths=(), *, codec=None): ...
        >>> try:
        ...     tsv("a", codecs="gzip")
        ... except TypeError as error:
        ...     print(str(error).partition(". ")[2])
        What to do: give codec, if you mean that.
    """
    parameters = inspect.signature(function).parameters
    known = tuple(parameters)
    first = known[0]
    most = sum(one.kind is not one.KEYWORD_ONLY for one in parameters.values())

    @wraps(function)
    def called(*arguments: object, **options: object) -> object:
        refuse_unknown(f"gm.{function.__name__}", options, known)
        if len(arguments) > most:
            short = ", ".join(map(repr, arguments[:2]))
            raise TypeError(
                f"cannot read the options: gm.{function.__name__} takes {first} as one argument,"
                " and others by their names. What to do: give a list, such as"
                f" [{short}], for several."
            )
        return function(*arguments, **options)

    return cast("_Function", called)


def typed_dict(name: str, doc: str, options: Iterable[Option]) -> str:
    """Return the class, as Python code, of options that are given by their names.

    Example:
        >>> memory = Option("memory", "bytes", "8G", "Most memory.")
        >>> print(*typed_dict("Given", "Options.", [memory]).splitlines()[3:])
            memory: int | str | None
    """
    fields = "".join(
        f"    {option.name}: {type_of(option)}{'' if option.kind == 'flag' else ' | None'}\n"
        for option in options
    )
    return f'class {name}(TypedDict, total=False):\n    """{doc}"""\n\n{fields}'.rstrip("\n")
