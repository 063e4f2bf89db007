"""Whether a function wants the context, told without a signature where that is enough."""

# pyright: reportUnknownLambdaType=false

import functools
import inspect
from typing import Any

import pytest

import gristmill as gm
from gristmill.mapreduce.functions import takes_context


def handed_on(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return wrapper


def asks(_record: str, context: gm.Context) -> str:
    return context.kind


def told(record: str) -> str:
    return record


told.__dict__["__signature__"] = inspect.signature(asks)


def local(record: str) -> str:
    context = record
    return context  # noqa: RET504 - a variable of that name


FUNCTIONS: dict[str, tuple[Any, bool]] = {
    "none": (lambda: ..., False),
    "a record": (lambda record: ..., False),
    "a context": (lambda record, context: ..., True),
    "a default": (lambda record, context=None: ..., True),
    "by name alone": (lambda record, *, context: ..., True),
    "by place alone": (lambda context, /: ..., True),
    "several": (lambda *context: ..., True),
    "several others": (lambda *records: ..., False),
    "all names": (lambda record, **context: ..., False),
    "a variable": (local, False),
    "a signature of its own": (told, True),
    "wrapped": (handed_on(lambda record, context: ...), True),
    "wrapped without": (handed_on(lambda record: ...), False),
    "a part": (functools.partial(lambda record, context: ..., 1), True),
    "a builtin": (len, False),
    "a class": (dict, False),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_context_is_asked_for_by_its_name(name: str) -> None:
    function, wants = FUNCTIONS[name]
    assert takes_context(function) is wants


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_signature_would_say_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, wants = FUNCTIONS[name]

    def unknown(_function: object) -> None: ...

    monkeypatch.setattr("gristmill.mapreduce.functions._plain_parameters", unknown)
    assert takes_context(function) is wants
