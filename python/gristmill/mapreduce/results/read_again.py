"""Values of a key that a function reads twice: it gets none the second time, which is told.

    total, count = sum(values), sum(1 for _ in values)      count is 0
    while chunk := list(islice(values, 100)): ...           goes on where it was: nothing to tell

A place of the code that asks for an iterator again after the values have ended is a second reading,
unless it is a call that a loop comes back to, or the function reads piece by piece elsewhere. The
first keys of a task are watched: each reading of them costs 1 µs more, and no value does.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from opcode import opmap
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from gristmill.mapreduce.functions import name_of

if TYPE_CHECKING:  # a worker needs none, and it takes 5 ms
    from gristmill.report import JobReport

__all__ = ["Watch", "said_if_read_again"]

_GROUP = "Values that were read again after their end"
"""The counters' group by which a task tells it."""
_WATCHED = 1_000
"""Keys of a task: a function that reads twice does so at nearly all."""
_FRAMES = 30
_FOR = opmap["GET_ITER"]

_Place = tuple[tuple[CodeType, int], ...]


class Watch:
    """Hands values to a function of a task, and sees whether it reads them again.

    Example:
        >>> def mean(key, values):
        ...     return sum(values) / max(1, sum(1 for _ in values))
        >>> watch = Watch("reduce", mean)
        >>> mean("a", watch.over(iter([1, 2])))
        3.0
        >>> [told.partition(" (")[0] for told in watch.found()[_GROUP]]
        ['reduce mean']
    """

    def __init__(self, role: str, function: Callable[..., Any]) -> None:
        self._what = f"{role} {name_of(function)}"
        self._left = _WATCHED
        self._goes_on = False
        self._again: defaultdict[str, int] = defaultdict(int)

    def over(self, values: Iterator[Any]) -> Iterator[Any]:
        """Return values to hand out in the place of these."""
        if not self._left:
            return values
        self._left -= 1
        return Values(values, self)

    def goes_on(self) -> None:
        """Note that the function reads values piece by piece."""
        self._goes_on = True

    def note(self, frame: FrameType) -> None:
        """Note that the function has read values again."""
        place = f"{self._what} ({frame.f_code.co_filename}, line {frame.f_lineno})"
        self._again[place] += 1

    def found(self) -> dict[str, defaultdict[str, int]]:
        """Return what was seen, as counters."""
        return {_GROUP: self._again} if self._again and not self._goes_on else {}


class Values:
    """The values of a key, which says when they are read again."""

    __slots__ = ("_ended", "_place", "_values", "_watch")

    def __init__(self, values: Iterator[Any], watch: Watch) -> None:
        self._ended = False
        self._values = values if hasattr(values, "read_again") else self._told(values)
        self._watch = watch
        self._place: _Place | None = None

    def __iter__(self) -> Iterator[Any]:
        iter(self._values)  # theirs notes it, too
        inner = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - as inspect does
        place, frame = _from(inner)
        if self._place is None:
            self._place = place
        elif not self.read_again:
            self._watch.goes_on()
        elif not _same(place, self._place) or inner.f_code.co_code[inner.f_lasti] == _FOR:
            self._watch.note(frame)
        return self._values

    def __next__(self) -> Any:  # noqa: ANN401 - the user's
        return next(self._values)

    @property
    def read_again(self) -> bool:
        """Whether somebody began to read them once more after their end."""
        return self._ended or bool(getattr(self._values, "read_again", False))

    def _told(self, values: Iterable[Any]) -> Generator[Any]:
        yield from values
        self._ended = True


def _from(inner: FrameType) -> tuple[_Place, FrameType]:
    """Which calls lead to a frame, and the user's function that is the first of them."""
    place = [(inner.f_code, inner.f_lasti)]
    outermost, frame = inner, inner.f_back
    while frame is not None and len(place) < _FRAMES:
        if str(frame.f_globals.get("__name__")).startswith("gristmill."):
            break
        place.append((frame.f_code, frame.f_lasti))
        outermost, frame = frame, frame.f_back
    return tuple(place), outermost


def _same(one: _Place, other: _Place) -> bool:
    """Whether they are one place of the source: `while` makes its condition twice."""
    return len(one) == len(other) and all(
        of_one is of_other and (at == to or _in_source(of_one, at) == _in_source(of_other, to))
        for (of_one, at), (of_other, to) in zip(one, other, strict=True)
    )


def _in_source(code: CodeType, at: int) -> object:
    return next(islice(code.co_positions(), at // 2, None), at)


def said_if_read_again(report: "JobReport") -> "JobReport":
    """Return the report of a job, with a warning for each place that read values again."""
    counted = dict(report.user_counters)
    places = counted.pop(_GROUP, {})
    said = [
        f"{place} reads the values of a key again after their end, and gets none."
        " What to do: make a list of them first: values = list(values)."
        for place in places
    ]
    if not said:
        return report
    return replace(report, user_counters=counted, warnings=(*report.warnings, *said))
