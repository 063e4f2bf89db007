"""Libraries that only some jobs need: imported when they are, and missed in one sentence.

The extras `arrow`, `pandas` and `polars` bring them.
"""

from importlib import import_module
from typing import Any

from gristmill.errors import ours
from gristmill.installing import install_extra

__all__ = ["pandas", "polars", "pyarrow"]


def pyarrow(module: str = "") -> Any:  # noqa: ANN401 - a module, whose stubs are partial
    """Return pyarrow, or the module of it by that name.

    Raises:
        ImportError: It is not installed; says how to install it.

    Example:
        >>> pyarrow("compute").__name__
        'pyarrow.compute'
    """
    return _library("pyarrow", module, "arrow")


def pandas() -> Any:  # noqa: ANN401 - a module
    """Return pandas.

    Raises:
        ImportError: It is not installed; says how to install it.
    """
    return _library("pandas", "", "pandas")


def polars() -> Any:  # noqa: ANN401 - a module
    """Return polars.

    Raises:
        ImportError: It is not installed; says how to install it.
    """
    return _library("polars", "", "polars")


def _library(name: str, module: str, extra: str) -> Any:  # noqa: ANN401 - a module
    try:
        return import_module(f"{name}.{module}" if module else name)
    except ImportError as error:
        advice = install_extra(extra)
        message = f"cannot use {name}: it is not installed. What to do: {advice}."
        raise ours(ImportError(message), "bad_option") from error
