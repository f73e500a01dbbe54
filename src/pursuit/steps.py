"""Step lengths along a direction, and the quadratic upper bound that most of them minimise.

A step rule is a frozen value; `begin` returns the function for one run. The smoothness constant L of the bound

    f(x + d) <= f(x) + <grad f(x), d> + L/2 ||d||^2

is the objective's, the user's, or found by `Backtracking`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar

from pursuit.arguments import as_bool, describe, number, use_python_numbers
from pursuit.arrays import Array, Space
from pursuit.domains import Domain, Hull
from pursuit.line_search import line_search
from pursuit.metrics import as_metric
from pursuit.objectives import Objective, Smooth, inside
from pursuit.state import Stateful

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


@dataclass(frozen=True)
class Decrease:
    r"""What a step guarantees: f falls at least as much as by the step that minimises the quadratic upper bound
    :math:`f(x) + \langle\nabla f(x), \gamma d\rangle + \frac L2\|\gamma d\|^2`. Rates of convergence follow from it.

    `L` is None where no such constant is known; `exact` says that f itself is minimised along d. `toward_only`: the
    guarantee is that of a theorem about steps d = z - x over a hull, with this `diameter` or that of the set. `moves`
    says what ends a step early: nothing ("toward"), an atom that loses its weight ("away"), or an atom that gives all
    of it to another one ("pairwise").
    """

    L: float | None
    exact: bool = False
    toward_only: bool = False
    diameter: float | None = None
    moves: Literal["toward", "away", "pairwise"] = "toward"


class StepRule:
    """The contract of a step rule: `begin` returns the step length for one run; `monotone`: f never increases.

    >>> import pursuit as ps
    >>> class Constant(ps.StepRule):
    ...     monotone = False
    ...     def begin(self, f, domain, space):
    ...         return lambda move: 0.1
    >>> f, domain = ps.LeastSquares([0.5, 0.5]), ps.conv(ps.Simplex(2))
    >>> ps.minimize(f, domain, ps.Plain(Constant()), stop=ps.Stop(iterations=2)).x
    array([0.81, 0.19])
    """

    monotone: ClassVar[bool] = True

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        """The step lengths of one run: a function of a Move, or a `Stateful` object with this call."""
        raise NotImplementedError(f"{type(self).__name__} must define begin(f, domain, space).")

    def decrease(self, f: Objective) -> Decrease | None:
        """The decrease of f that is guaranteed along any direction; None: nothing is."""
        return None


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


def guaranteed_smoothness(L: Smoothness, metric: Any, f: Objective) -> float | None:
    """The constant with which every step of an upper bound decreases f; None where L or the metric may not fit f."""
    if f.L is None or metric is not None:
        return None
    if isinstance(L, Backtracking):  # where f curves, the first estimate is its curvature along a line and 0.1 %
        return max(L.grow * f.L, 1.001 * f.L) if f.mu > 0 else None
    return f.L if L is None else L if L >= f.L else None


@dataclass(eq=False)
class UpperBound(Stateful):
    """The quadratic upper bound of one run, in a metric, with a fixed L or one found by backtracking."""

    f: Objective
    space: Space
    smoothness: Smoothness
    metric: Any
    L: float | None = field(init=False)

    def __post_init__(self) -> None:
        known = self.smoothness if self.smoothness is not None else (self.f.L if self.metric is None else None)
        self.metric = as_metric(self.metric, self.space.shape)
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


@dataclass(eq=False)
class _Shortest(Stateful):
    """The step that minimises slope gamma + L/2 ||d||^2 gamma^2 on [0, reach]; `square` may bound ||d||^2."""

    bound: UpperBound
    square: float | None = None

    def __call__(self, move: Move) -> float:
        square = self.bound.square(move.direction) if self.square is None else self.square

        def propose(L: float) -> tuple[float, Array, float, float]:
            gamma = _clip(-move.slope / (L * square), move.reach) if square > 0 else 0.0
            return gamma, gamma * move.direction, gamma * move.slope, 0.0

        return self.bound.minimise(move.x, move.value, (move.direction, move.slope), propose) or 0.0


# ---------------------------------------------------------------------- the rules


@dataclass(frozen=True)
class OpenLoop(StepRule):
    r"""Algorithm 2, variant 0: gamma = 2 / (delta t + 2), the step that the proof covers for every delta.

    With another `power` l it is :math:`\gamma = l/(\delta t + l)`, which is faster on strongly convex sets and where
    the minimum is inside (Wirth, Kerdreux and Pokutta, 2023); with ``"log"``, :math:`l = 2 + \log(t + 1)`, which is
    nearly as fast as the best power without knowing it (Pokutta, 2024). f may increase; see `Monotone`. Where
    nothing is proved of an answer (delta = 0), the step is that of the exact algorithm, and no rate is promised.

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
            return power / ((move.delta or 1.0) * move.iteration + power)

        return length

    def decrease(self, f: Objective) -> Decrease | None:
        return Decrease(f.L, toward_only=True) if self == OpenLoop() else None


