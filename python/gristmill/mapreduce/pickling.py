"""cloudpickle, typed; imported where something is pickled, since that takes 20 ms."""

from types import ModuleType
from typing import Any

from gristmill import _core
from gristmill.mapreduce.kinds import is_batch, is_pair

__all__ = ["as_it_is", "by_value", "dumps", "loads"]

_UNCHANGING = frozenset({str, bytes, int, float, bool, type(None)})


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


def as_it_is(found: object) -> object:
    """Return what user code has yielded, as it is now: it may change the same list or dict later.

    Example:
        >>> seen = [1]
        >>> kept = as_it_is(("a", seen))
        >>> seen.append(2)
        >>> kept
        ('a', [1])
    """
    if is_pair(found):
        value = found[1]
        return found if type(value) in _UNCHANGING else (found[0], as_it_is(value))
    if type(found) in _UNCHANGING or is_batch(found):
        return found
    try:
        return _core.decode(_core.encode(found))
    except Exception:  # noqa: BLE001 - its own code; whoever takes it will say what it is
        return found
