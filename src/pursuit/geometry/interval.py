"""Numbers of which a lower and an upper bound are known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import SupportsFloat

from pursuit.arguments import describe, number
from pursuit.linalg import EPS

EXACT_TOLERANCE = 1e-9
"""Relative width up to which the two ends of an interval count as one number."""

CONTAINS_TOLERANCE = 8 * EPS
"""`value in interval` accepts values outside by this fraction: the rounding of a few operations."""


@dataclass(frozen=True, slots=True, repr=False)
class Interval:
    """A number known to lie in [lower, upper]; infinite ends say that nothing is known on that side.

    A formula gives an interval with equal ends, right to rounding. Bounds from an enumeration, an optimisation or a
    linear program are widened by what rounding may have added.

    >>> width = Interval(0.25, 0.5)
    >>> width, 0.3 in width, width.exact
    (Interval(0.25, 0.5), True, False)
    >>> Interval(2.0, 2.0)
    Interval(2, exact)
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not number(self.lower) <= number(self.upper):
            raise ValueError(
                f"Interval ends at {describe(self.lower)} and {describe(self.upper)}; give numbers, lower <= upper."
            )
        object.__setattr__(self, "lower", number(self.lower))
        object.__setattr__(self, "upper", number(self.upper))

    @classmethod
    def of(cls, value: SupportsFloat) -> Interval:
        """The interval that is one number."""
        return cls(float(value), float(value))

    @property
    def exact(self) -> bool:
        """Whether both ends agree, up to a relative 1e-9."""
        size = max(abs(self.lower), abs(self.upper))
        return self.lower == self.upper or self.upper - self.lower <= EXACT_TOLERANCE * size < math.inf

    def __contains__(self, value: float) -> bool:
        slack = CONTAINS_TOLERANCE * abs(value) if math.isfinite(value) else 0.0
        return self.lower - slack <= value <= self.upper + slack

    def scaled(self, c: float) -> Interval:
        """c times the number, for c >= 0."""
        return Interval(c * self.lower, c * self.upper) if c > 0 else Interval.of(0.0)

    def squared(self) -> Interval:
        """The square of the number, which is non-negative."""
        return Interval(max(self.lower, 0.0) ** 2, self.upper**2)

    def __repr__(self) -> str:
        return (
            f"Interval({self.upper:.10g}, exact)" if self.exact else f"Interval({self.lower:.10g}, {self.upper:.10g})"
        )
