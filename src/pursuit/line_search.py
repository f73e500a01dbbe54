"""The exact line search: the minimum of f along a direction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pursuit.arrays import Array, Space
from pursuit.objectives import Objective, Tilted


class UnboundedError(ArithmeticError):
    """f falls for ever along a direction of the domain.

    A line search raises it; `minimize` ends the run with `Status.UNBOUNDED`.

    >>> import numpy as np, pursuit as ps
    >>> f = ps.Smooth(lambda x: float(x[0]), lambda x: np.array([1.0, 0.0]))
    >>> ps.minimize(f, ps.lin(ps.SignedBasis(2))).status.name
    'UNBOUNDED'
    """


def tilted(f: Objective, space: Space, d: Array, cost: float) -> Objective:
    """f plus a linear function that rises by `cost` along d: f itself where that is 0."""
    if not cost or not (size := space.norm(d)):
        return f
    return Tilted(f, (cost / size) * (d / size), space)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def line_search(f: Objective, x: Array, d: Array, slope: float, reach: float, accuracy: float = 0.0) -> float:
    """argmin of f(x + gamma d) over [0, reach], to rounding: closed form for quadratics, else safeguarded Newton on the
    derivative (secant steps where no Hessian is known). Raises UnboundedError where f falls for ever.

    Newton steps that leave the bracket, or leave more than a quarter of the derivative, alternate with bisections: by
    turns in gamma and in its order of magnitude, so that every minimiser that is a float is found. Points where f is
    not defined, or larger than at x, lie beyond the minimiser that is sought: one nearest to x where there are several.
    With an `accuracy` the search ends where the derivative is at most this fraction of the slope.
    """
    if not slope < 0:
        return 0.0
    line = _Line(f, Space.of(x), d, -accuracy * slope)
    curvature = line.curvature(x)
    if f.quadratic:
        return min(-slope / curvature, reach) if curvature > 0 else _bounded(reach)
    line.ceiling = _ceiling(f, line.space, x, bool(accuracy), -1e-3 * slope * min(reach, 1.0))
    bracket = _Bracket(reach, reach, slope, -slope)
    horizon = min(reach, 1e150 / max(line.size, 1e-150))  # a function that descends there descends for ever
    gamma = -slope / curvature if curvature > 0 else 1.0
    for _ in range(200):
        gamma = min(gamma, horizon)
        point = x + gamma * d
        derivative, stationary = line.derivative(point)
        if stationary or (derivative < 0 and gamma == reach):
            return gamma
        bracket.narrow(gamma, derivative)
        if bracket.closed(4.0 * line.space.eps) or (derivative < 0 and gamma == horizon):
            break
        gamma = bracket.next(gamma, derivative, line.curvature(point, derivative))
    else:
        gamma = bracket.low
    if math.isinf(bracket.high):
        return _bounded(bracket.high)
    return gamma if math.isfinite(bracket.at_high) else bracket.low


@dataclass
class _Line:
    """f along the direction d."""

    f: Objective
    space: Space
    d: Array
    enough: float
    """The size of the derivative at which a search ends."""
    ceiling: float = math.inf

    @cached_property
    def size(self) -> float:
        """The norm of d."""
        return self.space.norm(self.d)

    def derivative(self, point: Array) -> tuple[float, bool]:
        """<grad f, d>, and whether it is small enough, or 0 to rounding; infinite where f is not defined, or above the
        ceiling."""
        value, grad = self.f.value_and_grad(point)
        if not (math.isfinite(value) and value <= self.ceiling):
            return math.inf, False
        derivative = self.space.dot(grad, self.d)
        enough = max(2.0 * self.space.eps * self.space.norm(grad) * self.size, self.enough)
        return derivative, math.isfinite(derivative) and abs(derivative) <= enough

    def curvature(self, point: Array, derivative: float = 0.0) -> float:
        """<d, H d> with the Hessian H of f; 0 where none is known, or the derivative is not finite."""
        hessian = self.f.hessian(point) if math.isfinite(derivative) else None
        return self.space.dot(self.d, hessian(self.d)) if hessian is not None else 0.0


@dataclass
class _Bracket:
    """An interval within [0, reach]: the derivative is negative at `low`, and not so at `high`, if that was tried."""

    reach: float
    high: float
    at_low: float
    last: float
    """The size of the last derivative."""
    low: float = 0.0
    at_high: float = math.inf
    growth: float = 2.0
    bisections: int = 0
    ended: bool = False
    """Whether the end of the interval was tried."""

    def narrow(self, gamma: float, derivative: float) -> None:
        self.ended |= gamma == self.reach
        if derivative < 0:
            self.low, self.at_low = gamma, derivative
        else:  # also where the derivative is not finite
            self.high, self.at_high = gamma, derivative

    def closed(self, rounding: float) -> bool:
        return math.isfinite(self.high) and self.high - self.low <= rounding * self.high

    def next(self, gamma: float, derivative: float, curvature: float) -> float:
        """Where to look next: by Newton's method or a secant, if that stays inside and is fast enough."""
        if curvature > 0 and math.isfinite(curvature):
            gamma = gamma - derivative / curvature
        elif math.isfinite(self.at_high):
            gamma = self.low + (self.high - self.low) * self.at_low / (self.at_low - self.at_high)
        else:
            gamma = math.nan
        if math.isinf(self.high):  # no bracket yet: at least double, faster each time
            least, self.growth = self.growth * self.low, min(self.growth * self.growth, 1e30)
            gamma = least if math.isnan(gamma) else max(gamma, least)
        elif self.high == self.reach and not (self.ended or gamma < self.reach):
            gamma = self.reach
        elif not (self.low < gamma < self.high and abs(derivative) <= 0.25 * self.last):
            self.bisections += 1
            odd = self.bisections % 2
            gamma = 0.5 * (self.low + self.high) if odd else middle_float(self.low, self.high)
        self.last = abs(derivative)
        return gamma


def _ceiling(f: Objective, space: Space, x: Array, rough: bool, rise: float) -> float:
    """The value beyond which f does not descend from x; `rise` is small."""
    if rough or not f.convex:
        value = f.value(x)
        return value + 4.0 * space.eps * abs(value)
    if f.L is not None:
        return math.inf
    value = f.value(x)  # beyond its domain f may be finite by rounding, and large: it must not pass for a descent
    return value + math.sqrt(space.eps) * abs(value) + rise


def middle_float(low: float, high: float) -> float:
    """The float in the middle of the list of all floats from low to high, about their geometric mean; 0 <= low <= high.

    >>> middle_float(0.0, 1.0), middle_float(1.0, 1e8)
    (1.118751109680031e-154, 10199.515625)
    """
    bits = np.array([low, high]).view(np.int64)
    return float(np.array([bits[0] + (bits[1] - bits[0]) // 2]).view(np.float64)[0])


def _bounded(reach: float) -> float:
    if math.isinf(reach):
        raise UnboundedError("f falls for ever along a direction of the domain.")
    return reach
