"""The code that a failed record is tried with: that of the user's file as it is now.

    gristmill run job.py    the file is loaded again, as it was for the job
    python job.py           it is not run again, which would begin its jobs: functions get the code
                            that it has for them now; imports, constants, and new functions too

A file that is gone, a notebook, or a function that is not found anew: then what the job was given
is used, and that is said. Modules that the file imports are imported anew in any case.
"""

import ast
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any, cast

from gristmill.mapreduce.definition import Definition, Functions, pickled
from gristmill.mapreduce.source import Source
from gristmill.mapreduce.submit.loading import load_job
from gristmill.mapreduce.submit.preparing import bare, functions_of, source_of
from gristmill.mapreduce.submit.streams import streams_of
from gristmill.names import show_path

__all__ = ["patched"]

_KEPT = "the code is as the job had it"


def patched(definition: Definition) -> tuple[Definition, Functions, str]:
    """Return a job and its functions with the code of today, and a sentence on which code that is.

    Raises:
        BaseException: What the user's file raises while it is loaded.
    """
    source = definition.source
    if source is None:
        return definition, definition.functions(), f"{_KEPT}: no file has it"
    path = Path(source.path)
    shown = show_path(source.path)
    try:
        text = path.read_bytes()
    except OSError:
        return definition, definition.functions(), f"{_KEPT}: {shown} is gone"
    if source.sha256 == hashlib.sha256(text).hexdigest():
        told = f"the code is that of {shown}, unchanged, and of its modules as they are now"
        return definition, definition.functions(), told
    told = f"the code is that of {shown} as it is now"
    if source.name is not None:
        definition = _loaded_again(definition, source)
        return definition, definition.functions(), told
    functions = definition.functions()
    left = _with_code_of(functions, path, text)
    but = f", but of {', '.join(left)}, which {_KEPT.removeprefix('the code ')}" if left else ""
    return definition, functions, told + but


def _loaded_again(definition: Definition, source: Source) -> Definition:
    """The job that the file defines now: its functions and formats; the splits stay."""
    assert source.name is not None
    job = load_job(
        Path(source.path),
        name=source.name,
        settings=source.settings,
        inputs=source.inputs,
        output=source.output,
    ).chain()[source.number]
    first = source.number == 0 and not streams_of(source_of(job))
    return replace(
        definition,
        input=bare(source_of(job)) if first else definition.input,
        output=job.output or definition.output,
        outputs=dict(job.outputs),
        payload=pickled(functions_of(job)),
    )


# --- scripts ---


def _with_code_of(functions: Functions, path: Path, text: bytes) -> list[str]:
    """Give functions the code that a script has for them now; returns the names of the others."""
    codes = _codes(compile(text, str(path), "exec", dont_inherit=True))
    left: list[str] = []
    scopes: dict[int, dict[str, Any]] = {}
    for function in _functions(vars(functions).values(), path):
        scopes[id(function.__globals__)] = function.__globals__
        found = codes.get(function.__code__.co_qualname, [])
        if len(found) == 1 and found[0].co_freevars == function.__code__.co_freevars:
            function.__code__ = found[0]
        else:
            left.append(function.__qualname__)
    for scope in scopes.values():
        _define(scope, ast.parse(text), path)
    return sorted(set(left))


def _codes(module: CodeType) -> dict[str, list[CodeType]]:
    """All code within a module, by the names of functions; lambdas may share one."""
    found: dict[str, list[CodeType]] = {}
    inside = [module]
    while inside:
        for constant in inside.pop().co_consts:
            if isinstance(constant, CodeType):
                found.setdefault(constant.co_qualname, []).append(constant)
                inside.append(constant)
    return found


def _functions(given: Iterable[Any], path: Path) -> Iterator[FunctionType]:
    """The functions of a script among some values, and what these lead to."""
    seen: set[int] = set()
    rest = list(given)
    while rest:
        value = rest.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if not isinstance(value, FunctionType):
            rest += _held(value)
        elif _is_of(value.__code__.co_filename, path):
            yield value
            rest += [*value.__globals__.values(), *(value.__defaults__ or ())]
            rest += _closed_over(value)


def _held(value: Any) -> list[Any]:  # noqa: ANN401 - any value
    """What may be functions in something else than a function."""
    match value:
        case MethodType():
            return [value.__func__, value.__self__]
        case partial():
            whole = cast("partial[Any]", value)
            return [whole.func, *whole.args, *whole.keywords.values()]
        case staticmethod() | classmethod():
            return [cast("staticmethod[..., Any]", value).__func__]
        case property():
            return [value.fget, value.fset]
        case type(__module__="__main__"):
            return list(vars(value).values())
        case _:  # perhaps an object of a class of the script
            return [type(value)] if type(value).__module__ == "__main__" else []


def _closed_over(function: FunctionType) -> list[Any]:
    found: list[Any] = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # an empty one
            found.append(cell.cell_contents)
    return found


def _is_of(filename: str, path: Path) -> bool:
    return os.path.realpath(filename) == os.path.realpath(path)


def _define(scope: dict[str, Any], module: ast.Module, path: Path) -> None:
    """Add what a script defines now: imports, constants, and functions that it did not have."""
    for statement in module.body:
        match statement:
            case ast.Import() | ast.ImportFrom():
                pass
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name in scope:
                    continue
            case ast.ClassDef(name=name):
                if name in scope:
                    continue
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                if not _is_constant(value):
                    continue
            case _:
                continue
        with suppress(Exception):  # where it is needed, its use says that it is not there
            exec(compile(ast.Module([statement], []), str(path), "exec"), scope)  # noqa: S102


def _is_constant(value: ast.expr) -> bool:
    try:
        ast.literal_eval(value)
    except ValueError:
        return False
    return True
