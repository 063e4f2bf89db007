"""A value, or what an exception says, shortened and on one line, for people."""

import reprlib
from typing import Any

from gristmill.mapreduce.kinds import is_batch

__all__ = ["shown", "text_of"]

_RECORD_CHARACTERS = 200
_MESSAGE_CHARACTERS = 1000

_shortened = reprlib.Repr()
_shortened.maxstring = _shortened.maxother = _RECORD_CHARACTERS
_shortened.maxlist = _shortened.maxtuple = _shortened.maxdict = 20
_shortened.maxlong = 60


def shown(value: Any) -> str:  # noqa: ANN401 - any value
    """Return a value shortened and on one line, as a person would recognise it.

    Example:
        >>> len(shown("x" * 10_000)) < 300
        True
    """
    if is_batch(value):
        return f"a batch of {value.num_rows} rows"
    try:
        return " ".join(_shortened.repr(value).splitlines())
    except Exception as error:  # noqa: BLE001 - the user's own __repr__
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"


def text_of(error: BaseException) -> str:
    r"""Return what an exception says, on one line, and not all of it if that is much.

    Example:
        >>> text_of(ValueError("a\nb")), len(text_of(ValueError("x" * 10**6))) < 1100
        ('a b', True)
    """
    try:
        text = str(error)
    except Exception as another:  # noqa: BLE001 - the user's own __str__
        return f"its str raises {type(another).__name__}"
    if len(text) > _MESSAGE_CHARACTERS:  # how it began and how it ended say most
        text = f"{text[: _MESSAGE_CHARACTERS // 3]} [...] {text[-_MESSAGE_CHARACTERS // 3 * 2 :]}"
    return "".join(map(_printable, " ".join(text.split())))


def _printable(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]
