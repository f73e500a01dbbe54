"""The exact line search: the minimum of f along a direction."""

from __future__ import annotations

import math

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
    size = space.norm(d)
    return f if not cost or not size else Tilted(f, (cost / size) * (d / size), space)


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
    space, hessian = Space.of(x), f.hessian(x)
    curvature = space.dot(d, hessian(d)) if hessian is not None else 0.0
    if f.quadratic:
        return min(-slope / curvature, reach) if curvature > 0 else _bounded(reach)
    ceiling = _ceiling(f, space, x, bool(accuracy), -1e-3 * slope * min(reach, 1.0))
    low, high, at_low, at_high, growth, last = 0.0, reach, slope, math.inf, 2.0, -slope
    size = space.norm(d)
    horizon = min(reach, 1e150 / max(size, 1e-150))  # a function that descends there descends for ever
    gamma = -slope / curvature if curvature > 0 else 1.0
    bisections, ended = 0, False  # whether the end of the interval was tried
    for _ in range(200):
        gamma = min(gamma, horizon)
        ended |= gamma == reach
        point = x + gamma * d
        value, grad = f.value_and_grad(point)
        reached = math.isfinite(value) and value <= ceiling
        derivative = space.dot(grad, d) if reached else math.inf
        enough = max(2.0 * space.eps * space.norm(grad) * size, -accuracy * slope) if reached else 0.0
        stationary = math.isfinite(derivative) and abs(derivative) <= enough
        if stationary or (derivative < 0 and gamma == reach):
            return gamma
        if derivative < 0:
            low, at_low = gamma, derivative
        else:  # also where the derivative is not finite
            high, at_high = gamma, derivative
        if (math.isfinite(high) and high - low <= 4.0 * space.eps * high) or (derivative < 0 and gamma == horizon):
            break
        hessian = f.hessian(point) if math.isfinite(derivative) else None
        curvature = space.dot(d, hessian(d)) if hessian is not None else 0.0
        if curvature > 0 and math.isfinite(curvature):
            gamma = gamma - derivative / curvature
        elif math.isfinite(at_high):
            gamma = low + (high - low) * at_low / (at_low - at_high)
        else:
            gamma = math.nan
        if math.isinf(high):  # no bracket yet: at least double, faster each time
            gamma = growth * low if math.isnan(gamma) else max(gamma, growth * low)
            growth = min(growth * growth, 1e30)
        elif high == reach and not (ended or gamma < reach):
            gamma = reach
        elif not (low < gamma < high and abs(derivative) <= 0.25 * last):
            bisections += 1
            gamma = 0.5 * (low + high) if bisections % 2 else middle_float(low, high)
        last = abs(derivative)
    else:
        gamma = low
    if math.isinf(high):
        return _bounded(high)
    return gamma if math.isfinite(at_high) else low


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
