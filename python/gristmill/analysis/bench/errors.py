"""Why a benchmark could not be run, read or compared: one paragraph for people."""

import logging
from importlib import import_module
from types import ModuleType

from gristmill.installing import install_extra

__all__ = ["BenchError", "WrongOptionError", "library"]


class BenchError(ValueError):
    """What went wrong, where, and what to do."""


class WrongOptionError(BenchError):
    """The command line is what is wrong."""


def library(name: str) -> ModuleType:
    """Return a module of the extra `analysis`.

    Raises:
        BenchError: It is not installed; says how to install it.

    Example:
        >>> library("json").__name__
        'json'
    """
    if name == "matplotlib":  # else it tells of its caches on stderr
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        return import_module(name)
    except ImportError as error:
        whole = name.partition(".")[0]
        raise BenchError(
            f"cannot use {whole}: it is not installed. What to do: {install_extra('analysis')}."
        ) from error
