"""cloudpickle, typed; imported where something is pickled, since that takes 20 ms."""

from types import ModuleType
from typing import Any

__all__ = ["by_value", "dumps", "loads"]


def dumps(value: object) -> bytes:
    """Return a value as bytes; functions of scripts and notebooks too.

    Raises:
        Exception: It cannot be pickled; whatever its own code raises.

    Example:
        >>> loads(dumps(lambda: 3))()
        3
    """
    import cloudpickle  # pyright: ignore[reportMissingTypeStubs] - it has none

    return cloudpickle.dumps(value)  # pyright: ignore[reportUnknownMemberType]


def loads(data: bytes) -> Any:  # noqa: ANN401 - whatever was pickled
    """Return the value of bytes that this program has made.

    Raises:
        Exception: It cannot be loaded here; whatever its own code raises.
    """
    import pickle

    return pickle.loads(data)  # noqa: S301 - our own


def by_value(module: ModuleType) -> None:
    """Let the functions of a module go to the workers as they are, for they cannot import it."""
    import cloudpickle  # pyright: ignore[reportMissingTypeStubs] - it has none

    cloudpickle.register_pickle_by_value(module)  # pyright: ignore[reportUnknownMemberType]
