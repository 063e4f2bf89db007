"""What repeated values say: mean with its standard error, median, intervals, ratios.

    values          ──▶ n, mean ± standard error (relative error), median, Student's interval
    two lots        ──▶ ratio of their geometric means, with Welch's interval
    pairs           ──▶ the same of the ratios within pairs, with Student's interval

Times have errors in proportion to their size, so ratios are taken on logarithms. The numbers are
scipy's. Intervals are wide where values are few: they hold with the confidence that they state also
of three runs, where percentiles of resamples do not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Any

from gristmill.analysis.bench.errors import library

__all__ = ["CONFIDENCE", "Interval", "Ratio", "Summary", "ratio", "summary", "three_digits"]

CONFIDENCE = 0.95

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What values say of the mean that they scatter about."""

    n: int
    mean: float
    median: float
    stderr: float | None = None
    """Standard error of the mean; `None` of a single value."""
    interval: Interval | None = None
    """Of the mean, Student's, with `CONFIDENCE`; `None` of a single value."""

    @property
    def relative_percent(self) -> float | None:
        """The standard error in percent of the mean: the relative error."""
        return None if self.stderr is None or not self.mean else 100 * self.stderr / abs(self.mean)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it.

        Example:
            >>> Summary(n=1, mean=2.0, median=2.0).to_json()["mean"]
            2.0
        """
        low, high = self.interval or (None, None)
        return {
            "n": self.n,
            "mean": self.mean,
            "stderr": self.stderr,
            "relative_percent": self.relative_percent,
            "median": self.median,
            "low": low,
            "high": high,
        }


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as much the second of two lots is as the first."""

    value: float
    interval: Interval | None
    """`None` where the values are too few to have errors."""
    paired: bool


def summary(values: Sequence[float]) -> Summary:
    """Return what values say, of which there must be one at least.

    Example:
        >>> found = summary([2.0, 4.0, 6.0])
        >>> found.n, found.mean, found.median, round(found.stderr, 4)
        (3, 4.0, 4.0, 1.1547)
    """
    numpy = library("numpy")
    data = numpy.asarray(values, dtype=float)
    n, mean = len(data), float(data.mean())
    stderr = float(data.std(ddof=1) / sqrt(n)) if n > 1 else None
    return Summary(
        n=n,
        mean=mean,
        median=float(numpy.median(data)),
        stderr=stderr,
        interval=None if stderr is None else _around(mean, stderr, n - 1, CONFIDENCE),
    )


def ratio(
    before: Sequence[float],
    after: Sequence[float],
    *,
    paired: bool,
    confidence: float = CONFIDENCE,
) -> Ratio:
    """Return how many times as much `after` is as `before`, of positive values.

    Args:
        before: One lot.
        after: The other; of pairs, in the same order.
        paired: Whether values at the same place belong together.
        confidence: Of the interval.

    Example:
        >>> found = ratio([1.0, 2.0, 4.0], [2.1, 4.0, 8.0], paired=True)
        >>> round(found.value, 3), [round(end, 3) for end in found.interval]
        (2.033, [1.895, 2.18])
    """
    one, other = [log(value) for value in before], [log(value) for value in after]
    if paired:
        differences = [theirs - ours for ours, theirs in zip(one, other, strict=True)]
        centre, error, freedom = _mean_and_error(differences)
    else:
        (centre_a, error_a, freedom_a), (centre_b, error_b, freedom_b) = map(
            _mean_and_error, (one, other)
        )
        centre, error = centre_b - centre_a, sqrt(error_a**2 + error_b**2)
        freedom = _welch(error_a, freedom_a, error_b, freedom_b)
    if freedom < 1:
        return Ratio(exp(centre), None, paired)
    low, high = _around(centre, error, freedom, confidence)
    return Ratio(exp(centre), (exp(low), exp(high)), paired)


def three_digits(number: float) -> str:
    """Return a number with three digits that count, or all that stand before the point.

    Example:
        >>> three_digits(0.0123456), three_digits(1.1), three_digits(1234.5)
        ('0.0123', '1.10', '1234')
    """
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:#.3g}"


def _mean_and_error(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean, standard error, degrees of freedom."""
    n = len(values)
    mean = sum(values) / n
    if n == 1:
        return mean, 0.0, 0
    variance = sum((value - mean) ** 2 for value in values) / (n - 1)
    return mean, sqrt(variance / n), n - 1


def _welch(error_a: float, freedom_a: float, error_b: float, freedom_b: float) -> float:
    """Degrees of freedom of a difference, by Welch and Satterthwaite; 0 where one lot has none."""
    if min(freedom_a, freedom_b) < 1:
        return 0.0
    whole = (error_a**2 + error_b**2) ** 2
    parts = error_a**4 / freedom_a + error_b**4 / freedom_b
    return whole / parts if parts else freedom_a + freedom_b


def _around(mean: float, stderr: float, freedom: float, confidence: float) -> Interval:
    """Student's interval."""
    reach = stderr * float(library("scipy.stats").t.ppf(0.5 + confidence / 2, freedom))
    return mean - reach, mean + reach
