"""Keys of types beside text, bytes and numbers: dates, datetimes, Decimals, and descending ones.

    a key ─parts_of─▶ (kind, content) ─▶ the engine's encoding ─▶ decimal_of

Plain dates and datetimes do not come here (`crates/python/src/work/held.rs`).

Equal keys are one key: a Decimal comes back without trailing zeros, a datetime with a time zone in
UTC. What cannot be compared is not mixed: dates, datetimes with a time zone, and those without one
are sorted type by type, and a job whose keys mix them says so.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, cast

__all__ = ["Desc", "decimal_of", "desc", "parts_of", "without_order"]

_YEAR_1 = datetime(1, 1, 1)
_YEAR_1_UTC = _YEAR_1.replace(tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_DATE, _NAIVE, _AWARE, _DECIMAL, _DESC = b"dnaxr"


@dataclass(frozen=True, slots=True)
class Desc:
    """A key, or what values are sorted by, in descending order; made by `desc`."""

    key: Any
    """What it was made of."""

    def __repr__(self) -> str:
        return f"gm.desc({self.key!r})"

    def __str__(self) -> str:
        return str(self.key)  # in the text that a map alone writes


def desc(key: Any) -> Any:  # noqa: ANN401 - any key
    """Sort by a key in descending order: as a key of its own, or within a tuple.

    The reduction, the functions of the job and the output get the key as it was.

    Args:
        key: Of any type that keys have.

    Example:
        >>> import tempfile, gristmill as gm
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     job = gm.Job(
        ...         gm.items([("a", 1), ("b", 3), ("c", 2)]),
        ...         map=lambda pair: [(gm.desc(pair[1]), pair[0])],
        ...         reduce=gm.first(),
        ...         output=gm.kv(f"{folder}/out"),
        ...     )
        ...     list(job.run(workers=1))
        [(3, 'b'), (2, 'c'), (1, 'a')]
    """
    return key.key if isinstance(key, Desc) else Desc(key)


def without_order(value: Any) -> Any:  # noqa: ANN401 - any value
    """Return a value without what `desc` says of its parts, as outputs of other libraries have it.

    Example:
        >>> without_order({"k": (Desc(1), [Desc("a")])})
        {'k': (1, ['a'])}
    """
    match value:
        case Desc():
            return without_order(value.key)
        case dict():
            pairs = cast("dict[Any, Any]", value).items()
            return {without_order(name): without_order(part) for name, part in pairs}
        case list():
            return [without_order(part) for part in cast("list[Any]", value)]
        case tuple() if type(cast("object", value)) is tuple:
            return tuple(without_order(part) for part in cast("tuple[Any, ...]", value))
        case _:
            return value


def parts_of(key: object) -> tuple[int, Any] | None:
    r"""Return what a key is made of, for the engine; `None` where it is of no type of this module.

    Raises:
        ValueError: It is of such a type, and has no place in the order of its type.

    Example:
        >>> parts_of(date(1, 1, 3)), parts_of(Decimal("-1.50")), parts_of("text")
        ((100, 3), (120, (True, b'\x01\x05\x00', -2)), None)
    """
    if isinstance(key, datetime):
        return _of_datetime(key)
    if isinstance(key, date):
        return _DATE, key.toordinal()
    if isinstance(key, Decimal):
        sign, digits, exponent = key.as_tuple()
        return _DECIMAL, (sign == 1, bytes(digits), exponent)
    if isinstance(key, Desc):
        return _DESC, key.key
    return None


def _of_datetime(key: datetime) -> tuple[int, int]:
    if getattr(key, "nanosecond", 0):  # of a pandas.Timestamp; that of NaT is not a number
        raise ValueError(
            f"{key!r} as a key has nanoseconds, or is not a time: keys have microseconds."
            " What to do: give key.floor('us'), or its value as int."
        )
    if key.utcoffset() is None:
        return _NAIVE, (key.replace(tzinfo=None) - _YEAR_1) // _MICROSECOND
    return _AWARE, (key - _YEAR_1_UTC) // _MICROSECOND


def decimal_of(negative: bool, digits: bytes, exponent: Any) -> Decimal:  # noqa: ANN401
    """Return a Decimal without an exponent above zero, where it is a number.

    Example:
        >>> decimal_of(False, bytes([1, 2]), 1), decimal_of(True, b"", "F")
        (Decimal('120'), Decimal('-Infinity'))
    """
    if isinstance(exponent, int) and exponent > 0:
        digits, exponent = digits + bytes(exponent), 0
    return Decimal((int(negative), tuple(digits), exponent))
