"""Which command lines name a dashboard: those go to the head of its cluster.

--on http://HOST:8265            the address itself
--on ray, RAY_ADDRESS=http://…   the same: as Ray's own commands have it
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["Submitted", "submitted"]

_SCHEMES = ("http://", "https://")
_ON = ("--on", "-on")


class Submitted(NamedTuple):
    """A command line that names a dashboard."""

    address: str
    words: list[str]
    """The command line, with `--on ray` in the place of the address."""
    bare: list[str]
    """The command line without the option."""


def submitted(words: Sequence[str], environment: Mapping[str, str]) -> Submitted | None:
    """Return where a command line goes, if it names a dashboard.

    Example:
        >>> found = submitted(["sort", "a", "--on", "http://head:8265"], {})
        >>> found.address, found.words, found.bare
        ('http://head:8265', ['sort', 'a', '--on', 'ray'], ['sort', 'a'])
        >>> submitted(["sort", "--on=ray"], {"RAY_ADDRESS": "http://head:8265/"}).address
        'http://head:8265'
        >>> submitted(["sort", "--on=ray"], {"RAY_ADDRESS": "head:6379"}) is None
        True
    """
    of_environment = environment.get("RAY_ADDRESS", "")
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name not in _ON or not (equals or place + 1 < len(words)):
            continue
        value, size = (value, 1) if equals else (words[place + 1], 2)
        address = of_environment if value == "ray" else value
        if address.startswith(_SCHEMES):
            before, after = list(words[:place]), list(words[place + size :])
            on_ray = [*before, name, "ray", *after]
            return Submitted(address.rstrip("/"), on_ray, [*before, *after])
    return None
