"""Modules that have moved: pickles of older programs name them as they were."""

import pickle
from importlib import import_module

import pytest

import gristmill.mapreduce
from gristmill.mapreduce import _MOVED
from gristmill.mapreduce.formats.text import Text


@pytest.mark.parametrize("name", [name for names in _MOVED.values() for name in names.split()])
def test_a_module_is_found_by_its_old_name(name: str) -> None:
    old = import_module(f"gristmill.mapreduce.{name}")
    assert old is import_module(old.__name__)
    assert old.__spec__ is not None
    assert old.__spec__.name == old.__name__ != f"gristmill.mapreduce.{name}"


def test_old_pickles_are_of_the_new_classes() -> None:
    assert pickle.loads(b"cgristmill.mapreduce.text\nText\n.") is Text
    bad = pickle.loads(b"cgristmill.mapreduce.formats\nBadRecord\n.")
    assert bad.__module__ == "gristmill.mapreduce.formats.format"


def test_other_names_are_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match="nonsense"):
        import_module("gristmill.mapreduce.nonsense")
    assert not hasattr(gristmill.mapreduce, "nonsense")
