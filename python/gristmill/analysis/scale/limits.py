"""How large and how small numbers may be: beyond it, their squares are no floating-point numbers.

No machine is near these limits, but a file with a slip of the keyboard is.
"""

import math

__all__ = ["beyond", "longer", "shortened"]

_NUMBER_MIN, _NUMBER_MAX = 1e-50, 1e50
_P_MAX = 1e12
_SHOWN = 40


def beyond(name: str, number: float) -> str | None:
    """Return what is wrong with the size of a positive number, if something is.

    >>> beyond("seconds", 1.5)
    >>> beyond("p", 1e300)
    'p is 1e+300, and cannot be above 1e+12'
    """
    most = _P_MAX if name == "p" else _NUMBER_MAX
    if number > most or math.isinf(number):
        return f"{name} is {number:g}, and cannot be above {most:g}"
    if 0 < number < _NUMBER_MIN:
        return f"{name} is {number:g}, and cannot be below {_NUMBER_MIN:g}"
    return None


def longer(phase_s: float, run_s: float) -> bool:
    """Whether a phase is longer than its run, by more than rounded times are.

    >>> longer(10.05, 10.0), longer(12340.0, 100.0)
    (False, True)
    """
    return phase_s > 1.01 * run_s + 0.01


def shortened(value: object) -> str:
    """Return how a wrong value is shown: whole, if it is short.

    >>> shortened(10**100)
    '1000000000000000000000000000000000000...'
    """
    try:
        shown = repr(value)
    except ValueError:  # Python writes no whole number of more than some thousand digits
        return "a number with thousands of digits"
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 3]}..."
