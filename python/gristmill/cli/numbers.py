"""What reads the numbers of options; an error quotes the value, and says which ones are taken.

5             ──▶ 5
x, 1_0, -1    ──▶ 'x' is not a whole number from 0 on
"""

import math
import re
from collections.abc import Callable

import click

__all__ = ["share", "whole_number"]

_WHOLE = re.compile(r"\s*[+-]?[0-9]+")
"""As the C library reads a number: Python takes more, such as `1_0`."""

_SHOWN = 100
"""The most characters of a wrong value that are told."""


def whole_number(least: int | None = 0, most: int | None = None) -> Callable[[str | int], int]:
    """Return what reads a whole number from `least` to `most`: the type of an option.

    Example:
        >>> whole_number(1, 8)(" +7")
        7
        >>> whole_number(1, 8)("9")
        Traceback (most recent call last):
        click.exceptions.BadParameter: '9' is not a whole number from 1 to 8
    """

    def converted(value: str | int) -> int:
        number = _read(str(value))
        if (
            number is None
            or (least is not None and number < least)
            or (most is not None and number > most)
        ):
            raise _wrong(value, f"a whole number{_bounds(least, most)}")
        return number

    return converted


def share(least: float, most: float) -> Callable[[str | float], float]:
    """Return what reads a number from `least` to `most`: the type of an option.

    Example:
        >>> share(0.5, 0.999)("0.9")
        0.9
        >>> share(0.5, 0.999)("0.9_9")
        Traceback (most recent call last):
        click.exceptions.BadParameter: '0.9_9' is not a number from 0.5 to 0.999
    """

    def converted(value: str | float) -> float:
        try:
            number = math.nan if "_" in str(value) else float(value)
        except ValueError:
            number = math.nan
        if not least <= number <= most:
            raise _wrong(value, f"a number from {least} to {most}")
        return number

    return converted


def _wrong(value: str | float, wanted: str) -> click.BadParameter:
    return click.BadParameter(f"{str(value)[:_SHOWN]!r} is not {wanted}")


def _bounds(least: int | None, most: int | None) -> str:
    if least is None:
        return "" if most is None else f" up to {most}"
    return f" from {least} on" if most is None else f" from {least} to {most}"


def _read(text: str) -> int | None:
    try:
        return int(text) if _WHOLE.fullmatch(text) else None
    except ValueError:  # so many digits that Python does not read them
        return None
