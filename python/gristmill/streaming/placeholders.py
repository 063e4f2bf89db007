"""`${name}` in the value of a property, as Hadoop's Configuration puts something in its place.

    ${my.property}       a property's value
    ${user.name}         what Java says of the user and the machine: it goes before properties
    ${env.HOME}          a variable of the environment; ${env.X:-a} and ${env.X-a} have a default

One after another, the first first, until none is left. One that stands for nothing stays as it is,
and so does all behind it.
"""

import getpass
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

__all__ = ["DepthError", "substituted"]

_ROUNDS_MAX = 20
_PLACEHOLDER = re.compile(r"\$\{([^}$ ]+)\}")
_SYSTEM: dict[str, Callable[[], str]] = {
    "user.name": getpass.getuser,
    "user.home": lambda: str(Path.home()),
    "user.dir": os.getcwd,
    "java.io.tmpdir": tempfile.gettempdir,
    "file.separator": lambda: os.sep,
    "path.separator": lambda: os.pathsep,
    "line.separator": lambda: os.linesep,
}


class DepthError(ValueError):
    """Placeholders go on after twenty were replaced."""


def substituted(text: str, property_of: Callable[[str], str | None]) -> str:
    """Return `text` with what its placeholders stand for.

    Raises:
        DepthError: Twenty were replaced, as where they stand for each other; Hadoop takes 19.

    Example:
        >>> substituted("a-${b}-${c}", {"b": "1${d}", "d": "2"}.get)
        'a-12-${c}'
    """
    made = text
    for _ in range(_ROUNDS_MAX):
        found = _PLACEHOLDER.search(made)
        value = _value(found[1], property_of) if found else None
        if found is None or value is None:
            return made
        if found[0] in value:
            return text  # it stands for itself
        made = made[: found.start()] + value + made[found.end() :]
    raise DepthError(
        f"`{text}` has {_ROUNDS_MAX} placeholders or more, or they stand for each other;"
        f" Hadoop takes {_ROUNDS_MAX - 1}"
    )


def _value(name: str, property_of: Callable[[str], str | None]) -> str | None:
    if name.startswith("env.") and len(name) > len("env."):
        found = _variable(name.removeprefix("env."))
    else:
        system = _SYSTEM.get(name)
        found = system() if system else None
    return property_of(name) if found is None else found


def _variable(text: str) -> str | None:
    mark = re.search(":?-", text)
    if mark is None:
        return os.environ.get(text)
    value, default = os.environ.get(text[: mark.start()]), text[mark.end() :]
    return default if value is None or (mark[0] == ":-" and not value) else value
