"""The extra that analysis needs, and what is said where it is missing."""

from importlib.util import find_spec

from gristmill.errors import ours

__all__ = ["require"]


def require(*modules: str) -> None:
    """Check that modules are installed, without importing them.

    Raises:
        ModuleNotFoundError: One is missing; the text says how to get it.

    >>> require("json")
    """
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        text = (
            f"cannot fit or draw: {' and '.join(missing)} {are} not installed. What to do:"
            ' pip install "gristmill[analysis]".'
        )
        raise ours(ModuleNotFoundError(text, name=missing[0]), "not_found")
