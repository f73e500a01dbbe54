"""Step lengths along a direction, and the quadratic upper bound that most of them minimise.

A step rule is a frozen value; `begin` returns the function for one run. The smoothness constant L of the bound

    f(x + d) <= f(x) + <grad f(x), d> + L/2 ||d||^2

is the objective's, the user's, or found by `Backtracking`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from pursuit._memory import Memory, Remembers, WithMemory
from pursuit.arguments import as_bool, describe, number, use_python_numbers
from pursuit.arrays import Array, Space
from pursuit.domains import Domain, Hull
from pursuit.line_search import line_search
from pursuit.metrics import Metric, as_metric
from pursuit.objectives import Objective, Smooth, inside

T = TypeVar("T")

MAX_HALVINGS = 60
"""Halvings of a step that is to be monotone; beyond them rounding decides, and the step is 0."""


@dataclass(frozen=True, slots=True)
class Move:
    """The input of a step rule: x + gamma * direction, gamma in [0, reach], slope = <grad f(x), direction> < 0.

    `value` is f(x), `delta` the quality of the oracle's answer. A function of a Move is a step rule; what it returns is
    moved into [0, reach]:

    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([0.5, 0.4, 0.2]), ps.conv(ps.Simplex(3))
    >>> r = ps.minimize(f, domain, ps.Plain(lambda move: 1 / (move.iteration + 2)), stop=ps.Stop(iterations=3))
    >>> r.trace.value.round(4)
    array([0.225 , 0.025 , 0.025 , 0.0125])
    """

    iteration: int
    x: Array
    value: float
    direction: Array
    slope: float
    reach: float
    delta: float


Length = Callable[[Move], float]
"""A step rule for one run: the step length gamma."""


def _clip(gamma: float, reach: float) -> float:
    return max(0.0, min(gamma, reach))


# ---------------------------------------------------------------------- the upper bound


@dataclass(frozen=True)
class Backtracking:
    """Finds L during the run: tries the last L times `shrink`, and multiplies by `grow` while the upper bound fails.

    f is evaluated at most (1 - log shrink / log grow) (t + 1) + log_grow(grow L / L_0) times in t steps.

    >>> import numpy as np, pursuit as ps
    >>> f = ps.Smooth(lambda x: float(np.sum(x**4)) / 4, lambda x: x**3)    # its L depends on where x is
    >>> update = ps.Plain(ps.ShortStep(L=ps.Backtracking()))
    >>> ps.minimize(f, ps.conv(ps.Simplex(2)), update).x.round(3)
    array([0.5, 0.5])
    """

    shrink: float = 0.9
    grow: float = 2.0

    def __post_init__(self) -> None:
        if not (0 < number(self.shrink) <= 1 < number(self.grow) < math.inf):
            given = f"{describe(self.shrink)} and {describe(self.grow)}"
            raise ValueError(f"Backtracking needs 0 < shrink <= 1 < grow, not {given}.")
        use_python_numbers(self)


Smoothness = float | Backtracking | None


def check_smoothness(L: Smoothness) -> None:
    """Refuse an L that is neither a positive number, Backtracking nor None."""
    if L is not None and not isinstance(L, Backtracking) and not 0 < number(L) < math.inf:
        raise ValueError(
            f"L is {describe(L)}; give a positive number, Backtracking(), or None for the objective's own."
        )


class UpperBound(Remembers):
    """The quadratic upper bound of one run, in a metric, with a fixed L or one found by backtracking."""

    remembers = ("L",)

    def __init__(self, f: Objective, space: Space, L: Smoothness, metric: Any) -> None:
        self.f, self.space = f, space
        self.metric: Metric = as_metric(metric, space.shape)
        known = L if L is not None else (f.L if metric is None else None)
        self.rule = known if isinstance(known, Backtracking) else Backtracking()
        self.L = None if isinstance(known, Backtracking) else known
        self.fixed = self.L is not None

    def square(self, d: Array) -> float:
        """||d||^2 in the metric."""
        return self.space.dot(d, self.metric(d))

    def _guess(self, x: Array, d: Array, slope: float) -> float | None:
        """A first L: the curvature over the first thousandth of d; where there is none, or f is not finite there, the L
        for which d itself is the shortest step. None: f is level along d."""
        square, h = self.square(d), 1e-3
        value, grad = self.f.value_and_grad(x + h * d)
        rise = self.space.dot(grad, d) - slope if inside(self.space, value, grad) else math.inf
        if square > 0 and 16.0 * self.space.eps * abs(slope) < rise < math.inf:
            return 1.001 * rise / (h * square)  # for a quadratic the bound is an equality, not to be broken by rounding
        return -slope / square if square > 0 > slope else None

    def minimise(
        self,
        x: Array,
        value: float,
        along: tuple[Array, float],
        propose: Callable[[float], tuple[T, Array, float, float]],
    ) -> T | None:
        """The result of propose(L) for the first L whose bound holds at x + d; None where there is none.

        propose(L) minimises the bound with this L, plus a cost, and returns (result, d, <grad, d>, change of the cost).
        `along` is the direction towards the oracle's atoms, and its slope; the first L is guessed along it.
        """
        if self.L is None:
            guess = self._guess(x, *along)
            if guess is None:
                return None
            self.L = guess / self.rule.shrink
        if self.fixed:
            return propose(self.L)[0]
        L, slack = self.L * self.rule.shrink, 8.0 * self.space.eps * abs(value)
        while math.isfinite(L):
            result, d, slope, cost = propose(L)
            rise = slope + 0.5 * L * self.square(d)
            if rise + cost > slack:  # rounding hides the minimum of the bound
                return None
            if self.f.value(x + d) <= value + rise + slack:
                self.L = L
                return result
            L *= self.rule.grow
        return None


def _shortest(bound: UpperBound, move: Move, square: float) -> float:
    """The step that minimises slope gamma + L/2 square gamma^2 on [0, reach]."""

    def propose(L: float) -> tuple[float, Array, float, float]:
        gamma = _clip(-move.slope / (L * square), move.reach) if square > 0 else 0.0
        return gamma, gamma * move.direction, gamma * move.slope, 0.0

    return bound.minimise(move.x, move.value, (move.direction, move.slope), propose) or 0.0


# ---------------------------------------------------------------------- the rules


@dataclass(frozen=True)
class OpenLoop:
    r"""Algorithm 2, variant 0: gamma = 2 / (delta t + 2), the step that the proof covers for every delta.

    With another `power` l it is :math:`\gamma = l/(\delta t + l)`, which is faster on strongly convex sets and where
    the minimum is inside (Wirth, Kerdreux and Pokutta, 2023); with ``"log"``, :math:`l = 2 + \log(t + 1)`, which is
    nearly as fast as the best power without knowing it (Pokutta, 2024). f may increase; see `Monotone`.

    Parameters
    ----------
    power : float of at least 1, or "log"

    Examples
    --------
    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([0.5, 0.4, 0.2]), ps.conv(ps.Simplex(3))
    >>> r = ps.minimize(f, domain, ps.Plain(ps.OpenLoop()), stop=ps.Stop(iterations=3))
    >>> r.trace.value.round(4)
    array([0.225 , 0.325 , 0.0361, 0.0861])
    >>> f, ball = ps.LeastSquares([2.0, 1.0, 0.5], weights=[1.0, 4.0, 9.0]), ps.conv(ps.Ball(3, 2))
    >>> [ps.minimize(f, ball, ps.Plain(ps.OpenLoop(power))).iterations for power in (2, 4, "log")]
    [2420, 180, 87]
    """

    power: float | str = 2.0
    monotone: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (isinstance(self.power, str) and self.power == "log") and not 1 <= number(self.power) < math.inf:
            raise ValueError(f'power is {describe(self.power)}; give a number of at least 1, or "log".')
        use_python_numbers(self)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        if not isinstance(domain, Hull):
            raise ValueError(f"OpenLoop is a step inside a hull; over {domain!r} use LineSearch() or ShortStep().")

        def length(move: Move) -> float:
            power = 2.0 + math.log1p(move.iteration) if isinstance(self.power, str) else self.power
            return power / (move.delta * move.iteration + power)

        return length


@dataclass(frozen=True)
class Monotone:
    r"""A step that is halved until f does not increase, and stays within the domain of f (Carderera, Besancon and
    Pokutta, 2021): :math:`\gamma_t = 2^{-r_t} \bar\gamma_t` with the length :math:`\bar\gamma_t` of the given rule.
    The number of halvings :math:`r_t` never falls.

    Parameters
    ----------
    step : OpenLoop or another step rule

    Examples
    --------
    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([0.5, 0.4, 0.2]), ps.conv(ps.Simplex(3))
    >>> r = ps.minimize(f, domain, ps.Plain(ps.Monotone(ps.OpenLoop())), stop=ps.Stop(iterations=3))
    >>> r.trace.value.round(4)
    array([0.225 , 0.025 , 0.025 , 0.0125])
    """

    step: Any
    monotone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_step(self.step)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        inner, run = begin_step(self.step, f, domain, space), Memory(share=1.0)

        def length(move: Move) -> float:
            gamma = _clip(inner(move), move.reach)
            for halvings in range(MAX_HALVINGS):
                trial = 0.5**halvings * float(run.share)
                if f.value(move.x + trial * gamma * move.direction) <= move.value:
                    run.share = trial
                    return trial * gamma
            return 0.0

        return WithMemory(length, inner, run)


@dataclass(frozen=True)
class LineSearch:
    """Algorithm 2, variant 1, and matching pursuit: the exact minimiser of f along the direction.

    Parameters
    ----------
    secant : bool
        True: secant steps on the derivative, by gradients only. False: Newton steps where f has a Hessian.

    Examples
    --------
    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([0.5, 0.4, 0.2]), ps.conv(ps.Simplex(3))
    >>> r = ps.minimize(f, domain, ps.Plain(ps.LineSearch()), stop=ps.Stop(iterations=3))
    >>> r.trace.value.round(4)
    array([0.225 , 0.0225, 0.0017, 0.0017])
    """

    secant: bool = False
    monotone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        as_bool(self.secant, "secant")

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        f = Smooth(f.value_and_grad, convex=f.convex) if self.secant else f
        return lambda move: line_search(f, space, move.x, move.direction, move.slope, move.reach)


@dataclass(frozen=True)
class ShortStep:
    """Algorithm 2, variant 3, and variant 0 of Algorithms 3 and 4: gamma = <-g, d> / (L ||d||^2), clipped.

    Parameters
    ----------
    L : float, Backtracking or None
        Smoothness; None: the objective's, or backtracking where it has none.
    metric : positive definite matrix or diagonal, optional
        The norm of the bound; L then belongs to that norm.

    Examples
    --------
    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([0.5, 0.4, 0.2]), ps.conv(ps.Simplex(3))
    >>> r = ps.minimize(f, domain, ps.Plain(ps.ShortStep()), stop=ps.Stop(iterations=3))
    >>> r.trace.value.round(4)
    array([0.225 , 0.0225, 0.0017, 0.0017])
    """

    L: Smoothness = None
    metric: Any = None
    monotone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_smoothness(self.L)
        use_python_numbers(self)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        bound = UpperBound(f, space, self.L, self.metric)

        return WithMemory(lambda move: _shortest(bound, move, bound.square(move.direction)), bound)


@dataclass(frozen=True)
class DiameterStep:
    """Algorithm 2, variant 2: gamma = <-g, z - x> / (L diam(A)^2), clipped. The diameter may be an upper bound.

    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([0.5, 0.4, 0.2]), ps.conv(ps.Simplex(3))
    >>> r = ps.minimize(f, domain, ps.Plain(ps.DiameterStep()), stop=ps.Stop(iterations=3))
    >>> r.trace.value.round(4)
    array([0.225 , 0.0225, 0.003 , 0.002 ])
    """

    L: Smoothness = None
    diameter: float | None = None
    monotone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_smoothness(self.L)
        if self.diameter is not None and not 0 < number(self.diameter) < math.inf:
            raise ValueError(
                f"diameter is {describe(self.diameter)}; give a positive bound on it, or None for the set's own."
            )
        use_python_numbers(self)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        if not isinstance(domain, Hull):
            raise ValueError(f"DiameterStep is a step inside a hull; over {domain!r} use ShortStep().")
        diameter = self.diameter if self.diameter is not None else domain.A.diameter
        if diameter is None:
            raise ValueError(f"the diameter of {domain.A!r} is not known; give DiameterStep(diameter=...).")
        bound, square = UpperBound(f, space, self.L, None), float(diameter) * float(diameter)

        return WithMemory(lambda move: _shortest(bound, move, square), bound)


@dataclass(frozen=True)
class CurvatureStep:
    """Algorithm 5: gamma = <-g, z - x> / C_f, clipped; Algorithm 6, variant 1: gamma = rho^2 <-g, z> / C.

    Parameters
    ----------
    C : float
        Over a hull the curvature constant C_f of f over conv(A); over a span that of rho conv(A), C^MP. Any upper bound
        will do.
    rho : float
        The bound on atomic norms that C belongs to, over a span.

    Examples
    --------
    >>> import pursuit as ps
    >>> f, A = ps.LeastSquares([0.5, 0.4, 0.2]), ps.Simplex(3)
    >>> C = ps.geometry.curvature(f, A).upper
    >>> r = ps.minimize(f, ps.conv(A), ps.Plain(ps.CurvatureStep(C)), stop=ps.Stop(iterations=3))
    >>> round(C, 6), r.trace.value.round(4)
    (2.0, array([0.225 , 0.0225, 0.003 , 0.002 ]))
    """

    C: float
    rho: float = 1.0
    monotone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name, constant in (("C", self.C), ("rho", self.rho)):
            if not 0 < number(constant) < math.inf:
                raise ValueError(f"{name} is {describe(constant)}; CurvatureStep needs a positive number.")
        use_python_numbers(self)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        scale = 1.0 if isinstance(domain, Hull) else self.rho * self.rho
        return lambda move: _clip(-move.slope * scale / self.C, move.reach)


Step = OpenLoop | Monotone | LineSearch | ShortStep | DiameterStep | CurvatureStep | Length


def check_step(step: Any) -> None:
    """Refuse what is neither a step rule nor a function of a Move."""
    if isinstance(step, type) or not (hasattr(step, "begin") or callable(step)):
        raise TypeError(f"step is {describe(step)}; give a step rule such as ShortStep(), or a function of a Move.")


def begin_step(step: Any, f: Objective, domain: Domain, space: Space) -> Length:
    """A step rule, or a function of the user, for one run: no step is longer than it may be."""
    rule = step.begin(f, domain, space) if hasattr(step, "begin") else step

    def length(move: Move) -> float:
        found = rule(move)
        if math.isnan(gamma := number(found)):
            raise TypeError(f"step returned {describe(found)}; return a number, the length along move.direction.")
        return _clip(gamma, move.reach)

    return WithMemory(length, rule)
