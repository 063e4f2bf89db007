"""The extra that analysis needs, and what is said where it is missing."""

import logging
from importlib.util import find_spec

from gristmill.errors import ours
from gristmill.installing import install_extra

__all__ = ["quieten", "require"]


def require(*modules: str) -> None:
    """Check that modules are installed, without importing them; matplotlib is made quiet.

    Raises:
        ModuleNotFoundError: One is missing; the text says how to get it.

    >>> require("json")
    """
    if "matplotlib" in modules:
        quieten()
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        text = (
            f"cannot fit or draw: {' and '.join(missing)} {are} not installed."
            f" What to do: {install_extra('analysis')}."
        )
        raise ours(ModuleNotFoundError(text, name=missing[0]), "not_found")


def quieten() -> None:
    """Keep matplotlib's notes on its caches off stderr, before it is imported for the first time.

    Who has set a level of its log keeps it.

    >>> quieten()
    """
    log = logging.getLogger("matplotlib")
    if log.level == logging.NOTSET:
        log.setLevel(logging.ERROR)
