"""The Universal Scalability Law with given coefficients, and the points of its curve.

    S(p) = p / D(p),   D(p) = 1 + sigma (p - 1) + kappa p (p - 1)
    seconds(p) = D(p) / (gamma p),   rate(p) = gamma S(p)

    sigma   contention: what is done one after the other. Below 0: superlinear
    kappa   coherency: what each processor spends on each other one
    gamma   work per second of one processor, as the curve has it, not as p = 1 was measured

Sources: N. Gunther, "A General Theory of Computational Scalability" (2008); N. Gunther, P. Puglia,
K. Tomasette, "Hadoop Superlinear Scalability" (2015), for sigma below 0.
"""

import math
from dataclasses import dataclass

__all__ = ["Law"]


@dataclass(frozen=True, slots=True)
class Law:
    """The curve of one set of coefficients.

    >>> law = Law(gamma=1.0, sigma=-0.0288, kappa=0.000447)
    >>> round(law.peak_p), round(law.crossover_p, 1), round(law.peak_speedup, 1)
    (48, 64.4, 73.3)
    """

    gamma: float
    sigma: float
    kappa: float

    def divisor(self, p: float) -> float:
        """Return how much of `p` processors is lost: `p` over the speedup.

        >>> Law(1.0, 0.1, 0.0).divisor(11)
        2.0
        """
        return 1 + (p - 1) * (self.sigma + self.kappa * p)

    def speedup(self, p: float) -> float:
        """Return how many times faster `p` processors are than one.

        >>> Law(1.0, 0.1, 0.0).speedup(11)
        5.5
        """
        return p / self.divisor(p)

    def efficiency(self, p: float) -> float:
        """Return the speedup for each processor.

        >>> Law(1.0, 0.1, 0.0).efficiency(11)
        0.5
        """
        return 1 / self.divisor(p)

    def rate(self, p: float) -> float:
        """Return the work per second of `p` processors.

        >>> Law(2.0, 0.0, 0.0).rate(8)
        16.0
        """
        return self.gamma * self.speedup(p)

    def seconds(self, p: float) -> float:
        """Return the seconds for one unit of work.

        >>> Law(0.5, 0.0, 0.0).seconds(4)
        0.5
        """
        return 1 / self.rate(p)

    @property
    def peak_p(self) -> float | None:
        """Where the speedup is greatest; beyond it more processors make it slower.

        >>> Law(1.0, 0.02, 0.0005).peak_p
        44.27188724235731
        >>> Law(1.0, 0.02, 0.0).peak_p
        >>> Law(1.0, 1.0, 0.1).peak_p
        1.0
        """
        if self.kappa <= 0:
            return None
        return math.sqrt(max((1 - self.sigma) / self.kappa, 1.0))

    @property
    def peak_speedup(self) -> float | None:
        """The greatest speedup that the curve has.

        >>> Law(1.0, 0.0, 0.01).peak_speedup
        5.2631578947368425
        """
        if self.peak_p is None or self.peak_p <= 1:
            return self.peak_p
        lost = self.sigma - self.kappa + 2 * math.sqrt(self.kappa * (1 - self.sigma))
        return 1 / lost if lost > 0 else None

    @property
    def crossover_p(self) -> float | None:
        """Where a superlinear speedup is linear again: below it is gained, beyond it paid back.

        >>> Law(1.0, -0.02, 0.0005).crossover_p
        40.0
        """
        if self.sigma >= 0 or self.kappa <= 0:
            return None
        crossover = -self.sigma / self.kappa
        return crossover if crossover > 1 else None

    @property
    def ceiling(self) -> float | None:
        """The speedup that contention alone would allow, with any number of processors (Amdahl).

        >>> Law(1.0, 0.02, 0.0005).ceiling
        50.0
        """
        return 1 / self.sigma if self.sigma > 0 else None

    @property
    def best_p(self) -> float | None:
        """Where the efficiency of a superlinear curve is greatest.

        >>> Law(1.0, -0.02, 0.0005).best_p
        20.5
        """
        return None if self.crossover_p is None else (1 + self.crossover_p) / 2

    def least_divisor(self, up_to: float) -> float:
        """Return the least `divisor` from 1 to `up_to`; 0 or less means a curve that breaks off.

        >>> Law(1.0, -0.1, 0.001).least_divisor(100) < 0
        True
        """
        places = [1.0, up_to]
        if self.kappa > 0:
            turn = (self.kappa - self.sigma) / (2 * self.kappa)
            places += [turn] if 1 < turn < up_to else []
        return min(map(self.divisor, places))
