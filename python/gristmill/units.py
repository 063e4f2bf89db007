"""Amounts as the command line shows them: three digits and a unit, in powers of 1000."""

__all__ = [
    "WORTH_A_RATE_BYTES",
    "show_bytes",
    "show_count",
    "show_cpu",
    "show_ordinal",
    "show_rate",
    "show_seconds",
]

WORTH_A_RATE_BYTES = 100_000_000
"""For fewer bytes, most CPU time is that of starting up: the time per GB is not shown."""

_UNITS = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


def show_bytes(amount: float) -> str:
    """Return an amount of bytes with a unit.

    Example:
        >>> show_bytes(999), show_bytes(5_000_000_000), show_bytes(184_549_376)
        ('999 B', '5.00 GB', '185 MB')
    """
    for unit, factor in _UNITS:
        if amount >= factor:
            return f"{_three_digits(amount / factor)} {unit}"
    return f"{amount:.0f} B"


def show_rate(amount: float, seconds: float) -> str:
    """Return bytes per second with a unit.

    Example:
        >>> show_rate(1_000_000_000, 0.8)
        '1.25 GB/s'
    """
    return f"{show_bytes(amount / max(seconds, 1e-9))}/s"


def show_seconds(seconds: float) -> str:
    """Return seconds with a unit; below 0.1 s, to the millisecond.

    Example:
        >>> show_seconds(0.00123), show_seconds(1.239), show_seconds(72.04)
        ('0.001 s', '1.24 s', '72.0 s')
    """
    return f"{seconds:.3f} s" if seconds < 0.1 else f"{_three_digits(seconds)} s"


def show_cpu(cpu_s: float, work_bytes: int) -> str:
    """Return CPU seconds, and those per GB if there are enough bytes.

    Example:
        >>> show_cpu(3.0, 2_000_000_000), show_cpu(8.934, 171)
        ('3.00 s, 1.50 s/GB', '8.93 s')
    """
    rate = f", {cpu_s / work_bytes * 1e9:.2f} s/GB" if work_bytes >= WORTH_A_RATE_BYTES else ""
    return f"{cpu_s:.2f} s{rate}"


def show_count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural if needed.

    Example:
        >>> show_count(1, "record"), show_count(10_000_000, "record")
        ('1 record', '10,000,000 records')
        >>> show_count(2, "directory"), show_count(2, "key")
        ('2 directories', '2 keys')
    """
    if number == 1:
        return f"1 {noun}"
    ends_in_ies = noun.endswith("y") and noun[-2:-1] not in "aeiou"
    return f"{number:,} {noun[:-1]}ies" if ends_in_ies else f"{number:,} {noun}s"


def _three_digits(number: float) -> str:
    digits = 2 if number < 10 else 1 if number < 100 else 0
    return f"{number:.{digits}f}"


def show_ordinal(number: int) -> str:
    """Return a number as an ordinal.

    Example:
        >>> [show_ordinal(number) for number in (1, 2, 3, 11, 12, 21, 112)]
        ['1st', '2nd', '3rd', '11th', '12th', '21st', '112th']
    """
    last = 0 if number % 100 in (11, 12, 13) else number % 10
    return f"{number:,}{('th', 'st', 'nd', 'rd')[last] if last < 4 else 'th'}"