@dataclass(frozen=True)
class Monotone(StepRule):
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

    def __post_init__(self) -> None:
        check_step(self.step)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        return _Halving(f, begin_step(self.step, f, domain, space))


@dataclass(eq=False)
class _Halving(Stateful):
    f: Objective
    inner: Length
    _share: float = field(default=1.0, init=False)

    def __call__(self, move: Move) -> float:
        gamma = _clip(self.inner(move), move.reach)
        for halvings in range(MAX_HALVINGS):
            trial = 0.5**halvings * self._share
            if self.f.value(move.x + trial * gamma * move.direction) <= move.value:
                self._share = trial
                return trial * gamma
        return 0.0


@dataclass(frozen=True)
class LineSearch(StepRule):
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

    def __post_init__(self) -> None:
        as_bool(self.secant, "secant")

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        f = Smooth(f.value_and_grad, convex=f.convex) if self.secant else f
        return lambda move: line_search(f, space, move.x, move.direction, move.slope, move.reach)

    def decrease(self, f: Objective) -> Decrease:
        return Decrease(f.L, exact=True)


@dataclass(frozen=True)
class ShortStep(StepRule):
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

    def __post_init__(self) -> None:
        check_smoothness(self.L)
        use_python_numbers(self)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        return _Shortest(UpperBound(f, space, self.L, self.metric))

    def decrease(self, f: Objective) -> Decrease:
        return Decrease(guaranteed_smoothness(self.L, self.metric, f))


@dataclass(frozen=True)
class DiameterStep(StepRule):
    """Algorithm 2, variant 2: gamma = <-g, z - x> / (L diam(A)^2), clipped. The diameter may be an upper bound.

    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([0.5, 0.4, 0.2]), ps.conv(ps.Simplex(3))
    >>> r = ps.minimize(f, domain, ps.Plain(ps.DiameterStep()), stop=ps.Stop(iterations=3))
    >>> r.trace.value.round(4)
    array([0.225 , 0.0225, 0.003 , 0.002 ])
    """

    L: Smoothness = None
    diameter: float | None = None

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
        return _Shortest(UpperBound(f, space, self.L, None), float(diameter) * float(diameter))

    def decrease(self, f: Objective) -> Decrease | None:
        return Decrease(f.L, toward_only=True, diameter=self.diameter) if self.L in (None, f.L) else None


@dataclass(frozen=True)
class CurvatureStep(StepRule):
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

    def __post_init__(self) -> None:
        for name, constant in (("C", self.C), ("rho", self.rho)):
            if not 0 < number(constant) < math.inf:
                raise ValueError(f"{name} is {describe(constant)}; CurvatureStep needs a positive number.")
        use_python_numbers(self)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        scale = 1.0 if isinstance(domain, Hull) else self.rho * self.rho
        return lambda move: _clip(-move.slope * scale / self.C, move.reach)


Step = StepRule | Length


def is_monotone(step: Step) -> bool:
    """Whether f never increases with these steps, as far as is known."""
    return isinstance(step, StepRule) and step.monotone


def check_step(step: Any) -> None:
    """Refuse what is neither a step rule nor a function of a Move."""
    if isinstance(step, type) or not (isinstance(step, StepRule) or callable(step)):
        raise TypeError(f"step is {describe(step)}; give a step rule such as ShortStep(), or a function of a Move.")


def begin_step(step: Any, f: Objective, domain: Domain, space: Space) -> Length:
    """A step rule, or a function of the user, for one run: no step is longer than it may be."""
    return _Clipped(step.begin(f, domain, space) if isinstance(step, StepRule) else step)


@dataclass(eq=False)
class _Clipped(Stateful):
    rule: Length

    def __call__(self, move: Move) -> float:
        length = self.rule(move)
        if math.isnan(gamma := number(length)):
            raise TypeError(f"step returned {describe(length)}; return a number, the length along move.direction.")
        return _clip(gamma, move.reach)
