"""The examples in the package's docstrings: they run, and give what they say."""

import doctest
import importlib
import pkgutil

import pytest

import gristmill

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(gristmill.__path__, "gristmill.")
    if module.name not in ("gristmill.__main__", "gristmill._core")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0, "see the output above"


def test_the_public_functions_have_examples() -> None:
    finder = doctest.DocTestFinder(recurse=False)
    for function in (gristmill.teragen, gristmill.terasort, gristmill.teravalidate):
        assert any(test.examples for test in finder.find(function)), function
